"""What a program needs of a backend, member by member as `Capability` documents them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.capability import Capability
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
from trunnion.model.view import TensorView

if TYPE_CHECKING:
    from trunnion.model.launch import KernelLaunch
    from trunnion.model.params import Signature
    from trunnion.model.workspace import Workspace

__all__ = ["requirements"]


def requirements(
    signature: Signature, workspaces: tuple[Workspace, ...], launches: tuple[KernelLaunch, ...]
) -> frozenset[Capability]:
    """Return the capabilities that a backend must declare to launch a program of these."""
    needed = _of_signature(signature) | _those(
        {Capability.WORKSPACE: bool(workspaces), Capability.MULTI_LAUNCH: len(launches) > 1}
    )
    for launch in launches:
        needed |= _of_launch(launch)
    return frozenset(needed)


def _those(wanted: dict[Capability, bool]) -> set[Capability]:
    return {capability for capability, is_wanted in wanted.items() if is_wanted}


def _of_signature(signature: Signature) -> set[Capability]:
    return _those(
        {
            Capability.DYNAMIC_SHAPES: bool(signature.symbols()),
            Capability.STRIDED_TENSORS: any(tensor.strides is not None for tensor in signature.tensors),
            Capability.NULLABLE_TENSORS: any(tensor.nullable for tensor in signature.tensors),
            Capability.POINTER_PARAMS: bool(signature.pointers),
            Capability.STRUCT_PARAMS: bool(signature.structs),
            Capability.OUTPUT_FILL: any(output.fill is not None for output in signature.outputs),
        }
    )


def _of_launch(launch: KernelLaunch) -> set[Capability]:
    needed = _those(
        {
            Capability.CONDITIONAL_LAUNCH: launch.when is not None,
            Capability.TENSOR_VIEWS: any(isinstance(argument, TensorView) for argument in launch.args),
            Capability.TMA_TILED: any(isinstance(argument, TiledTensorMap) for argument in launch.args),
            Capability.TMA_IM2COL: any(isinstance(argument, Im2colTensorMap) for argument in launch.args),
            Capability.ACCESS_POLICY_WINDOW: launch.window is not None,
        }
    )
    return needed | {row.capability for row in LAUNCH_ATTRIBUTES if row.values(getattr(launch, row.field))}
