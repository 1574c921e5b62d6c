"""The part of a launcher that touches the device: tensor maps, fills, launches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.dialect import Dialect, LaunchText
from trunnion.codegen.python.launches import (
    follows_from_passed,
    launch_condition,
    packed_values,
    packs_integers,
    readers_condition,
    when,
)
from trunnion.codegen.python.memory import emit_fills, memory_address
from trunnion.model.expr import Const
from trunnion.model.plan import MapArgument
from trunnion.model.window import AccessProperty, WindowPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Encode, LaunchPlan, PlannedLaunch

    Emit = Callable[[SourceWriter], None]

__all__ = ["LaunchBody", "recovering"]

_AXES = "xyz"
_PERSISTING = AccessProperty.PERSISTING.code


class LaunchBody:
    """Writes the last part of ``launch`` and of ``bind``.

    Parameters
    ----------
    plan
        The plan.
    dialect
        How the driver is called.
    """

    def __init__(self, plan: LaunchPlan, dialect: Dialect) -> None:
        self.plan = plan
        self.dialect = dialect
        fills = bool(plan.fills)
        windows = any(launch.window is not None for launch in plan.launches)
        self.needs_context = fills or windows
        self.happens = fills or not all(launch.never for launch in plan.launches)

    def emit(self, out: SourceWriter, allocate: Emit, *, bound: bool) -> None:
        """Write everything behind the checks.

        Parameters
        ----------
        out
            Takes the lines.
        allocate
            Writes the allocations: they come behind the device's state, because a program that has ended allocates
            nothing.
        bound
            Whether to write ``bind``: what is prepared is kept, and what launches is a function that is returned.
        """
        if bound:
            out.line("frame = context.private_frame()")
            self._frames(out, "frame")
            self._state(out)
            self._admit(out)
            allocate(out)
            self._prepare(out)
            held = [f"t{tensor.index}" for tensor in self.plan.tensors]
            held += [f"h{workspace.index}" for workspace in self.plan.workspaces]
            # A default value keeps the memory alive whose addresses were packed.
            with out.block(f"def again(held={python_tuple(held)}, /):"), recovering(out):
                self._guarded(out, self._fire)
            out.line("return again, device, stream")
        else:
            self._guarded(out, lambda inner: self._prepare_and_fire(inner, allocate))

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
        results = [f"t{slot}" for slot in self.plan.results]
        out.line(f"return {results[0] if len(results) == 1 else python_tuple(results) if results else None}")

    def _prepare_and_fire(self, out: SourceWriter, allocate: Emit) -> None:
        self._frames(out, "token")
        self._state(out)
        self._admit(out)
        allocate(out)
        self._entered(out, lambda inner: self._body(inner, prepare=True))

    def _fire(self, out: SourceWriter) -> None:
        self._state(out)
        self._entered(out, lambda inner: self._body(inner, prepare=False))

    def _frames(self, out: SourceWriter, holder: str) -> None:
        out.line(f"{', '.join(f'l{launch.index}' for launch in self.plan.launches)}, = {holder}.launches")

    def _state(self, out: SourceWriter) -> None:
        out.line("state = states[device]")
        with out.block("if state is None:"):
            out.line("state = preload(device, stream)")

    def _admit(self, out: SourceWriter) -> None:
        """Write what is asked of windows once the device is known: no capture of a stream's, none that is too long."""
        windows = [(launch, launch.window) for launch in self.plan.launches if launch.window is not None]
        if any(window.policy == WindowPolicy.STREAM for _, window in windows):
            out.line("context.refuse_capture(stream, device)")
        for launch, window in windows:
            condition, index = launch_condition(launch), launch.index
            if window.nbytes is not None and not launch.never:
                with when(out, condition), out.block(f"if n{index} > state.longest_window:"):
                    name = python_string(self.plan.memory(window.memory).name)
                    out.line(f"context.refuse_window(device, {name}, n{index})")

    def _entered(self, out: SourceWriter, body: Emit) -> None:
        self.dialect.emit_enter(out, always=self.needs_context)
        with out.block("try:"):
            body(out)
        with out.block("finally:"), out.block("if entered:"):
            out.line("leave()")

    def _body(self, out: SourceWriter, *, prepare: bool) -> None:
        if not self.happens:
            out.line("pass")
        if prepare:  # before the fills: a map that breaks a rule, or a limit, leaves memory as it was
            self._encode_and_allow(out)
        emit_fills(out, self.plan)
        for launch in self.plan.launches:
            self._launch(out, launch, prepare=prepare, fire=True)

    def _prepare(self, out: SourceWriter) -> None:
        self._encode_and_allow(out)
        for launch in self.plan.launches:
            self._launch(out, launch, prepare=True, fire=False)

    def _encode_and_allow(self, out: SourceWriter) -> None:
        """Write the maps, then what the launches need more of than any before: nothing is written or launched yet."""
        for encode in self.plan.encodes:
            self._encode(out, encode)
        for launch in self.plan.launches:
            if not launch.never and not isinstance(launch.dynamic_smem_bytes, Const):
                with when(out, launch_condition(launch)):
                    smem = f"b{launch.index}_smem"
                    with out.block(f"if {smem} > state.smem[{launch.kernel}]:"):
                        out.line(f"context.raise_dynamic_smem(device, {launch.kernel}, {smem})")
        for launch in self.plan.launches:
            window = launch.window
            persists = window is not None and window.hit_property == _PERSISTING
            if not launch.never and window is not None and window.policy == "launch" and persists:
                with when(out, launch_condition(launch)), out.block(f"if n{launch.index} > state.set_aside:"):
                    out.line(f"context.set_aside({launch.index}, device, stream, n{launch.index})")

    def _launch(self, out: SourceWriter, launch: PlannedLaunch, *, prepare: bool, fire: bool) -> None:
        if launch.never:
            return
        text = _launch_text(launch)
        with when(out, launch_condition(launch)):
            if prepare:
                self._parameters(out, launch, text)
                self.dialect.emit_prepare(out, text)
            if fire:
                self._around(out, launch, text)
            elif not launch.args:
                out.line("pass")

    def _encode(self, out: SourceWriter, encode: Encode) -> None:
        index, condition = encode.index, readers_condition(self.plan, encode.readers)
        if condition == "False":
            return
        with when(out, condition):
            address = memory_address(encode.memory)
            if encode.offset_bytes != Const(0):
                out.line(f"at = {address} + k{index}_offset")
                address = "at"
            out.line(f"m{index} = k{index}.kept.get({address})")
            with out.block(f"if m{index} is None:"):
                out.line(f"m{index} = encode{index}(k{index}, {address})")

    def _parameters(self, out: SourceWriter, launch: PlannedLaunch, text: LaunchText) -> None:
        index = launch.index
        for ordinal, argument in enumerate(launch.args):
            if isinstance(argument, MapArgument):
                held = f"l{index}.maps[{ordinal}]"
                with out.block(f"if {held} is not m{argument.encode}:"):
                    out.line(f"{held} = m{argument.encode}")
                    out.line(f"l{index}.pointers[{ordinal}] = m{argument.encode}.address")
        self._pack(out, launch, text)

    def _pack(self, out: SourceWriter, launch: PlannedLaunch, text: LaunchText) -> None:
        """Write the lines that fill in parameters and shape, where they may differ from those of the call before.

        Comparing takes half of the time of packing, and most calls pass what the call before did.
        """
        index, values = launch.index, packed_values(self.plan, launch)
        pack, packed = f"pack{index}(l{index}.buffer, 0, ", f"l{index}.packed"
        if follows_from_passed(self.plan, launch):
            with out.block(f"if {packed} is not passed:"):
                if values:
                    out.line(f"{pack}{', '.join(values)})")
                self.dialect.emit_shape(out, text)
                out.line(f"{packed} = passed")
            return
        if values and packs_integers(self.plan, launch):
            out.line(f"values = {python_tuple(values)}")
            with out.block(f"if {packed} != values:"):
                out.line(f"{pack}*values)")
                out.line(f"{packed} = values")
        elif values:
            out.line(f"{pack}{', '.join(values)})")
        self.dialect.emit_shape(out, text)

    def _around(self, out: SourceWriter, launch: PlannedLaunch, text: LaunchText) -> None:
        window, index = launch.window, launch.index
        if window is None:
            self.dialect.emit_fire(out, text)
            return
        address = f"{memory_address(window.memory)} + o{index}"
        if window.policy == "stream":
            with out.block(f"with context.stream_window({index}, device, stream, ({address}, n{index})):"):
                self.dialect.emit_fire(out, text)
            return
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
    index, window = launch.index, launch.window
    smem = launch.dynamic_smem_bytes
    held = window is not None and window.policy == "launch"
    address = f"{memory_address(window.memory)} + o{index}" if window is not None else ""
    return LaunchText(
        index=index,
        kernel=launch.kernel,
        grid=_texts(launch.grid, f"g{index}_"),
        block=_texts(launch.block, f"b{index}_"),
        dynamic_smem_bytes=str(smem.value) if isinstance(smem, Const) else f"b{index}_smem",
        varying=frozenset(_varying(launch)),
        shape=f"j{index}" if _varying(launch) else "",
        window=(address, f"n{index}") if held else None,
    )


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
