"""With what a law's examples are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SeedsToTry:
    """The seeds that a law is checked with: its own; or where a run explores those that broke it, and a new one.

    Parameters
    ----------
    chosen
        The seed that was asked for; None: the law's own.
    kept
        The file of the seeds that are not known to be good; None: none are kept.
    """

    def __init__(self, chosen: str | None, kept: Path | None) -> None:
        self._kept = kept
        known = kept.read_text().split() if kept is not None and kept.exists() else []
        new = [] if kept is not None and chosen is None else [chosen]
        self._left: list[str | None] = list(dict.fromkeys([*known, *new]))

    def __iter__(self) -> Iterator[str | None]:
        """Yield them one by one; who asks for the next says that the last was good. A crash leaves it in the file."""
        while self._left:
            self._write()
            yield self._left[0]
            del self._left[0]
        self._write()

    def _write(self) -> None:
        if self._kept is None:
            return
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        self._kept.write_text("".join(f"{seed}\n" for seed in self._left))
        if not self._left:
            self._kept.unlink()
