"""Standing between a call and its handler: planted faults, and whatever else a test wants to see or to change."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Callable, Collection
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trunnion.arguments import expect, expect_text
from trunnion.errors import ArgumentTypeError, ArgumentValueError
from trunnion.messages import describe, shorten
from trunnion.sim.devices import check_integer
from trunnion.sim.status import Refusal, Status
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ALLOCATE",
    "Fault",
    "Interceptions",
    "Interceptor",
    "Proceed",
    "call_numbers",
    "check_interceptor",
]

ALLOCATE: Final = "allocate"
"""The name under which a launcher's own allocations are intercepted; its arguments are bytes, device, stream."""

Proceed: TypeAlias = Callable[..., None]
"""Does what would have been done: ``proceed(*arguments)``; it raises a `Refusal` for an error status."""

Interceptor: TypeAlias = Callable[..., None]
"""``interceptor(proceed, *arguments)``: called in place of the call. Pointers come as integers, null ones as None."""


class Interceptions:
    """Who stands between which calls and their handlers.

    Parameters
    ----------
    names
        The calls that there are.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset((*names, ALLOCATE))
        self._installing = Turns("a call is being intercepted", nests=True)
        self._installed: dict[str, tuple[Interceptor, ...]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The calls that there are, and `ALLOCATE`."""
        return self._names

    @property
    def standing(self) -> dict[str, int]:
        """How many stand before each call that somebody stands before."""
        return {name: len(before) for name, before in self._installed.copy().items() if before}

    def run(self, name: str, proceed: Proceed, *arguments: Any) -> None:
        """Make a call, through everybody who stands before it; who came last is asked first."""
        for interceptor in self._installed.get(name, ()):
            proceed = partial(interceptor, proceed)
        proceed(*arguments)

    @contextmanager
    def installed(self, name: str, interceptor: Interceptor) -> Iterator[None]:
        """Put somebody before a call until the block ends, in every thread.

        Raises
        ------
        ArgumentTypeError
            If it is no text, or who is put there cannot be called.
        ArgumentValueError
            If there is no such call.
        """
        check_interceptor(interceptor)
        name = expect_text(name, "call", "the name of a call of the driver")
        if name not in self._names:
            close = difflib.get_close_matches(name, sorted(self._names), 3)
            raise ArgumentValueError(
                "call", f"{shorten(name)}", f"a call that is simulated{f', as {close}' if close else ''}"
            )
        with self._installing.turn():
            self._installed[name] = (*self._installed.get(name, ()), interceptor)
        try:
            yield
        finally:
            with self._installing.turn():
                left = list(self._installed[name])
                left.remove(interceptor)
                self._installed[name] = tuple(left)


@dataclass(slots=True, kw_only=True)
class Fault:
    """A planted failure, and how often it struck.

    Raises
    ------
    ArgumentTypeError
        If the status or the delay is no number, or ``when`` cannot be called.
    ArgumentValueError
        If the status is none of the driver's, or the delay is negative or without end.
    """

    status: Status | None
    """What a call that fails returns; None: it is slow and does not fail."""

    nth: frozenset[int] | None = None
    """Which of the calls fail, counted from 1; None: all."""

    when: Callable[..., bool] | None = None
    """Asked with the call's arguments: other calls pass, and are not counted. None: every call counts."""

    delay: float = 0.0
    """How long a call that fails takes before, in seconds."""

    calls: int = 0
    """How many calls have counted."""

    hits: int = 0
    """How many of them failed, or were slow."""

    counting: Turns = field(
        default_factory=lambda: Turns("a fault is being planted", nests=True), repr=False, compare=False
    )
    """Whose turn it is to count a call."""

    def __post_init__(self) -> None:
        if self.status is not None:
            self.status = _status(self.status)
        if self.when is not None and not callable(self.when):
            raise ArgumentTypeError(
                "when", describe(self.when), "a function of the call's arguments, or None"
            )
        expect(self.delay, (int, float), "delay", "a number of seconds")
        if not 0 <= self.delay < math.inf:
            raise ArgumentValueError("delay", f"{self.delay}", "seconds, at least 0")

    def __call__(self, proceed: Proceed, *arguments: Any) -> None:
        """Let a call pass, or strike."""
        if self.when is not None and not self.when(*arguments):
            proceed(*arguments)
            return
        with self.counting.turn():
            self.calls += 1
            number = self.calls
            strikes = self.nth is None or number in self.nth
            self.hits += strikes
        if not strikes:
            proceed(*arguments)
            return
        if self.delay:
            time.sleep(self.delay)
        if self.status is not None:
            raise Refusal(self.status, f"a planted fault, at call {number}")
        proceed(*arguments)


def check_interceptor(interceptor: object) -> None:
    """Require that what is to stand between a call and the driver can be called.

    Raises
    ------
    ArgumentTypeError
        If it cannot.
    """
    if not callable(interceptor):
        raise ArgumentTypeError(
            "interceptor", describe(interceptor), "a function of proceed and the arguments"
        )


def call_numbers(nth: int | Collection[int] | None) -> frozenset[int] | None:
    """Return which calls are to fail, counted from 1; None for all.

    Raises
    ------
    ArgumentTypeError
        If they are no integers.
    ArgumentValueError
        If one is below 1, or there is none.
    """
    if nth is None:
        return None
    several = (nth,) if isinstance(nth, int) else expect(nth, Collection, "nth", "an integer, or several")
    chosen = frozenset(check_integer("nth", number) for number in several)
    if min(chosen, default=0) < 1:
        raise ArgumentValueError("nth", f"{sorted(chosen)}", "numbers from 1 on")
    return chosen


def _status(given: object) -> Status:
    """Return a status that is given as one, or as its number.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    ArgumentValueError
        If the driver has no such status.
    """
    expected = "a trunnion.sim.status.Status, such as Status.ILLEGAL_ADDRESS, or its number"
    if not isinstance(given, int) or isinstance(given, bool):
        raise ArgumentTypeError("status", describe(given), expected)
    try:
        return Status(given)
    except ValueError:
        raise ArgumentValueError("status", describe(int(given)), expected) from None
