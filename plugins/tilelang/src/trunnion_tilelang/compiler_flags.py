"""Compiler flags: what an author writes for nvcc, in the words of NVRTC."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["WITHOUT_EFFECT", "CompilerFlags", "compiler_flags"]

FAST_MATH = "tl.enable_fast_math"
REGISTER_USAGE = "tl.ptxas_register_usage_level"
DEVICE_FLAGS = "tl.device_compile_flags"

WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("-O0", "-O1", "-O2", "-O3"), "it is about host code; --ptxas-options=-O3 is about device code"
        ),
        **dict.fromkeys(
            ("--expt-relaxed-constexpr", "-expt-relaxed-constexpr"),
            "every function of TileLang's sources is a device function",
        ),
        **dict.fromkeys(
            ("--expt-extended-lambda", "-expt-extended-lambda", "--extended-lambda", "-extended-lambda"),
            "there is no host code that a lambda could come from",
        ),
    }
)
"""Words for nvcc that say nothing about device code compiled alone, and why: they are left out."""

_TAKES_HOST_WORD = frozenset({"-Xcompiler", "--compiler-options", "-ccbin", "--compiler-bindir", "-Xlinker"})
"""Words for nvcc whose value is for the host's compiler or linker."""

_TAKES_VALUE: Mapping[str, str] = MappingProxyType(
    {
        "-I": "-I",
        "--include-path": "-I",
        "-D": "-D",
        "--define-macro": "-D",
        "-U": "--undefine-macro=",
        "--undefine-macro": "--undefine-macro=",
        "-Xptxas": "--ptxas-options=",
        "--ptxas-options": "--ptxas-options=",
        "-std": "--std=",
        "--std": "--std=",
        "-maxrregcount": "--maxrregcount=",
        "--maxrregcount": "--maxrregcount=",
        "-include": "--pre-include=",
        "--pre-include": "--pre-include=",
    }
)
"""Words for nvcc that take a value, which may be the next word, and what the value is put behind."""


@dataclass(frozen=True, slots=True)
class CompilerFlags:
    """What an author asks of the device compiler."""

    options: tuple[str, ...] = ()
    """As `trunnion.model.code.DeviceCode` has them, one word each."""

    defines: tuple[tuple[str, str | None], ...] = ()
    """Macros: name, and value or None."""

    fast_math: bool = False
    """Whether TileLang's setting asks for fast mathematics; CuTeDSL text has it in its calls already."""


def compiler_flags(
    pass_configs: Mapping[str, Any] | None = None, flags: str | Iterable[str] | None = None
) -> CompilerFlags:
    """Return what TileLang's settings and flags for nvcc ask of the device compiler.

    Parameters
    ----------
    pass_configs
        TileLang's ``pass_configs``: of them ``tl.enable_fast_math``, ``tl.ptxas_register_usage_level`` and
        ``tl.device_compile_flags`` are about the device compiler, the others about lowering.
    flags
        TileLang's ``compile_flags``.

    Raises
    ------
    ProgramError
        If a flag has no value where it takes one, flags are no words, or a level is no integer. Whether the device
        compiler knows a flag, it says itself.
    """
    configs = {str(getattr(key, "value", key)): value for key, value in (pass_configs or {}).items()}
    words = [*_words(configs.get(DEVICE_FLAGS)), *_words(flags)]
    level = configs.get(REGISTER_USAGE)
    if level is not None:
        words.append(f"--ptxas-options=--register-usage-level={_integer(level)}")
    return replace(_read(words), fast_math=bool(configs.get(FAST_MATH)))


def _integer(level: Any) -> int:
    try:
        return int(level)
    except (OverflowError, TypeError, ValueError) as error:
        raise ProgramError(f"got {describe(level)}, expected an integer", field=REGISTER_USAGE) from error


def _words(flags: str | Iterable[str] | None) -> list[str]:
    try:
        texts = [flags] if isinstance(flags, str) else list(flags or ())
        return [word for text in texts for word in shlex.split(str(text))]
    except (TypeError, ValueError) as error:
        raise ProgramError(
            f"got {describe(flags)}, expected words as a shell takes them: {error}", field="compile_flags"
        ) from error


def _read(words: list[str]) -> CompilerFlags:
    options: list[str] = []
    defines: list[tuple[str, str | None]] = []
    todo = iter(words)
    for word in todo:
        name, equals, value = word.partition("=")
        if name in _TAKES_HOST_WORD:
            _ = value if equals else next(todo, "")
        elif name in _TAKES_VALUE:
            given = value if equals else next(todo, None)
            if not given:
                raise ProgramError(f"got {shorten(word)} without a value", field="compile_flags")
            _put(_TAKES_VALUE[name], given, options, defines)
        elif word[:2] in ("-I", "-D", "-U"):
            _put(_TAKES_VALUE[word[:2]], word[2:], options, defines)
        elif word not in WITHOUT_EFFECT:
            options.append(word)
    return CompilerFlags(tuple(dict.fromkeys(options)), tuple(dict.fromkeys(defines)))


def _put(prefix: str, value: str, options: list[str], defines: list[tuple[str, str | None]]) -> None:
    match prefix:
        case "-D":
            name, equals, text = value.partition("=")
            defines.append((name, text if equals else None))
        case "-I":
            options.append(f"--include-path={os.path.abspath(value)}")  # noqa: PTH100 - without what links mean
        case "--undefine-macro=":  # a program's macros are defined behind its options
            defines[:] = [one for one in defines if one[0].partition("(")[0] != value]
            options.append(f"{prefix}{value}")
        case "--ptxas-options=":
            options.extend(f"{prefix}{one}" for one in value.split(","))
        case _:
            options.append(f"{prefix}{value}")
