"""How many bytes the declarations of a PTX text take, and how much static shared memory a kernel.

Source: PTX ISA, State Spaces and Variables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.model.interval import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SIZES", "block_bytes", "declared_bytes", "shared_variables"]

SIZES: Final = {
    kind: bits // 8
    for bits, kinds in {
        8: "b8 u8 s8",
        16: "b16 u16 s16 f16 bf16",
        32: "b32 u32 s32 f32 f16x2 bf16x2",
        64: "b64 u64 s64 f64",
        128: "b128",
    }.items()
    for kind in kinds.split()
}
"""By type the bytes of one number."""

_NAME: Final = r"[A-Za-z_$%][A-Za-z0-9_$]*"
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_SHARED: Final = re.compile(
    r"(\.extern\s+)?\.shared\s+(?:\.align\s+(\d+)\s+)?(?:\.v([248])\s*)?"
    rf"\.({'|'.join(SIZES)})\s+({_NAME})\s*((?:\[\s*(?:\d+\s*)?\])*)",
    re.ASCII,
)
_DIGITS: Final = len(str(INT64_MAX))


def declared_bytes(name: str, width: int, counts: Iterable[str]) -> int:
    """Return the bytes of a variable.

    Parameters
    ----------
    name
        What it is called.
    width
        Bytes of one element.
    counts
        Its extents, in decimal digits.

    Raises
    ------
    CorruptArtifactError
        If they are more than any address reaches.
    """
    nbytes = width
    for count in counts:
        nbytes *= _number(count)
        if nbytes > INT64_MAX:
            raise CorruptArtifactError(
                "PTX", f"variable {shorten(name)} has more than {INT64_MAX} bytes, at [{shorten(count)}]"
            )
    return nbytes


def _number(digits: str) -> int:
    """Return a number; of one beyond 64 bits, which Python may not even read, that it is beyond them."""
    return int(digits) if len(digits) <= _DIGITS else INT64_MAX + 1


def shared_variables(text: str) -> dict[str, tuple[int, int]]:
    """Return the size and the alignment in bytes of each shared variable that has a size, by its name.

    Parameters
    ----------
    text
        Declarations, or the body of a kernel. What an ``.extern`` declares is dynamic, or another file's.

    Raises
    ------
    CorruptArtifactError
        If one is larger than any address reaches, or aligned to no power of two.
    """
    found = {}
    for external, alignment, lanes, kind, name, dimensions in _SHARED.findall(_COMMENT.sub(" ", text)):
        counts = re.findall(r"\[\s*(\d*)\s*\]", dimensions)
        if external or "" in counts:
            continue
        width = SIZES[kind] * int(lanes or 1)
        aligned = _number(alignment or "1")
        if aligned.bit_count() != 1 or aligned > INT64_MAX:
            raise CorruptArtifactError(
                "PTX", f"variable {shorten(name)} is aligned to {shorten(alignment)}, expected a power of two"
            )
        found[name] = declared_bytes(name, width, counts), max(width, aligned)
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
