"""Random tensors that tensor maps can read, and maps over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.expr import Const, Expr, as_expr
from trunnion.model.params import TensorParam
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    from trunnion.testing.strategies.programs import Draft

__all__ = ["draw_map", "draw_mapped_tensor"]

_TYPES = (
    "float16", "bfloat16", "float32", "float64", "uint8", "uint16", "uint32", "int32", "uint64", "int64", "int8",
    "int16", "float8_e4m3fn", "bool",
)  # fmt: skip
_SAME_SIZE = {
    1: ("uint8", "int8"),
    2: ("float16", "uint16"),
    4: ("float32", "int32"),
    8: ("float64", "int64"),
}
_MOST_BOX = 128 << 10  # bytes: what fits the shared memory of every device that has tensor maps
_SPANS = {"NONE": 256, "32B": 32, "64B": 64, "128B": 128}


def draw_mapped_tensor(draft: Draft, *, output: bool = False) -> TensorParam:
    """Draw a contiguous tensor whose rows are whole multiples of 16 bytes.

    Parameters
    ----------
    draft
        The program.
    output
        Whether it is an output.
    """
    kind = draft.draw(st.sampled_from(_TYPES))
    param = TensorParam(draft.name(), kind, ())  # type: ignore[arg-type]  # reads spellings
    chunk = 16 // param.dtype.itemsize
    inner: Expr = Const(chunk * draft.draw(st.sampled_from((1, 2, 4))))
    symbols = [symbol for symbol in draft.extent_symbols if symbol.min > 0]
    if draft.draw(st.booleans()) and symbols:
        inner = draft.draw(st.sampled_from(symbols)) * chunk
    outer: list[Expr] = []
    for _ in range(draft.draw(st.integers(0, 3))):
        leaves: list[Expr] = [*symbols, *(Const(number) for number in (1, 2, 3, 7))]
        outer.append(draft.draw(st.sampled_from(leaves)))
    return TensorParam(
        param.name,
        param.dtype,
        (*outer, inner),
        access="write" if output else draft.draw(st.sampled_from(("read", "read_write"))),
        alignment=draft.draw(st.sampled_from((16, 16, 16, 128, None))),
    )


def draw_map(draft: Draft, tensor: TensorParam) -> TiledTensorMap:
    """Draw a map over a tensor that `draw_mapped_tensor` made.

    Parameters
    ----------
    draft
        The program.
    tensor
        The tensor.
    """
    draw = draft.draw
    size = tensor.dtype.itemsize
    swizzle = draw(st.sampled_from(sorted(_SPANS)))
    chunks = draw(st.integers(1, min(_SPANS[swizzle], 256 * size) // 16))
    rank = len(tensor.shape)
    shape = strides = None
    offset: Expr = Const(0)
    if rank > 1 and tensor.shape[0] != Const(1) and draw(st.integers(0, 3)) == 0:
        # All but the first of the outermost slices.
        shape = (tensor.shape[0] - 1, *tensor.shape[1:])
        strides = _row_major(tensor.shape)
        offset = strides[0]
    override = draw(st.sampled_from((None, None, *_SAME_SIZE[size])))
    read_as = override if override is not None else tensor.dtype.name
    floating = read_as.endswith(("float16", "float32", "float64"))
    room = _MOST_BOX // (chunks * 16)
    box: list[int] = []
    for _ in range(rank - 1):
        box.append(draw(st.sampled_from([extent for extent in (1, 2, 8, 64) if extent <= room])))
        room //= box[-1]
    return TiledTensorMap(
        tensor,
        (*box, chunks * 16 // size),
        element_strides=draw(st.sampled_from((None, (1,) * rank, (*(2 for _ in range(rank - 1)), 1)))),
        swizzle=swizzle,  # type: ignore[arg-type]  # reads the driver's words
        l2_promotion=draw(st.sampled_from(("NONE", "L2_64B", "L2_128B", "L2_256B"))),  # type: ignore[arg-type]  # ditto
        oob_fill=draw(st.sampled_from(("NONE", "NAN_REQUEST_ZERO_FMA"))) if floating else "NONE",  # type: ignore[arg-type]  # ditto
        dtype=override,  # type: ignore[arg-type]  # reads spellings
        element_offset=offset,
        shape=shape,
        strides=strides,
        label=draw(st.sampled_from(("", "tile", "tile", "other"))),
    )


def _row_major(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    steps: list[Expr] = []
    step = as_expr(1)
    for extent in reversed(shape):
        steps.append(step)
        step = step * extent
    return tuple(reversed(steps))
