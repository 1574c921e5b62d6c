"""Saboteurs of details of single features: narrow ones."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentError, ArgumentTypeError, UnboundSymbolError
from trunnion.model.expr import Const, maximum, ne
from trunnion.model.plan import ConditionCheck
from trunnion.testing.refusal_saboteurs import of_row, unrefused
from trunnion.testing.saboteur import Changed, Saboteur, each_launch, saboteur

if TYPE_CHECKING:
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.plan import LaunchPlan, PlannedLaunch

__all__ = ["DETAIL_SABOTEURS"]

_NO_SIZE = -5


def _computes_sizes(plan: LaunchPlan) -> LaunchPlan:
    """Compute each grid and each block ahead of the conditions, as a check does that holds of all sizes."""
    checks = (
        ConditionCheck(ne(extent, _NO_SIZE), "a size")
        for launch in plan.launches
        if launch.when is not None
        for extent in (*launch.grid, *launch.block, launch.dynamic_smem_bytes)
        if not isinstance(extent, Const)
    )
    return replace(plan, checks=(*plan.checks, *checks))


def _early_windows(launch: PlannedLaunch) -> PlannedLaunch:
    """Let a window that begins before its memory begin with it."""
    window = launch.window
    if window is None or isinstance(window.offset_bytes, Const):
        return launch
    return replace(launch, window=replace(window, offset_bytes=maximum(window.offset_bytes, 0)))


def _launched_together(plan: LaunchPlan) -> LaunchPlan:
    """Make launches that are alike one after the other, and what is copied between them behind the second."""
    alike = [
        replace(one, index=0) == replace(other, index=0)
        for one, other in zip(plan.launches, plan.launches[1:], strict=False)
    ]
    copies = (
        replace(one, before=one.before + 1) if 0 < one.before <= len(alike) and alike[one.before - 1] else one
        for one in plan.copies
    )
    return replace(plan, copies=tuple(copies))


def _places(tensors: Any) -> set[Any]:
    """Return where tensors lie, so that no other memory is taken for it that comes in its place."""
    from torch.multiprocessing.reductions import StorageWeakRef  # noqa: PLC0415 - tensors are torch's

    return {
        (StorageWeakRef(one.untyped_storage()), one.data_ptr())  # type: ignore[no-untyped-call]  # torch's
        for one in tensors
        if hasattr(one, "data_ptr")
    }


class _AlignedForAnother(Changed):
    """A loaded program that takes a destination for aligned where an argument was good."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._known: set[Any] = set()

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch, or not."""
        try:
            result = self._true.call(args, out=out, **how)
        except ArgumentError as error:
            if getattr(error, "refusal", "") == "alignment" and out and _places(out) <= self._known:
                return out[0] if len(out) == 1 else tuple(out)
            raise
        self._known |= _places(args)
        return result


class _NoLongDoubles(Changed):
    """A loaded program that takes no number of more digits than a double."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        if any(type(one).__name__ in ("longdouble", "clongdouble") for one in args):
            raise ArgumentTypeError("", "a long double", "a double")
        return self._true.call(args, **how)


class _Unlisted(Changed):
    """A loaded program that does not say which places would have shown a symbol."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(*args, **how)
        except UnboundSymbolError as error:
            raise UnboundSymbolError(error.symbol) from error


class _OneLegacy(Changed):
    """A loaded program that has one handle for the legacy stream."""

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch."""
        return self._true.call(args, stream=0 if stream == 1 else stream, **how)


class _SpoilsParts(Changed):
    """A loaded program that spoils the last byte of complex outputs behind the driver's back."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(*args, **how)
        for one in result if isinstance(result, tuple) else (result,):
            if one is not None and one.is_complex() and one.numel():
                ctypes.c_ubyte.from_address(one.data_ptr() + one.numel() * one.itemsize - 1).value ^= 1
        return result


def _reads_no_map(error: object) -> bool:
    return of_row("absent")(error) and not of_row("absent", "window")(error)


DETAIL_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "computes-sizes",
        "Computes sizes of skipped launches.",
        "E3",
        stage="emitter",
        emitted=_computes_sizes,
    ),
    saboteur(
        "absent-maps",
        "Does nothing where the tensor of a map is left out.",
        "V6",
        stage="lifecycle",
        loaded=unrefused(_reads_no_map),
    ),
    saboteur(
        "spoiled-parts", "Spoils the end of complex outputs.", "O3", stage="lifecycle", loaded=_SpoilsParts
    ),
    saboteur(
        "early-windows",
        "Begins windows with their memory that begin before it.",
        "X7",
        stage="emitter",
        emitted=each_launch(_early_windows),
    ),
    saboteur(
        "named-windows",
        "Does nothing where a window that is named is too long for the device.",
        "P3",
        stage="lifecycle",
        loaded=unrefused(of_row("long-window")),
    ),
    saboteur(
        "launched-together",
        "Copies to module variables behind launches that are alike.",
        "M1",
        stage="plan",
        plan=_launched_together,
    ),
    saboteur(
        "aligned-for-another",
        "Writes to memory that an argument was good in.",
        "X4",
        stage="lifecycle",
        loaded=_AlignedForAnother,
    ),
    saboteur("no-long-doubles", "Takes no long double.", "V1", stage="lifecycle", loaded=_NoLongDoubles),
    saboteur("unlisted-places", "Lists no place of a symbol.", "V5", stage="lifecycle", loaded=_Unlisted),
    saboteur(
        "one-legacy", "Launches on stream 0 where 1 is named.", "N2", stage="lifecycle", loaded=_OneLegacy
    ),
)
"""The saboteurs."""
