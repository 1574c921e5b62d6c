"""How messages show what a user wrote: the one place that decides it.

A value of a foreign class is shown by its type's name alone: its ``repr`` is foreign code, which may synchronise a GPU,
read memory that is gone, or never end. Values of Python's own plain types are shown, bounded in length; text is
escaped, so that nothing in a message can move a cursor, change a colour or turn the direction of a line.
"""

from __future__ import annotations

import re
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.plain import ForeignError, asked, is_exactly, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "MOST_BITS",
    "cut",
    "describe",
    "first_line",
    "is_of_library",
    "listed",
    "nearest",
    "numbered",
    "one_of",
    "option_text",
    "quoted",
    "shorten",
    "signal_name",
    "spelled",
    "suggestion",
    "type_name",
    "visible",
]

MOST_BITS = 256
"""Bits of an integer that is shown as it is: Python refuses to print one of thousands of digits."""

_NAME_LIMIT = 80
_MOST_LISTED = 12
_MOST_SHAPE = 120
_BREAKS = frozenset("\n\t")
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_LINE_END = re.compile(r"\r?\n")
_NAME_OF_TYPE = type.__dict__["__name__"]  # a metaclass may have another one


def describe(value: object, *, facts: bool = True) -> str:
    """Return what a value is, for a message: its type, and the value itself if it is Python's own and harmless.

    Parameters
    ----------
    value
        Anything. No method of its own is asked, and of a tensor no memory is looked at.
    facts
        Whether a tensor is its elements' type, shape and device, too; else its type alone, as launchers in C++ say.

    Returns
    -------
    str
        Text of one line.
    """
    kind = type(value)
    if kind is int:
        return _integer(value)  # type: ignore[arg-type]  # just asked, and by no method of the value's own
    name = type_name(value)
    if kind is str:
        return f"{name} {shorten(value)}"  # type: ignore[arg-type]  # as above
    if is_exactly(value, bool, float, complex):
        return f"{name} {shorten(str(value))}"
    return f"{name}{_tensor_facts(value)}" if facts else name


def _integer(value: int) -> str:
    bits = value.bit_length()
    return str(value) if bits <= MOST_BITS else f"an integer of {bits} bits"


def _tensor_facts(value: Any) -> str:
    """Return what torch's own tensors say of themselves; one of a subclass answers by the subclass's code."""
    torch: Any = sys.modules.get("torch")  # whoever has a tensor has imported it
    if type(value) is not getattr(torch, "Tensor", None) or value.is_nested:  # such a one has no shape
        return ""
    shape = str(tuple(value.shape))
    shape = shape if len(shape) <= _MOST_SHAPE else f"{shape[:_MOST_SHAPE]}..."
    return f" ({str(value.dtype).removeprefix('torch.')}, shape {shape}, on {value.device})"


def type_name(value: object) -> str:
    """Return the name of a value's type; one that is no word is quoted, escaped and cut."""
    name: str = str.__str__(_NAME_OF_TYPE.__get__(type(value)))
    return name if name.isascii() and name.isidentifier() and len(name) <= _NAME_LIMIT else shorten(name)


def spelled(value: object, *kinds: str) -> str | None:
    """Return a text as a plain ``str``, or the text of a library's own word, such as a ``torch.dtype``.

    Parameters
    ----------
    value
        What a caller passed.
    *kinds
        The classes whose values have a text: ``"torch.device"``.

    Returns
    -------
    str | None
        The text; None if the value is anything else, of which no code is run.
    """
    plain = text(value)
    if plain is not None:
        return plain
    return str(value) if is_of_library(value, *kinds) else None


def is_of_library(value: object, *kinds: str) -> bool:
    """Whether a value is of one of a library's classes, of which nothing is imported for that.

    Parameters
    ----------
    value
        What a caller passed; none of its code is run.
    *kinds
        The classes: ``"torch.device"``.
    """
    for kind in kinds:
        library, _, name = kind.rpartition(".")
        known = getattr(sys.modules.get(library), name, None)
        if isinstance(known, type) and issubclass(type(value), known):
            return True
    return False


def option_text(value: object) -> str | None:
    """Return what a caller gave an option as its text: a text, a number or a bool; None if it is anything else.

    An integer of very many digits is none either: Python refuses to print it.
    """
    kind = type(value)
    if kind is int:
        return str(value) if value.bit_length() <= MOST_BITS else None  # type: ignore[attr-defined]  # just asked
    return str(value) if is_exactly(value, bool, float) else spelled(value)


def shorten(name: str) -> str:
    """Quote a name, any text that a user chose, for an error message; a very long one is cut in the middle."""
    plain = spelled(name)
    if plain is None:
        return describe(name)
    if len(plain) > _NAME_LIMIT:
        half = _NAME_LIMIT // 2
        return f"{ascii(plain[:half])[:-1]}...{ascii(plain[-half:])[1:]} ({len(plain)} characters)"
    return quoted(plain)


def quoted(name: str) -> str:
    """Quote a name that a user will want whole, however long it is: that of a kernel in an image."""
    plain = spelled(name)
    return describe(name) if plain is None else ascii(plain)


def cut(text: str, most: int) -> str:
    """Return a text without its middle, if it is longer than so many characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}... ({len(text)} characters) ...{text[-half:]}"


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with all that does not print spelled out: ``\x1b`` for an escape, ``\u202e`` for an override.

    Parameters
    ----------
    text
        Any text.
    lines
        Whether line breaks and tabs stay what they are: in a source or a message, but not in a name.
    """
    plain = spelled(text)
    if plain is None:
        return describe(text)
    if plain.isprintable():
        return plain
    kept = _BREAKS if lines else frozenset[str]()
    return "".join(
        one if one.isprintable() or one in kept else one.encode("unicode_escape").decode() for one in plain
    )


def first_line(error: BaseException) -> str:
    """Return the first line of what an error of other code says; its type's name if it cannot say anything."""
    try:
        said = asked(lambda: text(str(error)) or "")
    except ForeignError:
        return type_name(error)
    return visible((said.splitlines() or [""])[0])


def listed(names: Iterable[str], most: int = _MOST_LISTED) -> str:
    """Return names that a user chose, quoted and in their order, for an error message; of very many the first ones."""
    every = [*names]
    hidden = len(every) - most
    shown = ", ".join(shorten(name) for name in every[:most])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def signal_name(number: int) -> str:
    """Return what a signal is called; those for real time have numbers alone."""
    import signal  # noqa: PLC0415 - for a message: importing trunnion must not pay for it

    known = {one.value: one.name for one in signal.Signals}
    return known.get(number, f"signal {number}")


def nearest(name: object, known: Iterable[str], aliases: Mapping[str, str] = _NO_ALIASES) -> str:
    """Return the known name that ``name`` was probably meant to be; empty if none is near.

    White space around a name, its case, and hyphens for underscores, make no difference.

    Parameters
    ----------
    name
        What a user wrote.
    known
        What would have been allowed.
    aliases
        What others call some of the known names: ``{"half": "float16"}``.
    """
    import difflib  # noqa: PLC0415 - for a message: importing trunnion must not pay for it

    wanted = _folded((text(name) or "")[:_NAME_LIMIT])
    called = {_folded(alias): one for alias, one in aliases.items()}
    if wanted in called:  # which is exact: short names of another tongue are near to everything
        return called[wanted]
    meant = {_folded(one): one for one in known}
    found = difflib.get_close_matches(wanted, meant, 1)
    return meant[found[0]] if found else ""


def suggestion(name: object, known: Iterable[str], aliases: Mapping[str, str] = _NO_ALIASES) -> str:
    """Return the end of a message that refuses a name: ``"; did you mean 'float32'?"``; empty if none is near.

    Parameters are those of `nearest`.
    """
    near = nearest(name, known, aliases)
    return f"; did you mean {shorten(near)}?" if near and near != name else ""


def one_of(name: object, known: Iterable[str], aliases: Mapping[str, str] = _NO_ALIASES) -> str:
    """Return what a message expects in place of a name: all that is known, and what was probably meant.

    Parameters are those of `nearest`.
    """
    every = [*known]
    return f"expected one of {', '.join(every)}{suggestion(name, every, aliases)}"


def numbered(source: str, line: int, radius: int | None = None) -> str:
    """Return a text with its lines numbered from 1, one of them marked with ``>``.

    Parameters
    ----------
    source
        The text.
    line
        The line that is marked, counted from 1; 0: none.
    radius
        How many lines to show on each side of it; None for all of the text.
    """
    lines = _LINE_END.split(source.removesuffix("\n")) if source else []  # a form feed ends no line
    centre = line or 1
    first = 1 if radius is None else max(1, centre - radius)
    last = len(lines) if radius is None else min(len(lines), centre + radius)
    width = len(str(last))
    return "\n".join(
        f"{'>' if number == line else ' '} {number:>{width}} | {lines[number - 1]}"
        for number in range(first, last + 1)
    )


def _folded(name: str) -> str:
    return name.strip().lower().replace("-", "_")
