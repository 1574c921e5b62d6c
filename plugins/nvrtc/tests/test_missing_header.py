"""What a source is told that includes a header which NVRTC cannot open."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def compiled(source: str) -> bytes:
    code = DeviceCode("cuda", source + KERNEL)
    request = CompileRequest(
        code=(code,),
        kernels=(KernelSignature("k", ()),),
        target=Target.parse("sm_90a"),
        options={},
        accepts=("cubin",),
    )
    return NvrtcCompiler().compile(request).data


@pytest.mark.parametrize(
    ("name", "instead"),
    [("cstdint", "cstdint"), ("stdint.h", "cstdint"), ("type_traits", "type_traits"), ("math.h", "cmath")],
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


@pytest.mark.parametrize("name", ["cstdio", "stdio.h", "vector", "iostream", "unistd.h"])
def test_a_host_header_that_has_no_counterpart_is_told_as_that(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(f"#include <{name}>")
    (note,) = caught.value.__notes__
    assert note.startswith(f"hint: NVRTC has no host headers, and libcu++ has nothing in place of {name}")
    assert "printf" in note
    assert compiled(
        '__device__ void f(char* a, float b) { printf("x"); assert(a); memcpy(a, &b, 4); b = sqrtf(b); }'
    )


def test_without_libcudacxx_its_installation_is_told(tmp_path: Path) -> None:
    for folders in ((), (str(tmp_path),)):
        hint = missing_header_hint("cstdint", folders)
        assert "#include <cuda/std/cstdint>" in hint
        assert hint.endswith("pip install nvidia-cuda-cccl")


@pytest.mark.parametrize(
    "name", ["mine.h", "cuda_fp16.h", "torch/extension.h", "cuda/std/vector", "sub/cstdint"]
)
def test_any_other_header_is_looked_for_elsewhere(name: str) -> None:
    hint = missing_header_hint(name, toolkit_directories())
    assert hint.startswith(f"hint: {name} is neither a header in memory")
    assert "pip install nvidia-cuda-runtime" in hint


def test_the_drivers_own_header_is_named_not_what_it_includes() -> None:
    with pytest.raises(CompileError) as caught:
        compiled("#include <cuda.h>")
    (note,) = caught.value.__notes__
    assert note.startswith("hint: cuda.h declares the driver's functions")
    assert compiled(note.rpartition("such as: ")[2])
