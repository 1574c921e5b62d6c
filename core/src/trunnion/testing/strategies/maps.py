"""Random tensors that tensor maps can read, and maps over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.model.expr import Const, Expr, as_expr
from trunnion.model.params import TensorParam
from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
from trunnion.testing.strategies.choices import choose

if TYPE_CHECKING:
    from trunnion.model.memory import Memory
    from trunnion.testing.strategies.draft import Draft

__all__ = ["draw_im2col_map", "draw_map", "draw_mapped_memory"]

_TYPES = (
    "float16", "bfloat16", "float32", "float64", "uint8", "uint16", "uint32", "int32", "uint64", "int64", "int8",
    "int16", "float8_e4m3fn", "bool",
)  # fmt: skip
_SAME_SIZE = {
    1: ("uint8", "int8"),
    2: ("float16", "uint16"),
    4: ("float32", "int32", "TFLOAT32", "FLOAT32_FTZ", "TFLOAT32_FTZ"),
    8: ("float64", "int64"),
}
_MOST_BOX = 128 << 10  # bytes: what fits the shared memory of every device that has tensor maps
_SPANS = {"NONE": 256, "32B": 32, "64B": 64, "128B": 128}
_LEAST_INTERLEAVED = 3  # dimensions


def draw_mapped_memory(
    draft: Draft, *, image: bool = False, output: bool = False, nullable: bool = False
) -> TensorParam:
    """Draw a contiguous tensor whose rows are whole multiples of 16 bytes.

    Parameters
    ----------
    draft
        The program.
    image
        Whether it is for im2col maps, and so has three dimensions at least.
    output
        Whether it is an output.
    nullable
        Whether it may be nullable.
    """
    kind = choose(draft.draw, _TYPES)
    param = TensorParam(draft.name(), kind, ())  # type: ignore[arg-type]  # reads spellings
    chunk = 16 // param.dtype.itemsize
    inner: Expr = Const(chunk * choose(draft.draw, (1, 2, 4)))
    symbols = [symbol for symbol in draft.extent_symbols if symbol.min > 0]
    if draft.draw(st.booleans()) and symbols:
        inner = choose(draft.draw, symbols) * chunk
    outer: list[Expr] = []
    for _ in range(draft.draw(st.integers(2, 4) if image else st.integers(0, 3))):
        leaves: list[Expr] = [*symbols, *(Const(number) for number in (1, 2, 3, 7))]
        outer.append(choose(draft.draw, leaves))
    return TensorParam(
        param.name,
        param.dtype,
        (*outer, inner),
        access="write" if output else choose(draft.draw, ("read", "read_write")),
        alignment=choose(draft.draw, (16, 16, 16, 128, None)),
        nullable=nullable and draft.draw(st.integers(0, 3)) == 0,
    )


def _draw_common(draft: Draft, memory: Memory) -> dict[str, Any]:
    """Draw the fields that both kinds of maps have."""
    draw = draft.draw
    swizzle = choose(draw, sorted(_SPANS))
    fields: dict[str, Any] = {
        "swizzle": swizzle,
        "label": choose(draw, ("", "tile", "tile", "other")),
    }
    rank, form = len(memory.shape), draw(st.integers(0, 3))
    if rank >= _LEAST_INTERLEAVED and draw(st.booleans()):
        fields["interleave"] = "16B"
        if _wide_rows(memory) and draw(st.integers(0, 3)):
            fields |= {"interleave": "32B", "swizzle": "32B"}
    if rank > 1 and memory.shape[0] != Const(1) and form == 0:
        # All but the first of the outermost slices.
        whole, strides = memory.shape, _row_major(memory.shape)
        fields |= {"shape": (whole[0] - 1, *whole[1:]), "strides": strides, "element_offset": strides[0]}
    override = choose(draw, (None, None, *_SAME_SIZE[memory.dtype.itemsize]))
    read_as = override if override is not None else memory.dtype.name
    floating = read_as.endswith(("float16", "float32", "float64", "FLOAT32", "FTZ"))
    if override is not None:
        fields["dtype"] = override
    if floating:
        fields["oob_fill"] = choose(draw, ("NONE", "NAN_REQUEST_ZERO_FMA"))
    fields["l2_promotion"] = choose(draw, ("NONE", "L2_64B", "L2_128B", "L2_256B"))
    return fields


def _wide_rows(memory: Memory) -> bool:
    """Whether rows are whole multiples of 32 bytes in every call, and so are the addresses of most."""
    inner = memory.shape[-1]
    return isinstance(inner, Const) and inner.value * memory.dtype.itemsize % 32 == 0


def _draw_steps(draft: Draft, rank: int, fields: dict[str, Any]) -> tuple[int, ...] | None:
    """Draw element strides; of the innermost dimension every element is taken unless there is an interleave."""
    draw = draft.draw
    form = choose(draw, ("none", "ones", "same", "own", "own"))
    if form == "none":
        return None
    if form == "ones":
        return (1,) * rank
    outer = [2 if form == "same" else draw(st.integers(1, 8)) for _ in range(rank - 1)]
    inner = choose(draw, (1, 2, 3, 8)) if form == "own" and "interleave" in fields else 1
    return (*outer, inner)


def _draw_inner(draft: Draft, memory: Memory, fields: dict[str, Any]) -> tuple[int, int]:
    """Draw the innermost extent of a box; return it, and how many times it fits into the largest box."""
    size = memory.dtype.itemsize
    most = (
        256 if "interleave" in fields else _SPANS[fields["swizzle"]]
    )  # bytes: there the swizzle sets no limit
    chunks = draft.draw(st.integers(1, min(most, 256 * size) // 16))
    return chunks * 16 // size, _MOST_BOX // (chunks * 16)


def draw_map(draft: Draft, memory: Memory) -> TiledTensorMap:
    """Draw a tiled map over memory that `draw_mapped_memory` made.

    Parameters
    ----------
    draft
        The program.
    memory
        The tensor or workspace.
    """
    draw = draft.draw
    rank, fields = len(memory.shape), _draw_common(draft, memory)
    inner, room = _draw_inner(draft, memory, fields)
    box: list[int] = []
    for _ in range(rank - 1):
        box.append(choose(draw, [extent for extent in (1, 2, 8, 64) if extent <= room]))
        room //= box[-1]
    steps = _draw_steps(draft, rank, fields)
    return TiledTensorMap(memory, (*box, inner), element_strides=steps, **fields)


def draw_im2col_map(draft: Draft, memory: Memory) -> Im2colTensorMap:
    """Draw an im2col map over memory that `draw_mapped_memory` made, with corners that differ.

    Parameters
    ----------
    draft
        The program.
    memory
        The tensor or workspace.
    """
    draw = draft.draw
    rank, fields = len(memory.shape), _draw_common(draft, memory)
    inner, room = _draw_inner(draft, memory, fields)
    extents = fields.get("shape") or memory.shape
    spatial = extents[2:] if "interleave" in fields else extents[1:-1]
    corners = [_corners(draft, extent) for extent in spatial]
    return Im2colTensorMap(
        memory,
        pixel_box_lower_corner=tuple(lower for lower, _ in corners),
        pixel_box_upper_corner=tuple(upper for _, upper in corners),
        channels_per_pixel=inner,
        pixels_per_column=choose(draw, [count for count in (1, 2, 64, 128, 1024) if count <= room]),
        element_strides=_draw_steps(draft, rank, fields),
        **fields,
    )


def _corners(draft: Draft, extent: Expr) -> tuple[int, int]:
    """Draw the two corners of a box of pixels, which is not empty in every call."""
    lower = draft.draw(st.integers(-3, 0))
    least = lower + 1 - extent.value if isinstance(extent, Const) else -2
    return lower, choose(draft.draw, [upper for upper in (0, 1, 2, -1, -2) if upper >= least] or [least])


def _row_major(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    steps: list[Expr] = []
    step = as_expr(1)
    for extent in reversed(shape):
        steps.append(step)
        step = step * extent
    return tuple(reversed(steps))
