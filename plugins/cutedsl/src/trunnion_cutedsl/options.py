"""The options of one compilation: a closed table, for the program's words and the caller's alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import ProgramError, shorten

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
        If one is unknown, or has a value that it may not have.
    """
    values: dict[str, str] = {}
    for index, word in enumerate(words):
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or values.setdefault(name, value) != value:
            raise _refused(word, f"code.options[{index}]")
        _check(name, value, word, f"code.options[{index}]")
    seconds = SECONDS
    for key, value in given.items():
        field = f"options.{key}"
        if key == "seconds":
            seconds = _seconds(value)
            continue
        name = key.replace("_", "-")
        if value is False:
            _known(name, key, field)
            values.pop(name, None)
            continue
        said = "" if value is True else str(value)
        _check(name, said, key, field)
        values[name] = said
    order = [name for name in OPTIONS if name in values]
    return Options(
        tuple(f"--{name}={values[name]}" if values[name] else f"--{name}" for name in order), seconds
    )


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _MOST_SECONDS:
        raise ProgramError(
            f"got {shorten(repr(value))}, expected seconds, above 0, at most {_MOST_SECONDS:g}",
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
    return ProgramError(f"got {shorten(word)}, expected one of {known}, each once", field=field)
