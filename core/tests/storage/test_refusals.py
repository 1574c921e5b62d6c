"""What the system refuses is said with what to do."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import DeviceRequirementError
from trunnion.storage.refusals import NotKeptWarning, advice, refusals, refuse_noexec, warn_not_kept

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


def test_there_is_advice_for_what_nobody_foresaw() -> None:
    assert advice(error(errno.ENOTTY)) == "look after that folder"
    assert advice(OSError("no number")) == "look after that folder"


def test_the_warning_names_the_caller_s_line() -> None:
    with pytest.warns(NotKeptWarning, match=r"it is not kept \(Too many open files.*ulimit -n") as caught:
        warn_not_kept("it is not kept", error(errno.EMFILE), stacklevel=1)
    assert caught[0].filename == __file__


def test_a_folder_without_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_noexec(tmp_path, "set TMPDIR")
    refuse_noexec(tmp_path / "nothing", "set TMPDIR")
    flags = os.statvfs_result((*[0] * 8, os.ST_NOEXEC, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: flags)
    with pytest.raises(DeviceRequirementError, match="mounted noexec; set TMPDIR"):
        refuse_noexec(tmp_path, "set TMPDIR")
