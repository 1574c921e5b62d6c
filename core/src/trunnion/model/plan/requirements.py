"""What a program needs of a backend, member by member as `Capability` documents them, and what in it needs that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import shorten
from trunnion.model.capability import Capability
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.plan import (
    BuiltArgument,
    ConstantArgument,
    FloatArgument,
    MapArgument,
    MovedArgument,
    ViewArgument,
)
from trunnion.model.tensormap.fields import TiledFields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.model.params import Param, Signature, TensorParam
    from trunnion.model.plan import PlannedArgument, PlannedLaunch, VariableSlot, WorkspaceSlot
    from trunnion.model.plan.facts import PlannedFact
    from trunnion.model.plan.steps import Encode

__all__ = ["requirements"]

_CAPABILITY_OF = {row.field: row.capability for row in LAUNCH_ATTRIBUTES}

_Use = tuple[Capability, str]


def requirements(
    signature: Signature,
    workspaces: Sequence[WorkspaceSlot],
    launches: Sequence[PlannedLaunch],
    encodes: Sequence[Encode],
    facts: Sequence[PlannedFact] = (),
    variables: Sequence[VariableSlot] = (),
) -> dict[Capability, str]:
    """Return the capabilities that a backend must declare to launch what is planned, each with its first use.

    Parameters
    ----------
    signature, workspaces, launches, encodes, facts, variables
        The plan's, as `LaunchPlan` has them.

    Returns
    -------
    dict[Capability, str]
        Beside each capability what needs it, in words or as a path: ``"symbol 'n'"``, ``"launches[1].cluster"``.
    """
    found: dict[Capability, str] = {}
    uses = [
        *_of_signature(signature),
        *((Capability.WORKSPACE, f"workspace {shorten(one.name)}") for one in workspaces),
        *((Capability.MODULE_VARIABLES, f"variable {shorten(one.name)}") for one in variables),
    ]
    if len(launches) > 1:
        uses.append((Capability.MULTI_LAUNCH, f"{len(launches)} launches"))
    uses += [use for launch in launches for use in _of_launch(launch, encodes)]
    uses += [(Capability.DEVICE_FACTS, fact.name) for fact in facts]
    for capability, place in uses:
        found.setdefault(capability, place)
    return found


def _of_signature(signature: Signature) -> Iterator[_Use]:
    for symbol in signature.symbols():
        yield Capability.DYNAMIC_SHAPES, f"symbol {shorten(symbol.name)}"
    for tensor in signature.tensors:
        yield from _of_tensor(tensor)
    others: tuple[tuple[Capability, str, tuple[Param, ...]], ...] = (
        (Capability.POINTER_PARAMS, "pointer", signature.pointers),
        (Capability.STRUCT_PARAMS, "struct", signature.structs),
    )
    for capability, word, params in others:
        for param in params:
            yield capability, f"{word} {shorten(param.name)}"
    for output in signature.outputs:
        if output.fill is not None:
            yield Capability.OUTPUT_FILL, f"the fill of output {shorten(output.name)}"


def _of_tensor(tensor: TensorParam) -> Iterator[_Use]:
    if tensor.strides is not None:
        yield Capability.STRIDED_TENSORS, f"the strides of tensor {shorten(tensor.name)}"
    if tensor.nullable:
        yield Capability.NULLABLE_TENSORS, f"tensor {shorten(tensor.name)}, which may be None"


def _of_launch(launch: PlannedLaunch, encodes: Sequence[Encode]) -> Iterator[_Use]:
    place = f"launches[{launch.index}]"
    if launch.when is not None:
        yield Capability.CONDITIONAL_LAUNCH, f"{place}.when"
    if launch.window is not None:
        yield Capability.ACCESS_POLICY_WINDOW, f"{place}.window"
    for index, argument in enumerate(launch.args):
        yield from _of_argument(argument, f"{place}.args[{index}]", encodes)
    for attribute in launch.attributes:
        yield _CAPABILITY_OF[attribute.field], f"{place}.{attribute.field}"
    for attribute in launch.computed:
        yield Capability.COMPUTED_ATTRIBUTES, f"{place}.{attribute.field}"


def _of_argument(argument: PlannedArgument, place: str, encodes: Sequence[Encode]) -> Iterator[_Use]:
    if isinstance(argument, ViewArgument):
        yield Capability.TENSOR_VIEWS, place
    if isinstance(argument, (ConstantArgument, MovedArgument)):
        yield Capability.CONSTANTS_AND_OFFSETS, place
    if isinstance(argument, FloatArgument):
        yield Capability.FLOAT_EXPRESSIONS, place
    if isinstance(argument, MapArgument):
        tiled = isinstance(encodes[argument.encode].fields, TiledFields)
        yield Capability.TMA_TILED if tiled else Capability.TMA_IM2COL, place
    if isinstance(argument, BuiltArgument):
        yield Capability.BUILT_STRUCTS, place
        for one in argument.fields:
            yield from _of_argument(one.argument, f"{place}{one.path}", encodes)
