"""Text as NVRTC takes it: every check that keeps one text from becoming two."""

from __future__ import annotations

from trunnion.errors import ProgramError, shorten
from trunnion.messages import spelled, type_name
from trunnion.plain import is_a

__all__ = ["encoded", "kernel_name"]


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
