"""The part of a C++ launcher that allocates and fills: outputs and workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.conditions import step_condition
from trunnion.codegen.cpp.places import output_rule
from trunnion.launcher.fills import fill_steps
from trunnion.model.plan import TensorSlot
from trunnion.model.plan.steps import Fill, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.codegen.cpp.text import CallText
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, WorkspaceSlot
    from trunnion.model.plan.steps import SizeWorkspace

__all__ = [
    "emit_fill",
    "emit_fill_table",
    "emit_given_outputs",
    "emit_outputs",
    "emit_shape",
    "emit_size",
    "emit_workspace",
]


def _emit_extents(text: CallText, memory: TensorSlot | WorkspaceSlot, extents: tuple[Expr, ...]) -> str:
    """Write the lines that compute the shape of memory that is allocated: ``y<i>`` of an output, ``z<i>`` else."""
    output = isinstance(memory, TensorSlot)
    name = f"{'y' if output else 'z'}{memory.index}"
    text.members[f"{name}[{max(len(extents), 1)}]"] = "int64_t"
    blamed = f"{output_rule(memory.index)}.tensor.name" if output else f"kWorkspace{memory.index}.name"
    for axis, extent in enumerate(extents):
        text.line(f"{name}[{axis}] = {text.expr(extent)};")
        if extent.bounds.low < 0:
            text.refuse(f"{name}[{axis}] < 0", f"raise_negative({blamed}, {axis}, {name}[{axis}])")
    return name


def emit_shape(text: CallText, tensor: TensorSlot) -> None:
    """Write the shape of an output."""
    _emit_extents(text, tensor, tensor.shape)


def emit_size(text: CallText, plan: LaunchPlan, step: SizeWorkspace) -> None:
    """Write the bytes of a workspace: 0 if no launch that happens reads it."""
    space, condition = step.workspace, step_condition(plan, step)
    name = text.member("uint64_t", f"z{space.index}_bytes")
    if condition != "true":
        text.line(f"{name} = 0;")
    with text.when(condition):
        extents = _emit_extents(text, space, space.extents)
        rank = len(space.extents)
        text.require(f"workspace_bytes(kWorkspace{space.index}, {extents}, {rank}, {name})")


def emit_given_outputs(text: CallText, plan: LaunchPlan, inputs: int) -> None:
    """Write the checks of the tensors that the caller gives."""
    outputs = plan.outputs
    if not outputs:
        return
    with text.out.block("if (outputs_given) {", "}"):
        for place, tensor in enumerate(outputs):
            index, at = tensor.index, inputs + place
            values = f"given[{at}], {output_rule(index)}, device(), y{index}, p[{index}]"
            text.require(f"check_output({values})")
        if len(outputs) > 1:
            spans = [_span(tensor) for tensor in outputs]
            text.line(f"const Span spans[] = {{{', '.join(spans)}}};")
            text.require(f"check_disjoint(spans, {len(spans)})")


def _span(tensor: TensorSlot) -> str:
    index, nbytes = tensor.index, tensor.dtype.itemsize
    count = f"element_count(y{index}, {len(tensor.shape)}) * {nbytes}"
    return f"{{p[{index}], {count}, &{output_rule(index)}.given.name}}"


def emit_outputs(text: CallText, plan: LaunchPlan) -> None:
    """Write the lines that allocate the outputs, unless the caller gives them."""
    outputs = plan.outputs
    if not outputs:
        return
    with text.out.block("if (!outputs_given) {", "}"):
        for place, tensor in enumerate(outputs):
            index = tensor.index
            text.member("Memory", f"h{index}")
            values = f"{output_rule(index)}, request({place}), y{index}, h{index}, p[{index}]"
            text.require(f"allocate_output({values})")


def emit_workspace(text: CallText, index: int) -> None:
    """Write the lines that allocate a workspace, if it has bytes."""
    text.member("Memory", f"hw{index}")
    text.member("uint64_t", f"w{index}")
    values = f"kWorkspace{index}, request(kBytes), z{index}_bytes, hw{index}, w{index}"
    text.require(f"allocate_workspace({values})")


# Fills -------------------------------------------------------------------------------------------------------------


def emit_fill_table(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the fills' constants."""
    for fill in steps_of(plan, Fill):
        for index, step in enumerate(fill_steps(fill.pattern)[0]):
            values = f"{step.value}u, {step.width}, {step.offset}, {step.pitch}"
            out.line(f"constexpr FillStep {_write(fill, index)}{{{values}}};")


def _write(fill: Fill, index: int) -> str:
    return f"kFill_{'t' if isinstance(fill.slot, TensorSlot) else 'z'}{fill.slot.index}_{index}"


def emit_fill(text: CallText, fill: Fill, write: Callable[[str, str], str]) -> None:
    """Write the lines that fill an output or a workspace, which has no bytes if nobody reads it.

    Parameters
    ----------
    text
        The function that fills.
    fill
        What is filled.
    write
        Returns the statement of one write, for a step and an address; it may use ``count``, which is not 0.
    """
    slot, index = fill.slot, fill.slot.index
    address, count = f"w{index}", f"z{index}_bytes"
    if isinstance(slot, TensorSlot):
        address, count = f"p[{index}]", f"element_count(y{index}, {len(slot.shape)})"
    steps, repeat = fill_steps(fill.pattern)
    with text.out.block("{", "}"):
        text.line(f"const uint64_t count = {count}{f' * {repeat}' if repeat > 1 else ''};")
        with text.when("count != 0"):
            for step in range(len(steps)):
                text.line(write(_write(fill, step), address))
