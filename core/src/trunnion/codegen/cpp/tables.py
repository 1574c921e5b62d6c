"""The head of a launcher: what is known before any call."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.places import output_rule
from trunnion.codegen.cpp.variables import emit_variable_rules
from trunnion.codegen.literals import cpp_name, cpp_string
from trunnion.launcher.refusals import out_place
from trunnion.model.expr import Const
from trunnion.model.launch_attributes import PORTABLE_CLUSTER_BLOCKS, attribute_row
from trunnion.model.plan.facts import AttributeFact
from trunnion.model.plan.places import author_extents

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch, TensorSlot
    from trunnion.model.plan.facts import PlannedFact

__all__ = ["argument_names", "braces", "emit_names", "emit_program_rule", "emit_tensor_rules"]

_CLUSTERS = ("cluster", "preferred_cluster")


def braces(items: list[str]) -> str:
    """Return an initialiser in braces."""
    return f"{{{', '.join(items)}}}"


def argument_names(plan: LaunchPlan) -> list[str]:
    """Return the names of a call's arguments in order, inputs before outputs."""
    return [one.name for one in (*plan.signature.params, *plan.outputs)]


def emit_names(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the names that messages mention; an array of C++ has one element at least."""
    names = [cpp_name(name) for name in argument_names(plan)] or [cpp_name("")]
    kernels = [cpp_name(kernel.name) for kernel in plan.kernels] or [cpp_name("")]
    out.line(f"constexpr Name kArguments[] = {braces(names)};")
    out.line(f"[[maybe_unused]] constexpr Name kKernels[] = {braces(kernels)};")


def _tensor_rule(tensor: TensorSlot) -> str:
    code, bits, lanes = tensor.dtype.dlpack
    fields = [
        cpp_name(tensor.name),
        braces([str(code), str(bits), str(lanes)]),
        cpp_string(tensor.dtype.name),
        str(len(tensor.shape)),
        str(tensor.alignment),
        "true" if tensor.nullable else "false",
    ]
    return braces(fields)


def emit_tensor_rules(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is asked of each tensor, and the sizes of workspaces."""
    if plan.inputs:
        with out.block("constexpr TensorRule kTensors[] = {", "};"):
            out.lines(*(f"{_tensor_rule(tensor)}," for tensor in plan.inputs))
    for index, tensor in enumerate(plan.outputs):
        texts = [cpp_name(text) for text in author_extents(plan, tensor)]
        if texts:
            out.line(f"constexpr Name kExtents{tensor.index}[] = {braces(texts)};")
        place = cpp_string(out_place(index, len(plan.outputs)))
        fields = [_tensor_rule(tensor), place, f"kExtents{tensor.index}" if texts else "nullptr"]
        out.line(f"constexpr OutputRule {output_rule(tensor.index)}{braces(fields)};")
    for space in plan.workspaces:
        fields = [cpp_name(space.name), str(space.itemsize), str(space.alignment)]
        out.line(f"constexpr WorkspaceRule kWorkspace{space.index}{braces(fields)};")


def emit_program_rule(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is prepared for a device before its first launch."""
    rules = []
    for launch in plan.launches:
        needs = _needs(launch)
        if needs:
            out.line(f"constexpr AttributeNeed kNeeds{launch.index}[] = {braces(needs)};")
        rules.append(_launch_rule(launch, len(needs)))
    out.line(f"constexpr LaunchRule kLaunches[] = {braces(rules or ['{}'])};")
    rule = [str(len(plan.kernels)), "kLaunches", str(len(rules))]
    if plan.facts:
        out.line(f"constexpr FactRule kFacts[] = {braces([_fact_rule(fact) for fact in plan.facts])};")
        rule += ["kFacts", str(len(plan.facts))]
    if plan.variables:
        emit_variable_rules(out, plan)
        rule += [] if plan.facts else ["nullptr", "0"]
        rule += ["kVariables", str(len(plan.variables))]
    out.line(f"constexpr ProgramRule kProgram{braces(rule)};")
    out.line("Program own(kProgram);")


def _fact_rule(fact: PlannedFact) -> str:
    """Return a row of what a device is asked for: an attribute, or the occupancy of a kernel."""
    if isinstance(fact, AttributeFact):
        return braces([cpp_string(fact.name), str(fact.attribute), str(fact.least), "0", "0", "0"])
    numbers = fact.kernel, fact.threads, fact.dynamic_smem_bytes
    return braces([cpp_string(fact.name), "FactRule::kOccupancy", "0", *map(str, numbers)])


def _needs(launch: PlannedLaunch) -> list[str]:
    needs = []
    for one in launch.attributes:
        row = attribute_row(one.id)
        major, minor = row.least_capability(one.values)
        needs.append(braces([cpp_string(one.field), str(row.cuda_version), str(major), str(minor)]))
    return needs


def _launch_rule(launch: PlannedLaunch, needs: int) -> str:
    smem = launch.dynamic_smem_bytes
    # Of a cluster that a call decides, the call asks: it has no numbers here.
    blocks = max(math.prod(launch.attribute(name)) for name in _CLUSTERS)
    fields = [
        str(launch.kernel),
        str(smem.value) if isinstance(smem, Const) else "0",
        "true" if blocks > PORTABLE_CLUSTER_BLOCKS else "false",
        f"kNeeds{launch.index}" if needs else "nullptr",
        str(needs),
        *(["true"] if launch.deferred else []),
    ]
    return braces(fields)
