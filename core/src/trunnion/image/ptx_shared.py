"""How much static shared memory the declarations of a PTX text take.

Source: PTX ISA, State Spaces and Variables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["block_bytes", "shared_variables"]

_NAME: Final = r"[A-Za-z_$%][A-Za-z0-9_$]*"
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_SHARED: Final = re.compile(
    rf"(\.extern\s+)?\.shared\s+(?:\.align\s+(\d+)\s+)?\.[a-z]+(\d+)(?:x(\d))?\s+({_NAME})\s*((?:\[\s*(?:\d+\s*)?\])*)"
)


def shared_variables(text: str) -> dict[str, tuple[int, int]]:
    """Return the size and the alignment in bytes of each shared variable that has a size, by its name.

    Parameters
    ----------
    text
        Declarations, or the body of a kernel. What an ``.extern`` declares is dynamic, or another file's.
    """
    found = {}
    for external, alignment, bits, lanes, name, dimensions in _SHARED.findall(_COMMENT.sub(" ", text)):
        counts = re.findall(r"\[\s*(\d*)\s*\]", dimensions)
        if external or "" in counts:
            continue
        size = int(bits) * int(lanes or 1) // 8
        nbytes = size
        for count in counts:
            nbytes *= int(count)
        found[name] = nbytes, max(size, int(alignment or 1))
    return found


def block_bytes(body: str, outside: dict[str, tuple[int, int]]) -> int:
    """Return the static shared memory of a kernel, in bytes; an assembler may round it up.

    Parameters
    ----------
    body
        The kernel's body.
    outside
        The shared variables of the module, of which those count that the body names.
    """
    words = set(re.findall(_NAME, _COMMENT.sub(" ", body)))
    named = (room for name, room in outside.items() if name in words)
    return _together((*shared_variables(body).values(), *named))


def _together(rooms: Iterable[tuple[int, int]]) -> int:
    end = 0
    for nbytes, alignment in sorted(rooms, key=lambda room: -room[1]):
        end = -(-end // alignment) * alignment + nbytes
    return end
