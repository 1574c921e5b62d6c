"""A thousand first loads of each backend, under threads, a signal's handler, finalizers, forks and closes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 1000
SCRIPT = Path(__file__).with_name("first_load.py")


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "tvm_ffi:cpu", "cutedsl", "acme"])
def test_no_first_load_hangs(backend: str) -> None:
    command = [sys.executable, str(SCRIPT), backend, str(ROUNDS), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-20_000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    for who in ("main", "thread", "handler", "finalizer", "closing"):
        assert outcomes[f"{who} launched"] > 0, outcomes
    assert outcomes["finalizer LifecycleError"] > 0, "finalizers came into loads"
