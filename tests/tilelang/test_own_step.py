"""What needs TileLang is a step of its own: the run of everything leaves this folder out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _collect(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "--quiet",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def test_the_run_of_everything_does_not_come_here():
    others = [path for path in sorted((ROOT / "tests").iterdir()) if path.name != "tilelang"]
    assert len(others) > 5
    done = _collect("tests", *(f"--ignore={path}" for path in others))
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


def test_the_step_of_its_own_does():
    assert Path(__file__).name in _collect("tests/tilelang").stdout
