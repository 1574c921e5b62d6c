"""How many bytes the declarations of a PTX text take, and how much static shared memory a kernel.

Source: PTX ISA, State Spaces and Variables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.model.interval import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["SIZES", "block_bytes", "declared_bytes", "integer", "shared_variables"]

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
_EXTENTS: Final = r"(?:\[\s*(?:\w+\s*)?\]\s*)*"
_DECLARED: Final = rf"{_NAME}\s*{_EXTENTS}"
_SHARED: Final = re.compile(
    r"(\.extern\s+)?\.shared\s+(?:\.align\s+(\w+)\s+)?(?:\.v([248])\s*)?"
    rf"\.({'|'.join(SIZES)})\s+({_DECLARED}(?:,\s*{_DECLARED})*)",
    re.ASCII,
)
_INTEGER: Final = re.compile(r"0[xX]([0-9a-fA-F]+)U?|0[bB]([01]+)U?|0([0-7]+)U?|([1-9][0-9]*|0)U?", re.ASCII)
_MOST_DIGITS: Final = 64
_BEYOND: Final = INT64_MAX + 1
_MOST_STEPS: Final = 1_000_000


def integer(text: str) -> int | None:
    """Return the number that a literal is ("PTX ISA", "Integer Constants"); None if it is none.

    One that is beyond 64 bits is told as the first that is.
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits, base = next(pair for pair in zip(match.groups(), (16, 2, 8, 10), strict=True) if pair[0])
    return min(int(digits, base), _BEYOND) if len(digits) <= _MOST_DIGITS else _BEYOND


def declared_bytes(name: str, width: int, extents: str) -> int:
    """Return the bytes of a variable.

    Parameters
    ----------
    name
        What it is called.
    width
        Bytes of one element.
    extents
        Its extents, as they are written, each in brackets.

    Raises
    ------
    CorruptArtifactError
        If they are more than any address reaches, or an extent is no number.
    """
    nbytes = width
    for count in re.findall(r"\[\s*(\w*)\s*\]", extents):
        nbytes *= _number(count, f"the extent of variable {shorten(name)}")
        if nbytes > INT64_MAX:
            raise CorruptArtifactError(
                "PTX", f"variable {shorten(name)} has more than {INT64_MAX} bytes, at [{shorten(count)}]"
            )
    return nbytes


def _number(text: str, where: str) -> int:
    number = integer(text)
    if number is None:
        raise CorruptArtifactError("PTX", f"has {shorten(text)} as {where}, expected a number")
    return number


def shared_variables(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    """Return of each shared variable that has a size its name, and its size and alignment in bytes.

    Blocks beside one another may each have a variable of one name. Each has room of its own, though only one is in use
    at a time (tried: ptxas of CUDA 13.0).

    Parameters
    ----------
    text
        Declarations, or the body of a kernel. What an ``.extern`` declares is dynamic, or another file's.

    Raises
    ------
    CorruptArtifactError
        If one is larger than any address reaches, or aligned to no power of two.
    """
    found = []
    for external, alignment, lanes, kind, declared in _SHARED.findall(_COMMENT.sub(" ", text)):
        width = SIZES[kind] * int(lanes or 1)
        for name, extents in re.findall(rf"({_NAME})\s*({_EXTENTS})", declared):
            if external or re.search(r"\[\s*\]", extents):
                continue
            aligned = _number(alignment or "1", f"the alignment of variable {shorten(name)}")
            if aligned.bit_count() != 1 or aligned > INT64_MAX:
                raise CorruptArtifactError(
                    "PTX",
                    f"variable {shorten(name)} is aligned to {shorten(alignment)}, expected a power of two",
                )
            found.append((name, (declared_bytes(name, width, extents), max(width, aligned))))
    return tuple(found)


def block_bytes(
    kernels: Iterable[str], bodies: Mapping[str, str], outside: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """Return the static shared memory of each kernel, in bytes; an assembler may round it up.

    That of a function which it names counts too, and so on; of what is called by an address nobody can tell.

    Parameters
    ----------
    kernels
        The kernels' names.
    bodies
        The bodies of kernels and functions, by name.
    outside
        The shared variables of the module, of which those count that a body names.

    Raises
    ------
    CorruptArtifactError
        If it cannot be said in time of the text's length.
    """
    words = {name: set(re.findall(_NAME, _COMMENT.sub(" ", body))) for name, body in bodies.items()}
    rooms: dict[str, dict[tuple[str, str | int], tuple[int, int]]] = {
        name: {
            **{(name, index): room for index, (_, room) in enumerate(shared_variables(bodies[name]))},
            **{("", one): outside[one] for one in named & outside.keys()},
        }
        for name, named in words.items()
    }
    calls = _leading(words, [name for name, found in rooms.items() if found])
    left = _MOST_STEPS
    found = {}
    for kernel in kernels:
        reached = {kernel: rooms[kernel]}
        for name in (todo := [kernel]):
            new = calls.get(name, set()) - reached.keys()
            reached |= {one: rooms[one] for one in new}
            todo += new
            left -= len(calls.get(name, ()))
            if left < 0:
                raise CorruptArtifactError("PTX", f"more than {_MOST_STEPS} calls lead to shared memory")
        found[kernel] = _together(
            {key: room for one in reached.values() for key, room in one.items()}.values()
        )
    return found


def _leading(words: Mapping[str, set[str]], ends: Iterable[str]) -> dict[str, set[str]]:
    """Return for each body which others it names that lead to one of some ends."""
    naming: dict[str, list[str]] = {}
    for name, named in words.items():
        for one in named & words.keys():
            naming.setdefault(one, []).append(name)
    calls: dict[str, set[str]] = {}
    for end in (todo := [*ends]):
        for name in naming.pop(end, ()):
            if name not in calls:
                todo.append(name)
            calls.setdefault(name, set()).add(end)
    return calls


def _together(rooms: Iterable[tuple[int, int]]) -> int:
    end = 0
    for nbytes, alignment in sorted(rooms, key=lambda room: -room[1]):
        end = -(-end // alignment) * alignment + nbytes
    return end
