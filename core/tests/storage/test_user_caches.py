"""A user without a home: nothing is kept for one, and nothing fails."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import platformdirs
import pytest

from trunnion import distributions
from trunnion.artifacts.default_store import default_store
from trunnion.codegen.cpp.runtime_parts import renewed_object, runtime_header, runtime_object
from trunnion.sim import shim
from trunnion.storage import remembered
from trunnion.storage.refusals import NotKeptWarning
from trunnion.storage.user_caches import user_caches
from trunnion.testing.kept_launchers import launcher_folder


def _relative(name: str) -> Path:
    return Path("~/.cache", name)


def _refused(name: str) -> NoReturn:
    raise RuntimeError(f"could not determine the home directory for {name}")


@pytest.fixture(params=[_relative, _refused], ids=["platformdirs 4.0", "platformdirs 4.14"], autouse=True)
def homeless(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody know a home, and this process be in an empty folder."""
    monkeypatch.setattr(platformdirs, "user_cache_path", request.param)
    monkeypatch.chdir(tmp_path)


def test_there_is_no_folder() -> None:
    with pytest.raises(OSError, match="this user has no home; set XDG_CACHE_HOME to a folder of yours"):
        user_caches()


def test_plugins_are_found_and_nothing_is_kept(tmp_path: Path) -> None:
    remembered._memory.cache_clear()
    distributions._names.cache_clear()
    assert "nvrtc" in {one.name for one in distributions.announced("trunnion")}
    assert default_store() is None
    assert not [*tmp_path.iterdir()]


def test_what_launchers_share_is_made_each_time(tmp_path: Path) -> None:
    with pytest.warns(NotKeptWarning, match="this user has no home"):
        assert runtime_object(lambda: "it", lambda _: b"object", tmp_path) == b"object"
    assert renewed_object(b"doubtful", lambda: "it", lambda _: b"object", tmp_path) == b"object"
    assert runtime_header("a.hpp", lambda: "it", lambda *_: None) is None
    assert not [*tmp_path.iterdir()]


def test_the_simulated_driver_is_made_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    monkeypatch.setattr(shim, "_check_process", lambda: None)
    monkeypatch.setattr(shim, "_build", lambda *made: built.append(made))
    monkeypatch.setattr(shim, "Shim", lambda path: built.append(path.name))
    with pytest.warns(NotKeptWarning, match="the simulated driver is compiled anew each time"):
        shim.load_shim()
    assert built[1:] == [shim._SONAME]


def test_the_suite_keeps_no_launchers() -> None:
    assert launcher_folder() is None
