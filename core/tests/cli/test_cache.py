"""``trunnion cache`` looks without touching, and removes what it is told to."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import DeviceCode, ProgramBuilder
from trunnion.artifacts.entries import Entry
from trunnion.artifacts.location import VARIABLE
from trunnion.artifacts.store import ArtifactStore
from trunnion.cli.application import run
from trunnion.storage.kernel_mark import kernel_mark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = 'extern "C" __global__ void k(float* x) { x[0] = 1; }'
READING = ("info", "list", "verify", "prune", "clear")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "user"))
    return tmp_path / "user"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def say(*words: str, status: int = 0) -> Any:
        assert run(["cache", *words, "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return say


def program(source: str = SOURCE) -> trunnion.KernelProgram:
    p = ProgramBuilder("fill", DeviceCode("cuda", source))
    p.launch("k", args=(p.input("x", "float32", (4,), access="write"),), grid=1, block=1)
    return p.build()


def kept(target: str = "sm_90a", source: str = SOURCE) -> str:
    return trunnion.compile(program(source), "nvrtc", target=target).artifact.manifest.key


def refuse(monkeypatch: pytest.MonkeyPatch, call: str, place: Path) -> None:
    """Let one call of the system refuse one place, as it refuses somebody who has no rights there."""
    real = getattr(os, call)

    def refusing(path: Any = ".", *more: Any, **named: Any) -> Any:
        if not isinstance(path, int) and os.fspath(path) == str(place):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return real(path, *more, **named)

    monkeypatch.setattr(os, call, refusing)


def test_what_is_not_there_is_told_and_not_made(root, said, capsys) -> None:
    assert said("info") == {
        "folder": str(root),
        "used_by_default": True,
        "entries": 0,
        "nbytes": 0,
        "corrupt": 0,
        "oldest_use": None,
        "newest_use": None,
    }
    assert said("list") == []
    assert said("verify") == {"entries": 0, "good": True, "broken": []}
    for name in ("prune", "clear"):
        assert said(name) == {"entries": 0, "nbytes": 0, "stuck": 0}
    for name in READING:
        assert run(["cache", name]) == 0
    assert "nothing is kept" in capsys.readouterr().out
    assert not root.exists()


@pytest.mark.parametrize("name", ["info", "list", "verify", "prune", "clear"])
def test_of_a_url_the_password_is_not_shown(name, capsys) -> None:
    assert run(["cache", name, "--folder", "ftp://joe:s3cr/et@host/x"]) == 1
    told = "".join(capsys.readouterr())
    assert "expected a folder" in told
    assert "s3cr" not in told


def test_what_is_kept_is_listed(root, said, capsys) -> None:
    first, second = kept("sm_80"), kept("sm_90a")
    os.utime(root / "entries" / first, (0, 0))
    rows = said("list")
    assert [row["key"] for row in rows] == [second, first]
    assert rows[1]["used"] == "1970-01-01T00:00:00Z"
    assert {(row["program"], row["backend"], row["problem"]) for row in rows} == {("fill", "nvrtc", "")}
    assert [row["target"] for row in rows] == ["cuda:sm_90a", "cuda:sm_80"]
    told = said("info")
    assert (told["entries"], told["oldest_use"]) == (2, "1970-01-01T00:00:00Z")
    assert told["nbytes"] == sum(row["nbytes"] for row in rows)
    assert run(["cache", "list"]) == 0
    assert first[:12] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (253402300799, "9999-12-31T23:59:59Z"),
        (253402300800, "after the year 9999"),
        (10**12, "after the year 9999"),
        (1e300, "after the year 9999"),
        (float("inf"), "after the year 9999"),
        (-62135596800, "0001-01-01T00:00:00Z"),
        (-(10**12), "before the year 1"),
    ],
)
def test_a_time_that_no_calendar_has_is_told_in_words(
    root, said, capsys, monkeypatch, seconds, shown
) -> None:
    """A file's time may be any: a clock was wrong, or somebody set it. Not every file system keeps such a one."""
    key = kept()
    monkeypatch.setattr(ArtifactStore, "entries", lambda _: [Entry(key, 1, seconds)])
    assert said("list")[0]["used"] == shown
    told = said("info")
    assert (told["oldest_use"], told["newest_use"]) == (shown, shown)
    assert run(["cache", "list"]) == run(["cache", "info"]) == 0


@pytest.mark.parametrize("command", ["info", "list", "verify", "explain"])
def test_to_look_changes_nothing(root, said, tmp_path, command: str) -> None:
    """Not where a builder died, nor in a copy of the entries alone."""
    key = kept()
    (tmp_path / "fill.json").write_text(program().to_json())
    words = (str(tmp_path / "fill.json"), "--target", "sm_90a") if command == "explain" else ()
    died = root / "staging" / f"{key}-{kernel_mark()}-x"
    died.mkdir()
    copy = tmp_path / "copy"
    shutil.copytree(root / "entries", copy / "entries")
    for folder in (root, copy):
        before = sorted(folder.rglob("*"))
        said(command, *words, "--folder", str(folder))
        assert sorted(folder.rglob("*")) == before


def test_what_was_changed_is_found_and_stays(root, said, capsys) -> None:
    good, broken = kept("sm_80"), kept("sm_90a")
    (root / "entries" / broken / "image.cubin").write_bytes(b"")
    told = said("verify", status=1)
    assert (told["entries"], told["good"]) == (2, False)
    assert [(row["key"], "image.cubin" in row["problem"]) for row in told["broken"]] == [(broken, True)]
    assert run(["cache", "verify"]) == 1
    assert "1 of 2 artifacts are whole" in capsys.readouterr().out
    assert {one.key for one in ArtifactStore(root).entries()} == {good, broken}
    (root / "entries" / broken / "manifest.json").write_bytes(b"\x1b[31m")
    assert said("list")[0]["problem"] == "its manifest cannot be used"


def test_pruning_and_clearing(root, said) -> None:
    old = kept("sm_80")
    kept("sm_90a")
    os.utime(root / "entries" / old, (0, 0))
    assert said("prune", "--max-days", "30000")["entries"] == 0
    assert said("prune")["entries"] == 1
    assert said("prune", "--max-bytes", "100000000")["entries"] == 0
    assert said("prune", "--max-bytes", "0")["entries"] == 1
    kept()
    gone = said("clear")
    assert (gone["entries"], gone["stuck"]) == (1, 0)
    assert gone["nbytes"] > 1000
    assert said("info")["entries"] == 0


@pytest.mark.parametrize("words", [["clear"], ["prune", "--max-bytes", "0"]])
def test_what_cannot_be_removed_is_told(root, said, capsys, monkeypatch: pytest.MonkeyPatch, words) -> None:
    key, other = kept("sm_80"), kept("sm_90a")
    refuse(monkeypatch, "rename", root / "entries" / key)
    told = said(*words, status=1)
    assert (told["entries"], told["stuck"]) == (1, 1)
    assert run(["cache", *words]) == 1
    assert "1 cannot be removed" in capsys.readouterr().out
    assert {one.key for one in ArtifactStore(root).entries()} == {key} != {other}


@pytest.mark.parametrize("words", [["--max-bytes", "-1"], ["--max-bytes", "1G"], ["--max-days", "nan x"]])
def test_what_is_no_limit_is_refused(root, said, words) -> None:
    assert said("prune", *words, status=2)["error"]["type"] == "UsageError"


def test_what_cannot_be_read_is_not_called_whole(root, said, monkeypatch: pytest.MonkeyPatch) -> None:
    key = kept()
    refuse(monkeypatch, "scandir", root / "entries" / key)
    refuse(monkeypatch, "open", root / "entries" / key)
    told = said("verify", status=1)
    assert (told["entries"], told["good"]) == (1, False)
    assert "Permission denied" in told["broken"][0]["problem"]
    assert said("info")["entries"] == 1


@pytest.mark.parametrize("command", [*READING, "explain"])
@pytest.mark.parametrize("call", ["scandir", "stat"])
def test_a_store_that_cannot_be_read_is_a_typed_error(
    root, said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str, command: str
) -> None:
    kept()
    (tmp_path / "fill.json").write_text(program().to_json())
    words = (str(tmp_path / "fill.json"), "--target", "sm_90a") if command == "explain" else ()
    refuse(monkeypatch, call, root / "entries")
    error = said(command, *words, status=1)["error"]
    assert error["type"] == "ArtifactError"
    assert "Permission denied" in error["message"]


@pytest.mark.parametrize("command", READING)
def test_a_folder_that_is_no_store_is_refused_and_left_alone(tmp_path, said, command: str) -> None:
    (tmp_path / "mine").write_text("mine")
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / "mine"):
        assert said(command, "--folder", str(folder), status=1)["error"]["type"] == "ArtifactError"
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_a_folder_can_be_named(root, said, tmp_path) -> None:
    trunnion.compile(program(), "nvrtc", target="sm_90a", cache=tmp_path / "other")
    told = said("info", "--folder", str(tmp_path / "other"))
    assert (told["entries"], told["used_by_default"]) == (1, False)
    assert said("info")["entries"] == 0


def test_an_environment_that_nobody_understands_is_refused(monkeypatch, said) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    assert said("info", status=1)["error"]["type"] == "ArgumentValueError"


def explained(said, tmp_path: Path, *words: str, source: str = SOURCE) -> dict[str, Any]:
    (tmp_path / "p.json").write_text(program(source).to_json())
    return said("explain", str(tmp_path / "p.json"), *words)


def test_a_hit_and_what_differs_are_explained(root, said, tmp_path, capsys) -> None:
    empty = explained(said, tmp_path, "--target", "sm_90a")
    assert (empty["hit"], empty["nearest"], empty["differences"]) == (False, None, [])
    assert not root.exists()
    key = kept()
    assert empty["key"] == key
    assert explained(said, tmp_path, "--target", "sm_90a")["hit"]
    told = explained(said, tmp_path, "--target", "sm_80")
    assert told["nearest"] == {"key": key, "program": "fill", "target": "cuda:sm_90a"}
    (one,) = told["differences"]
    assert one == {"name": "target", "here": "cuda:sm_80", "kept": "cuda:sm_90a", "places": []}
    told = explained(said, tmp_path, "--target", "sm_90a", source=SOURCE + "\n")
    assert {row["name"]: row["places"] for row in told["differences"]}["program"] == ["code[0].source"]
    for target in ("sm_80", "sm_90a"):
        assert run(["cache", "explain", str(tmp_path / "p.json"), "--target", target]) == 0
    assert "miss" in capsys.readouterr().out


def test_what_was_compiled_with_options_is_explained(root, said, tmp_path) -> None:
    options = {"nvrtc": {"lineinfo": True, "maxrregcount": 32}}
    key = trunnion.compile(program(), "nvrtc", target="sm_90a", options=options).artifact.manifest.key
    words = ("--target", "sm_90a", "--option", "nvrtc.maxrregcount=32", "--option")
    told = explained(said, tmp_path, *words, "nvrtc.lineinfo=true")
    assert (told["hit"], told["key"]) == (True, key)
    (one,) = explained(said, tmp_path, *words, "nvrtc.lineinfo=false")["differences"]
    assert (one["name"], one["places"]) == ("options", ["lineinfo"])


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("lineinfo", "got 'lineinfo', expected PLUGIN.OPTION=VALUE"),
        ("nvrtc=1", "got 'nvrtc=1', expected PLUGIN.OPTION=VALUE"),
        (".x=1", "got '.x=1', expected PLUGIN.OPTION=VALUE"),
        ("nvcc.lineinfo=true", "got options for 'nvcc', expected only nvrtc"),
    ],
)
def test_an_option_that_is_none_is_refused(root, tmp_path, capsys, option: str, problem: str) -> None:
    (tmp_path / "p.json").write_text(program().to_json())
    words = ["cache", "explain", str(tmp_path / "p.json"), "--target", "sm_90a", "--option", option]
    assert run(words) == 1
    assert problem in " ".join(capsys.readouterr().err.split())


def test_of_long_inputs_what_differs_is_told_in_words(root, said, tmp_path, monkeypatch) -> None:
    """Whoever sees that a digest differs knows nothing of what to do."""
    kept()
    monkeypatch.setenv("NVRTC_SOMETHING", "1")  # the compiler's own variables are one phrase of what it says
    (one,) = explained(said, tmp_path, "--target", "sm_90a")["differences"]
    assert one["name"] == "compiler"
    assert one["here"].startswith("environment ")
    assert one["kept"] == "nothing more"


def test_where_a_compilation_does_not_look_by_itself_is_told(
    root, said, tmp_path, monkeypatch, capsys
) -> None:
    kept()
    assert explained(said, tmp_path, "--target", "sm_90a")["used_by_default"]
    assert not explained(said, tmp_path, "--target", "sm_90a", "--folder", str(root))["used_by_default"]
    monkeypatch.setenv(VARIABLE, "0")
    told = explained(said, tmp_path, "--target", "sm_90a")
    assert not told["used_by_default"]
    assert (told["hit"], told["problem"]) == (False, f"the cache is switched off: {VARIABLE} is 0")
    assert explained(said, tmp_path, "--target", "sm_90a", "--folder", str(root))["hit"], "it was named"
    assert run(["cache", "explain", str(tmp_path / "p.json"), "--target", "sm_90a"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("miss")
    assert "nothing is looked up, and nothing kept: the cache is switched off" in shown
    assert not re.search("built again|only if it is told|nothing else is kept", shown)


def test_to_explain_makes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(program().to_json())
    words = ("cache", "explain", str(tmp_path / "p.json"), "--target", "sm_90a")
    home = tmp_path / "home"
    for backend in ("nvrtc", "tvm_ffi"):
        subprocess.run(
            [sys.executable, "-m", "trunnion", *words, "--backend", backend],
            env={**os.environ, "XDG_CACHE_HOME": str(home)},
            check=True,
            capture_output=True,
        )
    assert not home.exists()


def test_a_store_that_is_not_there_is_not_a_miss(tmp_path: Path, capsys) -> None:
    (tmp_path / "p.json").write_text(program().to_json())
    words = ["cache", "explain", str(tmp_path / "p.json"), "--target", "sm_90a"]
    assert run([*words, "--folder", str(tmp_path / "none")]) == 1
    assert "there is no store at" in capsys.readouterr().err


def test_what_is_kept_and_broken_is_explained(root, said, tmp_path, capsys) -> None:
    (root / "entries" / kept() / "image.cubin").write_bytes(b"")
    told = explained(said, tmp_path, "--target", "sm_90a")
    assert (told["hit"], "image.cubin" in told["problem"]) == (False, True)
    assert run(["cache", "explain", str(tmp_path / "p.json"), "--target", "sm_90a"]) == 0
    assert "cannot be used" in capsys.readouterr().out


def test_what_never_comes_again_is_explained(root, said, tmp_path) -> None:
    """A header whose name nobody can know: a key of it is never the same twice."""
    path = tmp_path / "include"
    path.mkdir()
    for number in range(2001):
        (path / f"{number}.h").touch()
    source = "#define NAME <x.h>\n#include NAME\n" + SOURCE
    p = ProgramBuilder("fill", DeviceCode("cuda", source, options=(f"--include-path={path}",)))
    p.launch("k", args=(p.input("x", "float32", (4,), access="write"),), grid=1, block=1)
    (tmp_path / "p.json").write_text(p.build().to_json())
    told = said("explain", str(tmp_path / "p.json"), "--target", "sm_90a")
    assert told["changing"] == ["environment headers that nobody can name"]


def test_an_image_has_no_key(tmp_path, said) -> None:
    (tmp_path / "x.ptx").write_text("")
    assert said("explain", str(tmp_path / "x.ptx"), status=1)["error"]["type"] == "ProgramError"
