"""Saboteurs of constants and of moved addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.model.expr import Const
from trunnion.model.plan import ConstantArgument, MovedArgument, PointerArgument
from trunnion.testing.saboteur import Saboteur, each_launch, saboteur

if TYPE_CHECKING:
    from trunnion.model.plan import PlannedArgument, PlannedLaunch

__all__ = ["FIXED_SABOTEURS"]


def _other_constant(argument: PlannedArgument) -> PlannedArgument:
    """Lose a constant's first bit, which is the sign if it has one."""
    if not isinstance(argument, ConstantArgument):
        return argument
    return replace(argument, data=argument.data[:-1] + bytes([argument.data[-1] & 0x7F]))


def _unmoved(argument: PlannedArgument) -> PlannedArgument:
    return PointerArgument(argument.memory) if isinstance(argument, MovedArgument) else argument


def _one_element_more(argument: PlannedArgument) -> PlannedArgument:
    """Let an address be moved by one element beyond its memory."""
    return replace(argument, limit=argument.limit + 1) if isinstance(argument, MovedArgument) else argument


def _wrapped(argument: PlannedArgument) -> PlannedArgument:
    """Count offsets in 32 bits."""
    if not isinstance(argument, MovedArgument) or isinstance(argument.offset, Const):
        return argument
    return replace(argument, offset=argument.offset % 2**32)


def _unsigned_constants(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, args=tuple(map(_other_constant, launch.args)))


def _unmoved_addresses(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, args=tuple(map(_unmoved, launch.args)))


def _far_addresses(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, args=tuple(map(_one_element_more, launch.args)))


def _wrap_offsets(launch: PlannedLaunch) -> PlannedLaunch:
    return replace(launch, args=tuple(map(_wrapped, launch.args)))


FIXED_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "unsigned-constants",
        "Loses the first bit of constants.",
        "V10",
        stage="emitter",
        emitted=each_launch(_unsigned_constants),
    ),
    saboteur(
        "unmoved-addresses",
        "Passes memory from its beginning.",
        "V10",
        stage="emitter",
        emitted=each_launch(_unmoved_addresses),
    ),
    saboteur(
        "far-addresses",
        "Lets addresses be moved an element too far.",
        "V10",
        stage="emitter",
        emitted=each_launch(_far_addresses),
    ),
    saboteur(
        "wrap-offsets",
        "Counts offsets in 32 bits.",
        "V10",
        stage="emitter",
        emitted=each_launch(_wrap_offsets),
    ),
)
"""The saboteurs."""
