"""`SourceWriter`: lines of text with indentation, and nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SourceWriter"]


class SourceWriter:
    """Collect the lines of a source text.

    Parameters
    ----------
    indent
        What one level of indentation looks like.
    """

    def __init__(self, indent: str = "    ") -> None:
        self._indent = indent
        self._lines: list[str] = []
        self._level = 0

    def line(self, text: str = "") -> None:
        """Append one line.

        Raises
        ------
        ValueError
            If the text holds a line break: something was not escaped.
        """
        if text and text.splitlines() != [text]:
            raise ValueError(f"a line of source holds a line break: {text!r}")
        self._lines.append(self._indent * self._level + text if text else "")

    def lines(self, *texts: str) -> None:
        """Append several lines."""
        for text in texts:
            self.line(text)

    def include(self, other: SourceWriter) -> None:
        """Append all that another writer collected, one line after the other, at this one's level."""
        for line in other._lines:
            self.line(line)

    @contextmanager
    def block(self, opener: str, closer: str = "") -> Iterator[None]:
        """Indent the body between ``opener`` and, if there is one, ``closer``."""
        self.line(opener)
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1
        if closer:
            self.line(closer)

    @property
    def written(self) -> bool:
        """Whether anything was written."""
        return bool(self._lines)

    def text(self) -> str:
        """Return everything that was written, ending in a line break."""
        return "\n".join(self._lines) + "\n"
