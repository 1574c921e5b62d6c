"""Random tensors and workspaces of a program, and windows over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.model.expr import Const, Expr, Symbol, as_expr
from trunnion.model.facts import device
from trunnion.model.params import TensorParam
from trunnion.model.window import AccessPolicyWindow
from trunnion.model.workspace import Workspace
from trunnion.testing.rounding import FORMATS, SIZES
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.expressions import extents
from trunnion.testing.strategies.maps import draw_mapped_memory
from trunnion.testing.strategies.numbers import numbers

if TYPE_CHECKING:
    from trunnion.model.memory import Memory
    from trunnion.testing.strategies.draft import Draft

__all__ = ["ELEMENT_TYPES", "draw_inputs", "draw_outputs", "draw_window", "draw_workspaces"]

ELEMENT_TYPES = tuple(SIZES)
"""The element types that are drawn for tensors."""

_INT64_MAX = 2**63 - 1
_MOST_STRIDE_SYMBOLS = 4
_OF_INPUTS = frozenset(
    {
        Capability.DYNAMIC_SHAPES,
        Capability.STRIDED_TENSORS,
        Capability.TENSOR_VIEWS,
        Capability.ACCESS_POLICY_WINDOW,
    }
)
"""What takes an input tensor at least; the others can do without."""


def draw_inputs(draft: Draft) -> None:
    """Draw the input tensors; the first of them shows every symbol of extents.

    Parameters
    ----------
    draft
        The program; it takes them.
    """
    draw = draft.draw
    nullable = draft.wants(Capability.NULLABLE_TENSORS)
    least = int(bool(draft.features & _OF_INPUTS))
    for count in range(choose(draw, (least, least, 1, 2, 3))):
        rank = draw(st.integers(0, 3))
        shape = [draw(extents(draft.extent_symbols)) for _ in range(rank)]
        if count == 0:
            shape = [*draft.extent_symbols, *shape[: 3 - len(draft.extent_symbols)]]
        strided = draft.wants(Capability.STRIDED_TENSORS) and (count == 0 or draw(st.booleans()))
        strides = _draw_strides(draft, shape) if strided else None
        access = choose(draw, ("read", "read_write", "write"))
        null = nullable and draw(st.integers(0, 3)) == 0
        draft.inputs.append(_tensor(draft, shape, strides=strides, access=access, nullable=null))
    if nullable:
        shape = [draw(extents(draft.extent_symbols)) for _ in range(draw(st.integers(0, 3)))]
        draft.inputs.insert(draw(st.integers(0, 1)), _tensor(draft, shape, nullable=True))
    for capability, taken in ((Capability.TMA_TILED, draft.mapped), (Capability.TMA_IM2COL, draft.images)):
        if draft.wants(capability):
            for _ in range(draw(st.integers(1, 2))):
                tensor = draw_mapped_memory(draft, image=taken is draft.images, nullable=nullable)
                taken.append(tensor)
                draft.inputs.append(tensor)


def _tensor(draft: Draft, shape: list[Expr], **fields: Any) -> TensorParam:
    kind = choose(draft.draw, ELEMENT_TYPES)
    alignment = choose(draft.draw, (None, None, None, 16, 128))
    return TensorParam(draft.name(), kind, tuple(shape), alignment=alignment, **fields)  # type: ignore[arg-type]  # reads spellings


def _draw_strides(draft: Draft, shape: list[Expr]) -> tuple[Expr, ...]:
    """Draw strides: padded rows, another order of the dimensions, numbers, or symbols of their own."""
    form = choose(draft.draw, ("padded", "reversed", "numbers", "symbols"))
    if form == "numbers":
        return tuple(as_expr(choose(draft.draw, (1, 0, 2, 7, 16))) for _ in shape)
    if (
        form == "symbols"
        and draft.wants(Capability.DYNAMIC_SHAPES)
        and len(draft.free_symbols) + len(shape) <= _MOST_STRIDE_SYMBOLS
    ):
        own = [Symbol(draft.name(), min=0, max=choose(draft.draw, (_INT64_MAX, 4096))) for _ in shape]
        draft.free_symbols += own
        return tuple(own)
    steps: list[Expr] = []
    step = as_expr(1 if form == "reversed" else choose(draft.draw, (1, 2)))
    for extent in shape if form == "reversed" else reversed(shape):
        steps.append(step)
        step = step * extent
    return tuple(steps) if form == "reversed" else tuple(reversed(steps))


def _fills(kind: str) -> st.SearchStrategy[Any]:
    """Return a strategy of numbers of a type, often one whose bytes are all the same."""
    if kind in FORMATS and not FORMATS[kind].signed:  # which has no zero
        return numbers(kind)
    return st.one_of(numbers(kind), st.just(False if kind == "bool" else 0))


def draw_outputs(draft: Draft) -> None:
    """Draw the outputs.

    Parameters
    ----------
    draft
        The program; it takes them.
    """
    draw = draft.draw
    filled = draft.wants(Capability.OUTPUT_FILL)
    for count in range(draw(st.integers(int(filled), 2))):
        rank = draw(st.integers(0, 3))
        shape = [draw(extents(draft.extent_symbols)) for _ in range(rank)]
        kind = choose(draw, ELEMENT_TYPES)
        fill = draw(_fills(kind)) if filled and (count == 0 or draw(st.booleans())) else None
        alignment = choose(draw, (None, None, None, 128, 512, 1 << 16))
        draft.outputs.append(
            TensorParam(draft.name(), kind, tuple(shape), access="write", fill=fill, alignment=alignment)  # type: ignore[arg-type]  # reads spellings
        )
    if draft.wants(Capability.TMA_TILED) and draw(st.booleans()):
        output = draw_mapped_memory(draft, output=True)
        draft.mapped.append(output)
        draft.outputs.append(output)


def draw_workspaces(draft: Draft) -> None:
    """Draw workspaces, some of which maps can read.

    Parameters
    ----------
    draft
        The program; it takes them.
    """
    draw = draft.draw
    if not draft.wants(Capability.WORKSPACE):
        return
    for _ in range(draw(st.integers(1, 2))):
        fields: dict[str, Any] = {
            "alignment": choose(draw, (256, 256, 1, 16, 1024, 4096)),
            "zeroed": draw(st.booleans()),
        }
        wanted = [one for one in (Capability.TMA_TILED, Capability.TMA_IM2COL) if draft.wants(one)]
        mapped = draw(st.booleans())
        if mapped and wanted:
            taken = draft.mapped if choose(draw, wanted) is Capability.TMA_TILED else draft.images
            like = draw_mapped_memory(draft, image=taken is draft.images)
            workspace = Workspace(like.name, like.dtype, like.shape, **fields)
            taken.append(workspace)
        else:
            shape = tuple(draw(extents(draft.extent_symbols)) for _ in range(draw(st.integers(0, 3))))
            if draft.facts and shape and draw(st.booleans()):
                shape = (choose(draw, (device.multiprocessor_count, device.warp_size)), *shape[1:])
            workspace = Workspace(draft.name(), choose(draw, ELEMENT_TYPES), shape, **fields)  # type: ignore[arg-type]  # reads spellings
        draft.workspaces.append(workspace)


def draw_window(draft: Draft) -> AccessPolicyWindow:
    """Draw a window that mostly lies within its memory.

    Parameters
    ----------
    draft
        The program, which has memory.
    """
    draw = draft.draw
    memory: Memory = choose(draw, draft.memories)
    form = choose(draw, ("whole", "whole", "tail", "named", "named"))
    fields: dict[str, Any] = {}
    if form == "tail":
        fields["element_offset"] = choose(draw, (0, 1, 2))
    elif form == "named":
        size = memory.dtype.itemsize
        length: Expr = memory.shape[-1] * size if memory.shape else Const(size)
        fields["nbytes"] = choose(draw, (length, Const(size)))
    return AccessPolicyWindow(
        memory,
        hit_ratio=choose(draw, (1.0, 0.0, 0.5, 0.6)),
        hit_property=choose(draw, ("persisting", "persisting", "streaming", "normal")),  # type: ignore[arg-type]  # reads words
        miss_property=choose(draw, ("streaming", "normal")),  # type: ignore[arg-type]  # ditto
        policy=choose(draw, ("launch", "launch", "stream")),  # type: ignore[arg-type]  # ditto
        **fields,
    )
