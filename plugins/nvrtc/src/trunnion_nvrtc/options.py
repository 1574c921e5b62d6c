"""The options that a program or a caller may give NVRTC: one closed table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["OPTIONS", "Option", "merge_options", "render_options"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of ``nvrtcCompileProgram``."""

    name: str
    """Its long name, without dashes."""

    value: str = ""
    """What a value must look like, as a regular expression; empty: the option takes none."""

    aliases: tuple[str, ...] = ()
    """Other names, without dashes."""

    repeatable: bool = False
    """Whether every value counts, in order, instead of the last one."""


_BOOLEAN = "true|false"
_NUMBERS = r"\d+(,\d+)*"

OPTIONS = (
    Option("std", r"c\+\+\d\d"),
    Option("use_fast_math"),
    Option("ftz", _BOOLEAN),
    Option("prec-sqrt", _BOOLEAN),
    Option("prec-div", _BOOLEAN),
    Option("fmad", _BOOLEAN),
    Option("extra-device-vectorization"),
    Option("maxrregcount", r"\d+"),
    Option("restrict"),
    Option("generate-line-info", aliases=("lineinfo",)),
    Option("device-debug", aliases=("G",)),
    Option("dopt", "on"),
    Option("Ofast-compile", "0|min|mid|max"),
    Option("device-as-default-execution-space", aliases=("default-device",)),
    Option("device-int128"),
    Option("device-float128"),
    Option("builtin-move-forward", _BOOLEAN),
    Option("builtin-initializer-list", _BOOLEAN),
    Option("device-stack-protector", _BOOLEAN),
    Option("disable-warnings", aliases=("w",)),
    Option("brief-diagnostics", _BOOLEAN, aliases=("brief-diag",)),
    Option("display-error-number", aliases=("err-no",)),
    Option("no-display-error-number", aliases=("no-err-no",)),
    Option("diag-error", _NUMBERS, repeatable=True),
    Option("diag-suppress", _NUMBERS, repeatable=True),
    Option("diag-warn", _NUMBERS, repeatable=True),
    Option("include-path", "(?s:.+)", aliases=("I",), repeatable=True),
)
"""Every option that may be given. Left out on purpose: what the target, the macros and the headers of a
`DeviceCode` say already, what asks for another output than a cubin, and what writes files."""

_ELSEWHERE = {
    "gpu-architecture": "name the architecture as the target",
    "arch": "name the architecture as the target",
    "define-macro": "use DeviceCode.defines",
    "D": "use DeviceCode.defines",
}


def _key(name: str) -> str:
    return name.replace("_", "-")


_BY_NAME = {_key(name): option for option in OPTIONS for name in (option.name, *option.aliases)}


def merge_options(words: Iterable[str], named: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the options of a compilation: those of the program, and over them those of the caller.

    Parameters
    ----------
    words
        The program's, one word each: ``"--std=c++20"``, ``"-lineinfo"``, ``"-I/opt/include"``.
    named
        The caller's, by name: ``{"std": "c++20", "lineinfo": True, "maxrregcount": 64}``. An option that
        is not repeatable takes the place of the program's; False takes a valueless one away.

    Returns
    -------
    dict[str, tuple[str, ...]]
        The values of each option by its long name, in the order of `OPTIONS`; ``("",)`` for one without a
        value.

    Raises
    ------
    ProgramError
        If an option is unknown, has a value of another form, or is given twice with different values.
    """
    merged: dict[str, tuple[str, ...]] = {}
    for word in words:
        option, value = _parse_word(word)
        given = merged.get(option.name, ())
        if option.repeatable:
            merged[option.name] = (*given, value)
        elif given in {(), (value,)}:
            merged[option.name] = (value,)
        else:
            raise _error(
                f"got --{option.name} twice, as {given[0]} and {value}; give it once", "code.options"
            )
    for name, given_value in named.items():
        option = _lookup(name, "options")
        values = _parse_value(option, given_value)
        merged[option.name] = (*merged.get(option.name, ()), *values) if option.repeatable else values
    return {option.name: merged[option.name] for option in OPTIONS if merged.get(option.name)}


def render_options(options: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return options as NVRTC takes them, one word each."""
    return tuple(
        f"--{name}={value}" if value else f"--{name}" for name, values in options.items() for value in values
    )


def _parse_word(word: str) -> tuple[Option, str]:
    field = "code.options"
    name, equals, value = word.lstrip("-").partition("=")
    if not word.startswith("-"):
        raise _error(f"got {shorten(word)}, expected a word that starts with a dash", field)
    for joined in ("I", "D"):
        # The only options whose value may follow without a sign between.
        if word.startswith(f"-{joined}") and _key(name) not in _BY_NAME:
            name, equals, value = joined, "=", word[2:]
    option = _lookup(name, field)
    if bool(equals) != bool(option.value):
        form = "a value after '='" if option.value else "no value"
        raise _error(f"got {shorten(word)}, but --{option.name} takes {form}", field)
    return option, _checked(option, value, field)


def _parse_value(option: Option, value: Any) -> tuple[str, ...]:
    field = f"options.{option.name}"
    if not option.value:
        if not isinstance(value, bool):
            raise _error(f"got {value!r}, expected True or False", field)
        return ("",) if value else ()
    values = value if option.repeatable and isinstance(value, (list, tuple)) else [value]
    texts = []
    for one in values:
        if not isinstance(one, (bool, int, str)):
            raise _error(f"got {type(one).__name__}, expected a text, a number or a bool", field)
        texts.append(_checked(option, str(one).lower() if isinstance(one, bool) else str(one), field))
    return tuple(texts)


def _lookup(name: str, field: str) -> Option:
    option = _BY_NAME.get(_key(name))
    if option is None:
        hint = _ELSEWHERE.get(name, "supported: " + ", ".join(known.name for known in OPTIONS))
        raise _error(f"NVRTC's option {shorten(name)} may not be given here; {hint}", field)
    return option


def _checked(option: Option, value: str, field: str) -> str:
    if not option.value:
        return ""
    if "\0" in value or not re.fullmatch(option.value, value):
        raise _error(f"got {shorten(value)} for --{option.name}, expected the form {option.value}", field)
    if option.name == "include-path" and not PurePosixPath(value).is_absolute():
        # A relative one would make the image depend on the working directory.
        raise _error(f"got include path {shorten(value)}, expected an absolute one", field)
    return value


def _error(message: str, field: str) -> ProgramError:
    return ProgramError(message, field=field)
