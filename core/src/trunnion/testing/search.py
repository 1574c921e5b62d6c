"""The search for an example that breaks a law: what was drawn, what broke it, and the smallest that did."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Counterexample", "Search", "SearchEndedError"]

_SHRINKING = 15.0  # seconds, so that a law is red within 20


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


class Search:
    """The examples of one law on one backend.

    Parameters
    ----------
    told
        Called after each example, so that a process which runs laws can say that it is alive.
    seen
        Returns what the harness saw of the last call.
    """

    def __init__(self, told: Callable[[], None], seen: Callable[[], tuple[object, ...]]) -> None:
        self.found: Counterexample | None = None
        self._told, self._seen = told, seen
        self._drawn = hashlib.sha256()
        self._until = 0.0
        self._size = 0

    @property
    def digest(self) -> str:
        """A digest of all that was drawn until an example broke the law: equal digests, equal draws."""
        return self._drawn.hexdigest()[:16]

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
        elif monotonic() > self._until:
            raise SearchEndedError
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
        """Keep an example that broke the law, unless a smaller one did."""
        size = len(repr(example))
        if self.found is None:
            self._until = monotonic() + _SHRINKING
        if self.found is None or size <= self._size:
            self.found, self._size = Counterexample(way, example, error, self._seen()), size
