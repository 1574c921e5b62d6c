"""What the system refuses is said with what to do."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import DeviceRequirementError
from trunnion.storage.refusals import (
    NotKeptWarning,
    advice,
    refusals,
    refuse_noexec,
    said_by,
    warn_not_kept,
)

if TYPE_CHECKING:
    from pathlib import Path


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/some/file")


def test_a_refusal_is_typed_and_says_what_about_and_what_to_do() -> None:
    with pytest.raises(DeviceRequirementError) as caught, refusals("a disk", "or another one"):
        raise error(errno.ENOSPC)
    said = "needs a disk, got No space left on device: '/some/file'; make room on that disk; or another one"
    assert str(caught.value) == said


def test_what_is_no_refusal_passes() -> None:
    with pytest.raises(ZeroDivisionError), refusals("a disk"):
        raise ZeroDivisionError


def test_another_folder_is_named_only_where_it_would_help() -> None:
    for number, helps in (
        (errno.ENOSPC, True),
        (errno.EACCES, True),
        (errno.EFBIG, False),
        (errno.EMFILE, False),
    ):
        with pytest.raises(DeviceRequirementError) as caught, refusals("a disk", "or another one"):
            raise error(number)
        assert str(caught.value).endswith("or another one") is helps


@pytest.mark.parametrize(
    ("log", "number"),
    [
        ("cc1plus: fatal error: x.h: Too many open files\ncompilation terminated.\n", errno.EMFILE),
        ("a.cc:1:10: fatal error: x.h: Too many open files\n    1 | #include <x.h>\n", errno.EMFILE),
        ("g++: fatal error: cannot execute 'as': vfork: Resource temporarily unavailable\n", errno.EAGAIN),
        ("{standard input}: Fatal error: can't write 12 bytes to a.o: 'File too large'\n", errno.EFBIG),
        ("collect2: fatal error: ld terminated with signal 25 [File size limit exceeded]\n", errno.EFBIG),
        (
            "collect2: fatal error: ld terminated with signal 25 [File size limit exceeded], core dumped\n",
            errno.EFBIG,
        ),
        ("a.cc:1:2: error: #error no: Too many open files\n", None),
        ("a.cc:1:2: error: static assertion failed: Too many open files\n", None),
        ("    1 | // no: Too many open files\n", None),
        ("a.cc:1:2: error: 'x' was not declared\n", None),
        ("", None),
    ],
)
def test_what_a_tool_says_of_the_system_is_told_from_what_it_says_of_a_text(
    log: str, number: int | None
) -> None:
    found = said_by(log)
    assert (None if found is None else found.errno) == number


def test_there_is_advice_for_what_nobody_foresaw() -> None:
    assert advice(error(errno.ENOTTY)) == "look after that folder"
    assert advice(OSError("no number")) == "look after that folder"


def test_the_warning_names_the_caller_s_line() -> None:
    with pytest.warns(NotKeptWarning, match=r"it is not kept \(Too many open files.*ulimit -n") as caught:
        warn_not_kept("it is not kept", error(errno.EMFILE))
    assert caught[0].filename == __file__


def test_a_folder_without_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_noexec(tmp_path, "set TMPDIR")
    refuse_noexec(tmp_path / "nothing", "set TMPDIR")
    flags = os.statvfs_result((*[0] * 8, os.ST_NOEXEC, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: flags)
    with pytest.raises(DeviceRequirementError, match="mounted noexec; set TMPDIR"):
        refuse_noexec(tmp_path, "set TMPDIR")
