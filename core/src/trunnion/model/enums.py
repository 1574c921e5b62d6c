"""Closed sets of words, each with the driver's number."""

from __future__ import annotations

import enum
from typing import TypeVar

from trunnion.errors import ProgramError
from trunnion.messages import describe, one_of, spelled

__all__ = ["DriverEnum", "member"]


class DriverEnum(enum.Enum):
    """A closed set of words, each with the driver's number."""

    @property
    def word(self) -> str:
        """The driver's word, without the enumeration's prefix."""
        return str(self.value[0])

    @property
    def code(self) -> int:
        """The driver's number."""
        return int(self.value[1])


_E = TypeVar("_E", bound=DriverEnum)


def member(kind: type[_E], value: object, field: str) -> _E:
    """Return a member of a set: itself, or what its word names.

    Raises
    ------
    ProgramError
        If it is neither; the words are listed.
    """
    word = spelled(value)
    for one in kind:
        if value is one or (word is not None and word == one.word):
            return one
    raise ProgramError(f"got {describe(value)}, {one_of(word, (one.word for one in kind))}", field=field)
