"""The options of one compilation for the CPU: read, and checked against the table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, option_text, suggestion
from trunnion.plain import is_a, is_exactly, sequence
from trunnion_tvm_ffi.compiler.host_option_table import OPTIONS, REFUSED, Option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["MOST_THREADS", "CallerOptions", "option_words", "read_caller_options"]

MOST_THREADS = 1024
"""The most threads that a launch may be spread over."""

_DEFAULTS = {"std": "c++17", "O": "2"}
_BY_NAME = {option.name: option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class CallerOptions:
    """What the caller of `trunnion.compile` says under ``options={"tvm_ffi": {...}}``."""

    threads: int
    """On how many threads a launch runs; 0: on as many as there are cores."""

    words: Mapping[str, tuple[str, ...] | None]
    """Values of the compiler's options by name; None: the program's is taken away."""


def read_caller_options(given: Mapping[str, Any]) -> CallerOptions:
    """Read the caller's options.

    Parameters
    ----------
    given
        ``{"threads": 4, "O": 3, "ffast-math": True, "I": ["/opt/include"]}``: ``threads``, and the names of the
        table's options without their dash. False takes a valueless option of the program away.

    Raises
    ------
    ProgramError
        If one is unknown, or its value is none that it may have.
    """
    threads = given.get("threads", 1)
    if type(threads) is not int or not 0 <= threads <= MOST_THREADS:
        raise ProgramError(
            f"got {describe(threads)}, expected 0 (all cores) to {MOST_THREADS}", field="options.threads"
        )
    words = {
        name: _caller_value(_known(name, "options"), value)
        for name, value in given.items()
        if name != "threads"
    }
    return CallerOptions(threads, words)


def option_words(
    words: Iterable[str], caller: Mapping[str, tuple[str, ...] | None], field: str
) -> tuple[str, ...]:
    """Return the options of one part as the compiler takes them: the program's, and over them the caller's.

    Parameters
    ----------
    words
        The program's, one word each: ``"-O3"``, ``"-ffast-math"``, ``"-I/opt/include"``.
    caller
        `CallerOptions.words`.
    field
        What messages call the part.

    Raises
    ------
    ProgramError
        If a word is no option that may be given, or is given twice with different values.
    """
    merged: dict[str, tuple[str, ...]] = {name: (value,) for name, value in _DEFAULTS.items()}
    said: dict[str, tuple[str, ...]] = {}
    for word in words:
        option, value = _parse(word, f"{field}.options")
        before = said.get(option.name, ())
        if before not in {(), (value,)} and not option.repeatable:
            raise ProgramError(
                f"got {option.spelled(value)} and {option.spelled(before[0])}; give it once",
                field=f"{field}.options",
            )
        said[option.name] = (*before, value) if option.repeatable else (value,)
    merged.update(said)
    for name, values in caller.items():
        repeated = merged.get(name, ()) if _BY_NAME[name].repeatable else ()
        merged[name] = (*repeated, *(values or ()))
    return tuple(option.spelled(value) for option in OPTIONS for value in merged.get(option.name, ()))


def _parse(word: str, field: str) -> tuple[Option, str]:
    """Return the option that a word is, and its value."""
    for option in OPTIONS:
        start = option.spelled("")
        if not word.startswith(start) or "\0" in word:
            continue
        value = word.removeprefix(start)
        if re.fullmatch(option.value, value):
            return option, value
    raise _unknown(word.removeprefix("-") if word.startswith("-") else "", word, field)


def _known(name: str, field: str) -> Option:
    option = _BY_NAME.get(name)
    if option is None:
        raise _unknown(name, name, f"{field}.{name}")
    return option


def _unknown(name: str, given: str, field: str) -> ProgramError:
    """Return the error that says what to do instead, or the form of a value, or all that there is."""
    for option in OPTIONS:
        if option.value and len(option.name) > 1 and name.startswith(option.name):
            return ProgramError(f"got {shorten(given)}, expected {_form(option)}", field=field)
    for row in REFUSED:
        if re.fullmatch(row.pattern, name, re.DOTALL):
            return ProgramError(f"got {shorten(given)}, which may not be given: {row.instead}", field=field)
    for option in OPTIONS:
        if option.value and name.startswith(option.name):
            return ProgramError(f"got {shorten(given)}, expected {_form(option)}", field=field)
    known = ", ".join(one.spelled("...") if one.value else one.spelled("") for one in OPTIONS)
    meant = suggestion(name, ("threads", *_BY_NAME))
    return ProgramError(f"got {shorten(given)}, expected one of {known}{meant}", field=field)


def _form(option: Option) -> str:
    return f"the form {option.spelled('')}{option.value}"


def _caller_value(option: Option, value: Any) -> tuple[str, ...] | None:
    field = f"options.{option.name}"
    if not option.value:
        if type(value) is not bool:
            raise ProgramError(f"got {describe(value)}, expected True or False", field=field)
        return ("",) if value else None
    texts = []
    for one in sequence(value, 0) or () if option.repeatable and is_a(value, (list, tuple)) else [value]:
        text = "" if is_exactly(one, bool, float) else option_text(one) or ""
        if "\0" in text or not re.fullmatch(option.value, text):
            raise ProgramError(f"got {describe(one)}, expected {_form(option)}", field=field)
        texts.append(text)
    return tuple(texts)
