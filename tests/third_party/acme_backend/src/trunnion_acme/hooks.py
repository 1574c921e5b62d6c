"""What this distribution announces to trunnion. Importing it imports nothing that needs a driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import BackendSpec, Capability
from trunnion.hookspecs import hookimpl

if TYPE_CHECKING:
    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.source import SourceWrapper

__all__ = ["SPEC", "trunnion_register_backends"]


def _wrapper() -> type[SourceWrapper]:
    from trunnion_acme.wrapper import AcmeWrapper  # here: discovery must stay cheap

    return AcmeWrapper


def _adapter() -> type[KernelAdapter]:
    from trunnion_acme.adapter import AcmeAdapter

    return AcmeAdapter


SPEC = BackendSpec(
    name="acme",
    contract_version=2,
    targets={
        "cuda": frozenset(
            {
                Capability.DYNAMIC_SHAPES,
                Capability.STRIDED_TENSORS,
                Capability.NULLABLE_TENSORS,
                Capability.POINTER_PARAMS,
                Capability.STRUCT_PARAMS,
                Capability.OUTPUT_FILL,
                Capability.WORKSPACE,
                Capability.MULTI_LAUNCH,
                Capability.CONDITIONAL_LAUNCH,
                Capability.TMA_TILED,
                Capability.TMA_IM2COL,
                Capability.CLUSTER,
                Capability.COOPERATIVE,
                Capability.PDL,
                Capability.PRIORITY,
                Capability.AOT,
                Capability.GRAPH_CAPTURE,
            }
        )
    },
    accepts=("cubin",),
    load_wrapper=_wrapper,
    load_adapter=_adapter,
    summary="launches cubins from Python, through ctypes; a sample",
)


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``acme``."""
    return [SPEC]
