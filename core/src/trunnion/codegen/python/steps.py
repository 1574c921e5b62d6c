"""The part of a launcher that takes a plan's steps: the check or the computation that each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.codegen.python.arguments import emit_layouts, emit_number, emit_pointers, emit_structure
from trunnion.codegen.python.bindings import emit_binding, emit_check
from trunnion.codegen.python.launches import emit_geometry, emit_steps
from trunnion.codegen.python.memory import emit_extents, emit_given_outputs, emit_size
from trunnion.codegen.python.values import (
    emit_arguments,
    emit_map_values,
    emit_presence,
    emit_window_values,
)
from trunnion.codegen.python.variables import emit_unset, kept
from trunnion.codegen.writer import SourceWriter
from trunnion.model.plan.steps import (
    Bind,
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    LayOutMap,
    Phase,
    ReadFacts,
    ReadNumber,
    ReadStream,
    ReadTensors,
    Require,
    RequireLayouts,
    RequirePresence,
    ShapeLaunch,
    ShapeOutput,
    SizeWorkspace,
    TakeAddresses,
)

if TYPE_CHECKING:
    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.plan.steps import Action

__all__ = ["StepPrinter"]


@dataclass(frozen=True, slots=True)
class StepPrinter:
    """Writes steps."""

    plan: LaunchPlan
    """The plan."""

    exprs: ExprPrinter
    """Prints expressions."""

    remembers: bool = False
    """Whether there is a ``memo`` of an earlier call: see `trunnion.codegen.python.arguments.emit_pointers`."""

    destined: bool = False
    """Whether that is of a call with destinations, too."""

    def tensors(self) -> SourceWriter:
        """Return what the tensors alone decide; every variable of it that is `kept` is set whatever the call."""
        out = SourceWriter()
        emit_unset(out, self.plan, self.plan.actions(Phase.TENSORS), self.kept())
        out.include(self._phase(Phase.TENSORS))
        return out

    def kept(self) -> list[str]:
        """Return the variables that the tensors alone decide, and that are read later."""
        rest = (*self.plan.actions(Phase.VALUES), *self.plan.actions(Phase.ADMIT))
        return kept(self.plan, self.plan.actions(Phase.TENSORS), rest)

    def values(self) -> SourceWriter:
        """Return the rest, up to the last check of a call's arguments."""
        return self._phase(Phase.VALUES)

    def step(self, out: SourceWriter, action: Action) -> bool:  # noqa: C901, PLR0912 - one for each kind of step
        """Write a step that a call's arguments or facts of its device decide, and return whether it is one.

        Parameters
        ----------
        out
            Takes the lines; behind those that read facts ``state`` is the device's.
        action
            The step.
        """
        plan, exprs = self.plan, self.exprs
        match action:
            case ReadTensors():
                emit_structure(out, plan)
            case Bind(binding):
                emit_binding(out, plan, binding)
            case Require(check):
                emit_check(out, plan, check, exprs)
            case RequireLayouts():
                emit_layouts(out, plan)
            case ReadNumber(slot):
                emit_number(out, plan, slot, remembers=self.remembers)
            case TakeAddresses():
                emit_pointers(out, plan, remembers=self.remembers, destined=self.destined)
            case CheckDestinations() if self.destined:
                pass  # it is done where they are looked at
            case CheckDestinations():
                emit_given_outputs(out, plan)
            case ReadFacts(facts):
                out.line(f"{', '.join(f'f{place}' for place in range(len(facts)))}, = state.facts")
            case ShapeOutput(tensor):
                emit_extents(out, tensor, tensor.shape, exprs)
            case ShapeLaunch(launch):
                emit_geometry(out, plan, launch, exprs)
            case SizeWorkspace(workspace):
                emit_size(out, workspace, exprs)
            case ComputeArguments():
                emit_arguments(out, plan, action, exprs)
            case ComputeWindow():
                emit_window_values(out, plan, action, exprs)
            case LayOutMap(encode):
                emit_map_values(out, encode, exprs)
            case RequirePresence():
                emit_presence(out, plan, action)
            case ReadStream():
                _emit_stream(out)
            case _:
                return False
        return True

    def _phase(self, phase: Phase) -> SourceWriter:
        out = SourceWriter()
        emit_steps(out, self.plan, self.plan.actions(phase), self.step)
        return out


def _emit_stream(out: SourceWriter) -> None:
    with out.block("if stream is None:"):
        out.line("stream = current_stream(device)")
    with out.block("elif several:"):
        out.line("check_stream(stream, device)")
