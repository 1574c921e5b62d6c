"""What the probes find here; on machines where a part is missing, core's own tests look."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion.errors import BackendUnavailableError
from trunnion.examples import load
from trunnion.toolchain.search import Place
from trunnion_tvm_ffi.availability import probe_backend, probe_compiler
from trunnion_tvm_ffi.hooks import trunnion_register_backends

if TYPE_CHECKING:
    from pathlib import Path


def test_here_both_work_and_say_with_what() -> None:
    found = probe_backend()
    assert found.usable, found.detail
    assert f"apache-tvm-ffi {metadata.version('apache-tvm-ffi')}" in found.detail
    assert probe_compiler().usable


def test_without_a_compiler_neither_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    for probe in (probe_backend, probe_compiler):
        assert not probe().usable
        assert "no C++ compiler can be used" in probe().detail


def test_the_probes_import_neither_torch_nor_tvm_ffi() -> None:
    code = (
        "import sys; from trunnion_tvm_ffi.availability import *; probe_backend(); probe_compiler();"
        "print(sorted({'torch', 'tvm_ffi', 'numpy', 'cuda'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_the_headers_of_cuda_programs_for_the_cpu_are_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("host_headers", "host_diagnosis"):
        places = (Place("a test", str(tmp_path), "it holds no cuda.h"),)
        monkeypatch.setattr(f"trunnion.toolchain.{module}.cuda_places", lambda places=places: iter(places))
    found = probe_backend()
    assert (found.usable, list(found.unusable)) == (True, ["cuda"])
    assert "pip install nvidia-cuda-runtime" in found.unusable["cuda"]
    (spec,) = trunnion_register_backends()
    assert spec.diagnose is not None
    assert spec.diagnose().healthy
    program = load("cpu_axpy").program
    assert trunnion.compile(program).backend == "tvm_ffi"
    with pytest.raises(BackendUnavailableError, match=r"there is no cuda\.h"):
        trunnion.compile(load("vector_add").program, backend="tvm_ffi", target="sm_90a")
