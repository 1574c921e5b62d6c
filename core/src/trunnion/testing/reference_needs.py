"""The oracle's own statement of what a program needs of a backend, read from the program alone."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from trunnion.model.capability import Capability
from trunnion.model.code import DeviceCode
from trunnion.model.constant import Constant
from trunnion.model.dtypes import DType
from trunnion.model.expr import Expr
from trunnion.model.facts import Fact
from trunnion.model.float_expr import FloatCast
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import TensorParam
from trunnion.model.struct import Struct
from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
from trunnion.model.view import TensorView
from trunnion.model.workspace import Workspace
from trunnion.testing.reference import attributes_of
from trunnion.testing.reference_structs import passed_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.launch import KernelLaunch
    from trunnion.model.program import KernelProgram

__all__ = ["needs_of"]

_OF_ATTRIBUTES = {"scheduling_policy": Capability.CLUSTER_SCHEDULING}
"""Where a launch's field is called otherwise than the capability."""


def needs_of(program: KernelProgram) -> frozenset[Capability]:
    """Return what a backend must declare to launch a program, by what `Capability` says of each member.

    Parameters
    ----------
    program
        The program.
    """
    signature, launches = program.signature, program.launches
    tensors = [*(param for param in signature.params if isinstance(param, TensorParam)), *signature.outputs]
    said = {
        Capability.DYNAMIC_SHAPES: signature.symbols(),
        Capability.STRIDED_TENSORS: any(tensor.strides is not None for tensor in tensors),
        Capability.NULLABLE_TENSORS: any(tensor.nullable for tensor in tensors),
        Capability.POINTER_PARAMS: signature.pointers,
        Capability.STRUCT_PARAMS: signature.structs,
        Capability.OUTPUT_FILL: any(output.fill is not None for output in signature.outputs),
        Capability.MULTI_LAUNCH: len(launches) > 1,
        Capability.DEVICE_FACTS: _holds_fact((signature.checks, launches)),
        Capability.MODULE_VARIABLES: program.variables,
    }
    found = {capability for capability, there in said.items() if there}
    return frozenset(found.union(*map(_needs_of_launch, launches)))


def _holds_fact(value: object) -> bool:
    """Whether a fact of the device stands anywhere in a part of a program."""
    if isinstance(value, tuple):
        return any(map(_holds_fact, value))
    if isinstance(value, (Fact, DType, DeviceCode)) or not is_dataclass(value):
        return isinstance(value, Fact)
    return any(_holds_fact(getattr(value, part.name)) for part in fields(value) if part.compare)


def _needs_of_launch(launch: KernelLaunch) -> Iterator[Capability]:
    if any(isinstance(memory, Workspace) for memory in launch.memories()):
        yield Capability.WORKSPACE
    if launch.when is not None:
        yield Capability.CONDITIONAL_LAUNCH
    if launch.window is not None:
        yield Capability.ACCESS_POLICY_WINDOW
    kinds = {
        TensorView: Capability.TENSOR_VIEWS,
        Constant: Capability.CONSTANTS_AND_OFFSETS,
        MovedAddress: Capability.CONSTANTS_AND_OFFSETS,
        Struct: Capability.BUILT_STRUCTS,
        FloatCast: Capability.FLOAT_EXPRESSIONS,
        TiledTensorMap: Capability.TMA_TILED,
        Im2colTensorMap: Capability.TMA_IM2COL,
    }
    yield from (kinds[type(argument)] for argument in passed_by(launch.args) if type(argument) in kinds)
    for field, _ in attributes_of(launch):
        yield _OF_ATTRIBUTES.get(field) or Capability(field)
    if any(isinstance(one, Expr) for one in launch.cluster or ()):
        yield from (Capability.CLUSTER, Capability.COMPUTED_ATTRIBUTES)
    if isinstance(launch.pdl, Expr):
        yield from (Capability.PDL, Capability.COMPUTED_ATTRIBUTES)
