"""Options for a device compiler, as callers give them: ``{plugin: {option: value}}``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, listed, suggestion
from trunnion.plain import ForeignError, is_a, pairs, sequence, text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["options_of"]

_MOST_DEPTH = 16
_NUMBERS = 1 << 64


def options_of(given: Mapping[str, Mapping[str, Any]] | None, compiler: str) -> Mapping[str, Any]:
    """Return the options of the device compiler.

    Parameters
    ----------
    given
        What a caller passes as ``options=``.
    compiler
        The device compiler's name.

    Raises
    ------
    ProgramError
        If there are options for anybody else, or they are no mapping of texts, or a value is none that JSON has.
    """
    every = {} if given is None else _named(given)
    own = _named(every.get(compiler, {})) if every is not None else None
    if every is None or own is None:
        raise ProgramError(f"got {describe(given)}, expected {{plugin: {{option: value}}}}", field="options")
    unknown = sorted(set(every) - {compiler})
    if unknown:
        raise ProgramError(_unknown_options(every, unknown, compiler), field="options")
    return {name: _plain_option(value, f"options.{name}") for name, value in own.items()}


def _unknown_options(every: Mapping[str, Any], unknown: list[str], compiler: str) -> str:
    """Return what is wrong with options under names other than the compiler's; they may be its own, given flat."""
    flat = [name for name in unknown if _named(every[name]) is None]
    if flat:
        form = f"{{{shorten(compiler)}: {{{shorten(flat[0])}: ...}}}}"
        return f"got {listed(flat)}, expected options by plugin: options={form}"
    return f"got options for {listed(unknown)}, expected only {compiler}{suggestion(unknown[0], (compiler,))}"


def _named(given: object) -> dict[str, Any] | None:
    """Return a mapping of texts as a plain one; None if it is none."""
    try:
        found = pairs(given)
    except ForeignError:
        return None
    named = {name: value for key, value in found or () if (name := text(key)) is not None}
    return named if found is not None and len(named) == len(found) else None


def _plain_option(value: Any, field: str, depth: int = 0) -> Any:
    """Return an option's value without what a subclass of Python's own classes says of itself.

    A key is made of it: what is no JSON has no spelling that is the same in every process.
    """
    if value is None or is_a(value, bool):
        return value
    if is_a(value, int) and abs(whole := int.__int__(value)) < _NUMBERS:
        return whole
    if is_a(value, float) and math.isfinite(number := float.__float__(value)):
        return number
    if is_a(value, str):
        return text(value)
    if depth < _MOST_DEPTH and is_a(value, (list, tuple)):
        return [_plain_option(one, field, depth + 1) for one in sequence(value, 0) or ()]
    named = _named(value) if depth < _MOST_DEPTH and is_a(value, dict) else None
    if named is None:
        raise ProgramError(
            f"got {describe(value)}, expected a text, a finite number, an integer of 64 bits at most, True, False or "
            f"None, or lists and mappings of texts to these, at most {_MOST_DEPTH} deep",
            field=field,
        )
    return {name: _plain_option(one, field, depth + 1) for name, one in named.items()}
