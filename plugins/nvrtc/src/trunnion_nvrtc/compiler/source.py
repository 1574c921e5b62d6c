"""Text as NVRTC takes it: every check that keeps one text from becoming two."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.messages import spelled, type_name
from trunnion.plain import is_a

if TYPE_CHECKING:
    from trunnion.model.code import DeviceCode

__all__ = ["encoded", "kernel_name", "macro_options"]

_MACRO = re.compile(r"[A-Za-z_]\w*(\([^()\n]*\))?", re.ASCII)


def encoded(text: object, field: str) -> bytes:
    """Return text as NVRTC takes it: UTF-8 that ends at the first NUL.

    Parameters
    ----------
    text
        The text.
    field
        Where it stands in the program, for the message.

    Raises
    ------
    ProgramError
        If it is no text, not Unicode, or would end before its end.
    """
    plain = bytes.__bytes__(text) if is_a(text, bytes) else spelled(text)
    if plain is None:
        raise ProgramError(f"got {type_name(text)}, expected a text", field=field)
    try:
        data = plain if isinstance(plain, bytes) else plain.encode("utf-8")
        data.decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ProgramError(f"is not Unicode text: {error.reason} at {error.start}", field=field) from error
    if b"\0" in data:
        raise ProgramError("has a NUL character, where NVRTC would stop reading", field=field)
    return data


def kernel_name(name: str, field: str) -> str:
    """Return a kernel's name if it is one line.

    NVRTC puts the name into a line of source of its own making: a second line would be read as code.

    Raises
    ------
    ProgramError
        If it is not.
    """
    plain = spelled(name)
    if plain is None:
        raise ProgramError(f"got {type_name(name)}, expected a text", field=field)
    name = plain
    if not name.strip() or len(name.splitlines()) > 1 or any(end in name for end in "\n\r"):
        raise ProgramError(f"got {shorten(name)}, expected a C++ name expression on one line", field=field)
    return name


def macro_options(code: DeviceCode, field: str) -> list[str]:
    """Return the options that define a part's macros.

    Raises
    ------
    ProgramError
        If a macro's name is none, its value is more than one line, or it has two.
    """
    options = []
    known: dict[str, tuple[str, str]] = {}
    for index, (name, value) in enumerate(code.defines):
        place = f"{field}.defines[{index}]"
        if not _MACRO.fullmatch(name):
            raise ProgramError(f"got macro {shorten(name)}, expected a C identifier", field=place)
        if value is not None and ("\n" in value or "\r" in value):
            raise ProgramError(f"got {shorten(value)} for macro {name}, expected one line", field=place)
        said = (name, "1" if value is None else value)  # what the compiler makes of none
        if known.setdefault(name.partition("(")[0], said) != said:
            raise ProgramError(f"got macro {name} again, with another value; define it once", field=place)
        options.append(f"--define-macro={name}" if value is None else f"--define-macro={name}={value}")
    return options
