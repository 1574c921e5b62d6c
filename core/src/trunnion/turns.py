"""`Turns`: foreign code that one thread after another runs, and nobody waits for for ever.

A lock held over foreign code hangs sooner or later. That code lets a signal's handler or a finalizer run, which asks
for the same lock; two threads hold one each and ask for the other's; the process forks, and the thread that would give
it back does not exist in the child. So whatever loads, builds, imports or asks a driver at its first use takes a turn
instead. A turn that cannot come is a `LifecycleError`.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from trunnion.errors import LifecycleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

__all__ = ["Turn", "Turns", "kept_property"]

_T = TypeVar("_T")

_NEXT: Final = "next"
_FIRST_POLL: Final = 0.0002  # seconds
_LAST_POLL: Final = 0.01
_PATIENCE: Final = 600.0


class _Process:
    """What is true of this process; a forked child begins anew."""

    def __init__(self, survivor: int = 0) -> None:
        self.number = os.getpid()
        self.survivor = survivor
        """The thread that forked the process, which alone went on in it."""
        self.waiting: dict[Turn, Turn] = {}
        """Every turn that some thread waits for, and the one before it: who waits for whom."""

    def begin_in_child(self) -> None:
        """Forget the parent's threads."""
        self.__init__(threading.get_ident())  # type: ignore[misc]  # the same object, begun anew


_HERE = _Process()

os.register_at_fork(after_in_child=_HERE.begin_in_child)


class Turns:
    """Who runs a piece of foreign code, one thread after another; who came later may be first.

    ``with turns.turn():`` runs a block in the thread's turn, which is over behind it, whatever interrupts the block.

    Parameters
    ----------
    what
        What the code does to what, for errors, such as ``"the program is being loaded"``.
    nests
        Whether a thread may begin the code anew in the middle of it: from a signal's handler, a finalizer, or the code
        itself.
    """

    def __init__(self, what: str, *, nests: bool = False) -> None:
        self.what, self._nests = what, nests
        self._last = Turn(self)  # which was over before anybody came

    def turn(self) -> Turn:
        """Return the calling thread's next turn, for a ``with`` statement."""
        return Turn(self)

    def is_mine(self) -> bool:
        """Whether the calling thread is in the middle of its turn."""
        return any(turn.is_here() for turn in self._line(self._last))

    @staticmethod
    def _line(turn: Turn | None) -> Iterator[Turn]:
        while turn is not None:
            yield turn
            turn = turn.behind.get(_NEXT)

    def admit(self, mine: Turn) -> None:
        """Wait until it is a turn's time; one within another of its thread, where turns nest, waits for nobody.

        Raises
        ------
        LifecycleError
            If it never will be: the thread is in the middle of such a turn, or who has it waits for this thread.
        """
        before = self._last
        while True:
            if before.is_here():
                if self._nests:
                    return
                raise LifecycleError(
                    f"{self.what} further up in this thread, which a signal's handler, a finalizer or the code that "
                    "this runs has interrupted; do it before, by preload() say, or leave this call to later"
                )
            if not mine.wait_for(before, _PATIENCE):
                raise LifecycleError(
                    f"{self.what} by another thread, for more than {_PATIENCE:g} s; call again later"
                )
            after = before.behind.setdefault(_NEXT, mine)  # one step for all threads
            if after is mine:
                self._last = mine
                return
            before = after


class Turn:
    """One turn of one thread: entered once, by the thread that asked for it.

    It is over when its gate is open. That gate only its own thread shuts, when it enters, and it is opened by C, not by
    Python: so no handler that raises can come in between and leave it shut.
    """

    __slots__ = ("_gate", "_process", "_turns", "behind", "thread")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._gate = threading.Lock()
        self.thread, self._process = threading.get_ident(), _HERE.number
        self.behind: dict[str, Turn] = {}
        """Whoever comes next, once there is somebody."""

    def __enter__(self) -> None:
        try:
            self._gate.acquire()
            self._turns.admit(self)
        except BaseException:  # whatever it is, it goes on
            self._gate.release()
            raise

    # ``with`` looks it up before it enters, and so calls what opens the gate without any Python.
    __exit__ = property(attrgetter("_gate.__exit__"))

    def is_here(self) -> bool:
        """Whether the calling thread is in the middle of it."""
        return self.thread == threading.get_ident() and not self.is_over()

    def is_over(self) -> bool:
        """Whether it is over; that of a thread that a fork left behind is."""
        if not self._gate.locked():
            return True
        return self._process != _HERE.number and self.thread != _HERE.survivor

    def wait_for(self, before: Turn, seconds: float) -> bool:
        """Wait until another turn is over, for so many seconds; return whether it is.

        Raises
        ------
        LifecycleError
            If its thread waits for this one.
        """
        if before.is_over():
            return True
        pause, seen, deadline = _FIRST_POLL, None, time.monotonic() + seconds
        try:
            _HERE.waiting[self] = before
            while not before.is_over():
                # Nobody rings: that would be code that can be interrupted before it does.
                time.sleep(pause)
                pause = min(2 * pause, _LAST_POLL)
                circle = self._circle(before)
                # All of it stands still if it looks the same twice: else one may have gone on while others were seen.
                if circle is not None and circle == seen:
                    raise LifecycleError(
                        f"{self._turns.what} by another thread, which waits for this one; "
                        "do it before several threads call, by preload() say"
                    )
                seen = circle
                if time.monotonic() > deadline:
                    return False
            return True
        finally:
            _HERE.waiting.pop(self, None)

    def _circle(self, before: Turn) -> tuple[Turn, ...] | None:
        """Return the turns for which others wait, so that the one before waits for this thread; None: it does not."""
        # Pairs would be made one by one, and the collector, and so a finalizer that waits, come in between.
        turns = list(_HERE.waiting)
        waiting = [(turn, held) for turn in turns if (held := _HERE.waiting.get(turn)) is not None]
        blocked: list[int] = [before.thread]
        found: list[Turn] = []
        for thread in blocked:  # which grows
            if thread == self.thread:
                return tuple(found)
            awaited = [held for turn, held in waiting if turn.thread == thread and not held.is_over()]
            found += awaited
            holders = (*(held.thread for held in awaited), *_importers(thread))
            blocked += [holder for holder in holders if holder not in blocked]
        return None


def _importers(waiting: int) -> list[int]:
    """Return the threads that import modules for which a thread waits: Python holds locks of its own over an import.

    Only Python's private table knows. Where it looks otherwise nothing is found, and `_PATIENCE` is left.
    """
    held = getattr(getattr(importlib, "_bootstrap", None), "_blocking_on", {}).get(waiting)
    owners = [getattr(lock, "owner", None) for lock in (held if isinstance(held, list) else [held])]
    return [owner for owner in owners if isinstance(owner, int)]


class kept_property(Generic[_T]):  # noqa: N801 - a decorator, as `functools.cached_property`, which locks in Python 3.11
    """A property that is made at its first use, and kept: where several threads make it at once, one for all.

    It holds no lock over what makes it. A class with one needs a ``__dict__``.
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | _T:
        if instance is None:
            return self
        kept: dict[str, Any] = instance.__dict__
        made: _T = kept.setdefault(self._name, self._make(instance))
        return made
