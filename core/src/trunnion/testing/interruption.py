"""Interrupt a call where a signal's handler may raise: at each place of its Python code in turn, always the same."""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = [
    "MOST_PLACES",
    "InterruptedRuntime",
    "Interruption",
    "interrupting",
    "is_of_backend",
    "some_places",
]

MOST_PLACES: Final = 200
"""At how many places one example interrupts a call. A launcher in Python has about a hundred."""

_CHECKING = frozenset({"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"})
"""The instructions after which CPython runs the handlers of signals that have come."""
_SIMULATOR, _SUITE = "/trunnion/sim/", "/trunnion/testing/"
_OTHERS = (_SIMULATOR, _SUITE, "/site-packages/torch/", "/site-packages/_pytest/")
_LIBRARY = f"{sysconfig.get_path('stdlib')}/"


def is_of_backend(frame: FrameType) -> bool:
    """Whether a frame is of a backend, or of what it uses, but for the simulated driver, which is not interrupted.

    Finalizers, and generators, which may be closed by one, are not: what is raised there is raised to nobody.
    """
    file, code = frame.f_code.co_filename, frame.f_code
    library = file.startswith((_LIBRARY, "<frozen ")) and "/site-packages/" not in file
    final = code.co_name == "__del__" or code.co_flags & inspect.CO_GENERATOR
    if library or final or any(one in file for one in _OTHERS):
        return False
    caller = frame.f_back
    while caller is not None and _SUITE not in caller.f_code.co_filename:
        if _SIMULATOR in caller.f_code.co_filename:
            return False
        caller = caller.f_back
    return True


class Interruption:
    """Counts the places where a signal may strike, and strikes at one of them.

    Parameters
    ----------
    within
        Whether a frame is to be interrupted.
    place
        At which place, counted from 1; 0: nowhere.
    strike
        What is done there: raises `KeyboardInterrupt`, or a signal that may be held back.
    """

    def __init__(
        self, within: Callable[[FrameType], bool], place: int = 0, strike: Callable[[], None] | None = None
    ) -> None:
        self._within = within
        self._place = place
        self._strike = strike or _interrupt
        self._before: dict[FrameType, str] = {}
        self.places = 0
        """How many places there were so far."""
        self.struck = False
        """Whether it struck."""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace a frame; see `sys.settrace`."""
        del argument
        if event == "call" and not self._within(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self._pass()
        elif event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            # A call that raised checks nothing; and what is raised before its handler begins ends that one too early.
            if self._before.get(frame) in _CHECKING and name != "PUSH_EXC_INFO":
                self._pass()
            self._before[frame] = name
        elif event == "return":
            self._before.pop(frame, None)
        return self

    def _pass(self) -> None:
        self.places += 1
        if self.places == self._place:
            self.struck = True
            sys.settrace(None)
            self._before.clear()  # frames know who traces them: what they hold would live until a collection
            self._strike()


def _interrupt() -> None:
    raise KeyboardInterrupt


@contextmanager
def interrupting(
    within: Callable[[FrameType], bool], place: int = 0, strike: Callable[[], None] | None = None
) -> Iterator[Interruption]:
    """Let the calling thread be interrupted until the block ends; see `Interruption`."""
    interruption, before = Interruption(within, place, strike), sys.gettrace()
    sys.settrace(interruption)
    try:
        yield interruption
    finally:
        sys.settrace(before)


def some_places(places: int, most: int, pick: int) -> range:
    """Return the places at which to interrupt: all, or about so many, evenly spread; each pick has others.

    Parameters
    ----------
    places
        How many there are.
    most
        How many are wanted at the most.
    pick
        Says where they begin; any number.
    """
    apart = max(1, -(-places // max(1, most)))
    return range(1 + pick % apart, 1 + places, apart)


class InterruptedRuntime:
    """A tensor library that a signal's handler interrupts where it is asked for one of some things.

    Parameters
    ----------
    true
        The library.
    """

    NAMES: Final = ("allocate", "room", "current_stream")
    """Of what it is asked for, what can be interrupted."""

    def __init__(self, true: Any) -> None:
        self._true = true
        self._name = ""
        self._struck: list[str] = []

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._true, name)
        if name not in self.NAMES:
            return asked

        def answer(*args: Any, **named: Any) -> Any:
            if name == self._name:
                self._struck.append(name)
                raise KeyboardInterrupt
            return asked(*args, **named)

        return answer

    @contextmanager
    def interrupted(self, name: str) -> Iterator[list[str]]:
        """Interrupt what is asked for by one name until the block ends; the list says where that was done."""
        self._name, self._struck = name, []
        try:
            yield self._struck
        finally:
            self._name = ""
