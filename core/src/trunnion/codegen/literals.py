"""Text that a user chose, as literals of a host language: the only way in which it enters generated source."""

from __future__ import annotations

__all__ = ["python_string", "python_tuple"]


def python_string(text: str) -> str:
    """Return a Python string literal in ASCII: quotes, line breaks, lone surrogates and all else are escaped."""
    return ascii(str.__str__(text))  # a subclass, such as a StrEnum or numpy's, has a repr of its own


def python_tuple(items: tuple[str, ...] | list[str]) -> str:
    """Return the display of a Python tuple of the given expressions; one item keeps its comma."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
