"""Text that a user chose, as literals of a host language: the only way in which it enters generated source."""

from __future__ import annotations

__all__ = ["cpp_bytes", "cpp_name", "cpp_string", "python_string", "python_tuple"]

_BYTES_OF_LINE = 24


def python_string(text: str) -> str:
    """Return a Python string literal in ASCII: quotes, line breaks, lone surrogates and all else are escaped."""
    return ascii(str.__str__(text))  # a subclass, such as a StrEnum or numpy's, has a repr of its own


def python_tuple(items: tuple[str, ...] | list[str]) -> str:
    """Return the display of a Python tuple of the given expressions; one item keeps its comma."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def cpp_string(text: str) -> str:
    """Return a C++ string literal in ASCII: the text in UTF-8, a lone surrogate as the three bytes of its number."""
    return f'"{"".join(map(_cpp_character, _utf8(text)))}"'


def cpp_bytes(data: bytes) -> list[str]:
    """Return a C++ string literal of any bytes, in ASCII, one piece on each line."""
    pieces = [data[start : start + _BYTES_OF_LINE] for start in range(0, len(data), _BYTES_OF_LINE)] or [b""]
    return [f'"{"".join(f"{chr(92)}{byte:03o}" for byte in piece)}"' for piece in pieces]


def cpp_name(text: str) -> str:
    """Return a text that may hold null characters, as a ``Name``: ``"a"_name``. The compiler counts its bytes."""
    return f"{cpp_string(text)}_name"


def _utf8(text: str) -> bytes:
    return str.__str__(text).encode("utf-8", "surrogatepass")


def _cpp_character(byte: int) -> str:
    """Return one byte inside of a literal; three octal digits end by themselves, and a ? may begin a trigraph."""
    character = chr(byte)
    return character if " " <= character <= "~" and character not in '"\\?' else f"\\{byte:03o}"
