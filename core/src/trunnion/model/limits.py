"""How large a program may be, in JSON or by its author's hand: what is larger is refused before it is looked at.

Each limit is far above what a launcher could be made of. Below them every check takes time in proportion to the
program's size, so that a document from elsewhere costs as much as it is long, and no more.
"""

from __future__ import annotations

from trunnion.errors import ProgramError

__all__ = ["MOST_MEMBERS", "MOST_NODES", "MOST_TEXT_BYTES", "expect_at_most"]

MOST_TEXT_BYTES = 1 << 26
"""A program's JSON text, in bytes: 64 MiB."""

MOST_MEMBERS = 1 << 16
"""Members of any list: parameters, launches, workspaces, defines, ..."""

MOST_NODES = 1 << 20
"""Nodes of all expressions of a program together, those of a tensor or workspace once for each launch that takes it."""


def expect_at_most(count: int, limit: int, what: str, field: str) -> None:
    """Refuse what is more than ``limit``.

    Raises
    ------
    ProgramError
        If it is; how many there are and how many are allowed is said.
    """
    if count > limit:
        raise ProgramError(f"got {count} {what}, expected at most {limit}", field=field)
