"""Launchers, what they share, and kernels for the CPU under AddressSanitizer and UBSan: clean, and faults are told.

Python loads the sanitizers' libraries before anything else, so that they see what it and torch allocate too. Leaks are
not looked for: an interpreter frees little at its end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent
WATCH = "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
# Asked for its version, a compiler that is told something for the linker would link. What the sanitizers bring is in
# no library that a launcher is linked with.
COMPILER = f"""#!/bin/sh
if [ "$1" = -v ]; then exec g++ "$@"; fi
exec g++ "$@" {WATCH} -Wl,-z,undefs
"""
# The compiler, and whatever else the script starts, is not to be watched.
START = "import os, runpy, sys; del os.environ['LD_PRELOAD']; sys.argv = sys.argv[1:]; "
SCRIPT = START + "runpy.run_path(sys.argv[0], run_name='__main__')"
TEST = START + "runpy.run_module('pytest', run_name='__main__')"
HOSTILE = HERE.parents[1] / "core/tests/codegen/cpp/stubbed/test_hostile_calls.py"
LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so.6")
SECONDS = 500


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Return a function that runs Python under the sanitizers, and the folder in which it keeps what it builds."""
    folder = tmp_path_factory.mktemp("watched")
    compiler, cache = folder / "g++", folder / "cache"
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    preload = [_library(name) for name in LIBRARIES]
    settings = {
        "CXX": str(compiler),
        "XDG_CACHE_HOME": str(cache),
        "LD_PRELOAD": " ".join(preload),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", *arguments]
        environment = {**os.environ, **settings}
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )

    return SimpleNamespace(run=run, cache=cache)


def _library(name: str) -> str:
    said = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = said.stdout.strip()
    assert Path(path).is_file(), f"g++ has no {name}; it comes with GCC"
    return path


def test_drawn_calls_are_clean(watched):
    done = watched.run(SCRIPT, str(HERE / "watched_calls.py"))
    assert done.returncode == 0, done.stderr[-8000:]
    assert "runtime error" not in done.stderr
    assert min(json.loads(done.stdout).values()) > 100
    shared = list(watched.cache.rglob("runtime.o"))
    assert len(shared) == 2, "what launchers share, for CUDA and for the CPU"
    for path in shared:
        data = path.read_bytes()
        assert b"__asan_report_load8" in data
        assert b"__ubsan_handle" in data


def test_hostile_calls_are_clean(watched):
    """Python's own handler of faults would stand in the way of the sanitizers'."""
    done = watched.run(TEST, "pytest", "-q", "-p", "no:faulthandler", "-p", "no:cacheprovider", str(HOSTILE))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    assert "1 passed" in done.stdout


def test_planted_faults_are_told(watched):
    done = watched.run(SCRIPT, str(HERE / "planted_faults.py"))
    assert json.loads(done.stdout) == {"sound": 0, "stack": 1, "overflow": 1, "heap": 1}, done.stderr[-8000:]
    for words in ("stack-buffer-overflow", "signed integer overflow", "heap-buffer-overflow"):
        assert done.stderr.count(words) > 0, (words, done.stderr[-8000:])
