"""What this distribution announces to trunnion. Importing it imports neither CuTeDSL nor TVM-FFI."""

from __future__ import annotations

from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
from trunnion.hookspecs import hookimpl
from trunnion_cutedsl.availability import probe_backend
from trunnion_cutedsl.release import probe_compiler

__all__ = ["trunnion_register_backends", "trunnion_register_compilers"]

_CAPABILITIES = frozenset(Capability)  # all there is
_EXAMPLES = ("cutedsl_vector_add", "cutedsl_pdl_pair", "cutedsl_split_k", "cutedsl_hopper_gemm")


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``cutedsl``: a launcher in C++ beside its image, called through TVM-FFI."""
    return [
        BackendSpec(
            name="cutedsl",
            contract_version=3,
            targets={"cuda": _CAPABILITIES},
            accepts=("cubin", "ptx"),
            load_wrapper="trunnion.codegen.cpp.wrapper:CppWrapper",
            load_adapter="trunnion_cutedsl.backend.adapter:CuteDslAdapter",
            probe=probe_backend,
            diagnose="trunnion.toolchain.launcher_diagnosis:diagnose_launchers",
            auto_rank=3,
            summary="a C++ launcher beside its cubin, called through TVM-FFI",
        )
    ]


@hookimpl
def trunnion_register_compilers() -> list[CompilerSpec]:
    """Announce the device compiler ``cutedsl``: CuTeDSL text to cubins."""
    return [
        CompilerSpec(
            name="cutedsl",
            contract_version=3,
            languages=("cutedsl",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler="trunnion_cutedsl.compiler.compiler:CuteDslCompiler",
            probe=probe_compiler,
            diagnose="trunnion_cutedsl.diagnosis:diagnose_compiler",
            runs_source=True,
            examples=tuple(f"trunnion_cutedsl.examples.{name}" for name in _EXAMPLES),
            auto_rank=5,
            summary="compiles CuTeDSL kernels, whose text runs here; nvidia-cutlass-dsl 4.7 or later",
        )
    ]
