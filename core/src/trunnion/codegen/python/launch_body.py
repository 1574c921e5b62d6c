"""The part of a launcher that touches the device: tensor maps, fills, launches."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.conditions import step_condition, when
from trunnion.codegen.python.dialect import Dialect, LaunchText
from trunnion.codegen.python.launches import (
    attribute_variables,
    emit_steps,
    follows_from_passed,
    packed_values,
    packs_integers,
)
from trunnion.codegen.python.memory import emit_fill, emit_outputs, emit_workspace, memory_address
from trunnion.codegen.python.variables import emit_unset, kept
from trunnion.codegen.writer import SourceWriter
from trunnion.model.expr import Const
from trunnion.model.plan import MapArgument
from trunnion.model.plan.steps import (
    AllowCluster,
    AllowSmem,
    CopyVariable,
    EncodeMap,
    Fill,
    Launch,
    LimitWindow,
    Phase,
    PrepareDevice,
    PrepareLaunch,
    RefuseCapture,
    Return,
    SetAside,
    TakeOutputs,
    TakeWorkspace,
    steps_of,
)
from trunnion.model.window import WindowPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from trunnion.codegen.python.steps import StepPrinter
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Encode, LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action

    Emit = Callable[[SourceWriter], None]

__all__ = ["LaunchBody", "recovering"]

_AXES = "xyz"


@dataclass(frozen=True, slots=True)
class LaunchBody:
    """Writes the last part of ``entry`` or of ``bind``: everything behind the checks of the arguments."""

    plan: LaunchPlan
    """The plan."""

    dialect: Dialect
    """How the driver is called."""

    steps: StepPrinter
    """Wrote the steps before, and writes those over facts of the device. The ``memo`` is another one wherever tensors
    or device are not like those of the call before."""

    bound: bool
    """Whether to write ``bind``: what is prepared is kept, and what launches is a function that is returned."""

    def emit(self, out: SourceWriter) -> None:
        """Write it."""
        if not self.bound:
            self._guarded(out, self._all)
            return
        spaces = [(step, f"h{step.workspace.index}") for step in steps_of(self.plan, TakeWorkspace)]
        unset = [name for step, name in spaces if step_condition(self.plan, step) != "True"]
        out.lines("frame = context.private_frame()", *(f"{name} = None" for name in unset))
        self._frames(out, "frame")
        self._phases(out, Phase.ADMIT, Phase.MEMORY, Phase.PREPARE)
        emit_steps(out, self.plan, self.plan.actions(Phase.LAUNCH), self._packed)
        held = python_tuple(
            [*(f"t{tensor.index}" for tensor in self.plan.tensors), *(name for _, name in spaces)]
        )
        # A default value keeps the memory alive whose addresses were packed.
        with out.block(f"def again(held={held}, /):"), recovering(out):
            self._guarded(out, self._again)
        out.line("return again, device, stream")

    def _guarded(self, out: SourceWriter, body: Emit) -> None:
        """Write a body that holds a frame: a program that is closed waits until all of them are back."""
        with out.block("try:"):
            out.line("token = pop()")
        with out.block("except IndexError:"):
            out.line("token = new_frame()")
        with out.block("try:"):
            body(out)
        with out.block("except BaseException:"):
            # What was half written must not be taken for what was written: an interrupt comes between any two steps.
            out.line("forsake(token)")
            out.line("raise")
        out.line("push(token)")
        self._phases(out, Phase.RETURN)

    def _all(self, out: SourceWriter) -> None:
        self._frames(out, "token")
        if self._settles:
            # Where outputs are allocated they are others in each call.
            allocated = "out is None or " if self.steps.destined else ""
            out.line(f"fresh = {allocated}token.passed is not passed")
        self._admit(out)
        self._phases(out, Phase.MEMORY)
        self._entered(out, Phase.PREPARE, Phase.LAUNCH)
        if self._settles:
            with out.block("if fresh:"):
                out.line("token.passed = passed")

    def _again(self, out: SourceWriter) -> None:
        self._state(out)
        self._entered(out, Phase.LAUNCH)

    def _frames(self, out: SourceWriter, holder: str) -> None:
        out.line(f"{', '.join(f'l{launch.index}' for launch in self.plan.launches)}, = {holder}.launches")

    def _entered(self, out: SourceWriter, *phases: Phase) -> None:
        written = bool(steps_of(self.plan, Fill) or self.plan.copies)
        self.dialect.emit_enter(out, always=self.plan.has_windows or written)
        body = SourceWriter()
        if self.plan.variables:
            body.line("context.check_context(stream, device)")
        self._phases(body, *phases)
        with out.block("try:"):
            out.include(body)
            if not body.written:
                out.line("pass")
        with out.block("finally:"), out.block("if entered:"):
            out.line("leave()")

    # What a frame has from the call before -----------------------------------------------------------------------

    @property
    def _settles(self) -> bool:
        """Whether anything stands in a frame already if the call before it passed the same, by the same layouts."""
        return any(map(self._stands, self.plan.launches))

    def _stands(self, launch: PlannedLaunch) -> bool:
        """Whether all that a launch is given stands in a frame already, as `_settles` says."""
        return self.steps.remembers and follows_from_passed(self.plan, launch, destined=self.steps.destined)

    def _is_recalled(self, action: Action) -> bool:
        """Whether a step finds a tensor map for launches alone for which it stands in a frame already."""
        if not isinstance(action, EncodeMap):
            return False
        return all(self._stands(self.plan.launches[reader]) for reader in action.readers)

    # Steps -----------------------------------------------------------------------------------------------------

    def _phases(self, out: SourceWriter, *phases: Phase) -> None:
        printers = (self._before, self._launched, self.steps.step)
        for phase in phases:
            for recalled, actions in groupby(self.plan.actions(phase), self._is_recalled):
                with when(out, "fresh" if recalled else "True"):
                    emit_steps(out, self.plan, actions, *printers)

    def _admit(self, out: SourceWriter) -> None:
        """Write what the device decides; of calls that are alike what follows from its facts is computed once."""
        plan, printers = self.plan, (self._before, self._launched)
        actions = plan.actions(Phase.ADMIT)
        derived = [one for one in actions if not any(printer(SourceWriter(), one) for printer in printers)]
        names = kept(plan, derived, ())
        first = actions.index(derived[0]) if derived else 0
        whole = list(actions[first : first + len(derived)]) == derived
        if not (self.steps.remembers and names and whole) or any(
            one.symbol is not None for one in plan.signature.scalars
        ):
            self._phases(out, Phase.ADMIT)
            return
        emit_steps(out, plan, actions[:first], *printers)
        with out.block("if len(memo) == 1:"):
            emit_unset(out, plan, derived, names)
            emit_steps(out, plan, derived, self.steps.step)
            out.line(f"memo.append({python_tuple(names)})")  # by two threads: the same twice
        with out.block("else:"):
            out.line(f"{', '.join(names)}, = memo[1]")
        emit_steps(out, plan, actions[first + len(derived) :], *printers)

    def _before(self, out: SourceWriter, action: Action) -> bool:
        """Write a step that comes before anything is written."""
        match action:
            case PrepareDevice():
                self._state(out)
            case PrepareLaunch(launch):
                with out.block(f"if not state.launches[{launch.index}]:"):
                    out.line(f"context.prepare_launch(device, {launch.index})")
            case RefuseCapture():
                out.line("context.refuse_capture(stream, device)")
            case LimitWindow(launch, window):
                if window.nbytes is not None:
                    with out.block(f"if n{launch.index} > state.longest_window:"):
                        name = python_string(self.plan.memory(window.memory).name)
                        out.line(f"context.refuse_window(device, {name}, n{launch.index})")
            case TakeOutputs():
                emit_outputs(out, self.plan, known=self.steps.destined)
            case TakeWorkspace(workspace):
                emit_workspace(out, workspace)
            case EncodeMap(encode):
                self._encode(out, encode)
            case _:
                return False
        return True

    def _launched(self, out: SourceWriter, action: Action) -> bool:
        """Write a step of limits, fills and launches, and what the caller gets."""
        match action:
            case AllowSmem(launch):
                with out.block(f"if b{launch.index}_smem > state.smem[{launch.kernel}]:"):
                    out.line(f"context.raise_dynamic_smem(device, {launch.kernel}, b{launch.index}_smem)")
            case AllowCluster(launch):
                blocks = " * ".join(attribute_variables(launch)["cluster"])
                with out.block(f"if {blocks} > state.cluster_blocks[{launch.kernel}]:"):
                    out.line(f"context.allow_cluster(device, {launch.kernel}, {blocks})")
            case SetAside(launch):
                with out.block(f"if n{launch.index} > state.set_aside:"):
                    out.line(f"context.set_aside({launch.index}, device, stream, n{launch.index})")
            case Fill():
                emit_fill(out, action)
            case CopyVariable():
                target, source = f"state.variables[{action.variable}]", memory_address(action.memory)
                out.line(f"copy({target}, {source}, {action.nbytes}, stream)")
            case Launch(launch):
                if not self.bound:
                    self._pack_all(out, launch)
                self._around(out, launch, _launch_text(launch))
            case Return(tensors):
                results = [f"t{slot}" for slot in tensors]
                out.line(
                    f"return {results[0] if len(results) == 1 else python_tuple(results) if results else None}"
                )
            case _:
                return False
        return True

    def _packed(self, out: SourceWriter, action: Action) -> bool:
        """Write what of a launch that is bound is done but once."""
        if isinstance(action, Launch):
            self._pack_all(out, action.launch)
        return True

    def _state(self, out: SourceWriter) -> None:
        out.line("state = states[device]")
        with out.block("if state is None:"):
            out.line("state = preload(device, stream)")

    def _encode(self, out: SourceWriter, encode: Encode) -> None:
        index, address = encode.index, memory_address(encode.memory)
        if encode.offset_bytes != Const(0):
            out.line(f"at = {address} + k{index}_offset")
            address = "at"
        out.line(f"m{index} = k{index}.kept.get({address})")
        with out.block(f"if m{index} is None:"):
            out.line(f"m{index} = encode{index}(k{index}, {address})")

    def _pack_all(self, out: SourceWriter, launch: PlannedLaunch) -> None:
        text = _launch_text(launch)
        body = SourceWriter()
        self._maps(body, launch)
        self._pack(body, launch, text)
        if body.written:  # a launch may be given nothing
            with when(out, "fresh" if self._stands(launch) else "True"):
                out.include(body)
        self.dialect.emit_prepare(out, text)

    def _maps(self, out: SourceWriter, launch: PlannedLaunch) -> None:
        index = launch.index
        for ordinal, argument in enumerate(launch.args):
            if isinstance(argument, MapArgument):
                held = f"l{index}.maps[{ordinal}]"
                with out.block(f"if {held} is not m{argument.encode}:"):
                    out.line(f"{held} = m{argument.encode}")
                    out.line(f"l{index}.pointers[{ordinal}] = m{argument.encode}.address")

    def _pack(self, out: SourceWriter, launch: PlannedLaunch, text: LaunchText) -> None:
        """Write the lines that fill in parameters and shape, where they may differ from those of the call before.

        Comparing takes half of the time of packing, and most calls pass what the call before did.
        """
        index, values = launch.index, packed_values(self.plan, launch)
        pack, packed = f"pack{index}(l{index}.buffer, 0, ", f"l{index}.packed"
        if values and not self.bound and packs_integers(self.plan, launch):
            out.line(f"values = {python_tuple(values)}")
            with out.block(f"if {packed} != values:"):
                out.line(f"{pack}*values)")
                out.line(f"{packed} = values")
        elif values:
            out.line(f"{pack}{', '.join(values)})")
        self.dialect.emit_shape(out, text)

    def _around(self, out: SourceWriter, launch: PlannedLaunch, text: LaunchText) -> None:
        window = _window_range(launch, WindowPolicy.STREAM)
        held: AbstractContextManager[None] = nullcontext()
        if window is not None:
            memory = f"({', '.join(window)})"
            held = out.block(f"with context.stream_window({launch.index}, device, stream, {memory}):")
        with held:
            self.dialect.emit_fire(out, text)


@contextmanager
def recovering(out: SourceWriter, diagnosis: str | None = None) -> Iterator[None]:
    """Write a function's body, which leaves the thread's contexts as they were, wherever an interrupt ends it.

    Parameters
    ----------
    out
        Takes the lines.
    diagnosis
        The line that raises something better than the ``error`` that ended it, if there is any.
    """
    with out.block("try:"):
        yield
    # Of an interrupt too, which comes between any two steps.
    with out.block(f"except BaseException{' as error' if diagnosis else ''}:"):
        out.lines("recover()", *([diagnosis] if diagnosis else []), "raise")


def _launch_text(launch: PlannedLaunch) -> LaunchText:
    index, smem = launch.index, launch.dynamic_smem_bytes
    names = attribute_variables(launch)
    return LaunchText(
        index=index,
        kernel=launch.kernel,
        grid=_texts(launch.grid, f"g{index}_"),
        block=_texts(launch.block, f"b{index}_"),
        dynamic_smem_bytes=str(smem.value) if isinstance(smem, Const) else f"b{index}_smem",
        varying=frozenset(_varying(launch)),
        shape=f"j{index}" if _varying(launch) else "",
        window=_window_range(launch, WindowPolicy.LAUNCH),
        computed=tuple((one.id, tuple(names[one.field])) for one in launch.computed),
    )


def _window_range(launch: PlannedLaunch, policy: WindowPolicy) -> tuple[str, str] | None:
    """Return the address and the length of a launch's window, if it has one of a policy."""
    window = launch.window
    if window is None or window.policy != policy:
        return None
    return f"{memory_address(window.memory)} + o{launch.index}", f"n{launch.index}"


def _texts(dims: tuple[Expr, Expr, Expr], prefix: str) -> tuple[str, str, str]:
    x, y, z = (
        str(extent.value) if isinstance(extent, Const) else f"{prefix}{axis}"
        for axis, extent in zip(_AXES, dims, strict=True)
    )
    return x, y, z


def _varying(launch: PlannedLaunch) -> list[str]:
    names = [
        f"{kind}{axis.upper()}"
        for kind, dims in (("grid", launch.grid), ("block", launch.block))
        for axis, extent in zip(_AXES, dims, strict=True)
        if not isinstance(extent, Const)
    ]
    return names if isinstance(launch.dynamic_smem_bytes, Const) else [*names, "sharedMemBytes"]
