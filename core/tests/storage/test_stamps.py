"""A file that was written to has another stamp, and what was read is known as it was then."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from trunnion.storage.stamps import are_absent, stamp, stamps, unchanged, witness, witnessed

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_that_is_edited_and_put_back_has_another_stamp(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    details = file.stat()
    before = stamp(str(file))
    for text in ("two", "one"):
        file.write_text(text)
        os.utime(file, ns=(details.st_atime_ns, details.st_mtime_ns))
    after = stamp(str(file))
    assert before is not None
    assert after is not None
    assert after != before
    assert after._replace(changed_ns=before.changed_ns) == before


def test_there_is_none_where_there_is_no_file(tmp_path: Path) -> None:
    assert stamp(str(tmp_path / "nothing")) is None
    assert stamp("a\0b") is None


def test_a_block_collects_what_is_read_in_it_and_in_blocks_within(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in "abc"]
    for name in "abc":
        (tmp_path / name).touch()
    witness(files)  # nobody collects
    with witnessed() as outer:
        witness(files[:1])
        with witnessed() as inner:
            witness([*files[1:], str(tmp_path), str(tmp_path / "nothing")])
    gone = (str(tmp_path / "nothing"), None)
    assert inner == {gone, *((file, stamp(file)) for file in files[1:])}
    assert outer == {gone, *((file, stamp(file)) for file in files)}


def test_what_a_tool_read_and_what_is_gone_is_never_unchanged(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    other.hardlink_to(one)
    readings = []
    for names in ([one], [one, one], [other], [one, tmp_path / "nothing"]):
        with witnessed() as seen:
            witness(map(str, names))
        readings.append(seen)
    usual, twice, another, gone = readings
    assert unchanged(usual, twice)
    assert not unchanged(usual, another), "it has the same stamp"
    assert not unchanged(usual, gone)
    assert not unchanged(gone, gone)


def test_another_thread_s_reading_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with witnessed() as seen:
        thread = threading.Thread(target=witness, args=([str(tmp_path / "file")],))
        thread.start()
        thread.join()
    assert seen == set()


def test_what_many_stamps_say_is_what_each_says(tmp_path) -> None:
    (tmp_path / "file").write_text("one")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nothing").symlink_to("later")
    paths = [
        str(tmp_path),
        *(f"{tmp_path}/{name}" for name in ("file", "loop", "nothing", "later", "file/x", "a\0b")),
    ]
    assert stamps(paths) == [stamp(path) for path in paths]
    absent = [path for path in paths if stamp(path) is None]
    assert len(absent) == 5
    assert are_absent(absent[:-1])
    assert are_absent([])
    (tmp_path / "later").touch()
    assert not are_absent(absent[:-1])
    assert not are_absent([paths[-1]]), "nobody can tell"
