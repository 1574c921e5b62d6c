"""`Recall`: what a launcher found out about its tensors, for the next call with tensors like them.

Most calls of a program come with the same types, extents and strides as the call before. A tensor library that can say
in one call whether tensors are like others saves a launcher the questions one by one, and all arithmetic over extents;
one that says in the same call where they lie saves it those questions too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ReadingRecall", "Recall"]

_MOST_FAILURES = 8
"""Guards that refuse the very tensors they were made for, before no more are made: the same tensor twice, say."""


class Recall:
    """Decide when a guard is worth making.

    A guard is made when two checked calls in a row found the same numbers: a program whose extents change with every
    call does not pay for guards.

    Parameters
    ----------
    make
        Returns a guard for tensors, or None if the library has none for them.
    """

    __slots__ = ("_failures", "_last", "_make")

    def __init__(self, make: Callable[[tuple[Any, ...]], Callable[..., bool] | None]) -> None:
        self._make = make
        self._last: tuple[Any, ...] | None = None
        self._failures = 0

    def __call__(self, tensors: tuple[Any, ...], found: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what the launcher is to recall: a guard, a memo and ``found``; None for nothing.

        The memo is a list of one element, None at first, for what holds as long as the guard does.

        Parameters
        ----------
        tensors
            The tensors of a call, all of them checked.
        found
            What the launcher found out; a function of what the guard compares.
        """
        if found != self._last:
            self._last = found
            return None
        self._last = None
        if self._failures >= _MOST_FAILURES:
            return None
        known = self._known(tensors)
        if known is None:
            self._failures += 1
            return None
        return (*known, [None], *found)

    def _known(self, tensors: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what knows tensors like these, if it knows these themselves."""
        guard = self._make(tensors)
        return (guard,) if guard is not None and guard(*tensors) else None


class ReadingRecall(Recall):
    """A `Recall` whose answers begin with a guard and a reader: a reader if the library has one, which saves more.

    The one that there is not is None.

    Parameters
    ----------
    make_guard
        Returns a guard for tensors, or None; see `Runtime.guard`.
    make_reader
        Returns a reader for tensors, or None; see `Runtime.reader`.
    """

    __slots__ = ("_make_reader",)

    def __init__(
        self,
        make_guard: Callable[[tuple[Any, ...]], Callable[..., bool] | None],
        make_reader: Callable[[tuple[Any, ...]], Callable[..., tuple[int, ...] | None] | None],
    ) -> None:
        super().__init__(make_guard)
        self._make_reader = make_reader

    def _known(self, tensors: tuple[Any, ...]) -> tuple[Any, ...] | None:
        reader = self._make_reader(tensors)
        if reader is not None and reader(*tensors) is not None:
            return None, reader
        known = super()._known(tensors)
        return None if known is None else (*known, None)
