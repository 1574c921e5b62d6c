"""Compilers of this machine, and programs that pretend to be one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


@pytest.fixture(params=COMPILERS or ["g++"])
def real(request):
    """The path of each compiler that this machine has; without one, the tests say so by failing."""
    path = shutil.which(request.param)
    assert path is not None, "no C++ compiler is installed"
    return path


@pytest.fixture
def script(tmp_path):
    """Write a program of the shell."""

    def make(name: str, body: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def only_path(tmp_path, monkeypatch):
    """A folder that is all of PATH, with no CXX."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    return folder
