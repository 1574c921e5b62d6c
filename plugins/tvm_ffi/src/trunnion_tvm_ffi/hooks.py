"""What this distribution announces to trunnion. Importing it imports no TVM-FFI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import BackendSpec, Capability
from trunnion.hookspecs import hookimpl
from trunnion_tvm_ffi.availability import probe_backend

if TYPE_CHECKING:
    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.diagnosis import Diagnosis
    from trunnion.contract.source import SourceWrapper

__all__ = ["trunnion_register_backends"]

_CAPABILITIES = frozenset(Capability)  # all there is


def _wrapper() -> type[SourceWrapper]:
    from trunnion_tvm_ffi.wrapper import TvmFfiWrapper  # noqa: PLC0415 - imported when a program is wrapped

    return TvmFfiWrapper


def _adapter() -> type[KernelAdapter]:
    from trunnion_tvm_ffi.adapter import TvmFfiAdapter  # noqa: PLC0415 - at build or load

    return TvmFfiAdapter


def _diagnose() -> Diagnosis:
    from trunnion_tvm_ffi.diagnosis import diagnose_backend  # noqa: PLC0415 - only who asks what is wrong pays

    return diagnose_backend()


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``tvm_ffi``: one self-contained module, called through TVM-FFI."""
    return [
        BackendSpec(
            name="tvm_ffi",
            contract_version=1,
            targets={"cuda": _CAPABILITIES},
            accepts=("cubin", "ptx"),
            load_wrapper=_wrapper,
            load_adapter=_adapter,
            probe=probe_backend,
            diagnose=_diagnose,
            auto_rank=5,
            summary="one module with its image inside, called through TVM-FFI from Python, C++ or Rust",
        )
    ]
