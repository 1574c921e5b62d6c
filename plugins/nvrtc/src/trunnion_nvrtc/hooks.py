"""What this distribution announces to trunnion. Importing it imports no CUDA."""

from __future__ import annotations

from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
from trunnion.hookspecs import hookimpl
from trunnion_nvrtc.availability import probe_backend, probe_compiler

__all__ = ["trunnion_register_backends", "trunnion_register_compilers"]

_CAPABILITIES = frozenset(Capability)  # all there is


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``nvrtc``: a pure Python launcher over the CUDA driver's bindings."""
    return [
        BackendSpec(
            name="nvrtc",
            contract_version=3,
            targets={"cuda": _CAPABILITIES},
            accepts=("cubin", "ptx"),
            load_wrapper="trunnion_nvrtc.backend.wrapper:NvrtcWrapper",
            load_adapter="trunnion_nvrtc.backend.adapter:NvrtcAdapter",
            probe=probe_backend,
            diagnose="trunnion_nvrtc.diagnosis:diagnose_backend",
            auto_rank=10,
            summary="launches cubins and PTX from Python, through cuda.bindings; needs no C++ compiler",
        )
    ]


@hookimpl
def trunnion_register_compilers() -> list[CompilerSpec]:
    """Announce the device compiler ``nvrtc``: CUDA C++ and finished code to one cubin, or to PTX."""
    return [
        CompilerSpec(
            name="nvrtc",
            contract_version=3,
            languages=("cuda", "ptx", "cubin", "fatbin", "ltoir"),
            binary_languages=("cubin", "fatbin", "ltoir"),
            targets=("cuda",),
            produces=("cubin", "ptx"),
            load_compiler="trunnion_nvrtc.compiler.compiler:NvrtcCompiler",
            probe=probe_compiler,
            diagnose="trunnion_nvrtc.diagnosis:diagnose_compiler",
            auto_rank=10,
            summary="compiles CUDA C++ through NVRTC, links, takes PTX, cubins, fatbins, LTO-IR; needs no device",
        )
    ]
