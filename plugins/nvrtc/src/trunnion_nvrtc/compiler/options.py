"""The options of one compilation: read, checked against the table, and written as NVRTC or nvJitLink takes them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, option_text, suggestion
from trunnion.plain import is_a, sequence
from trunnion_nvrtc.compiler.option_table import NVCC_ONLY, OPTIONS, REFUSED, Option
from trunnion_nvrtc.compiler.ptxas_table import PTXAS_OPTIONS, allowed_for_ptxas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "NVCC_ONLY",
    "OPTIONS",
    "REFUSED",
    "Option",
    "assembler_options",
    "early_options",
    "linker_options",
    "merge_options",
    "render_options",
]

_SHORT = 3
_BITS = {"true": "1", "false": "0"}
_DEFAULTS = frozenset({"0", "false"})


def _key(name: str) -> str:
    return name.replace("_", "-")


_BY_NAME = {_key(name): option for option in OPTIONS for name in (option.name, *option.aliases)}
_ELSEWHERE = {_key(name): row.instead for row in REFUSED for name in (row.name, *row.aliases)}
_OF_NVCC = {_key(name): row.instead for row in NVCC_ONLY for name in (row.name, *row.aliases)}


def merge_options(
    words: Iterable[str], named: Mapping[str, Any], field: str = "code"
) -> dict[str, tuple[str, ...]]:
    """Return the options of a compilation: those of the program, and over them those of the caller.

    Parameters
    ----------
    words
        The program's, one word each: ``"--std=c++20"``, ``"-lineinfo"``, ``"-I/opt/include"``.
    named
        The caller's, by name: ``{"std": "c++20", "lineinfo": True, "maxrregcount": 64}``. An option that
        is not repeatable takes the place of the program's; False takes a valueless one away.
    field
        What messages call the part that the words are from.

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
        option, value = _parse_word(word, f"{field}.options")
        given = merged.get(option.name, ())
        if option.repeatable:
            merged[option.name] = (*given, value)
        elif given in {(), (value,)}:
            merged[option.name] = (value,)
        else:
            raise _error(
                f"got --{option.name} twice, as {given[0]} and {value}; give it once", f"{field}.options"
            )
    called: dict[str, str] = {}
    for name, given_value in named.items():
        option = _lookup(name, "options")
        values = _parse_value(option, given_value)
        if option.name in called and not option.repeatable and values != merged.get(option.name, ()):
            raise _error(
                f"got another value than {shorten(called[option.name])}, the same option; give it once",
                f"options.{name}",
            )
        called[option.name] = name
        merged[option.name] = (*merged.get(option.name, ()), *values) if option.repeatable else values
    return {option.name: merged[option.name] for option in OPTIONS if merged.get(option.name)}


def render_options(options: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return options as NVRTC takes them, one word each, without those that say how parts are linked."""
    return tuple(
        f"--{name}={value}" if value else f"--{name}"
        for name, values in options.items()
        if not _BY_NAME[_key(name)].linking
        for value in values
    )


def linker_options(options: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return those options that nvJitLink has too, as it takes them, one word each.

    It refuses an option that is there twice, so one with a value of its own replaces that of ``use_fast_math``.
    """
    linked = [(text, values) for name, values in options.items() for text in _BY_NAME[_key(name)].linker]
    own = {text.partition("=")[0] for text, _ in linked if "{}" in text}
    return tuple(
        text.format(_BITS.get(value, value))
        for text, values in linked
        if "{}" in text or text.partition("=")[0] not in own
        for value in values
    )


def early_options(options: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of those of which nothing comes where parts are optimised together."""
    return tuple(option.name for option in _telling(options) if option.early)


def assembler_options(options: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of those of which nothing comes where PTX is made."""
    return tuple(option.name for option in _telling(options) if option.assembling)


def _telling(options: Mapping[str, tuple[str, ...]]) -> Iterator[Option]:
    """Return those that say another thing than the default."""
    return (_BY_NAME[_key(name)] for name, values in options.items() if not _DEFAULTS.issuperset(values))


def _parse_word(word: str, field: str) -> tuple[Option, str]:
    name, equals, value = word.lstrip("-").partition("=")
    if not word.startswith("-"):
        raise _error(f"got {shorten(word)}, expected a word that starts with a dash", field)
    for joined in ("I", "D", "U", "L", "W"):
        # The only options whose value may follow without a sign between; the last two are not taken.
        if word.startswith(f"-{joined}") and _key(name) not in _BY_NAME | _OF_NVCC:
            name, equals, value = joined, "=", word[2:]
    first = name.split(maxsplit=1)[:1]
    option = _lookup(first[0] if first else name, field)
    if first and first != [name]:
        raise _error(f"{shorten(word)} may not be given here; one word is one option: -std=c++17", field)
    if bool(equals) != bool(option.value):
        form = "a value after '='" if option.value else "no value"
        raise _error(f"got {shorten(word)}, but --{option.name} takes {form}", field)
    return option, _checked(option, value, field)


def _parse_value(option: Option, value: Any) -> tuple[str, ...]:
    field = f"options.{option.name}"
    if not option.value:
        if type(value) is not bool:
            raise _error(f"got {describe(value)}, expected True or False", field)
        return ("",) if value else ()
    values = sequence(value, 0) or () if option.repeatable and is_a(value, (list, tuple)) else [value]
    texts = []
    for one in values:
        text = None if type(one) is float else option_text(one)
        if text is None:
            raise _error(f"got {describe(one)}, expected a text, a number or a bool", field)
        texts.append(_checked(option, text.lower() if type(one) is bool else text, field))
    return tuple(texts)


def _lookup(name: str, field: str) -> Option:
    option = _BY_NAME.get(_key(name))
    if option is None:
        if _key(name) in _OF_NVCC:
            raise _error(f"NVRTC has no option {shorten(name)}; {_OF_NVCC[_key(name)]}", field)
        names = [one.name for one in OPTIONS]
        aliases = {alias: one.name for one in OPTIONS for alias in one.aliases}
        words = [alias for alias in aliases if len(alias) > _SHORT]  # a letter is near to everything
        known = suggestion(name, [*names, *words], aliases) or f"; supported: {', '.join(names)}"
        hint = f"; {_ELSEWHERE[_key(name)]}" if _key(name) in _ELSEWHERE else known
        raise _error(f"NVRTC's option {shorten(name)} may not be given here{hint}", field)
    return option


def _checked(option: Option, value: str, field: str) -> str:
    if not option.value:
        return ""
    if "\0" in value or not re.fullmatch(option.value, value):
        raise _error(f"got {shorten(value)} for --{option.name}, expected {option.form}", field)
    if option.name == "ptxas-options" and not allowed_for_ptxas(value):
        known = ", ".join(name for name, _, _ in PTXAS_OPTIONS)
        raise _error(
            f"got {shorten(value)} for ptxas, which may not be given here; supported: {known}", field
        )
    if option.name == "include-path" and not PurePosixPath(value).is_absolute():
        # A relative one would make the image depend on the working directory.
        raise _error(f"got include path {shorten(value)}, expected an absolute one", field)
    return value


def _error(message: str, field: str) -> ProgramError:
    return ProgramError(message, field=field)
