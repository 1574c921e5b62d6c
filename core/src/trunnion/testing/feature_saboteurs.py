"""Saboteurs of the model's features, one at least for each of their laws."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import ArgumentError, DriverError, TensorMapError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, maximum
from trunnion.model.plan import (
    AddressArgument,
    BuiltArgument,
    BuiltField,
    Encode,
    ExprArgument,
    LaunchPlan,
    PlannedLaunch,
    ValueCheck,
    ViewArgument,
)
from trunnion.model.tensormap.fields import Im2colFields
from trunnion.sim.abi import FunctionAttribute
from trunnion.sim.trace import AttributeSet, Launched, MemorySet, PersistingLinesReset
from trunnion.testing.saboteur import Changed, Saboteur, each_encode, each_launch, in_trace, saboteur
from trunnion.testing.strategies.calls import BASE_ALIGNMENT
from trunnion.testing.strategies.numbers import Indexable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.contract.runtime import Runtime

__all__ = ["FEATURE_SABOTEURS"]


_MAP_BYTES = 128

# Plan and emitter ---------------------------------------------------------------------------------------------------


def _without(field: str) -> Callable[[PlannedLaunch], PlannedLaunch]:
    def dropped(launch: PlannedLaunch) -> PlannedLaunch:
        return replace(launch, attributes=tuple(one for one in launch.attributes if one.field != field))

    return dropped


_LAWS_OF_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "cluster": ("L5", "A4"),
    "cooperative": ("L6",),
    "pdl": ("L7",),
    "priority": ("L9",),
    "carveout": ("L10",),
    "preferred_cluster": ("L11",),
    "scheduling_policy": ("L12",),
    "mem_sync_domain": ("L13",),
}

_ATTRIBUTES = tuple(
    saboteur(
        f"drop-{field.replace('_', '-')}",
        f"Drops the launch attribute {field}.",
        *laws,
        stage="emitter",
        emitted=each_launch(_without(field)),
    )
    for field, laws in _LAWS_OF_ATTRIBUTES.items()
)


def _always(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, when=None)


def _never_empty(launch: PlannedLaunch) -> PlannedLaunch:
    x, y, z = (maximum(extent, 1) for extent in launch.grid)
    return replace(launch, grid=(x, y, z))


def _drop_stride_checks(plan: LaunchPlan) -> LaunchPlan:
    kept = (c for c in plan.checks if not (isinstance(c, ValueCheck) and c.source.kind == "stride"))
    return replace(plan, checks=tuple(kept))


def _other_float(plan: LaunchPlan) -> LaunchPlan:
    """Round to another type of the same size."""
    scalars = tuple(
        replace(slot, dtype=dtype("bfloat16")) if slot.dtype.name == "float16" else slot
        for slot in plan.scalars
    )
    return replace(plan, scalars=scalars)


def _null_addresses(launch: PlannedLaunch) -> PlannedLaunch:
    null = ExprArgument(Const(0), dtype("int64"))
    args = tuple(null if isinstance(argument, AddressArgument) else argument for argument in launch.args)
    return replace(launch, args=args)


def _longer_views(launch: PlannedLaunch) -> PlannedLaunch:
    """Pass one more than each extent of a view."""
    args = tuple(
        replace(one, extents=tuple(x if isinstance(x, Const) else x + 1 for x in one.extents))
        if isinstance(one, ViewArgument)
        else one
        for one in launch.args
    )
    return replace(launch, args=args)


def _with_structs(
    change: Callable[[tuple[BuiltField, ...]], tuple[BuiltField, ...]],
) -> Callable[[PlannedLaunch], PlannedLaunch]:
    def changed(launch: PlannedLaunch) -> PlannedLaunch:
        args = (
            replace(one, fields=change(one.fields)) if isinstance(one, BuiltArgument) else one
            for one in launch.args
        )
        return replace(launch, args=tuple(args))

    return changed


def _late_fields(fields: tuple[BuiltField, ...]) -> tuple[BuiltField, ...]:
    """Put each field right before the one behind it, and the padding before the field."""
    ends = (*(one.offset for one in fields[1:]), None)
    return tuple(
        one if end is None else replace(one, offset=end - one.size)
        for one, end in zip(fields, ends, strict=True)
    )


def _longer_odd_views(fields: tuple[BuiltField, ...]) -> tuple[BuiltField, ...]:
    """Pass one more than the last extent of a view whose extents fill no whole word."""

    def changed(view: ViewArgument) -> ViewArgument:
        varying = [axis for axis, one in enumerate(view.extents) if not isinstance(one, Const)]
        last = varying[-1] if len(varying) % 2 else None
        extents = (one + 1 if axis == last else one for axis, one in enumerate(view.extents))
        return replace(view, extents=tuple(extents))

    return tuple(
        replace(one, argument=changed(one.argument)) if isinstance(one.argument, ViewArgument) else one
        for one in fields
    )


def _never_absent(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, tensors=tuple(replace(slot, nullable=False) for slot in plan.tensors))


def _last_candidate(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, bindings=tuple(replace(b, candidates=b.candidates[::-1]) for b in plan.bindings))


def _no_fill(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, tensors=tuple(replace(slot, fill=None) for slot in plan.tensors))


def _even_fill(event: MemorySet) -> MemorySet:
    odd = event.itemsize == dtype("float16").itemsize and event.count % 2
    return replace(event, count=event.count - 1) if odd else event


def _half_workspaces(plan: LaunchPlan) -> LaunchPlan:
    spaces = (replace(slot, extents=(*slot.extents, Const(1)), itemsize=1) for slot in plan.workspaces)
    return replace(plan, workspaces=tuple(spaces))


def _dirty_workspaces(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, workspaces=tuple(replace(slot, zeroed=False) for slot in plan.workspaces))


def _needless_workspaces(plan: LaunchPlan) -> LaunchPlan:
    every = tuple(range(len(plan.launches)))
    return replace(plan, workspaces=tuple(replace(slot, readers=every) for slot in plan.workspaces))


def _swap_corners(encode: Encode) -> Encode:
    fields = encode.fields
    if isinstance(fields, Im2colFields):
        fields = replace(fields, lower=fields.lower[::-1], upper=fields.upper[::-1])
    return replace(encode, fields=fields)


def _boundless(encode: Encode) -> Encode:
    return replace(encode, limit_bytes=None)


def _older_swizzle(encode: Encode) -> Encode:
    return replace(encode, fields=replace(encode.fields, swizzle=min(encode.fields.swizzle, 3)))


def _no_offset(encode: Encode) -> Encode:
    return replace(encode, offset_bytes=Const(0))


def _uncapped(launch: PlannedLaunch) -> PlannedLaunch:
    """Name the whole memory as the window's length, whatever the device allows."""
    window = launch.window
    if window is None or window.nbytes is not None:
        return launch
    return replace(launch, window=replace(window, nbytes=window.limit_bytes - window.offset_bytes))


# Binding ------------------------------------------------------------------------------------------------------------


_LARGE = 1 << 18


class _OneBuffer(Changed):
    """A runtime that hands out the same memory for every workspace.

    They begin where every alignment is met, so that each lies at the very start of it.
    """

    def __init__(self, true: Runtime) -> None:
        super().__init__(true)
        self._held: dict[object, Any] = {}

    def allocate(self, shape: tuple[int, ...], kind: Any, device: int, stream: int) -> Any:
        """Return the memory of the first such allocation."""
        key = (kind, device)
        if len(shape) != 1:
            return self._true.allocate(shape, kind, device, stream)
        held = self._held.get(key)
        if held is None or held.numel() < shape[0] + BASE_ALIGNMENT:
            whole = (max(shape[0], _LARGE) + BASE_ALIGNMENT,)
            held = self._held[key] = self._true.allocate(whole, kind, device, stream)
        start = -held.data_ptr() % BASE_ALIGNMENT // kind.itemsize
        return held[start : start + shape[0]]


# Driver -------------------------------------------------------------------------------------------------------------


def _cut_structs(event: Launched) -> Launched:
    """Lose the last byte of what is larger than a number and no map."""
    cut = tuple(
        data[:-1] + bytes([data[-1] ^ 1]) if len(data) not in (1, 2, 4, 8, 16, _MAP_BYTES) else data
        for data in event.parameters
    )
    return replace(event, parameters=cut)


def _no_wide_clusters(event: AttributeSet) -> AttributeSet | None:
    return None if event.attribute == FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED else event


def _other_ratio(event: Launched) -> Launched:
    if event.window is None:
        return event
    return replace(event, window=replace(event.window, hit_ratio=0.25))


def _no_reset(_: PersistingLinesReset) -> None:
    return None


# Lifecycle ----------------------------------------------------------------------------------------------------------


class _Swallows(Changed):
    """Does nothing where it should refuse an argument."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except ArgumentError:
            return None


class _Nameless(Changed):
    """Forgets which argument is wrong."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except ArgumentError as error:
            raise type(error)("nothing", error.got, error.expected) from error


class _Vague(Changed):
    """Says of every failure of the driver, and of every map, only that something went wrong."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except DriverError as error:
            raise DriverError("call", 999, "CUDA_ERROR_UNKNOWN") from error
        except TensorMapError as error:
            raise TensorMapError(()) from error


class _OwnStream(Changed):
    """Launches on the thread's own default stream where the caller names one."""

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch."""
        return self._true.call(args, stream=None if stream is None else 2, **how)


class _AnyIndex(Changed):
    """Takes what has ``__index__`` for a number of any type."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        taken = [operator.index(value) if isinstance(value, Indexable) else value for value in args]
        return self._true.call(taken, **how)


class _EagerBinding(Changed):
    """Launches when it binds."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        bound = self._true.bind(*args, **how)
        bound()
        return bound


class _LateBinding(Changed):
    """Decides nothing when it binds: each launch is a call of what the arguments are by then."""

    def bind(self, args: Any, *, out: Any = None, **how: Any) -> BoundLaunch:
        """Bind."""
        kept = out

        def launch() -> Any:
            nonlocal kept
            made = self._true.call(args, out=kept, **how)
            if kept is None and made is not None:
                kept = made if isinstance(made, tuple) else (made,)
            return made

        return BoundLaunch(launch, **how)


def _only(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return change


def _reversed_outputs(plan: LaunchPlan) -> LaunchPlan:
    """Allocate outputs with their extents in the driver's order."""
    return replace(
        plan,
        tensors=tuple(replace(one, shape=one.shape[::-1]) if one.output else one for one in plan.tensors),
    )


FEATURE_SABOTEURS: tuple[Saboteur, ...] = (
    *_ATTRIBUTES,
    saboteur("always", "Ignores conditions.", "E2", "E3", stage="emitter", emitted=each_launch(_always)),
    saboteur(
        "never-empty", "Launches empty grids.", "E1", stage="emitter", emitted=each_launch(_never_empty)
    ),
    saboteur(
        "drop-stride-checks", "Drops every check of a stride.", "L3", stage="plan", plan=_drop_stride_checks
    ),
    saboteur(
        "vague-errors", "Says only that it failed.", "N5", "T3", stage="lifecycle", loaded=_only(_Vague)
    ),
    saboteur("other-float", "Takes float16 for bfloat16.", "V1", stage="emitter", emitted=_other_float),
    saboteur(
        "null-addresses",
        "Passes null for addresses.",
        "V2",
        stage="emitter",
        emitted=each_launch(_null_addresses),
    ),
    saboteur(
        "longer-views", "Overstates extents.", "V7", stage="emitter", emitted=each_launch(_longer_views)
    ),
    saboteur(
        "short-structs",
        "Leaves out a struct's last field.",
        "V9",
        stage="emitter",
        emitted=each_launch(_with_structs(lambda fields: fields[:-1])),
    ),
    saboteur(
        "late-fields",
        "Pads a struct before its fields.",
        "V9",
        stage="emitter",
        emitted=each_launch(_with_structs(_late_fields)),
    ),
    saboteur(
        "longer-odd-views",
        "Overstates the extent of a view in a struct that has half a word to itself.",
        "V9",
        stage="emitter",
        emitted=each_launch(_with_structs(_longer_odd_views)),
    ),
    saboteur("never-absent", "Demands every tensor.", "V4", stage="emitter", emitted=_never_absent),
    saboteur(
        "last-candidate", "Binds symbols by their last place.", "V5", stage="emitter", emitted=_last_candidate
    ),
    saboteur(
        "reversed-outputs", "Reverses outputs' extents.", "O5", stage="emitter", emitted=_reversed_outputs
    ),
    saboteur("no-fill", "Leaves outputs as they are.", "O3", stage="emitter", emitted=_no_fill),
    saboteur(
        "even-fills",
        "Fills 16 bits by writes of 32.",
        "O3",
        stage="driver",
        trace=in_trace(_even_fill, MemorySet),
    ),
    saboteur(
        "small-workspaces", "Takes elements for bytes.", "W1", stage="emitter", emitted=_half_workspaces
    ),
    saboteur(
        "dirty-workspaces", "Leaves workspaces as they are.", "W2", stage="emitter", emitted=_dirty_workspaces
    ),
    saboteur(
        "needless-workspaces",
        "Provides what nobody reads.",
        "W3",
        stage="emitter",
        emitted=_needless_workspaces,
    ),
    saboteur(
        "swap-corners",
        "Reverses the corners of im2col maps.",
        "T4",
        "T5",
        stage="emitter",
        emitted=each_encode(_swap_corners),
    ),
    saboteur(
        "boundless", "Lets maps reach anywhere.", "T6", stage="emitter", emitted=each_encode(_boundless)
    ),
    saboteur(
        "older-swizzles",
        "Takes a newer swizzle for 128B.",
        "Z5",
        stage="emitter",
        emitted=each_encode(_older_swizzle),
    ),
    saboteur("no-offset", "Ignores maps' offsets.", "T7", stage="emitter", emitted=each_encode(_no_offset)),
    saboteur(
        "uncapped-window",
        "Asks for windows of any length.",
        "P3",
        stage="emitter",
        emitted=each_launch(_uncapped),
    ),
    saboteur(
        "one-buffer", "Uses a buffer for two workspaces.", "W1", stage="binding", runtime=_only(_OneBuffer)
    ),
    saboteur(
        "cut-structs",
        "Loses a struct's last bit.",
        "V3",
        stage="driver",
        trace=in_trace(_cut_structs, Launched),
    ),
    saboteur(
        "no-wide-clusters",
        "Never allows wide clusters.",
        "L14",
        "L18",
        stage="driver",
        trace=in_trace(_no_wide_clusters, AttributeSet),
    ),
    saboteur(
        "other-ratio",
        "Sets another hit ratio.",
        "P1",
        "P2",
        stage="driver",
        trace=in_trace(_other_ratio, Launched),
    ),
    saboteur(
        "no-reset",
        "Leaves persisting lines in the cache.",
        "P4",
        stage="driver",
        trace=in_trace(_no_reset, PersistingLinesReset),
    ),
    saboteur(
        "any-index",
        "Takes what has __index__ for a float.",
        "V8",
        stage="lifecycle",
        loaded=_only(_AnyIndex),
    ),
    saboteur(
        "swallow-refusals",
        "Does nothing where it should refuse.",
        "A1",
        "A4",
        "O4",
        "N6",
        "P2",
        "V8",
        stage="lifecycle",
        loaded=_only(_Swallows),
    ),
    saboteur(
        "nameless-errors", "Names another argument.", "A1", "V6", stage="lifecycle", loaded=_only(_Nameless)
    ),
    saboteur(
        "own-stream",
        "Ignores the given stream.",
        "N2",
        "G1",
        "G2",
        "G3",
        stage="lifecycle",
        loaded=_only(_OwnStream),
    ),
    saboteur(
        "eager-binding", "Launches when it binds.", "C5", stage="lifecycle", loaded=_only(_EagerBinding)
    ),
    saboteur(
        "late-binding",
        "Decides nothing when it binds.",
        "C5",
        "Y2",
        stage="lifecycle",
        loaded=_only(_LateBinding),
    ),
)
"""The saboteurs."""
