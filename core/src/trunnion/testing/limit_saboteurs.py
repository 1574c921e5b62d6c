"""Saboteurs of limits: each takes a number just beyond one for a good one, or for a smaller one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.errors import TensorMapError
from trunnion.model.expr import Const, le, select
from trunnion.model.plan import MovedArgument, ViewArgument
from trunnion.sim.trace import AttributeSet
from trunnion.testing.saboteur import Changed, Saboteur, each_launch, saboteur

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.testing.machine import Told

__all__ = ["LIMIT_SABOTEURS"]


def _wrapped(number: Expr, bits: int = 32) -> Expr:
    """Return a number of a call as an unsigned integer of so many bits would hold it."""
    return number if isinstance(number, Const) else number % 2**bits


def _wrap_grid(launch: PlannedLaunch) -> PlannedLaunch:
    x, y, z = map(_wrapped, launch.grid)
    return replace(launch, grid=(x, y, z))


def _wrap_block(launch: PlannedLaunch) -> PlannedLaunch:
    x, y, z = map(_wrapped, launch.block)
    return replace(launch, block=(x, y, z))


def _wrap_smem(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, dynamic_smem_bytes=_wrapped(launch.dynamic_smem_bytes))


def _asks_for_all(launch: PlannedLaunch) -> PlannedLaunch:
    """Skip a launch by an empty grid in the place of its condition: what it needs is then asked of every device."""
    if launch.when is None:
        return launch
    x, y, z = launch.grid
    return replace(launch, when=None, grid=(select(launch.when, x, 0), y, z))


def _twice(events: tuple[Told, ...]) -> tuple[Told, ...]:
    """Set each attribute of a kernel twice."""
    return tuple(one for one in events for _ in range(1 + isinstance(one, AttributeSet)))


def _half_aligned(plan: LaunchPlan) -> LaunchPlan:
    """Ask for half of each alignment that is more than an element's size."""
    tensors = tuple(
        replace(slot, alignment=max(slot.alignment // 2, slot.dtype.itemsize)) for slot in plan.tensors
    )
    return replace(plan, tensors=tensors)


def _wrap_outputs(plan: LaunchPlan) -> LaunchPlan:
    tensors = tuple(
        replace(slot, shape=tuple(map(_wrapped, slot.shape))) if slot.output else slot
        for slot in plan.tensors
    )
    return replace(plan, tensors=tensors)


def _one_byte_more(launch: PlannedLaunch) -> PlannedLaunch:
    """Let a window reach one byte beyond its memory."""
    window = launch.window
    return (
        launch
        if window is None
        else replace(launch, window=replace(window, limit_bytes=window.limit_bytes + 1))
    )


def _wrap_views(launch: PlannedLaunch) -> PlannedLaunch:
    args = tuple(
        replace(one, extents=tuple(_wrapped(extent, 31) for extent in one.extents))
        if isinstance(one, ViewArgument)
        else one
        for one in launch.args
    )
    return replace(launch, args=args)


def _wrap_offsets(launch: PlannedLaunch) -> PlannedLaunch:
    """Count in 32 bits where a window begins, and an address that is moved, within its memory."""

    def moved(argument: Any) -> Any:
        if not isinstance(argument, MovedArgument):
            return argument
        return replace(argument, offset=_wrapped_within(argument.offset, argument.limit))

    window = launch.window
    if window is not None:
        window = replace(window, offset_bytes=_wrapped_within(window.offset_bytes, window.limit_bytes))
    return replace(launch, args=tuple(map(moved, launch.args)), window=window)


def _wrapped_within(offset: Expr, limit: Expr) -> Expr:
    return select(le(offset, limit), _wrapped(offset), offset)


class _FirstRule(Changed):
    """Names the first of the rules that a map breaks."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except TensorMapError as error:
            raise TensorMapError(error.broken[:1], field=error.field) from error


LIMIT_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "wrap-grid", "Counts blocks in 32 bits.", "X1", stage="emitter", emitted=each_launch(_wrap_grid)
    ),
    saboteur(
        "wrap-block", "Counts threads in 32 bits.", "X2", stage="emitter", emitted=each_launch(_wrap_block)
    ),
    saboteur("wrap-smem", "Counts bytes in 32 bits.", "X3", stage="emitter", emitted=each_launch(_wrap_smem)),
    saboteur(
        "asks-for-all",
        "Asks every device for what a skipped launch needs.",
        "X3",
        "Z3",
        stage="emitter",
        emitted=each_launch(_asks_for_all),
    ),
    saboteur("asks-twice", "Allows kernels twice what they need.", "X3", stage="driver", trace=_twice),
    saboteur("half-aligned", "Halves alignments.", "X4", stage="plan", plan=_half_aligned),
    saboteur("wrap-outputs", "Counts elements in 32 bits.", "X5", stage="emitter", emitted=_wrap_outputs),
    saboteur("first-rule", "Names one broken rule of many.", "X6", stage="lifecycle", loaded=_FirstRule),
    saboteur(
        "one-byte-more",
        "Lets windows reach a byte too far.",
        "X7",
        stage="emitter",
        emitted=each_launch(_one_byte_more),
    ),
    saboteur(
        "wrap-views", "Cuts the extents of views.", "X8", stage="emitter", emitted=each_launch(_wrap_views)
    ),
    saboteur(
        "wrap-far-offsets",
        "Counts offsets in 32 bits.",
        "X9",
        stage="emitter",
        emitted=each_launch(_wrap_offsets),
    ),
)
"""The saboteurs."""
