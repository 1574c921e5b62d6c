"""`EnteredContexts`: which contexts a driver made current for a call, so that none stays when the call ends badly."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from trunnion.launcher.facade import DriverFacade

_P = ParamSpec("_P")
_R = TypeVar("_R")

__all__ = ["EnteredContexts", "within_primary"]


class EnteredContexts(threading.local):
    """What was current in a thread before each push that no pop has undone.

    What a signal's handler raises may come between any two steps, between a push and the note of it too, and at the
    first instruction of the function that pops. So a push is noted before it is made, and what is current decides
    whether it was made.

    Parameters
    ----------
    current
        Returns the handle of the thread's current context, None or 0 if there is none (``cuCtxGetCurrent``).
    pop
        Pops it (``cuCtxPopCurrent``).
    """

    def __init__(self, current: Callable[[], int | None], pop: Callable[[], None]) -> None:
        self._current = current
        self._pop = pop
        self._pushes: list[tuple[FrameType, int | None]] = []

    def note(self, owner: FrameType) -> None:
        """Note that a context is about to be pushed.

        Parameters
        ----------
        owner
            The frame of who enters, and is still there when it leaves.
        """
        self._pushes.append((owner, self._current()))

    def left(self) -> None:
        """Note that the last one was popped."""
        del self._pushes[-1:]

    def recover(self) -> None:
        """Make current what was current before the pushes of the caller's caller, and of what it called.

        Those of the functions that called it are theirs: a launch may be made, and fail, in the middle of another.
        """
        if not self._pushes:
            return
        others = set(_callers(sys._getframe(2)))  # noqa: SLF001 - the documented way to one's callers
        while self._pushes and self._pushes[-1][0] not in others:
            if self._current() != self._pushes[-1][1]:
                self._pop()
            del self._pushes[-1:]


def within_primary(
    facade: DriverFacade, device: int, work: Callable[_P, _R], /, *args: _P.args, **named: _P.kwargs
) -> _R:
    """Do something in a device's primary context, where some context of the device is current.

    No context manager, for the reason that `trunnion.launcher.context.Context` has.

    Parameters
    ----------
    facade
        The driver; with one that is no `ContextFacade` it is done in the current context.
    device
        The device's ordinal.
    work
        What is done, with the arguments that follow.
    """
    enter = getattr(facade, "enter_primary", None)
    entered = enter is not None and enter(device)
    try:
        return work(*args, **named)
    finally:
        if entered:
            facade.leave()


def _callers(frame: FrameType) -> Iterator[FrameType]:
    while frame.f_back is not None:
        frame = frame.f_back
        yield frame
