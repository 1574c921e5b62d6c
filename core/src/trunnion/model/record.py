"""`Record`: a JSON object that is read field by field, each once and with its type, and nothing left over."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from trunnion.errors import ProgramError
from trunnion.messages import listed
from trunnion.model.limits import MOST_MEMBERS, expect_at_most
from trunnion.plain import is_exactly

__all__ = ["Record"]

_T = TypeVar("_T")


class Record:
    """A JSON object under way.

    Parameters
    ----------
    tree
        What the JSON reader gave.
    path
        Where it stands, for messages.
    whole
        Whether it is all of a document, whose fields messages name without it.

    Raises
    ------
    ProgramError
        If it is not an object.
    """

    def __init__(self, tree: Any, path: str, *, whole: bool = False) -> None:
        if not isinstance(tree, dict):
            raise ProgramError(f"got {type(tree).__name__}, expected an object", field=path)
        self.path = path
        self._whole = whole
        self._left: dict[str, Any] = dict(tree)

    def field(self, name: str) -> str:
        """Return how messages name a field."""
        return name if self._whole else f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        """Whether a field is there and was not read yet."""
        return name in self._left

    def holds(self, name: str, *kinds: type) -> bool:
        """Whether a field that was not read yet is of a type, and, if a second one is given, each of its members."""
        value, (kind, *member) = self._left.get(name), kinds
        if not is_exactly(value, kind):
            return False
        return not member or (bool(value) and all(type(one) is member[0] for one in list(value or ())))

    def null(self, name: str) -> bool:
        """Whether a field is null; if so, it counts as read."""
        if name in self._left and self._left[name] is None:
            del self._left[name]
            return True
        return False

    def text(self, name: str) -> str:
        """Read a text."""
        return self._take(name, str)

    def integer(self, name: str) -> int:
        """Read an integer; true and false are none."""
        return self._take(name, int)

    def boolean(self, name: str) -> bool:
        """Read true or false."""
        return self._take(name, bool)

    def number(self, name: str) -> Any:
        """Read a number, null, true or false; a text ``"nan"``, ``"inf"`` or ``"-inf"``, and a pair of numbers."""
        return self._number(self._any(name), name)

    def _number(self, value: Any, name: str) -> Any:
        match value:
            case float() if not math.isfinite(value):  # no JSON, but Python reads NaN, Infinity and 1e999
                raise ProgramError(
                    f"got {value}, expected a finite number, or the text 'nan', 'inf' or '-inf'",
                    field=self.field(name),
                )
            case None | bool() | int() | float():
                return value
            case "nan" | "inf" | "-inf":
                return float(value)
            case [real, imag] if is_exactly(real, int, float, str) and is_exactly(imag, int, float, str):
                try:
                    return complex(self._number(real, name), self._number(imag, name))
                except OverflowError:
                    pass
        raise ProgramError("expected a number", field=self.field(name))

    def plain(self, name: str) -> Any:
        """Read a value whose type another check knows: null, a boolean, an integer, a text, or a list of integers."""
        value = self._any(name)
        if value is None or is_exactly(value, bool, int, str):
            return value
        if type(value) is list and len(value) <= MOST_MEMBERS and all(type(one) is int for one in value):
            return tuple(value)
        raise ProgramError("expected null, a boolean, an integer, a text or integers", field=self.field(name))

    def record(self, name: str) -> Record:
        """Read an object."""
        return Record(self._take(name, dict), self.field(name))

    def records(self, name: str) -> list[Record]:
        """Read a list of objects."""
        return [Record(tree, f"{self.field(name)}[{i}]") for i, tree in enumerate(self._list(name))]

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of texts."""
        return self._members(name, str)

    def integers(self, name: str) -> tuple[int, ...]:
        """Read a list of integers."""
        return self._members(name, int)

    def integer_pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """Read a list of pairs of integers."""
        pairs = []
        for index, pair in enumerate(self._list(name)):
            if type(pair) is not list or [type(one) for one in pair] != [int, int]:
                raise ProgramError("expected a pair of integers", field=f"{self.field(name)}[{index}]")
            pairs.append((pair[0], pair[1]))
        return tuple(pairs)

    def pairs(self, name: str) -> tuple[tuple[str, str | None], ...]:
        """Read a list of pairs of a text, and a text or null."""
        pairs = []
        for index, pair in enumerate(self._list(name)):
            match pair:
                case [str() as first, str() | None as second]:
                    pairs.append((first, second))
                case _:
                    raise ProgramError("expected a pair of texts", field=f"{self.field(name)}[{index}]")
        return tuple(pairs)

    def done(self) -> None:
        """Refuse what was not read.

        Raises
        ------
        ProgramError
            If a field is left.
        """
        if self._left:
            raise ProgramError(f"got unknown fields {listed(sorted(self._left))}", field=self.path)

    def _any(self, name: str) -> Any:
        if name not in self._left:
            raise ProgramError("is missing", field=self.field(name))
        return self._left.pop(name)

    def _take(self, name: str, kind: type[_T]) -> _T:
        value = self._any(name)
        if type(value) is not kind:
            raise ProgramError(
                f"got {type(value).__name__}, expected {kind.__name__}", field=self.field(name)
            )
        return value

    def _list(self, name: str) -> list[Any]:
        members = self._take(name, list)
        expect_at_most(len(members), MOST_MEMBERS, "members", self.field(name))
        return members

    def _members(self, name: str, kind: type[_T]) -> tuple[_T, ...]:
        members = self._list(name)
        for index, value in enumerate(members):
            if type(value) is not kind:
                raise ProgramError(
                    f"got {type(value).__name__}, expected {kind.__name__}",
                    field=f"{self.field(name)}[{index}]",
                )
        return tuple(members)
