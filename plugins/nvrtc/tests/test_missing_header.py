"""What a source is told that includes a header which NVRTC cannot open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.headers import toolkit_directories
from trunnion_nvrtc.compiler.missing_header import missing_header_hint

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = '\nextern "C" __global__ void k(float* x) { x[0] = 1; }'


def compiled(source: str, options: Any = None) -> bytes:
    code = DeviceCode("cuda", source + KERNEL)
    request = CompileRequest(
        code=(code,),
        kernels=(KernelSignature("k", ()),),
        target=Target.parse("sm_90a"),
        options=options or {},
        accepts=("cubin",),
    )
    return NvrtcCompiler().compile(request).data


@pytest.mark.parametrize(
    ("name", "instead"),
    [("complex", "complex"), ("complex.h", "ccomplex"), ("optional", "optional"), ("ratio", "ratio")],
)
def test_a_host_header_that_libcudacxx_has_is_named_as_it_has_it(name: str, instead: str) -> None:
    """With CUDA's headers at hand, and what is named compiles."""
    with pytest.raises(CompileError) as caught:
        compiled(f"#include <{name}>")
    (note,) = caught.value.__notes__
    assert note.startswith(
        f"hint: NVRTC has no host headers; of {name} libcu++ has a version for device code: "
    )
    assert f"#include <cuda/std/{instead}>" in note
    assert "cuda::std" in note
    assert compiled(f"#include <cuda/std/{instead}>")


@pytest.mark.parametrize("name", ["ctype.h", "cwchar", "vector", "iostream", "unistd.h"])
def test_a_host_header_that_has_no_counterpart_is_told_as_that(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(f"#include <{name}>")
    (note,) = caught.value.__notes__
    assert note.startswith(f"hint: NVRTC has no host headers, and libcu++ has nothing in place of {name}")
    assert compiled(
        '__device__ void f(char* a, float b) { printf("x"); assert(a); memcpy(a, &b, 4); b = sqrtf(b); }'
    )


@pytest.mark.parametrize("name", ["cinttypes", "inttypes.h"])
def test_where_the_types_are_of_a_header_that_is_missing_is_told(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(f"#include <{name}>")
    (note,) = caught.value.__notes__
    assert f"nothing in place of {name}: leave it out; its types are in <cstdint>" in note
    assert compiled('#include <cstdint>\n__device__ void f(std::int64_t a) { printf("%lld", (long long)a); }')


def test_an_older_standard_than_libcudacxx_takes_is_told() -> None:
    source = "__device__ float f(float x) { return sqrtf(x) * M_PI; }"
    with pytest.raises(CompileError, match=r"C\+\+ 17") as caught:
        compiled(f"#include <limits>\n{source}", options={"std": "c++14"})
    (note,) = caught.value.__notes__
    assert "take --std=c++14 or older away (cmath, cstdint and cstring take any)" in note
    every = "#include <cmath>\n#include <cstdint>\n#include <cstring>\n"
    assert compiled(f"{every}{source}", options={"std": "c++14"})
    assert compiled(f"#include <limits>\n{every}{source}")


def test_without_libcudacxx_its_installation_is_told(tmp_path: Path) -> None:
    for folders in ((), (str(tmp_path),)):
        hint = missing_header_hint("tuple", folders)
        assert "#include <cuda/std/tuple>" in hint
        assert hint.endswith("pip install nvidia-cuda-cccl")


@pytest.mark.parametrize(
    "name", ["mine.h", "cuda_fp16.h", "torch/extension.h", "cuda/std/vector", "sub/cstdint"]
)
def test_any_other_header_is_looked_for_elsewhere(name: str) -> None:
    hint = missing_header_hint(name, toolkit_directories())
    assert hint.startswith(f"hint: {name} is neither a header in memory")
    assert "pip install nvidia-cuda-runtime" in hint


def test_all_that_are_missing_are_told_at_once() -> None:
    """Those alone that the compiler would have asked for: what a condition leaves out is not missing."""
    source = "#include <vector>\n#include <ratio>\n#if 0\n#include <map>\n#endif\n#include <mine.h>\n"
    with pytest.raises(CompileError) as caught:
        compiled(source + "#include <vector>\n#include MACRO", options={"pch": True})
    notes = caught.value.__notes__
    assert len(notes) == 3
    for name, note in zip(("vector", "ratio", "mine.h"), notes, strict=True):
        assert name in note
    assert "vector" in caught.value.log
    assert "ratio" not in caught.value.log


@pytest.mark.parametrize("name", ["cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"])
def test_what_nvcc_includes_by_itself_is_told(name: str) -> None:
    source = f"__device__ void f() {{ {name}(); }}"
    with pytest.raises(CompileError) as caught:
        compiled(source)
    (note,) = caught.value.__notes__
    assert note == f"hint: {name} is in cuda_runtime.h, which nvcc includes by itself; include it"
    assert compiled(f"#include <cuda_runtime.h>\n{source}")


def test_that_another_cuda_runtime_has_not_what_is_called_is_told(tmp_path: Path) -> None:
    """It is included, so to include it is no advice."""
    (tmp_path / "cuda_runtime.h").write_text("")
    with pytest.raises(CompileError) as caught:
        compiled(
            "#include <cuda_runtime.h>\n__device__ void f() { cudaGridDependencySynchronize(); }",
            options={"include_path": str(tmp_path)},
        )
    (note,) = caught.value.__notes__
    assert note.startswith(
        "hint: cudaGridDependencySynchronize is in cuda_runtime.h, which nvcc includes by itself; "
    )
    assert f"{tmp_path}/cuda_runtime.h has it for nvcc alone: leave out the include path" in note


@pytest.mark.parametrize(
    ("used", "what", "header"),
    [
        ("uint32_t", "uint32_t a", "cstdint"),
        ("int64_t", "int64_t a", "cstdint"),
        ("uintptr_t", "uintptr_t a", "cstdint"),
        ("FLT_MAX", "float a = FLT_MAX", "cfloat"),
        ("INT_MAX", "int a = INT_MAX", "climits"),
        ("INFINITY", "float a = INFINITY", "math.h"),
        ("M_PI", "float a = M_PI", "math.h"),
        ("std::min", "int a = std::min(1, 2)", "algorithm"),
        ("std::sqrt", "float a = std::sqrt(1.0f)", "cmath"),
        ("std::printf", 'std::printf("")', "cstdio"),
        ("std::memcpy", "int a, b; std::memcpy(&a, &b, 4)", "cstring"),
        ("std::is_same_v", "bool a = std::is_same_v<int, int>", "type_traits"),
        ("std::uint8_t", "std::uint8_t a", "cstdint"),
        ("std::numeric_limits", "float a = std::numeric_limits<float>::max()", "limits"),
        ("std::size_t", "std::size_t a", "cstddef"),
        ("std::ptrdiff_t", "std::ptrdiff_t a", "cstddef"),
        ("CUDART_INF_F", "float a = CUDART_INF_F", "math_constants.h"),
        ("CUDART_PI", "double a = CUDART_PI", "math_constants.h"),
        ("__half", "__half a", "cuda_fp16.h"),
        ("__nv_bfloat16", "__nv_bfloat16 a", "cuda_bf16.h"),
        ("CUtensorMap", "CUtensorMap* a", "cuda.h"),
    ],
)
def test_a_name_whose_header_is_not_included_is_told(used: str, what: str, header: str) -> None:
    source = f"__device__ void f() {{ {what}; }}"
    with pytest.raises(CompileError) as caught:
        compiled(source)
    assert f"hint: {used} is in <{header}>; include it" in caught.value.__notes__
    assert compiled(f"#include <{header}>\n{source}")


def test_a_name_of_the_author_s_is_no_header_s() -> None:
    with pytest.raises(CompileError) as caught:
        compiled("namespace std {} __device__ void f() { mine = std::mine; my_uint32_t x; }")
    assert not hasattr(caught.value, "__notes__")


def test_the_drivers_functions_are_no_device_code(tmp_path: Path) -> None:
    """As in CUDA's own cuda.h, where somebody puts it first."""
    (tmp_path / "cuda.h").write_text("#include <stdlib.h>\nint cuInit(unsigned flags);\n")
    with pytest.raises(CompileError) as caught:
        compiled("#include <cuda.h>", options={"include_path": str(tmp_path)})
    (note,) = caught.value.__notes__
    assert note.startswith("hint: this cuda.h declares the driver's functions")
    assert compiled("#include <cuda.h>\n__device__ CUtensorMap map;")
