"""The part of planning that turns maps and windows over memory into the driver's order and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.fields import place
from trunnion.model.plan import Encode, MovedArgument, PlannedWindow, ViewArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trunnion.model.expr import Expr
    from trunnion.model.memory import Memory
    from trunnion.model.moved_address import MovedAddress
    from trunnion.model.plan import MemoryRef
    from trunnion.model.tensormap import TensorMap
    from trunnion.model.view import TensorView
    from trunnion.model.window import AccessPolicyWindow

__all__ = ["Slots", "map_identity", "plan_map", "plan_moved", "plan_view", "plan_window"]


@dataclass(frozen=True, slots=True)
class Slots:
    """How a program's symbols and memory become a plan's slots."""

    expr: Callable[[Expr], Expr]
    """Returns an expression over slots."""

    memory: Callable[[Memory], MemoryRef]
    """Returns the reference of a tensor or a workspace."""

    def exprs(self, exprs: Iterable[Expr]) -> tuple[Expr, ...]:
        """Return expressions over slots."""
        return tuple(self.expr(expr) for expr in exprs)


def plan_view(view: TensorView, slots: Slots) -> ViewArgument:
    """Return memory with its layout, over slots."""
    memory = view.memory
    return ViewArgument(
        memory=slots.memory(memory),
        dtype=memory.dtype,
        extents=slots.exprs(view.extents),
        strides=slots.exprs(memory.steps()),
        alignment=memory.alignment or memory.dtype.itemsize,
    )


def plan_moved(moved: MovedAddress, slots: Slots) -> MovedArgument:
    """Return a moved address, over slots."""
    memory = moved.memory
    return MovedArgument(slots.memory(memory), slots.expr(moved.offset), slots.expr(memory.span()))


def map_identity(tensor_map: TensorMap) -> tuple[object, ...]:
    """Return everything that the driver is told: two maps that agree here are one, whatever their labels."""
    return (
        tensor_map.known_fields().constant,
        tensor_map.tensor,
        tensor_map.element_offset,
        tensor_map.element_type,
        tensor_map.extents,
        tensor_map.layout(),
    )


def plan_map(index: int, tensor_map: TensorMap, readers: tuple[int, ...], slots: Slots) -> Encode:
    """Return the encoding of a map: the one place where tensor order becomes the driver's."""
    memory = tensor_map.tensor
    with place(tensor_map.title):
        limit = None if tensor_map.within_by_nature else slots.expr(memory.span_bytes())
        return Encode(
            index=index,
            memory=slots.memory(memory),
            fields=tensor_map.known_fields().constant,
            offset_bytes=slots.expr(tensor_map.element_offset * memory.dtype.itemsize),
            limit_bytes=limit,
            dims=slots.exprs(reversed(tensor_map.extents)),
            strides=slots.exprs(tensor_map.byte_strides()),
            innermost_stride=slots.expr(tensor_map.layout()[-1]),
            readers=readers,
        )


def plan_window(window: AccessPolicyWindow, slots: Slots) -> PlannedWindow:
    """Return a launch's window, in bytes."""
    return PlannedWindow(
        memory=slots.memory(window.memory),
        offset_bytes=slots.expr(window.offset_bytes),
        nbytes=None if window.nbytes is None else slots.expr(window.nbytes),
        limit_bytes=slots.expr(window.memory.span_bytes()),
        hit_ratio=window.hit_ratio,
        hit_property=window.hit_property.code,
        miss_property=window.miss_property.code,
        policy=str(window.policy),
    )
