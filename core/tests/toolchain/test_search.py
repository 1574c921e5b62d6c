"""Why one place is taken and another is not."""

from __future__ import annotations

import os
import site
from pathlib import Path

import pytest

from trunnion.toolchain import search
from trunnion.toolchain.search import (
    Place,
    judge,
    listed_by_loader,
    loader_places,
    root_places,
    site_folders,
    wheel_places,
)


def test_every_place_has_its_reason(tmp_path: Path) -> None:
    first, second = tmp_path / "a.so", tmp_path / "b.so"
    first.write_bytes(b"1")
    second.write_bytes(b"2")
    (tmp_path / "loose.so").symlink_to(tmp_path / "nowhere")
    (tmp_path / "alias.so").symlink_to(first)
    places = [
        Place("unset", "", "it is not set"),
        Place("gone", str(tmp_path / "c.so")),
        Place("far", str(tmp_path / "no" / "c.so")),
        Place("loose", str(tmp_path / "loose.so")),
        Place("good", str(first)),
        Place("alias", str(tmp_path / "alias.so")),
        Place("late", str(second)),
        Place("bare", str(second), "it holds no x.h"),
    ]
    reasons = {one.origin: (one.chosen, one.reason) for one in judge(places, str(first))}
    assert reasons == {
        "unset": (False, "it is not set"),
        "gone": (False, "it does not exist"),
        "far": (False, "its folder does not exist"),
        "loose": (False, "a link to nothing"),
        "good": (True, "this one is used"),
        "alias": (False, "the same, under another name"),
        "late": (False, "another one comes first"),
        "bare": (False, "it holds no x.h"),
    }


def test_a_choice_that_no_place_explains_is_told_all_the_same(tmp_path: Path) -> None:
    (only,) = judge([], str(tmp_path), "the canary")
    assert (only.origin, only.path, only.chosen) == ("the canary", str(tmp_path), True)


def test_what_is_there_and_was_not_taken_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"")
    (one,) = judge([Place("a wheel", str(tmp_path / "a.so"))], "")
    assert one.reason == "it is there, and could not be used"


def test_names_that_are_no_text_are_spelled_out(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path / "x") + b"\xff")
    (one,) = judge([Place("a wheel", name)], "")
    assert one.path.endswith("x\\xff")


def test_roots_are_those_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_ROOT", str(tmp_path))
    monkeypatch.setenv("EMPTY_ROOT", "")
    monkeypatch.delenv("NO_ROOT", raising=False)
    found = list(root_places(("NO_ROOT", "EMPTY_ROOT", "ONE_ROOT"), ("lib64/a", "lib/a")))
    assert found == [
        Place("NO_ROOT", "", "it is not set"),
        Place("EMPTY_ROOT", "", "it is not set"),
        Place("ONE_ROOT", f"{tmp_path}/lib64/a"),
        Place("ONE_ROOT", f"{tmp_path}/lib/a"),
    ]


def test_wheels_are_looked_for_where_packages_are() -> None:
    found = [place.path for place in wheel_places(("new/a.so", "old/a.so"))]
    assert found == [f"{folder}/{path}" for path in ("new/a.so", "old/a.so") for folder in site_folders()]


def test_the_users_packages_come_after_an_environments_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "getsitepackages", lambda: ["/env", "/system"])
    monkeypatch.setattr(site, "getusersitepackages", lambda: "/user")
    monkeypatch.setattr("sys.prefix", "/env")
    monkeypatch.setattr("sys.base_prefix", "/usr")
    assert site_folders() == ("/env", "/user", "/system")
    monkeypatch.setattr("sys.prefix", "/usr")
    assert site_folders() == ("/user", "/env", "/system")


def test_the_loader_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/one::/two")
    by_origin: dict[str, list[str]] = {}
    for place in loader_places("libc.so.6"):
        by_origin.setdefault(place.origin, []).append(place.path)
    assert by_origin["LD_LIBRARY_PATH"] == ["/one/libc.so.6", "libc.so.6", "/two/libc.so.6"]
    assert Path(by_origin["the loader's cache"][0]).is_file()


@pytest.mark.parametrize("folder", [b"my libs", b"gr\xfcn", b"a => b"])
def test_the_loader_s_cache_may_list_any_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: bytes
) -> None:
    path = b"/opt/" + folder + b"/libother.so.1"
    (tmp_path / "listed").write_bytes(b"1 libs found\n\tlibother.so.1 (libc6,x86-64) => " + path + b"\n")
    (tmp_path / "ldconfig").write_text(f"#!/bin/sh\nexec cat '{tmp_path}/listed'\n")
    (tmp_path / "ldconfig").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert listed_by_loader("libother.so.1") == [os.fsdecode(path)]
    assert os.fsdecode(path) in [place.path for place in loader_places("libother.so.1")]


@pytest.mark.parametrize("tool", [None, "/nonexistent/ldconfig"])
def test_without_the_loaders_tool(monkeypatch: pytest.MonkeyPatch, tool: str | None) -> None:
    monkeypatch.setattr(search.shutil, "which", lambda *_, **__: tool)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    notes = [place.note for place in loader_places("libc.so.6") if not place.path]
    assert notes == ["it is not set", "it does not list libc.so.6"]
