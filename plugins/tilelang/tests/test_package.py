"""The package by itself: what importing it brings in, and the TileLang that these tests run with."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_importing_the_package_imports_no_tilelang():
    source = (
        "import sys, trunnion_tilelang\n"
        "assert not {'tilelang', 'tvm', 'tvm_ffi', 'torch'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_this_run_has_the_pinned_tilelang_and_the_tvm_ffi_that_it_admits():
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    )
    assert metadata.version("tilelang") == pinned["tilelang"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (admitted,) = re.findall(r"^TILELANG_TVM_FFI := (\S+)$", makefile, re.MULTILINE)
    assert metadata.version("apache-tvm-ffi") == admitted
