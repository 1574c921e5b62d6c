"""The store that nobody asked for never refuses, never warns, and tells each thing once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunnion.artifacts import default_store as module
from trunnion.artifacts.default_store import DefaultStore, default_store
from trunnion.artifacts.location import VARIABLE
from trunnion.artifacts.manifest import artifact_key
from trunnion.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

INPUTS = {"plan": "1"}
KEY = artifact_key(INPUTS)


@pytest.fixture(autouse=True)
def _told_nothing_yet() -> None:
    module._tell_once.cache_clear()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "user"))
    return tmp_path / "user"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "trunnion"]


def test_it_is_a_store(root: Path, make_artifact, caplog: pytest.LogCaptureFixture) -> None:
    made = make_artifact().keyed(INPUTS)
    store = default_store()
    assert isinstance(store, DefaultStore)
    assert store.root == root
    assert store.get_or_build(KEY, lambda _: made) is made
    assert default_store().get(KEY) == made
    assert said(caplog) == []


def test_there_is_none_where_it_is_turned_off(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    assert default_store() is None
    assert said(caplog) == []


def test_what_nobody_understands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "of")
    with pytest.raises(ArgumentValueError):
        default_store()


def test_of_a_url_no_part_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "ftp://joe:s3cr/et@host/x")
    with pytest.raises(ArgumentValueError, match="got a URL, expected 0 ") as refused:
        default_store()
    assert "s3cr" not in str(refused.value)


def others_may_write(root: Path) -> Path:
    root.mkdir()
    root.chmod(0o777)
    return root


def is_a_file(root: Path) -> Path:
    root.write_text("")
    return root


@pytest.mark.parametrize("made", [others_may_write, is_a_file, lambda _: Path("/proc/nowhere/below")])
def test_where_there_can_be_none_that_is_told_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog, made: Callable[[Path], Path]
) -> None:
    monkeypatch.setenv(VARIABLE, str(made(root)))
    assert default_store() is None
    assert default_store() is None
    (text,) = said(caplog)
    assert text.startswith("what is compiled is not kept: ")


@pytest.mark.parametrize("what", ["corrupt", "of others"])
def test_what_cannot_be_used_is_built_again(root: Path, make_artifact, caplog, what: str) -> None:
    made = make_artifact().keyed(INPUTS)
    store = default_store()
    store.get_or_build(KEY, lambda _: made)
    image = root / "entries" / KEY / "image.cubin"
    image.write_bytes(b"flip") if what == "corrupt" else image.chmod(0o666)
    assert store.get(KEY) is None
    assert store.get_or_build(KEY, lambda _: made) is made
    assert store.get(KEY) == made
    (text,) = said(caplog)
    assert "is not used" in text


def test_what_cannot_be_kept_is_returned(root: Path, make_artifact, caplog, monkeypatch) -> None:
    made, store = make_artifact().keyed(INPUTS), default_store()

    def refused(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("trunnion.artifacts.store.publish", refused)
    assert [store.get_or_build(KEY, lambda _: made) for _ in range(2)] == [made, made]
    (text,) = said(caplog)
    assert text.endswith("make room on that disk")
