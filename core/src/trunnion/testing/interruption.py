"""Interrupt a call where a signal's handler may raise: at each place of its Python code in turn, always the same."""

from __future__ import annotations

import dis
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["Interruption", "interrupting"]

_CHECKING = frozenset({"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"})
"""The instructions after which CPython runs the handlers of signals that have come."""


class Interruption:
    """Counts the places where a signal may strike, and strikes at one of them.

    Parameters
    ----------
    within
        Whether a frame is to be interrupted.
    place
        At which place, counted from 1; 0: nowhere.
    """

    def __init__(self, within: Callable[[FrameType], bool], place: int = 0) -> None:
        self._within = within
        self._place = place
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
            raise KeyboardInterrupt


@contextmanager
def interrupting(within: Callable[[FrameType], bool], place: int = 0) -> Iterator[Interruption]:
    """Let the calling thread be interrupted until the block ends; see `Interruption`."""
    interruption, before = Interruption(within, place), sys.gettrace()
    sys.settrace(interruption)
    try:
        yield interruption
    finally:
        sys.settrace(before)
