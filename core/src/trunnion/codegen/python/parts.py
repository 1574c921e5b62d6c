"""The two parts of what a launcher computes: what the tensors alone decide, and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.python.arguments import emit_layouts, emit_numbers, emit_pointers, emit_structure
from trunnion.codegen.python.bindings import all_fixed, emit_binding, emit_check, fixed_slots, is_fixed_check
from trunnion.codegen.python.launches import (
    computed,
    emit_geometry,
    geometry_exprs,
    readers_condition,
    when,
)
from trunnion.codegen.python.memory import emit_extents, emit_size, outputs_of
from trunnion.codegen.python.names import assigned_conditionally
from trunnion.codegen.python.values import (
    emit_absent,
    emit_arguments,
    emit_map_values,
    emit_window_values,
    encode_exprs,
    window_exprs,
)
from trunnion.codegen.writer import SourceWriter

if TYPE_CHECKING:
    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch

__all__ = ["emit_fixed", "emit_free"]


def emit_fixed(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter, *, named: bool) -> None:
    """Write what the tensors alone decide; every variable that it sets is set whatever the call.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    printer
        Prints expressions.
    named
        Whether the call may have named a device: see `emit_structure`.
    """
    part = SourceWriter()
    emit_structure(part, plan, named=named)
    fixed = fixed_slots(plan)
    for binding in plan.bindings:
        if binding.slot in fixed:
            emit_binding(part, plan, binding)
    for check in plan.checks:
        if is_fixed_check(check, fixed):
            emit_check(part, plan, check, printer)
    emit_layouts(part, plan)
    _emit_derived(part, plan, printer, fixed=True)
    body = part.text()
    names = [name for name in assigned_conditionally(body) if name != "device"]  # which is a parameter
    if names:
        out.line(f"{' = '.join(names)} = None")
    out.include(part)


def emit_free(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter, *, remembers: bool) -> None:
    """Write the rest, up to the last check of a call.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    printer
        Prints expressions.
    remembers
        Whether there is a ``memo``: see `emit_pointers`.
    """
    fixed = fixed_slots(plan)
    emit_numbers(out, plan, remembers=remembers)
    for binding in plan.bindings:
        if binding.slot not in fixed:
            emit_binding(out, plan, binding)
    for check in plan.checks:
        if not is_fixed_check(check, fixed):
            emit_check(out, plan, check, printer)
    emit_pointers(out, plan, remembers=remembers)
    _emit_derived(out, plan, printer, fixed=False)
    emit_absent(out, plan)


def _emit_derived(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter, *, fixed: bool) -> None:
    """Write outputs' shapes, launches' shapes, arguments, maps and windows: those that are fixed, or the others."""
    slots = fixed_slots(plan)
    _emit_shapes(out, plan, printer, fixed=fixed)
    shaped = {launch.index for launch in plan.launches if all_fixed(geometry_exprs(launch), slots)}
    for launch in plan.launches:
        if (launch.index in shaped) is fixed:
            emit_geometry(out, plan, launch, printer)
    for workspace in plan.workspaces:
        sized = shaped.issuperset(workspace.readers) and all_fixed(workspace.extents, slots)
        if sized is fixed:
            with when(out, readers_condition(plan, workspace.readers)):
                emit_size(out, workspace, printer)
    for launch in plan.launches:
        emit_arguments(out, plan, launch, _ordinals(launch, shaped, slots, fixed=fixed), printer)
        windowed = launch.index in shaped and all_fixed(window_exprs(launch.window), slots)
        if windowed is fixed:
            emit_window_values(out, plan, launch, printer)
    for encode in plan.encodes:
        laid_out = shaped.issuperset(encode.readers) and all_fixed(encode_exprs(encode), slots)
        if laid_out is fixed:
            emit_map_values(out, plan, encode, printer)


def _emit_shapes(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter, *, fixed: bool) -> None:
    slots = fixed_slots(plan)
    for tensor in outputs_of(plan):
        if all_fixed(tensor.shape, slots) is fixed:
            emit_extents(out, tensor, tensor.shape, printer)


def _ordinals(launch: PlannedLaunch, shaped: set[int], slots: frozenset[int], *, fixed: bool) -> list[int]:
    """Return the arguments of a launch that belong to a part."""
    return [
        ordinal
        for ordinal in range(len(launch.args))
        if (numbers := [number for _, number in computed(launch, ordinal)])
        and (launch.index in shaped and all_fixed(numbers, slots)) is fixed
    ]
