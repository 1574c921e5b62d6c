"""Checks of single fields: what a caller passes who uses no type checker is refused by the field's name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from trunnion.errors import ProgramError
from trunnion.messages import MOST_BITS, describe, first_line, listed, suggestion, type_name
from trunnion.model.limits import MOST_MEMBERS
from trunnion.plain import ForeignError, is_a, sequence
from trunnion.plain import text as plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "flag",
    "in_one_dimension",
    "instance",
    "instances",
    "integer",
    "members",
    "place",
    "refuse_unknown",
    "text",
]

_T = TypeVar("_T")


@contextmanager
def place(prefix: str) -> Iterator[None]:
    """Put ``prefix`` in front of the field that an error from the body names."""
    try:
        yield
    except ProgramError as error:
        raise error.within(prefix) from None


def text(value: object, field: str, *, least: int = 1) -> str:
    """Return a text as a plain ``str``: what a subclass says of itself must not get into generated source.

    Two surrogates that form a pair become the character that they mean, as they would on the way through JSON.

    Raises
    ------
    ProgramError
        If it is no text, or shorter than ``least`` characters.
    """
    plain = plain_text(value)
    if plain is None or len(plain) < least:
        raise ProgramError(
            f"got {describe(value)}, expected a text of at least {least} character{'' if least == 1 else 's'}",
            field=field,
        )
    if plain.isascii():
        return plain
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def integer(value: object, field: str, low: int | None = None, high: int | None = None) -> int:
    """Return an integer within limits; True and False are none.

    Raises
    ------
    ProgramError
        If it is not an integer, or outside of the limits.
    """
    expected = "an integer" if low is None else f"{low} to {high}"
    if type(value) is not int or (low is not None and value < low) or (high is not None and value > high):
        raise ProgramError(f"got {describe(value)}, expected {expected}", field=field)
    if value.bit_length() > MOST_BITS:
        raise ProgramError(f"got {describe(value)}, expected at most {MOST_BITS}", field=field)
    return value


def flag(value: object, field: str) -> bool:
    """Return True or False.

    Raises
    ------
    ProgramError
        If it is neither.
    """
    if type(value) is not bool:
        raise ProgramError(f"got {describe(value)}, expected True or False", field=field)
    return value


def instance(value: object, kind: type[_T] | tuple[type[_T], ...], field: str) -> _T:
    """Return a value of one of the given classes.

    Raises
    ------
    ProgramError
        If it is of another class.
    """
    if not is_a(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        article = "an" if names[0] in "AEIO" else "a"
        raise ProgramError(f"got {describe(value)}, expected {article} {names}", field=field)
    return value


def members(value: object, field: str, expected: str = "a sequence") -> tuple[object, ...]:
    """Return the members of a sequence; a text, a set and a mapping are none. ``expected`` says what is allowed.

    Raises
    ------
    ProgramError
        If it is not a sequence.
    """
    try:
        found, raised = sequence(value, MOST_MEMBERS + 1), ""
    except ForeignError as error:  # an array of no dimensions; a tensor whose memory is gone
        cause = error.__cause__ or error
        found, raised = None, f", which raised {type_name(cause)}: {first_line(cause)}"
    if found is None:
        raise ProgramError(f"got {describe(value)}{raised}, expected {expected}", field=field)
    if len(found) > MOST_MEMBERS:
        more = "more than " if len(found) == MOST_MEMBERS + 1 else ""  # which is all that was taken
        raise ProgramError(
            f"got {more}{min(len(found), MOST_MEMBERS)} members, expected at most {MOST_MEMBERS}", field=field
        )
    return found


def in_one_dimension(value: object, usual: str) -> str:
    """Return how a shape of one dimension is written, for whoever gives an extent alone: with it, if it is a number."""
    shown = type(value) is int and value.bit_length() <= MOST_BITS
    return f"({value if shown else usual},) for one dimension"


def refuse_unknown(fields: Iterable[str], known: Iterable[str], field: str) -> None:
    """Refuse fields by names that there are not.

    Raises
    ------
    ProgramError
        If one is not known; what was probably meant is said.
    """
    every = [*known]
    unknown = sorted({*fields} - {*every})
    if unknown:
        meant = suggestion(unknown[0], every)
        raise ProgramError(
            f"got unknown fields {listed(unknown)}, expected some of {', '.join(every)}{meant}", field=field
        )


def instances(value: object, kind: type[_T] | tuple[type[_T], ...], field: str) -> tuple[_T, ...]:
    """Return the members of a sequence, each of one of the given classes.

    Raises
    ------
    ProgramError
        If it is not a sequence, or a member is of another class; its place is named.
    """
    return tuple(instance(one, kind, f"{field}[{i}]") for i, one in enumerate(members(value, field)))
