"""What this distribution announces to trunnion. Importing it imports nothing that needs a driver."""

from __future__ import annotations

from trunnion.contract.spec import BackendSpec, Capability
from trunnion.hookspecs import hookimpl

__all__ = ["SPEC", "trunnion_register_backends"]


SPEC = BackendSpec(
    name="acme",
    contract_version=3,
    targets={
        "cuda": frozenset(
            {
                Capability.DYNAMIC_SHAPES,
                Capability.STRIDED_TENSORS,
                Capability.NULLABLE_TENSORS,
                Capability.POINTER_PARAMS,
                Capability.STRUCT_PARAMS,
                Capability.CONSTANTS_AND_OFFSETS,
                Capability.BUILT_STRUCTS,
                Capability.FLOAT_EXPRESSIONS,
                Capability.OUTPUT_FILL,
                Capability.WORKSPACE,
                Capability.MULTI_LAUNCH,
                Capability.CONDITIONAL_LAUNCH,
                Capability.MODULE_VARIABLES,
                Capability.TMA_TILED,
                Capability.TMA_IM2COL,
                Capability.CLUSTER,
                Capability.COOPERATIVE,
                Capability.PDL,
                Capability.PRIORITY,
                Capability.DEVICE_FACTS,
                Capability.GRAPH_CAPTURE,
            }
        )
    },
    accepts=("cubin",),
    load_wrapper="trunnion_acme.wrapper:AcmeWrapper",
    load_adapter="trunnion_acme.adapter:AcmeAdapter",
    summary="launches cubins from Python, through ctypes; a sample",
)


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend ``acme``."""
    return [SPEC]
