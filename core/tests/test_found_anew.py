"""A new process finds what another one compiled: it starts no process for that, and loads no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion.artifacts.store import ArtifactStore

if TYPE_CHECKING:
    from pathlib import Path

COMPILE = """
import subprocess, sys
from pathlib import Path
import trunnion
from trunnion import examples

def refuse(*_, **__):
    raise AssertionError("a process was started")

backend, store, again = sys.argv[1:]
if again == "again":
    subprocess.Popen.__init__ = refuse
trunnion.compile(examples.load("vector_add").program, backend, target="sm_90a", cache=store)
print("nvrtc" in Path("/proc/self/maps").read_text())
"""


@pytest.mark.parametrize("backend", sorted(spec.name for spec in trunnion.default_registry().backends()))
def test_what_another_process_kept_is_found(backend: str, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = [sys.executable, "-c", COMPILE, backend, tmp_path / "store"]
    made, found = (
        subprocess.run([*words, time], env=environment, capture_output=True, text=True, check=False)
        for time in ("first", "again")
    )
    assert (made.stdout, made.returncode) == ("True\n", 0), made.stderr
    assert (found.stdout, found.returncode) == ("False\n", 0), found.stderr
    assert len(ArtifactStore(tmp_path / "store").entries()) == 1
