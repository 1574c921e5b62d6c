"""What this distribution announces to trunnion. Importing it imports no TVM-FFI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
from trunnion.hookspecs import hookimpl
from trunnion_tvm_ffi.availability import TARGETS, probe_backend, probe_compiler

if TYPE_CHECKING:
    from trunnion.contract.diagnosis import Diagnosis

__all__ = ["trunnion_register_backends", "trunnion_register_compilers"]

_CUDA = frozenset(Capability)  # all there is
_CPU = frozenset(
    {
        Capability.DYNAMIC_SHAPES,
        Capability.STRIDED_TENSORS,
        Capability.NULLABLE_TENSORS,
        Capability.POINTER_PARAMS,
        Capability.STRUCT_PARAMS,
        Capability.TENSOR_VIEWS,
        Capability.CONSTANTS_AND_OFFSETS,
        Capability.BUILT_STRUCTS,
        Capability.FLOAT_EXPRESSIONS,
        Capability.OUTPUT_FILL,
        Capability.WORKSPACE,
        Capability.MULTI_LAUNCH,
        Capability.CONDITIONAL_LAUNCH,
    }
)
"""What needs no GPU: no tensor maps, no clusters, and no streams, so nothing that orders launches on them."""


def _diagnose() -> Diagnosis:
    from trunnion.toolchain.launcher_diagnosis import diagnose_launchers  # noqa: PLC0415 - only who asks pays

    return diagnose_launchers(TARGETS)


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``tvm_ffi``: one self-contained module, called through TVM-FFI."""
    return [
        BackendSpec(
            name="tvm_ffi",
            contract_version=3,
            targets=dict(zip(TARGETS, (_CUDA, _CPU), strict=True)),
            accepts=("cubin", "ptx", "host-object"),
            load_wrapper="trunnion.codegen.cpp.wrapper:CppWrapper",
            load_adapter="trunnion_tvm_ffi.backend.adapter:TvmFfiAdapter",
            probe=probe_backend,
            diagnose=_diagnose,
            auto_rank=5,
            summary="one module with its image inside, called through TVM-FFI from Python, C++ or Rust",
        )
    ]


@hookimpl
def trunnion_register_compilers() -> list[CompilerSpec]:
    """Announce the device compiler ``tvm_ffi``: C++ for the CPU, by the compiler of this machine."""
    return [
        CompilerSpec(
            name="tvm_ffi",
            contract_version=3,
            languages=("c++",),
            targets=("cpu",),
            produces=("host-object",),
            load_compiler="trunnion_tvm_ffi.compiler.host_compiler:CpuCompiler",
            probe=probe_compiler,
            auto_rank=5,
            summary="compiles C++ kernels for the CPU, with g++ or clang++",
        )
    ]
