"""Saboteurs of what is kept when a call, a load or a close is over: buffers, threads, a library of several programs."""

from __future__ import annotations

import ctypes
import hashlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.artifacts.program_file import program_of
from trunnion.sim.abi import Limit
from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.runtime import Runtime

__all__ = ["KEEPING_SABOTEURS"]

_LONGEST: Final = 60
"""Seconds after which a thread that nobody ended ends."""


class _HoldsBuffers(Changed):
    """A loaded program that lets go of a struct's buffer when the next call takes another one."""

    _held: Any = ()

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        self._held = [memoryview(one) for one in args if isinstance(one, bytearray)]
        return self._true.call(args, **how)


class _ReadsVersions(Changed):
    """A loaded program that tells tensors of one address apart by how often they were written to."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        for one in args:
            if hasattr(one, "data_ptr"):
                one._version  # noqa: B018, SLF001 - as launchers may read it
        return self._true.call(args, **how)


class _ClosedOnce(Changed):
    """A loaded program that is closed as soon as it begins to be."""

    _closed = False

    def close(self) -> None:
        """Unload, the first time."""
        if not self._closed:
            self._closed = True
            self._true.close()


def _watched(true: LoadedProgram) -> LoadedProgram:
    """Leave a thread behind of which Python does not know; nothing of it lies where ``malloc`` counts."""
    library, thread = ctypes.CDLL(None), ctypes.c_ulong()
    if not library.pthread_create(ctypes.byref(thread), None, library.sleep, ctypes.c_void_p(_LONGEST)):
        library.pthread_detach(thread)
    return true


class _Hooked(Changed):
    """An adapter that notes each program with a window, and does not forget it when it is closed."""

    _hooks: Final[list[object]] = []

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load."""
        if any(launch.window is not None for launch in program_of(artifact).launches):
            self._hooks.append([object()])
        return self._true.load(artifact, runtime)  # type: ignore[no-any-return]  # an adapter's


class _AnyFloat(Changed):
    """A loaded program that takes for a number what ``float`` makes one of."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        given = [float(one) if type(one).__name__ in {"Decimal", "bool_"} else one for one in args]
        return self._true.call(given, **how)


class _CountsBackwards(Changed):
    """A loaded program that takes ordinals below 0 for places from the last device on."""

    def preload(self, device: int) -> None:
        """Prepare."""
        simulator = sim.active()
        self._true.preload(device if simulator is None else device % simulator.devices)


class _OneLibrary(Changed):
    """An adapter that loads equal images once, while a program of them is there."""

    _programs: Final[dict[bytes, list[int]]] = {}
    """The library of an artifact, and how many programs it has."""

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load."""
        simulator = sim.active()
        if simulator is None:
            return self._true.load(artifact, runtime)  # type: ignore[no-any-return]  # an adapter's
        key = hashlib.sha256(repr(sorted(artifact.files.items())).encode()).digest()

        def load(proceed: Callable[..., None], handle: int, *arguments: Any) -> None:
            there = self._programs.get(key)
            if there is None:
                proceed(handle, *arguments)
                there = self._programs[key] = [ctypes.c_uint64.from_address(handle).value, 0]
            ctypes.c_uint64.from_address(handle).value = there[0]
            there[1] += 1

        with simulator.intercept("cuLibraryLoadData", load):
            program = _OfOneLibrary(self._true.load(artifact, runtime))
        program.uses = self._programs.get(key)
        program.let_go = lambda: self._programs.pop(key, None)
        return program  # type: ignore[return-value]  # but for what it spoils


class _OfOneLibrary(Changed):
    """A loaded program that unloads its library if it is the last one of it."""

    uses: list[int] | None = None
    let_go: Callable[[], object]

    def close(self) -> None:
        """Unload, or not."""
        uses, simulator = self.uses, sim.active()

        def unload(proceed: Callable[..., None], *arguments: Any) -> None:
            if uses is not None:
                uses[1] -= 1
                if uses[1]:
                    return
                self.let_go()
            proceed(*arguments)

        with ExitStack() as closing:
            if simulator is not None:
                closing.enter_context(simulator.intercept("cuLibraryUnload", unload))
            self._true.close()


class _SetsAsideThere(Changed):
    """A loaded program that has cache set aside in the context that the caller made current."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        simulator = sim.active()
        others: list[Any] = []
        if simulator is not None:
            others = [one for one in simulator.state.stack() if one not in simulator.state.contexts]

        def set_limit(proceed: Callable[..., None], limit: int, nbytes: int) -> None:
            if limit == Limit.PERSISTING_L2_CACHE_SIZE:
                others[-1].limits[Limit(limit)] = nbytes
            else:
                proceed(limit, nbytes)

        with ExitStack() as calling:
            if simulator is not None and others:
                calling.enter_context(simulator.intercept("cuCtxSetLimit", set_limit))
            return self._true.call(args, **how)


def _saboteur(name: str, sentence: str, law: str, **change: Any) -> Saboteur:
    return saboteur(name, sentence, law, stage="lifecycle", **change)


KEEPING_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur("holds-buffers", "Holds a struct's buffer until the next call.", "V3", loaded=_HoldsBuffers),
    _saboteur("reads-versions", "Asks every tensor for its version.", "A1", loaded=_ReadsVersions),
    _saboteur("closed-once", "Takes a close that began for one that ended.", "Y6", loaded=_ClosedOnce),
    _saboteur("watched", "Leaves a thread behind for each load.", "C9", loaded=_watched),
    _saboteur("hooked", "Keeps something of each program with a window.", "C9", adapter=_Hooked),
    _saboteur("counts-backwards", "Prepares the last device for -1.", "C4", loaded=_CountsBackwards),
    _saboteur("any-float", "Takes what is no number for one.", "V8", loaded=_AnyFloat),
    _saboteur("one-library", "Has one library for equal images.", "C3", adapter=_OneLibrary),
    _saboteur(
        "sets-aside-there", "Sets cache aside in whichever context is current.", "P5", loaded=_SetsAsideThere
    ),
)
"""The saboteurs."""
