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

_MOST_WASTED = 4
"""Guards that are made although the numbers are new, before those of a call have to be found twice for one."""


class Recall:
    """Decide when a guard is worth making, and when it is to be trusted.

    A guard is trusted when the checked call after the one in which it was made found the same numbers, of tensors that
    it knows: made of a tensor that changed during a call, it knows others than those of which the numbers were found. A
    program whose extents change with every call pays for guards only a few times: from then on one is made when numbers
    repeat.

    Parameters
    ----------
    make
        Returns a guard for tensors, or None if the library has none for them.
    """

    __slots__ = ("_candidate", "_failures", "_last", "_make", "_wasted")

    def __init__(self, make: Callable[[tuple[Any, ...]], Callable[..., bool] | None]) -> None:
        self._make = make
        self._last: tuple[Any, ...] | None = None
        self._candidate: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None
        self._failures = self._wasted = 0

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
        candidate, self._candidate = self._candidate, None
        again, self._last = found == self._last, found
        if candidate is not None and candidate[0] == found and self._is_known(candidate[1], tensors):
            self._wasted = 0
            return (*candidate[1], [None], *found)
        if self._failures < _MOST_FAILURES and (again or self._wasted < _MOST_WASTED):
            self._wasted += not again
            known = self._known(tensors)
            self._failures += known is None
            self._candidate = None if known is None else (found, known)
        return None

    def _known(self, tensors: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what knows tensors like these, if it knows these themselves."""
        guard = self._make(tensors)
        return (guard,) if guard is not None and self._is_known((guard,), tensors) else None

    def _is_known(self, known: tuple[Any, ...], tensors: tuple[Any, ...]) -> bool:
        (guard,) = known
        return bool(guard(*tensors))


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
        if reader is not None and self._is_known((None, reader), tensors):
            return None, reader
        guard = self._make(tensors)
        return (guard, None) if guard is not None and self._is_known((guard, None), tensors) else None

    def _is_known(self, known: tuple[Any, ...], tensors: tuple[Any, ...]) -> bool:
        guard, reader = known
        return guard(*tensors) if reader is None else reader(*tensors) is not None
