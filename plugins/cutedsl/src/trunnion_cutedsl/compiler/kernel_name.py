"""Kernels' names: a function of the text, with constexpr arguments where it takes some: ``gemm(tile=128)``."""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from trunnion.errors import ProgramError, shorten

__all__ = ["Constant", "KernelName", "read_kernel_name"]

Constant = bool | int | float | str | None
"""What a constexpr argument can be."""

_EXPECTED: Final = (
    "the name of a function, with constants by name where it takes some, such as 'gemm(tile=128)'"
)
_MOST_BITS: Final = 1024  # Python writes none down that is much longer


@dataclass(frozen=True, slots=True)
class KernelName:
    """Which function of the text is meant, and how it is specialised."""

    function: str
    """The function's name."""

    constants: tuple[tuple[str, Constant], ...]
    """The constexpr arguments, sorted by name."""

    @property
    def prefix(self) -> str:
        """What its symbol begins with: the function's name, in letters that every tool takes."""
        return re.sub(r"\W", "_", self.function, flags=re.ASCII)


def read_kernel_name(text: str, field: str) -> KernelName:
    """Read the name of a kernel.

    Parameters
    ----------
    text
        As the program spells it.
    field
        What messages call it.

    Raises
    ------
    ProgramError
        If it is none.
    """
    if text.isidentifier() and not keyword.iskeyword(text):
        return KernelName(unicodedata.normalize("NFKC", text), ())  # as Python does with what it parses
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(text, field) from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise _refused(text, field)
    constants: dict[str, Constant] = {}
    for given in call.keywords:
        if given.arg is None or given.arg in constants:
            raise _refused(text, field)
        value = constants[given.arg] = _constant(given.value, text, field)
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            got = f"got a constant of {value.bit_length()} bits for {shorten(given.arg)}"
            raise ProgramError(f"{got}, expected at most {_MOST_BITS}", field=field)
    return KernelName(call.func.id, tuple(sorted(constants.items())))


def _constant(node: ast.expr, text: str, field: str) -> Constant:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise _refused(text, field) from error
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise _refused(text, field)


def _refused(text: str, field: str) -> ProgramError:
    return ProgramError(f"got {shorten(text)}, expected {_EXPECTED}", field=field)
