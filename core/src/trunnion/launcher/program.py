"""`PythonProgram`: run a Python launcher over a driver facade, from load to close."""

from __future__ import annotations

import functools
import os
import sys
import time
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.contract.adapter import BoundLaunch, LoadedProgram
from trunnion.errors import CaptureError, CorruptArtifactError, TrunnionError
from trunnion.launcher.context import Context, Parts
from trunnion.launcher.interpreter import Interpreter
from trunnion.launcher.tables import launch_spec, map_spec, variable_spec
from trunnion.launcher.walk import Walk
from trunnion.model.plan import refusals
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, FrameType

    from trunnion.contract.runtime import Runtime
    from trunnion.launcher.facade import DriverFacade
    from trunnion.model.plan import LaunchPlan

__all__ = ["Launcher", "LauncherModule", "PythonProgram"]


_BROKEN = (SyntaxError, ValueError, KeyError, ImportError, NameError, TypeError, AttributeError)
"""What executing a text can raise that is no launcher, or one for another version of this module."""

_POLL = 0.0005  # seconds


@dataclass(frozen=True, slots=True)
class Launcher:
    """What calls a program."""

    entry: Callable[..., Any]
    """Takes a call as people write it."""

    bind: Callable[..., tuple[Callable[[], Any], int, int]]
    """Returns what launches, its device and its stream."""

    owns: Callable[[FrameType], bool]
    """Whether a frame of Python's is one of these functions'."""


@dataclass(frozen=True, slots=True)
class LauncherModule(Parts):
    """What makes the launcher of a program."""

    make: Callable[[Context], Launcher]
    """Returns the launcher for a context."""

    @classmethod
    def execute(cls, text: str, filename: str, plan: Callable[[], LaunchPlan]) -> LauncherModule:
        """Run the text of a generated module. It is code: the caller has decided to trust it.

        Parameters
        ----------
        text
            What `trunnion.codegen.python.emitter.emit_launcher` returned.
        filename
            What tracebacks call it.
        plan
            Returns the plan from which it was generated: asked for once, when a call is refused.

        Raises
        ------
        CorruptArtifactError
            If the text is not a launcher.
        """
        namespace: dict[str, Any] = {"__name__": f"trunnion.{filename}"}  # of ours: see `trunnion.callers`
        try:
            exec(_compiled(text, f"<{filename}>"), namespace)  # noqa: S102 - a launcher is code; load() says so
            make, launches, encodes = (namespace[name] for name in ("make", "LAUNCHES", "ENCODES"))
            facts = namespace.get("FACTS", ())
        except _BROKEN as error:
            raise CorruptArtifactError(filename, f"is not a launcher of this version: {error}") from error

        def launcher(context: Context) -> Launcher:
            entry, bind = make(context)
            return Launcher(entry, bind, lambda frame: frame.f_globals is namespace)

        variables = namespace.get("VARIABLES", ())
        return cls(launches, encodes, functools.cache(plan), facts, variables, launcher)

    @classmethod
    def interpret(cls, plan: LaunchPlan) -> LauncherModule:
        """Return what does as the plan says, step by step, with no text in between: an `Interpreter`."""

        def launcher(context: Context) -> Launcher:
            made = Interpreter(plan, context)
            return Launcher(made.entry, made.bind, made.owns)

        launches = tuple(launch_spec(plan, launch) for launch in plan.launches)
        encodes = tuple(map_spec(plan, encode) for encode in plan.encodes)
        variables = tuple(map(variable_spec, plan.variables))
        return cls(launches, encodes, lambda: plan, plan.facts, variables, launcher)


@functools.lru_cache(maxsize=32)
def _compiled(text: str, filename: str) -> CodeType:
    """Return the code of a module; a program that is loaded again, as after `close`, is not compiled again."""
    return compile(text, filename, "exec")


class _Life:
    """From load to close of one program: who may still launch, and what is left to undo."""

    def __init__(self, context: Context, owns: Callable[[FrameType], bool]) -> None:
        self.context = context
        self._owns = owns
        self._closing = Turns("the program is being closed")
        self._unloaded = False
        # Of each device what is left to do, until it is done: an interrupt may come at any moment of it.
        self._owed: set[int] = set()
        self._waiting: set[int] = set()

    def close(self) -> None:
        """Wait for all launches and unload the image; every step is done once, whatever an earlier one raises.

        But for giving back the cache that was set aside, which outlives the program, for what a stream capture
        forbids, and for what an interrupt came before: another `close` does those.

        Raises
        ------
        CaptureError
            If some stream is being captured.
        LifecycleError
            If the calling thread is inside a launch of this program, which would have to wait for itself, or
            prepares it for a device.
        """
        if self._within():
            raise refusals.CLOSE_WITHIN()
        if self._closing.is_mine():  # a handler's, in the middle of another close, which does it
            return
        if self.context.is_preparing():
            raise refusals.CLOSE_WITHIN()
        with self._closing.turn(), ExitStack() as steps:  # which does its steps in the opposite order
            context = self.context
            if not self._unloaded:
                context.shut(refusals.CLOSED, self._waiting)
                if context.sets_aside:
                    self._owed.update(self._waiting)
                # A frame that an interrupt lost may be held by what caught it: nobody is in a call for that.
                while context.pool.busy() and self._is_called():
                    time.sleep(_POLL)
                steps.callback(self._unload)
            for device in sorted(self._owed):
                steps.callback(self._give_back, device)
            for device in sorted(self._waiting):
                steps.callback(self._wait, device)

    def _wait(self, device: int) -> None:
        try:
            self.context.facade.synchronize(device)
        except CaptureError:
            raise
        except TrunnionError:  # what the driver says once it says again; an interrupt is no answer
            self._waiting.discard(device)
            raise
        self._waiting.discard(device)

    def _unload(self) -> None:
        if self._waiting:  # a kernel may still run there
            return
        # Before it is: an interrupt behind the driver's call must not lead to a second one.
        self._unloaded = True
        try:
            self.context.facade.unload(self.context.library)
        except CaptureError:
            self._unloaded = False
            raise

    def _give_back(self, device: int) -> None:
        self.context.give_back(device)
        self._owed.discard(device)

    def _within(self) -> bool:
        """Whether the launcher is among the functions that called the caller."""
        return self._calls(sys._getframe(1))  # noqa: SLF001 - the documented way to one's callers

    def _is_called(self) -> bool:
        """Whether some thread is in a call."""
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to every thread's
        return any(map(self._calls, frames.values()))

    def _calls(self, frame: FrameType | None) -> bool:
        """Whether a frame is the launcher's, or of what it calls."""
        while frame is not None:
            if self._owns(frame):
                return True
            frame = frame.f_back
        return False

    def forget(self) -> None:
        """Give everything up in a forked child: a CUDA context does not survive a fork, not even to be unloaded."""
        self._unloaded, self._owed, self._waiting = True, set(), set()
        self.context.forget(refusals.FORKED)


class PythonProgram(LoadedProgram):
    """A loaded launcher whose host side is Python.

    Parameters
    ----------
    module
        What makes it.
    image
        The device image.
    symbols
        The exact name of each kernel in the image, in the plan's order, then of each module variable:
        `Manifest.symbols`.
    facade
        The driver.
    runtime
        The tensor library.

    Raises
    ------
    DriverError
        If the driver refuses the image.
    """

    def __init__(
        self,
        module: LauncherModule,
        image: bytes,
        symbols: Sequence[str],
        facade: DriverFacade,
        runtime: Runtime,
    ) -> None:
        self._module = module
        process = os.getpid()
        self._context = Context(module, image, symbols, facade, runtime)
        with ExitStack() as undo:
            undo.callback(facade.unload, self._context.library)
            launcher = module.make(self._context)
            self._entry, self._bind = launcher.entry, launcher.bind
            self._life = _Life(self._context, launcher.owns)
            # As long as a bound call is left, which a forked child must forget too.
            self._context.life = self._life
            _LOADED.add(self._life)
            undo.pop_all()
        if os.getpid() != process:  # a handler forked meanwhile: what is loaded is the parent's
            self._life.forget()

    @property
    def entry(self) -> Callable[..., Any]:
        """The launcher itself."""
        return self._entry

    def call(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Any:
        """Launch; see `LoadedProgram.call`."""
        return self._entry(*args, out=out, stream=stream, device=device)

    def bind(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> BoundLaunch:
        """Check, allocate and prepare everything now; see `LoadedProgram.bind`."""
        self._context.refuse_closed()  # before anything is said of the arguments
        entry, device, stream = self._bind(*args, out=out, stream=stream, device=device)
        return BoundLaunch(entry, device=device, stream=stream)

    def walk(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Walk:
        """Return what takes a call through its plan's steps, one by one, and launches nothing.

        Parameters are those of `LoadedProgram.call`.
        """
        return Walk(self._module.plan(), self._context, args, out=out, stream=stream, device=device)

    def preload(self, device: int) -> None:
        """Prepare a device; see `LoadedProgram.preload`."""
        with self._context.recovering():
            self._context.prepare(self._context.check_ordinal(device))

    def close(self) -> None:
        """Wait for the program's launches on every device that it used, then unload the image."""
        with self._context.recovering():
            self._life.close()


_LOADED: weakref.WeakSet[_Life] = weakref.WeakSet()
"""Every program of this process: a forked child must forget them, because a CUDA context does not survive a fork."""


def _forget_in_child() -> None:
    for life in list(_LOADED):
        life.forget()


os.register_at_fork(after_in_child=_forget_in_child)
