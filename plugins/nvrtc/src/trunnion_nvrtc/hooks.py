"""What this distribution announces to trunnion. Importing it imports no CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
from trunnion.hookspecs import hookimpl
from trunnion_nvrtc.availability import probe_backend, probe_compiler

if TYPE_CHECKING:
    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.source import SourceWrapper

__all__ = ["trunnion_register_backends", "trunnion_register_compilers"]

_CAPABILITIES = frozenset(
    {
        Capability.DYNAMIC_SHAPES,
        Capability.STRIDED_TENSORS,
        Capability.MULTI_LAUNCH,
        Capability.TMA_TILED,
        Capability.AOT,
        Capability.GRAPH_CAPTURE,
    }
)


def _wrapper() -> type[SourceWrapper]:
    from trunnion_nvrtc.wrapper import NvrtcWrapper  # noqa: PLC0415 - imported when a program is wrapped

    return NvrtcWrapper


def _adapter() -> type[KernelAdapter]:
    from trunnion_nvrtc.adapter import NvrtcAdapter  # noqa: PLC0415 - at build or load

    return NvrtcAdapter


def _compiler() -> type[DeviceCompiler]:
    from trunnion_nvrtc.compiler import NvrtcCompiler  # noqa: PLC0415 - imported when a program is compiled

    return NvrtcCompiler


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``nvrtc``: a pure Python launcher over the CUDA driver's bindings."""
    return [
        BackendSpec(
            name="nvrtc",
            contract_version=1,
            targets={"cuda": _CAPABILITIES},
            accepts=("cubin",),
            load_wrapper=_wrapper,
            load_adapter=_adapter,
            probe=probe_backend,
            auto_rank=10,
            summary="launches cubins from Python, through cuda.bindings; needs no C++ compiler",
        )
    ]


@hookimpl
def trunnion_register_compilers() -> list[CompilerSpec]:
    """Announce the device compiler ``nvrtc``: CUDA C++ to cubins."""
    return [
        CompilerSpec(
            name="nvrtc",
            contract_version=1,
            languages=("cuda",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=_compiler,
            probe=probe_compiler,
            auto_rank=10,
            summary="compiles CUDA C++ through NVRTC; needs no device",
        )
    ]
