"""The part of a launcher that allocates and fills: outputs and workspaces."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.conditions import refuse
from trunnion.launcher.fills import fill_steps
from trunnion.launcher.memory import ALLOCATOR_ALIGNMENT
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan import MemoryKind, TensorSlot
from trunnion.model.plan.places import author_extents
from trunnion.model.plan.steps import Fill, steps_of

if TYPE_CHECKING:
    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, MemoryRef, WorkspaceSlot

__all__ = [
    "emit_extents",
    "emit_fill",
    "emit_given_outputs",
    "emit_outputs",
    "emit_size",
    "emit_workspace",
    "fill_table",
    "memory_address",
]


def memory_address(memory: MemoryRef) -> str:
    """Return the variable that holds the address of a tensor or a workspace."""
    return f"{'p' if memory.kind is MemoryKind.TENSOR else 'w'}{memory.slot}"


def emit_extents(
    out: SourceWriter, memory: TensorSlot | WorkspaceSlot, extents: tuple[Expr, ...], printer: ExprPrinter
) -> None:
    """Write the lines that compute the shape of memory that is allocated: ``y<i>`` of an output, ``z<i>`` else."""
    letter = "y" if isinstance(memory, TensorSlot) else "z"
    names = []
    for axis, extent in enumerate(extents):
        names.append(f"{letter}{memory.index}_{axis}")
        out.line(f"{names[-1]} = {printer.text(extent)}")
        if extent.bounds.low < 0:
            refuse(
                out, f"{names[-1]} < 0", f"negative_error({python_string(memory.name)}, {axis}, {names[-1]})"
            )
    out.line(f"{letter}{memory.index} = {python_tuple(names)}")


def emit_size(out: SourceWriter, workspace: WorkspaceSlot, printer: ExprPrinter) -> None:
    """Write the lines that compute the bytes of a workspace, and refuse more than any memory has."""
    emit_extents(out, workspace, workspace.extents, printer)
    index = workspace.index
    factors = [f"z{index}_{axis}" for axis in range(len(workspace.extents))]
    out.line(f"z{index}_bytes = {' * '.join([*factors, str(workspace.itemsize)])}")
    most = INT64_MAX - max(workspace.alignment, ALLOCATOR_ALIGNMENT)  # what aligns it comes on top
    if math.prod(max(extent.bounds.high, 0) for extent in workspace.extents) * workspace.itemsize > most:
        refuse(out, f"z{index}_bytes > {most}", f"size_error({python_string(workspace.name)})")


def emit_given_outputs(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the check of the tensors that the caller gives under ``out=``."""
    wanted = [
        f"({python_string(t.name)}, y{t.index}, {_texts(plan, t)}, dtype_{t.dtype.name}, {t.alignment})"
        for t in plan.outputs
    ]
    with out.block("if out is not None:"):
        out.line(f"check_outputs(out, {python_tuple(wanted)}, device)")


def _texts(plan: LaunchPlan, output: TensorSlot) -> str:
    return python_tuple([python_string(text) for text in author_extents(plan, output)])


def emit_outputs(out: SourceWriter, plan: LaunchPlan, *, known: bool) -> None:
    """Write the lines that take the destinations, or allocate under the launch's stream.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    known
        Whether destinations, and their addresses, were taken before where the caller gives them.
    """
    outputs = plan.outputs
    if not outputs:
        return
    if not known:
        with out.block("if out is not None:"):
            out.line(f"{', '.join(f't{tensor.index}' for tensor in outputs)}, = out")
    addresses = [f"p{tensor.index} = data_ptr(t{tensor.index})" for tensor in outputs]
    with out.block("if out is None:"):
        for tensor in outputs:
            wanted = f"y{tensor.index}, dtype_{tensor.dtype.name}"
            made = f"allocate({wanted}, device, stream)"
            if tensor.alignment > ALLOCATOR_ALIGNMENT:
                sizes = f"{tensor.dtype.itemsize}, {tensor.alignment}"
                made = f"context.aligned({wanted}, {sizes}, (device, stream))"
            out.line(f"t{tensor.index} = {made}")
        if known:
            out.lines(*addresses)
    if not known:
        out.lines(*addresses)


def emit_workspace(out: SourceWriter, workspace: WorkspaceSlot) -> None:
    """Allocate bytes, and more of them where the allocator aligns less than is asked for."""
    index, name = workspace.index, python_string(workspace.name)
    out.line(
        f"h{index}, w{index} = workspace({name}, z{index}_bytes, {workspace.alignment}, (device, stream))"
    )


def emit_fill(out: SourceWriter, fill: Fill) -> None:
    """Write the lines that fill an output or a workspace, on the launch's stream."""
    slot, index = fill.slot, fill.slot.index
    count = f"z{index}_bytes"
    if isinstance(slot, TensorSlot):
        count = " * ".join(f"y{index}_{axis}" for axis in range(len(slot.shape))) or "1"
    steps, repeat = fill_steps(fill.pattern)
    out.line(f"count = {count}{f' * {repeat}' if repeat > 1 else ''}")
    with out.block("if count:"):
        for place in range(len(steps)):
            out.line(f"fill({_step(fill.memory, place)}, {memory_address(fill.memory)}, count, stream)")


def fill_table(plan: LaunchPlan) -> list[str]:
    """Return the lines of the module's head that hold the fills' constants."""
    return [
        f"{_step(fill.memory, index)} = {step!r}"
        for fill in steps_of(plan, Fill)
        for index, step in enumerate(fill_steps(fill.pattern)[0])
    ]


def _step(memory: MemoryRef, index: int) -> str:
    return f"fill_{'t' if memory.kind is MemoryKind.TENSOR else 'z'}{memory.slot}_{index}"
