"""TileLang's CUDA C++ compiles with NVRTC, on a machine without a CUDA toolkit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trunnion import errors
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.model.plan import KernelSignature
from trunnion.registry import default_registry
from trunnion_tilelang.compiler_flags import CompilerFlags
from trunnion_tilelang.device_source import cuda_code, header_folders

# As TileLang's generator begins, with what a kernel of dependent launches calls.
SOURCE = """
#include <tl_templates/cuda/reduce.h>
#include <tl_templates/cuda/debug.h>

extern "C" __global__ void __launch_bounds__(128, 1) main_kernel(half_t* __restrict__ A, float* __restrict__ B) {
  cudaGridDependencySynchronize();
  B[threadIdx.x] = tl::warp_reduce_sum(float(A[threadIdx.x])) * FACTOR;
  cudaTriggerProgrammaticLaunchCompletion();
}
"""


def image(code, target="sm_90a"):
    compiler = default_registry().compiler("nvrtc").load_compiler()()
    kernels = (KernelSignature("main_kernel", ()),)
    return compiler.compile(CompileRequest(code=(code,), kernels=kernels, target=Target("cuda", target)))


def test_the_source_compiles_and_its_parameters_are_in_the_image():
    code = cuda_code(SOURCE, "sm_90a", CompilerFlags(("-lineinfo",), (("FACTOR", "2"),)), "reduce")
    assert (code.source, code.target, code.name) == (SOURCE, "sm_90a", "reduce.cu")
    (kernel,) = image(code).kernels
    assert [parameter.size for parameter in kernel.parameters] == [8, 8]


def test_cuda_s_own_header_may_be_included_too():
    """Its functions are no templates, and so win where both are there."""
    wait = 'asm volatile("griddepcontrol.wait;");'
    theirs = f"static inline __device__ void cudaGridDependencySynchronize(void) {{ {wait} }}"
    assert image(cuda_code(theirs + SOURCE.replace("FACTOR", "2"), "sm_90a")).kernels


def test_the_author_s_language_standard_takes_the_place_of_ours():
    code = cuda_code(SOURCE, "sm_90a", CompilerFlags(("--std=c++17", "--pre-include=cuda_fp16.h")))
    assert [option for option in code.options if "std" in option] == ["--std=c++17"]
    assert sum(option.startswith("--pre-include") for option in code.options) == 2


def test_the_author_s_flags_are_the_compiler_s_to_refuse():
    with pytest.raises(errors.ProgramError, match="what-nobody-knows"):
        image(cuda_code(SOURCE, "sm_90a", CompilerFlags(("--what-nobody-knows",))))


def test_headers_are_found_without_importing_tilelang():
    source = (
        "import sys\nfrom trunnion_tilelang.device_source import header_folders\nprint(*header_folders(), sep='\\n')\n"
        "assert not {'tilelang', 'tvm'} & set(sys.modules)"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TL_")}
    done = subprocess.run(
        [sys.executable, "-c", source], env=clean, capture_output=True, text=True, check=True, timeout=60
    )
    templates, cutlass = map(Path, done.stdout.splitlines())
    assert (templates / "tl_templates" / "cuda" / "common.h").is_file()
    assert (cutlass / "cute" / "tensor.hpp").is_file()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A tilelang of our own, in a folder that comes first; without the variables that importing TileLang sets."""
    for name in ("TL_TEMPLATE_PATH", "TL_CUTLASS_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "tilelang", raising=False)
    folder = tmp_path / "tilelang"
    folder.mkdir()
    (folder / "__init__.py").touch()
    return folder


def headers_in(root):
    for folder in ("src/tl_templates", "3rdparty/cutlass/include/cute"):
        (root / folder).mkdir(parents=True)
    return root / "src", root / "3rdparty" / "cutlass" / "include"


def test_headers_are_in_the_package_or_beside_it_in_a_checkout(package):
    beside = headers_in(package.parent)
    assert header_folders() == beside
    assert headers_in(package) == header_folders()


def test_tilelang_s_variables_name_other_headers(package, tmp_path, monkeypatch):
    templates, cutlass = headers_in(tmp_path / "elsewhere")
    monkeypatch.setenv("TL_TEMPLATE_PATH", str(templates))
    monkeypatch.setenv("TL_CUTLASS_PATH", str(cutlass))
    assert header_folders() == (templates, cutlass)


def test_missing_headers_are_an_error_that_says_where_they_were_looked_for(package):
    with pytest.raises(errors.ProgramError, match="TL_TEMPLATE_PATH"):
        header_folders()


def test_a_missing_tilelang_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "tilelang", raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(errors.ProgramError, match=r"install trunnion-tilelang\[tilelang\]"):
        header_folders()
