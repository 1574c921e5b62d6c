"""The macros of a part, as compilers of C and C++ are told them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.code import DeviceCode

__all__ = ["macro_definitions"]

_MACRO = re.compile(r"[A-Za-z_]\w*(\([^()\n]*\))?", re.ASCII)


def macro_definitions(code: DeviceCode, field: str) -> Iterator[str]:
    """Yield ``NAME`` or ``NAME=VALUE`` for each macro of a part.

    Parameters
    ----------
    code
        The part.
    field
        What messages call it.

    Raises
    ------
    ProgramError
        If a macro's name is none, its value is more than one line, or it has two.
    """
    known: dict[str, tuple[str, str]] = {}
    for index, (name, value) in enumerate(code.defines):
        place = f"{field}.defines[{index}]"
        if not _MACRO.fullmatch(name):
            raise ProgramError(f"got macro {shorten(name)}, expected a C identifier", field=place)
        if len(f"{value}.".splitlines()) > 1:  # one that ends with a line break, too
            raise ProgramError(f"got {shorten(value or '')} for macro {name}, expected one line", field=place)
        said = (name, "1" if value is None else value)  # what the compiler makes of none
        if known.setdefault(name.partition("(")[0], said) != said:
            raise ProgramError(f"got macro {name} again, with another value; define it once", field=place)
        yield name if value is None else f"{name}={value}"
