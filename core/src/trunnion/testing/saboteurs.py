"""Saboteurs: planted mistakes that laws must catch, and that the simplest program survives.

A law that catches nothing proves nothing. Each saboteur changes one thing between a program and the driver; the
laws that it names must raise under it, and pass without it on the same examples.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Binary, Cast, Expr, Op, binary, select
from trunnion.model.interval import SHIFTS
from trunnion.model.plan import (
    Encode,
    ExprArgument,
    LaunchPlan,
    MapArgument,
    PlannedLaunch,
    ValueCheck,
)
from trunnion.model.tensormap.fields import TiledFields
from trunnion.sim.trace import Launched, TensorMapEncoded
from trunnion.testing.attribute_saboteurs import ATTRIBUTE_SABOTEURS
from trunnion.testing.beside_saboteurs import BESIDE_SABOTEURS
from trunnion.testing.binding_saboteurs import BINDING_SABOTEURS
from trunnion.testing.build_saboteurs import BUILD_SABOTEURS
from trunnion.testing.closer_saboteurs import CLOSER_SABOTEURS
from trunnion.testing.detail_saboteurs import DETAIL_SABOTEURS
from trunnion.testing.edge_saboteurs import EDGE_SABOTEURS
from trunnion.testing.fact_saboteurs import FACT_SABOTEURS
from trunnion.testing.feature_saboteurs import FEATURE_SABOTEURS
from trunnion.testing.fixed_saboteurs import FIXED_SABOTEURS
from trunnion.testing.float_saboteurs import FLOAT_SABOTEURS
from trunnion.testing.history_saboteurs import HISTORY_SABOTEURS
from trunnion.testing.keeping_saboteurs import KEEPING_SABOTEURS
from trunnion.testing.lifecycle_saboteurs import LIFECYCLE_SABOTEURS
from trunnion.testing.limit_saboteurs import LIMIT_SABOTEURS
from trunnion.testing.narrow_saboteurs import NARROW_SABOTEURS
from trunnion.testing.plain_tensor_saboteurs import PLAIN_TENSOR_SABOTEURS
from trunnion.testing.refusal_saboteurs import REFUSAL_SABOTEURS
from trunnion.testing.room_saboteurs import ROOM_SABOTEURS
from trunnion.testing.saboteur import Changed, Saboteur, each_encode, each_launch, in_trace, saboteur
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.upkeep_saboteurs import UPKEEP_SABOTEURS
from trunnion.testing.variable_saboteurs import VARIABLE_SABOTEURS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.contract.runtime import Runtime
    from trunnion.testing.machine import Told

__all__ = ["SABOTEURS", "Saboteur"]


# Plan and emitter ---------------------------------------------------------------------------------------------------


def _swap_parameters(plan: LaunchPlan) -> LaunchPlan:
    """Swap the first two neighbours of equal layout: nothing that compares sizes can notice."""

    def swapped(launch: PlannedLaunch) -> PlannedLaunch:
        layouts = [(p.size, p.alignment) for p in plan.kernels[launch.kernel].parameters]
        for index in range(len(layouts) - 1):
            if layouts[index] == layouts[index + 1] and launch.args[index] != launch.args[index + 1]:
                args = list(launch.args)
                args[index : index + 2] = args[index + 1], args[index]
                return replace(launch, args=tuple(args))
        return launch

    return each_launch(swapped)(plan)


def _first_namesake(plan: LaunchPlan) -> LaunchPlan:
    """Launch the first kernel of a name and a layout, as if no other part of the code had one."""
    keys = [(kernel.name, tuple((p.size, p.alignment) for p in kernel.parameters)) for kernel in plan.kernels]
    return each_launch(lambda launch: replace(launch, kernel=keys.index(keys[launch.kernel])))(plan)


def _drop_last_launch(plan: LaunchPlan) -> LaunchPlan:
    if len(plan.launches) == 1:
        return plan
    last = len(plan.launches) - 1
    encodes = tuple(
        replace(e, readers=tuple(r for r in e.readers if r != last) or (0,)) for e in plan.encodes
    )
    return replace(plan, launches=plan.launches[:-1], encodes=encodes)


def _drop_extent_checks(plan: LaunchPlan) -> LaunchPlan:
    kept = (c for c in plan.checks if not (isinstance(c, ValueCheck) and c.source.kind == "shape"))
    return replace(plan, checks=tuple(kept))


def _forget_bounds(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, bindings=tuple(replace(b, multiple_of=1) for b in plan.bindings))


def _merge_maps(plan: LaunchPlan) -> LaunchPlan:
    """Let every launch read the first map over a tensor, as if the tensor alone told maps apart."""
    first: dict[int, int] = {}
    for encode in plan.encodes:
        first.setdefault(encode.memory.slot, encode.index)

    def merged(launch: PlannedLaunch) -> PlannedLaunch:
        args = tuple(
            MapArgument(first[plan.encodes[a.encode].memory.slot]) if isinstance(a, MapArgument) else a
            for a in launch.args
        )
        return replace(launch, args=args)

    readers = {index: tuple(range(len(plan.launches))) for index in first.values()}
    encodes = tuple(replace(e, readers=readers.get(e.index, e.readers)) for e in plan.encodes)
    return replace(each_launch(merged)(plan), encodes=encodes)


def _swap_grid(launch: PlannedLaunch) -> PlannedLaunch:
    x, y, z = launch.grid
    return replace(launch, grid=(y, x, z))


def _no_shared_memory(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, dynamic_smem_bytes=launch.dynamic_smem_bytes // 2)


def _narrow_pack(launch: PlannedLaunch) -> PlannedLaunch:
    """Pack 64-bit expressions as 32 bits."""
    narrow = dtype("int32")

    def packed(argument: Any) -> Any:
        if isinstance(argument, ExprArgument) and argument.dtype.name == "int64":
            value = argument.value.operand if isinstance(argument.value, Cast) else argument.value
            return ExprArgument(value % 2**31, narrow)
        return argument

    return replace(launch, args=tuple(packed(argument) for argument in launch.args))


def _with_operations(launch: PlannedLaunch, change: Callable[[Binary], Expr]) -> PlannedLaunch:
    """Replace the operation that each integer argument is, cast or not."""

    def changed(value: Expr) -> Expr:
        if isinstance(value, Cast):
            return replace(value, operand=changed(value.operand))
        return change(value) if isinstance(value, Binary) else value

    args = (replace(x, value=changed(x.value)) if isinstance(x, ExprArgument) else x for x in launch.args)
    return replace(launch, args=tuple(args))


def _truncating(launch: PlannedLaunch) -> PlannedLaunch:
    """Take the remainder of a division that rounds towards zero, as C's ``%`` does."""

    def changed(value: Binary) -> Expr:
        if value.op is not Op.MOD:
            return value
        signs = (binary(Op.LT, one, 0) for one in (value.left, value.right))
        other = select(binary(Op.EQ, value, 0), 0, value - value.right)
        return select(binary(Op.NE, *signs), other, value)

    return _with_operations(launch, changed)


def _turning(launch: PlannedLaunch) -> PlannedLaunch:
    """Shift by the lowest six bits of each count."""

    def changed(value: Binary) -> Expr:
        return binary(value.op, value.left, value.right & SHIFTS.high) if value.op.shifts else value

    return _with_operations(launch, changed)


def _swap_box(encode: Encode) -> Encode:
    fields = encode.fields
    if isinstance(fields, TiledFields):
        fields = replace(fields, box=fields.box[:1] + fields.box[:0:-1])
    return replace(encode, fields=fields, dims=encode.dims[:1] + encode.dims[:0:-1])


def _reverse_steps(encode: Encode) -> Encode:
    """Reverse the element strides of the dimensions of which not every element must be taken."""
    steps = encode.fields.element_strides
    return replace(encode, fields=replace(encode.fields, element_strides=steps[:1] + steps[:0:-1]))


def _one_interleave(encode: Encode) -> Encode:
    """Take both interleaves for that of 16 bytes, of which the rules allow more."""
    return replace(encode, fields=replace(encode.fields, interleave=min(encode.fields.interleave, 1)))


def _no_interleave(encode: Encode) -> Encode:
    return replace(encode, fields=replace(encode.fields, interleave=0))


# Binding ------------------------------------------------------------------------------------------------------------


class _Runtime(Changed):
    """A runtime that differs from another one in the given attributes."""

    def __init__(self, true: Runtime, **changed: object) -> None:
        super().__init__(true)
        self.__dict__.update(changed)


def _first_device_stream(runtime: Runtime) -> Any:
    return _Runtime(runtime, current_stream_getter=lambda: lambda _: runtime.current_stream(0))


def _flat_allocation(runtime: Runtime) -> Any:
    def allocate(shape: tuple[int, ...], kind: Any, device: int, stream: int) -> Any:
        wrong = shape if len(shape) < 2 else (shape[0] * shape[1], *shape[2:])  # noqa: PLR2004 - the two that are merged
        return runtime.allocate(wrong, kind, device, stream)

    return _Runtime(runtime, allocate=allocate)


def _null_stream_allocation(runtime: Runtime) -> Any:
    def allocate(shape: tuple[int, ...], kind: Any, device: int, _: int) -> Any:
        return runtime.allocate(shape, kind, device, 0)

    return _Runtime(runtime, allocate=allocate)


def _quick_allocation(runtime: Runtime) -> Any:
    quick = runtime.quick_allocator()

    def allocate(shape: tuple[int, ...], kind: Any, device: int, stream: int) -> Any:
        return (
            runtime.allocate(shape, kind, device, stream)
            if quick is None
            else quick(shape, row_major(shape), kind)
        )

    return _Runtime(runtime, allocate=allocate)


@functools.cache
def _stayed() -> list[Any]:
    """Return what was entered and is never left: whoever dropped it would leave it, in the middle of anything."""
    return []


def _staying_allocation(runtime: Runtime) -> Any:
    def allocate(shape: tuple[int, ...], kind: Any, device: int, stream: int) -> Any:
        if stream != runtime.current_stream(device):
            _stayed().append(runtime.on_stream(device, stream))
            _stayed()[-1].__enter__()
        return runtime.allocate(shape, kind, device, stream)

    return _Runtime(runtime, allocate=allocate)


# Driver -------------------------------------------------------------------------------------------------------------


def _other_promotion(event: TensorMapEncoded) -> TensorMapEncoded:
    request = event.request
    other = type(request.l2_promotion)((request.l2_promotion + 1) % 4)
    return replace(event, request=replace(request, l2_promotion=other))


def _null_stream(event: Launched) -> Launched:
    return replace(event, stream=0)


def _other_device(event: Launched) -> Launched:
    return replace(event, device=0)


def _encoded_twice(events: tuple[Told, ...]) -> tuple[Told, ...]:
    doubled: list[Told] = []
    for event in events:
        doubled += [event, event] if isinstance(event, TensorMapEncoded) else [event]
    return tuple(doubled)


def _encoded_late(events: tuple[Told, ...]) -> tuple[Told, ...]:
    return tuple(sorted(events, key=lambda event: isinstance(event, TensorMapEncoded)))


_ALL = (
    saboteur(
        "swap-parameters",
        "Swaps two kernel parameters of equal size.",
        "L1",
        "L2",
        "L4",
        stage="plan",
        plan=_swap_parameters,
    ),
    saboteur(
        "drop-launch", "Drops the last of several launches.", "L4", stage="plan", plan=_drop_last_launch
    ),
    saboteur(
        "first-namesake",
        "Launches the first of two kernels that two parts of the code call the same.",
        "L15",
        stage="plan",
        plan=_first_namesake,
    ),
    saboteur("drop-checks", "Drops every check of an extent.", "A1", stage="plan", plan=_drop_extent_checks),
    saboteur(
        "forget-multiples",
        "Forgets what symbols must be multiples of.",
        "A3",
        stage="plan",
        plan=_forget_bounds,
    ),
    saboteur(
        "merge-maps",
        "Merges maps that differ in more than their label.",
        "T1",
        stage="plan",
        plan=_merge_maps,
    ),
    saboteur(
        "swap-grid",
        "Swaps the grid's first two axes.",
        "L1",
        "L2",
        stage="emitter",
        emitted=each_launch(_swap_grid),
    ),
    saboteur(
        "halve-smem",
        "Halves the dynamic shared memory.",
        "L1",
        stage="emitter",
        emitted=each_launch(_no_shared_memory),
    ),
    saboteur(
        "narrow-pack",
        "Packs 64-bit integers as 32 bits.",
        "L1",
        "A2",
        stage="emitter",
        emitted=each_launch(_narrow_pack),
    ),
    saboteur("truncating", "Divides as C does.", "A5", stage="emitter", emitted=each_launch(_truncating)),
    saboteur(
        "turning-shift",
        "Shifts by the lowest six bits of a count, as processors do.",
        "A5",
        stage="emitter",
        emitted=each_launch(_turning),
    ),
    saboteur(
        "swap-dims",
        "Reverses the outer dimensions of tensor maps.",
        "T1",
        stage="emitter",
        emitted=each_encode(_swap_box),
    ),
    saboteur(
        "reverse-steps",
        "Reverses the outer element strides of tensor maps.",
        "T4",
        "T1",
        stage="plan",
        plan=each_encode(_reverse_steps),
    ),
    saboteur(
        "no-interleave",
        "Drops the interleave of tensor maps.",
        "T1",
        "T4",
        stage="plan",
        plan=each_encode(_no_interleave),
    ),
    saboteur(
        "one-interleave",
        "Takes one interleave for the other.",
        "T1",
        stage="plan",
        plan=each_encode(_one_interleave),
    ),
    saboteur(
        "wrong-stream",
        "Takes the first device's current stream for every device.",
        "N1",
        stage="binding",
        runtime=_first_device_stream,
    ),
    saboteur(
        "flat-output",
        "Allocates outputs with two dimensions merged.",
        "O1",
        stage="binding",
        runtime=_flat_allocation,
    ),
    saboteur(
        "null-allocation",
        "Allocates under the null stream.",
        "N1",
        "N2",
        "N7",
        stage="binding",
        runtime=_null_stream_allocation,
    ),
    saboteur(
        "quick-allocation",
        "Allocates in the quick way, under the current stream, whatever stream is named.",
        "N2",
        "Y1",
        stage="binding",
        runtime=_quick_allocation,
    ),
    saboteur(
        "staying-allocation",
        "Leaves the stream that it allocated under the current one.",
        "N7",
        stage="binding",
        runtime=_staying_allocation,
    ),
    saboteur(
        "other-promotion",
        "Encodes another L2 promotion.",
        "T1",
        stage="driver",
        trace=in_trace(_other_promotion, TensorMapEncoded),
    ),
    saboteur("encode-twice", "Encodes every map twice.", "T2", stage="driver", trace=_encoded_twice),
    saboteur("encode-late", "Encodes maps after the launches.", "T2", stage="driver", trace=_encoded_late),
    saboteur(
        "null-stream",
        "Launches on the null stream.",
        "N1",
        "N2",
        "N7",
        stage="driver",
        trace=in_trace(_null_stream, Launched),
    ),
    saboteur(
        "first-device",
        "Launches on device 0.",
        "N3",
        "N4",
        stage="driver",
        trace=in_trace(_other_device, Launched),
    ),
)

_OTHERS = (
    *BUILD_SABOTEURS, *LIFECYCLE_SABOTEURS, *LIMIT_SABOTEURS, *FEATURE_SABOTEURS, *HISTORY_SABOTEURS, *FIXED_SABOTEURS,
    *ATTRIBUTE_SABOTEURS, *FACT_SABOTEURS, *FLOAT_SABOTEURS, *PLAIN_TENSOR_SABOTEURS, *VARIABLE_SABOTEURS,
    *REFUSAL_SABOTEURS, *BINDING_SABOTEURS, *EDGE_SABOTEURS, *DETAIL_SABOTEURS, *BESIDE_SABOTEURS, *UPKEEP_SABOTEURS,
    *NARROW_SABOTEURS, *CLOSER_SABOTEURS, *KEEPING_SABOTEURS, *ROOM_SABOTEURS,
)  # fmt: skip

SABOTEURS: Mapping[str, Saboteur] = {one.id: one for one in (*_ALL, *_OTHERS)}
"""Every saboteur, by its id."""
