"""What other people's classes hold, as Python's own plain values: the door that whatever a caller passes comes through.

A subclass of ``str``, ``list`` or ``dict`` may bring any method of its own, which raises, ends the process, or answers
otherwise each time. Of such a value the base type's own methods are asked. What has no plain base, a generator or an
array, runs its own code, and whatever that raises is a `ForeignError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import index
from os import fspath
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeIs

__all__ = [
    "ForeignError",
    "asked",
    "index_of",
    "is_a",
    "is_exactly",
    "pairs",
    "path_text",
    "sequence",
    "text",
]

_T = TypeVar("_T")


class ForeignError(Exception):
    """Code of a foreign class raised something: its cause. Nobody but who asked sees this."""


def asked(call: Callable[[], _T], *passing: type[BaseException]) -> _T:
    """Run code of a foreign class.

    Parameters
    ----------
    call
        What runs it.
    *passing
        The errors that are the caller's own.

    Raises
    ------
    ForeignError
        If it raises anything else, what would end the process too; `KeyboardInterrupt` passes, which is the user's.
    """
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except passing:
        raise
    except BaseException as error:  # SystemExit too: what is asked ends nothing
        raise ForeignError from error


def is_a(value: object, kind: type[_T] | tuple[type[_T], ...]) -> TypeIs[_T]:
    """Whether a value is of a class, or of a subclass: what it says of its class itself proves nothing.

    Nothing but inheritance counts: what an abstract class knows of others by registration it looks up by their hash,
    which is code of a metaclass.
    """
    own = type(value)
    if isinstance(kind, tuple):
        return any(type.__subclasscheck__(one, own) for one in kind)
    return own is kind or type.__subclasscheck__(kind, own)


def is_exactly(value: object, *kinds: type) -> bool:
    """Whether a value is of one of some classes, and of no subclass; a metaclass may say of equality what it likes."""
    return any(type(value) is kind for kind in kinds)


def index_of(value: object) -> int | None:
    """Return a number with ``__index__`` as a plain int; None if it is none, and a bool and a tensor are none.

    It runs the number's own code, and that may raise anything; `asked` lets nothing of it out.
    """
    # A tensor has __index__ too, which would wait for the device behind the caller's back.
    if isinstance(value, bool) or hasattr(value, "data_ptr") or not hasattr(value, "__index__"):
        return None
    try:
        return index(value)
    except TypeError:  # an array of numbers has __index__, and refuses when it is called
        return None


def text(value: object) -> str | None:
    """Return a text as a plain ``str``; None if it is none."""
    if type(value) is str:  # as nearly all are
        return value
    return str.__str__(value) if is_a(value, str) else None


def path_text(value: Any) -> str | None:
    """Return a path, a text or a path-like object, as a text; None if it is neither, or cannot say."""
    if is_a(value, str):
        return text(value)
    try:
        return text(asked(lambda: fspath(value)))
    except ForeignError:
        return None


def sequence(value: object, most: int) -> tuple[object, ...] | None:
    """Return the members of a sequence; None if it is none, and a text, a set and a mapping are none.

    Parameters
    ----------
    value
        What a caller passed.
    most
        How many members to take of what may be endless.

    Raises
    ------
    ForeignError
        If its own iteration raises.
    """
    if is_a(value, tuple):
        return tuple(tuple.__iter__(value))
    if is_a(value, list):
        return tuple(list.__iter__(value))
    if is_a(value, (str, bytes, dict, set, frozenset)):
        return None
    return asked(lambda: _iterated(value, most))


def _iterated(value: object, most: int) -> tuple[object, ...] | None:
    if isinstance(value, (Mapping, AbstractSet)) or not isinstance(value, Iterable):
        return None
    return tuple(islice(value, most))


def pairs(value: object) -> list[tuple[Any, Any]] | None:
    """Return the keys and values of a mapping, the keys as they are; None if it is none.

    Raises
    ------
    ForeignError
        If its own iteration raises.
    """
    if is_a(value, dict):
        return [*dict.items(value)]
    return asked(lambda: [*value.items()] if isinstance(value, Mapping) else None)
