"""An answer is asked for once, and again as soon as it could be another one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion.storage import remembered as subject
from trunnion.storage.remembered import Answer, remembered

if TYPE_CHECKING:
    from pathlib import Path

AGES_AGO = 10**9


class Tool:
    """It says what is in a file, and how often it was asked."""

    def __init__(self, folder: Path, *, lasting: bool = True) -> None:
        self.file, self.folder, self.lasting = folder / "read" / "file", folder / "read", lasting
        self.asked = 0
        self.folder.mkdir()
        self.file.write_text("one")

    def __call__(self) -> Answer:
        self.asked += 1
        said = {"it": self.file.read_text() if self.file.exists() else "nothing"}
        return Answer(said, frozenset({str(self.file)}), frozenset({str(self.folder)}), self.lasting)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of this test's own, and nothing known."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: folder / name)
    subject._memory.cache_clear()
    return folder / "trunnion" / "remembered"


@pytest.fixture
def settled(monkeypatch):
    """Let every file have changed long ago."""
    monkeypatch.setattr(subject, "_SETTLED", -(10**18))


@pytest.fixture
def tool(tmp_path):
    return Tool(tmp_path)


def asked(tool: Tool, question: str = "what") -> str:
    return remembered(question, tool)["it"]


def another_process() -> None:
    subject._memory.cache_clear()


def test_it_is_asked_once_by_all_processes(cache, settled, tool, monkeypatch) -> None:
    assert [asked(tool) for _ in range(3)] == ["one"] * 3
    another_process()
    assert asked(tool) == "one"
    assert tool.asked == 1
    asked(tool, "something else")
    assert tool.asked == 2


@pytest.mark.parametrize("how", ["edited", "dated", "replaced", "linked", "removed", "joined"])
def test_it_is_asked_again_once_something_changes(cache, settled, tool, monkeypatch, how) -> None:
    asked(tool)
    before = tool.file.stat()
    other = tool.folder.with_name("other")
    other.write_text("two")
    match how:
        case "edited":
            tool.file.write_text("two")
        case "dated":  # the same size, and the time that it had
            tool.file.write_text("two")
            os.utime(tool.file, ns=(before.st_atime_ns, before.st_mtime_ns))
        case "replaced":
            other.replace(tool.file)
        case "linked":
            tool.file.unlink()
            tool.file.symlink_to(other)
        case "removed":
            tool.file.unlink()
        case _:
            (tool.folder / "another").touch()
    known = subject._memory()
    another_process()
    assert not any(record.holds() for record in known.values())
    assert asked(tool) == {"removed": "nothing", "joined": "one"}.get(how, "two")
    assert tool.asked == 2


def test_a_folder_that_appears_is_a_change(cache, settled, tmp_path) -> None:
    folder = tmp_path / "later"
    found = []

    def ask() -> Answer:
        found.append(folder.exists())
        return Answer({}, folders=frozenset({str(folder)}))

    remembered("what", ask)
    remembered("what", ask)
    folder.mkdir()
    remembered("what", ask)
    assert found == [False, True]


def test_what_changed_just_now_is_not_remembered(cache, tool, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_SETTLED", 10**18)
    for _ in range(2):
        asked(tool)
    assert tool.asked == 2
    monkeypatch.setattr(subject.time, "time_ns", lambda now=subject.time.time_ns: now() + 2 * 10**18)
    for _ in range(2):
        asked(tool)
    assert tool.asked == 3


def test_what_changes_while_it_is_read_is_not_remembered(cache, tool, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_SETTLED", 0)
    now = subject.time.time_ns()
    monkeypatch.setattr(subject.time, "time_ns", lambda: now + AGES_AGO)

    def ask() -> Answer:
        answer = tool()
        tool.file.write_text("two")
        os.utime(tool.file, ns=(0, now + 2 * AGES_AGO))
        return answer

    assert remembered("what", ask)["it"] == "one"
    assert asked(tool) == "two"


def test_what_is_not_all_is_not_remembered(cache, settled, tmp_path) -> None:
    tool = Tool(tmp_path, lasting=False)
    for _ in range(3):
        asked(tool)
    assert tool.asked == 3


def test_what_was_read_and_is_gone_is_not_remembered(cache, settled, tool) -> None:
    tool.file.unlink()
    for _ in range(2):
        assert asked(tool) == "nothing"
    assert tool.asked == 2


def _in_the_first_form(data: bytes) -> bytes:
    """What trunnion wrote before files had a seal, with the same name: well-formed, and of no use."""
    said, paths, *_ = json.loads(data.partition(b"\n")[2])
    return json.dumps({"said": said, "stamps": dict.fromkeys(paths)}).encode()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"{",
        lambda _: b"[]",
        lambda _: b"\0\xff",
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data.replace(b'"one"', b'"two"'),
        lambda data: data.replace(b'"it"', b'"its"'),
        lambda data: data.replace(b'"one"', b"1"),
        lambda data: data.replace(b'{"it": "one"}', b"{}"),
        lambda data: data.replace(b'{"it": "one"}', b"[]"),
        lambda data: data.replace(b"remembers 2", b"remembers 1"),
        lambda data: data.partition(b"\n")[2],
        _in_the_first_form,
    ],
)
def test_what_is_not_what_was_written_is_asked_for_again(cache, settled, tool, damage) -> None:
    asked(tool)
    (record,) = cache.iterdir()
    whole = record.read_bytes()
    record.write_bytes(damage(whole))
    assert record.read_bytes() != whole
    another_process()
    assert asked(tool) == "one"
    assert tool.asked == 2
    assert record.read_bytes() == whole


def test_the_answer_to_another_question_is_none(cache, settled, tool) -> None:
    """A file that was copied to another one's name is whole, and says other things."""
    asked(tool)
    (record,) = cache.iterdir()
    asked(tool, "something else")
    (other,) = {*cache.iterdir()} - {record}
    other.write_bytes(record.read_bytes())
    another_process()
    asked(tool, "something else")
    assert tool.asked == 3


def test_what_others_could_have_written_is_not_read(cache, settled, tool, monkeypatch) -> None:
    asked(tool)
    (record,) = cache.iterdir()
    for place, mode in ((record, 0o620), (cache, 0o702)):
        usual = place.stat().st_mode & 0o777
        assert usual & 0o077 == 0
        place.chmod(mode)
        another_process()
        before = tool.asked
        asked(tool)
        assert tool.asked == before + 1
        place.chmod(usual)


@pytest.fixture
def linked(cache, tmp_path, monkeypatch):
    """Reach the cache through a link, in a folder that others may write to, as long as nobody says otherwise."""
    everybodys = tmp_path / "everybodys"
    everybodys.mkdir()
    (tmp_path / "cache").mkdir()
    (everybodys / "link").symlink_to(tmp_path / "cache")
    everybodys.chmod(0o777)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: everybodys / "link" / name)
    return everybodys


def test_behind_a_link_that_others_could_have_made_nothing_is_read_written_or_removed(
    cache, settled, tool, linked, monkeypatch
) -> None:
    linked.chmod(0o700)
    asked(tool)
    linked.chmod(0o777)
    monkeypatch.setattr(subject, "_MOST_KEPT", 1)
    kept = sorted(cache.iterdir())
    for question in ("what", "another"):
        another_process()
        asked(tool, question)
    assert tool.asked == 3
    assert sorted(cache.iterdir()) == kept


@pytest.mark.parametrize("mode", [0o700, 0o1777])
def test_behind_a_link_of_one_s_own_it_is_found(cache, settled, tool, linked, mode) -> None:
    linked.chmod(mode)
    for _ in range(2):
        another_process()
        asked(tool)
    assert tool.asked == 1


def test_where_there_is_no_link_nobody_looks_for_one(cache, settled, tool, monkeypatch) -> None:
    """A hit of a new process waits for it."""
    asked(tool)
    monkeypatch.setattr(subject, "check_links", lambda _: pytest.fail("looked for links"))
    another_process()
    assert asked(tool) == "one"
    assert tool.asked == 1


def test_where_the_system_does_not_say_what_is_open_each_folder_is_looked_at(
    cache, settled, tool, monkeypatch
) -> None:
    def refuse(path):
        raise FileNotFoundError(path)

    asked(tool)
    monkeypatch.setattr(os, "readlink", refuse)
    another_process()
    assert asked(tool) == "one"
    assert tool.asked == 1


def test_a_cache_that_cannot_be_written_to_costs_time_only(cache, settled, tool, monkeypatch) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("in the way")
    for _ in range(2):
        assert asked(tool) == "one"
    assert tool.asked == 1
    another_process()
    assert asked(tool) == "one"
    assert tool.asked == 2


def test_what_is_kept_is_bounded(cache, settled, tool, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_MOST_KEPT", 4)
    monkeypatch.setattr(subject, "_MOST_KNOWN", 2)
    for index in range(20):
        asked(tool, str(index))
        assert len(subject._memory()) <= 2
        assert len(list(cache.iterdir())) <= 4
    another_process()
    before = tool.asked
    asked(tool, "19")
    assert tool.asked == before
