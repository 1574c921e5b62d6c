"""The options of one compilation: a closed table, for the program's words and the caller's alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, option_text, suggestion
from trunnion.plain import is_exactly

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["OPTIONS", "SECONDS", "Options", "read_options"]

OPTIONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "opt-level": (r"[0-3]", "the optimisation level, 0 to 3"),
        "generate-line-info": (r"", "line numbers for profilers and debuggers"),
        "enable-assertions": (r"", "``assert`` in device code is checked"),
        "ptxas-options": (r"[ -!#-&(-~]{1,1000}", "words for ptxas, without quotes"),
    }
)
"""Options of ``cute.compile`` that may be given: the form of the value (empty: it has none), and what it does."""

SECONDS: Final = 600.0
"""How long a compilation may take unless the caller says something else."""

_MOST_SECONDS: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Options:
    """What is compiled how."""

    words: tuple[str, ...]
    """``--name`` or ``--name=value``, in the order of the table."""

    seconds: float
    """How long it may take."""


def read_options(words: Iterable[str], given: Mapping[str, Any]) -> Options:
    """Return the options of a compilation: the program's, and over them the caller's.

    Parameters
    ----------
    words
        `DeviceCode.options`: ``"--opt-level=2"``, ``"--generate-line-info"``.
    given
        The caller's: ``{"opt_level": 2, "generate_line_info": True, "seconds": 60}``; False takes an option away.

    Raises
    ------
    ProgramError
        If one is unknown, has a value that it may not have, or is given twice with different values.
    """
    values: dict[str, str] = {}
    for index, word in enumerate(words):
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or values.setdefault(name, value) != value:
            raise _refused(word, f"code.options[{index}]")
        _check(name, value, word, f"code.options[{index}]")
    for name, said in _given(given).items():
        if said is None:
            values.pop(name, None)
        else:
            values[name] = said
    order = [name for name in OPTIONS if name in values]
    return Options(
        tuple(f"--{name}={values[name]}" if values[name] else f"--{name}" for name in order),
        _seconds(given.get("seconds", SECONDS)),
    )


def _given(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the caller's options as text, ``""`` for one without a value; None: the option is taken away."""
    values: dict[str, str | None] = {}
    keys: dict[str, str] = {}
    for key, value in given.items():
        if key == "seconds":
            continue
        name, field = key.replace("_", "-"), f"options.{key}"
        said = None if value is False else "" if value is True else _word(value, field)
        if said is None:
            _known(name, key, field)
        else:
            _check(name, said, key, field)
        first = keys.setdefault(name, key)
        if values.setdefault(name, said) != said:
            raise ProgramError(
                f"got another value than {shorten(first)}, the same option; give it once", field=field
            )
    return values


def _word(value: Any, field: str) -> str:
    said = option_text(value)
    if said is None:
        raise ProgramError(f"got {describe(value)}, expected a text, a number, True or False", field=field)
    return said


def _seconds(value: Any) -> float:
    if not is_exactly(value, int, float) or not 0 < value <= _MOST_SECONDS:
        raise ProgramError(
            f"got {describe(value)}, expected seconds, above 0, at most {_MOST_SECONDS:g}",
            field="options.seconds",
        )
    return float(value)


def _known(name: str, word: str, field: str) -> str:
    if name not in OPTIONS:
        raise _refused(word, field)
    return OPTIONS[name][0]


def _check(name: str, value: str, word: str, field: str) -> None:
    form = _known(name, word, field)
    if not re.fullmatch(form, value):
        wanted = f"the form {form}" if form else "no value"
        raise ProgramError(f"got {shorten(value)} for {name}, expected {wanted}", field=field)


def _refused(word: str, field: str) -> ProgramError:
    known = ", ".join(f"--{name}" for name in OPTIONS)
    meant = suggestion(word.removeprefix("--").partition("=")[0], ("seconds", *OPTIONS))
    return ProgramError(f"got {shorten(word)}, expected one of {known}, each once{meant}", field=field)
