"""The search for an example that breaks a law: what was drawn, what broke it, and the smallest that did."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Counterexample", "Search", "SearchEndedError", "assuming"]

_SHRINKING = 15.0  # seconds since the law began, so that it is red within 20
_LEAST = 2.0  # seconds for a smaller example if the first came late
_ALONE = 2.0  # seconds for parts of the example, and again for the example itself


@contextmanager
def assuming() -> Iterator[None]:
    """Let the block assume something outside of a search of Hypothesis's, which would warn of it."""
    from hypothesis.errors import HypothesisDeprecationWarning  # noqa: PLC0415 - only a run of the suite needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisDeprecationWarning)
        yield


class SearchEndedError(BaseException):
    """There was time enough to look for a smaller example; ends the search, and is never seen outside of it."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An example that broke a law."""

    way: str
    """The way in which its calls were made."""

    example: Any
    """What was drawn."""

    error: Exception
    """What was raised on it."""

    seen: tuple[object, ...] = ()
    """What the harness saw of its last call; see `Harness.seen`."""

    repeats: bool = True
    """Whether it breaks the law by itself too: False if it held when it was checked once more, alone."""


class Search:
    """The examples of one law on one backend.

    Parameters
    ----------
    told
        Called after each example, and each step of a long one, so that a process which runs laws can say that it is
        alive.
    seen
        Returns what the harness saw of the last call.
    """

    def __init__(self, told: Callable[[], None], seen: Callable[[], tuple[object, ...]]) -> None:
        self.found: Counterexample | None = None
        self._told, self._seen = told, seen
        self._drawn = hashlib.sha256()
        self._began, self._until = monotonic(), math.inf
        self._is_over = False
        self._place = os.getpid(), threading.get_ident()
        self._size = 0

    @property
    def digest(self) -> str:
        """A digest of all that was drawn until an example broke the law: equal digests, equal draws."""
        return self._drawn.hexdigest()[:16]

    def enough(self) -> None:
        """End the search if an example was found, and there was time enough to look for a smaller one.

        Within an example too, of which one may take longer than that. Until one is found it asks for no time. In other
        threads, which somebody may wait for, and in a forked child it does nothing.

        Raises
        ------
        SearchEndedError
            If so.
        """
        if self.found is None or monotonic() <= self._until:
            return
        if self._place == (os.getpid(), threading.get_ident()):
            self._is_over = True
            raise SearchEndedError

    def step(self) -> None:
        """Say that the process is alive within an example, of which a step is done; see `Harness.step`.

        In other threads and in a forked child it does nothing: that one of them goes on says nothing of the law.
        """
        if self._place == (os.getpid(), threading.get_ident()):
            self._told()

    def check(self, way: str, example: Any, body: Callable[[], None]) -> None:
        """Check the law on one example.

        Parameters
        ----------
        way
            The way in.
        example
            What was drawn.
        body
            Checks it.

        Raises
        ------
        SearchEndedError
            If an example was found long ago.
        Exception
            What the body raises.
        """
        from hypothesis.errors import HypothesisException  # noqa: PLC0415 - only a run of the suite needs it

        if self.found is None:
            self._drawn.update(f"{way} {example!r}\n".encode("utf-8", "backslashreplace"))
        self.enough()
        try:
            body()
        except HypothesisException:  # such as an assumption that does not hold
            raise
        except Exception as error:
            self._keep(way, example, error)
            raise
        finally:
            self._told()

    def _keep(self, way: str, example: Any, error: Exception) -> None:
        """Keep an example that broke the law, unless a smaller one did; or what it met was the search's end."""
        if self._is_over:
            return
        size = len(repr(example))
        if self.found is None:
            self._until = max(self._began + _SHRINKING, monotonic() + _LEAST)
        if self.found is None or size <= self._size:
            self.found, self._size = Counterexample(way, example, error, self._seen()), size

    def alone(
        self,
        found: Counterexample,
        parts: Iterable[Any],
        part: Callable[[Any], None],
        whole: Callable[[], None],
    ) -> Counterexample:
        """Return the first part of what was found that breaks the law too, or what was found, checked once more.

        Parameters
        ----------
        found
            What was found.
        parts
            Examples with less in them.
        part
            Checks one of them.
        whole
            Checks what was found as whoever checks it alone does. Where that takes too long, it is believed.
        """
        self._give(_ALONE)
        for one in parts:
            error = self._error_of(functools.partial(part, one))
            if self._is_over:
                break
            if error is not None:
                return Counterexample(found.way, one, error, self._seen())
        self._give(_ALONE)
        repeats = self._error_of(whole) is not None or self._is_over
        return replace(found, repeats=repeats)

    def _give(self, seconds: float) -> None:
        self._until, self._is_over = monotonic() + seconds, False

    def _error_of(self, body: Callable[[], None]) -> Exception | None:
        """Return what breaks the law; None if nothing does, or there is no time left."""
        from hypothesis.errors import HypothesisException  # noqa: PLC0415 - only a run of the suite needs it

        try:
            self.enough()
            with assuming():
                body()
        except (HypothesisException, SearchEndedError):
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is breaks the law
            return error
        finally:
            self._told()
        return None
