"""What this distribution announces to trunnion. Importing it imports no CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
from trunnion.hookspecs import hookimpl
from trunnion_nvrtc.availability import probe_backend, probe_compiler

if TYPE_CHECKING:
    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.diagnosis import Diagnosis
    from trunnion.contract.source import SourceWrapper

__all__ = ["trunnion_register_backends", "trunnion_register_compilers"]

_CAPABILITIES = frozenset(Capability)  # all there is


def _wrapper() -> type[SourceWrapper]:
    from trunnion_nvrtc.wrapper import NvrtcWrapper  # noqa: PLC0415 - imported when a program is wrapped

    return NvrtcWrapper


def _adapter() -> type[KernelAdapter]:
    from trunnion_nvrtc.adapter import NvrtcAdapter  # noqa: PLC0415 - at build or load

    return NvrtcAdapter


def _compiler() -> type[DeviceCompiler]:
    from trunnion_nvrtc.compiler import NvrtcCompiler  # noqa: PLC0415 - imported when a program is compiled

    return NvrtcCompiler


def _diagnose_backend() -> Diagnosis:
    from trunnion_nvrtc.diagnosis import diagnose_backend  # noqa: PLC0415 - only who asks what is wrong pays

    return diagnose_backend()


def _diagnose_compiler() -> Diagnosis:
    from trunnion_nvrtc.diagnosis import diagnose_compiler  # noqa: PLC0415 - as above

    return diagnose_compiler()


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``nvrtc``: a pure Python launcher over the CUDA driver's bindings."""
    return [
        BackendSpec(
            name="nvrtc",
            contract_version=2,
            targets={"cuda": _CAPABILITIES},
            accepts=("cubin", "ptx"),
            load_wrapper=_wrapper,
            load_adapter=_adapter,
            probe=probe_backend,
            diagnose=_diagnose_backend,
            auto_rank=10,
            summary="launches cubins and PTX from Python, through cuda.bindings; needs no C++ compiler",
        )
    ]


@hookimpl
def trunnion_register_compilers() -> list[CompilerSpec]:
    """Announce the device compiler ``nvrtc``: CUDA C++, PTX and cubins to one cubin, or to PTX."""
    return [
        CompilerSpec(
            name="nvrtc",
            contract_version=2,
            languages=("cuda", "ptx", "cubin"),
            targets=("cuda",),
            produces=("cubin", "ptx"),
            load_compiler=_compiler,
            probe=probe_compiler,
            diagnose=_diagnose_compiler,
            auto_rank=10,
            summary="compiles CUDA C++ through NVRTC, links parts, takes PTX and cubins; needs no device",
        )
    ]
