"""What this distribution announces to trunnion. Importing it imports neither CuTeDSL nor TVM-FFI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
from trunnion.hookspecs import hookimpl
from trunnion_cutedsl.availability import probe_backend
from trunnion_cutedsl.release import probe_compiler

if TYPE_CHECKING:
    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.diagnosis import Diagnosis
    from trunnion.contract.source import SourceWrapper

__all__ = ["trunnion_register_backends", "trunnion_register_compilers"]

_CAPABILITIES = frozenset(Capability)  # all there is
_EXAMPLES = ("cutedsl_vector_add", "cutedsl_pdl_pair", "cutedsl_split_k", "cutedsl_hopper_gemm")


def _wrapper() -> type[SourceWrapper]:
    from trunnion.codegen.cpp.wrapper import CppWrapper  # noqa: PLC0415 - imported when a program is wrapped

    return CppWrapper


def _adapter() -> type[KernelAdapter]:
    from trunnion_cutedsl.adapter import CuteDslAdapter  # noqa: PLC0415 - at build or load

    return CuteDslAdapter


def _diagnose() -> Diagnosis:
    from trunnion.toolchain.launcher_diagnosis import diagnose_launchers  # noqa: PLC0415 - only who asks pays

    return diagnose_launchers()


def _diagnose_compiler() -> Diagnosis:
    from trunnion_cutedsl.diagnosis import diagnose_compiler  # noqa: PLC0415 - only who asks pays

    return diagnose_compiler()


def _compiler() -> type[DeviceCompiler]:
    from trunnion_cutedsl.compiler import CuteDslCompiler  # noqa: PLC0415 - imported when a program is compiled

    return CuteDslCompiler


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``cutedsl``: a launcher in C++ beside its image, called through TVM-FFI."""
    return [
        BackendSpec(
            name="cutedsl",
            contract_version=2,
            targets={"cuda": _CAPABILITIES},
            accepts=("cubin", "ptx"),
            load_wrapper=_wrapper,
            load_adapter=_adapter,
            probe=probe_backend,
            diagnose=_diagnose,
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
            contract_version=2,
            languages=("cutedsl",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=_compiler,
            probe=probe_compiler,
            diagnose=_diagnose_compiler,
            runs_source=True,
            examples=tuple(f"trunnion_cutedsl.examples.{name}" for name in _EXAMPLES),
            auto_rank=5,
            summary="compiles CuTeDSL kernels, whose text runs here; nvidia-cutlass-dsl 4.7 or later",
        )
    ]
