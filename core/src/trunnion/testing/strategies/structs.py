"""Random structs that a launcher builds, of whatever a launch may pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.params import StructParam
from trunnion.model.struct import Array, Struct, layout_of
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.names import names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.launch import Argument
    from trunnion.model.struct import Layout
    from trunnion.testing.strategies.draft import Draft

__all__ = ["draw_struct"]

_MOST_BYTES = 1024
_MOST_PASSED = 200  # bytes of a caller's own struct within one: a kernel has 32764 for all of its parameters
_MOST_DEPTH = 2


def draw_struct(draft: Draft, leaf: Callable[[], Argument], depth: int = 0) -> Struct:
    """Draw a struct, laid out by C's rules or with other offsets.

    Parameters
    ----------
    draft
        The program.
    leaf
        Draws what a launch may pass, but for structs.
    depth
        How many structs it lies in.
    """
    draw = draft.draw
    fields: list[tuple[str, Argument | Array]] = []
    room = _MOST_BYTES >> depth
    for index in range(draw(st.integers(0 if depth else 1, 4))):
        value = _value(draft, leaf, depth)
        if layout_of(value).nbytes <= room:
            fields.append((f"f{index}", value))
            room -= layout_of(value).nbytes
    if fields and draw(st.integers(0, 3)) == 0:
        taken = {name for name, _ in fields}
        fields[0] = (draw(names().filter(lambda name: name not in taken)), fields[0][1])
    if draw(st.booleans()):
        return Struct(tuple(fields))
    layouts = [layout_of(value) for _, value in fields]
    offsets, end = _offsets(draft, layouts)
    alignment = max((one.alignment for one in layouts), default=1) * choose(draw, (1, 1, 2))
    alignment = min(alignment, 128)
    nbytes = choose(draw, (None, max(end + -end % alignment, alignment) + alignment))
    return Struct(tuple(fields), offsets, nbytes, alignment)


def _value(draft: Draft, leaf: Callable[[], Argument], depth: int) -> Argument | Array:
    draw = draft.draw
    form = choose(draw, ("leaf", "leaf", "leaf", "array", "struct", "array of structs"))
    if depth >= _MOST_DEPTH or form == "leaf":
        return _small(leaf())
    if form == "struct":
        return draw_struct(draft, leaf, depth + 1)
    first = _small(leaf()) if form == "array" else draw_struct(draft, leaf, depth + 1)
    layout = layout_of(first)
    others = (_small(leaf()) for _ in range(draw(st.integers(0, 2))))
    alike = (one if _same(layout_of(one), layout) else first for one in others)
    return Array((first, *alike))


def _small(argument: Argument) -> Argument:
    """Return an argument, and in the place of one that is too large for a field an empty struct."""
    large = isinstance(argument, StructParam) and argument.nbytes > _MOST_PASSED
    return Struct(()) if large else argument


def _same(one: Layout, other: Layout) -> bool:
    return (one.nbytes, one.alignment) == (other.nbytes, other.alignment)


def _offsets(draft: Draft, layouts: Sequence[Layout]) -> tuple[tuple[int, ...], int]:
    """Draw where fields lie, in any order and with gaps; return that and where the last one ends."""
    draw = draft.draw
    offsets, end = [0] * len(layouts), 0
    for index in draw(st.permutations(range(len(layouts)))):
        start = end + choose(draw, (0, 0, 1, 8))
        offsets[index] = start + -start % layouts[index].alignment
        end = offsets[index] + layouts[index].nbytes
    return tuple(offsets), end
