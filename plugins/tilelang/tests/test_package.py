"""The package by itself: what importing it brings in, and the TileLang that these tests run with."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from trunnion_tilelang.lowering import require_tilelang

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


@pytest.mark.parametrize("use", ["from_prim_func(None, 'sm_90a')", "jit(lambda: 0)", "jit()", "install()"])
def test_without_tilelang_it_is_said_how_to_install_it(use):
    source = (
        "import sys\n"
        "sys.modules['tilelang'] = None\n"
        "import trunnion_tilelang\n"
        "from trunnion.errors import BackendUnavailableError\n"
        "try:\n"
        f"    trunnion_tilelang.{use}\n"
        "except BackendUnavailableError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told = "'tilelang' is unavailable: it is not installed; pip install 'trunnion-tilelang[tilelang]'\n"
    assert done.stdout == told


def test_what_tilelang_itself_lacks_is_not_called_tilelang(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'acme'", name="acme")

    monkeypatch.setattr("trunnion_tilelang.lowering.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="acme"):
        require_tilelang()


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
