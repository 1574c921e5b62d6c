"""`StructureWalk`: what of a call the structure of its arguments decides, whatever library its tensors are of.

It is a walk through the plan's steps, as a launcher's is, but for what needs memory, a driver or a stream. So what is
refused, and in which words, is what the call itself says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.launcher import refusals
from trunnion.launcher.walk import Walk
from trunnion.model.plan import refusals as rows
from trunnion.model.plan.slots import ScalarSlot
from trunnion.model.plan.steps import (
    Bind,
    Phase,
    ReadNumber,
    ReadTensors,
    Require,
    RequireLayouts,
    ShapeOutput,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.plan import LaunchPlan, Source
    from trunnion.model.plan.slots import PointerSlot, StructSlot

__all__ = ["StructureWalk"]

_ANYWHERE = "meta"


class StructureWalk(Walk):
    """One call, of tensors without memory.

    Parameters
    ----------
    plan
        What is called.
    kinds
        The kinds of devices that it runs on.
    args
        The arguments, in the signature's order.
    """

    seen: tuple[type, ...] = (Bind, ReadNumber, ReadTensors, Require, RequireLayouts, ShapeOutput)
    """The steps that are taken."""

    def __init__(self, plan: LaunchPlan, kinds: tuple[str, ...], args: Sequence[Any]) -> None:
        super().__init__(plan, None, args)  # type: ignore[arg-type]  # no step that is taken asks a context
        self._kinds = kinds

    def walk(self) -> None:
        """Do the steps that structure decides; what is over facts of the device is for the call to judge.

        Raises
        ------
        ArgumentError, ExprError, UnboundSymbolError
            If the structure of the arguments is enough for the call to be refused.
        """
        for step in self.plan.steps:
            if step.phase is not Phase.ADMIT and isinstance(step.action, self.seen):
                self.do(step.action)

    def element_type(self, name: str) -> Any:
        """Return the tensor library's object for an element type."""
        return name

    def _check_structure(self, name: str, tensor: Any, kind: str, rank: int) -> None:
        if tensor.dtype != self.element_type(kind):
            raise refusals.dtype_error(name, tensor, kind)
        if tensor.dim() != rank:
            raise refusals.rank_error(name, tensor, rank)

    def _read_tensors(self) -> None:
        plan = self.plan
        self.tensors = {slot.index: self._args[slot.position] for slot in plan.inputs}
        for slot in plan.inputs:
            tensor = self.tensors[slot.index]
            if tensor is not None:
                self._check_structure(slot.name, tensor, slot.dtype.name, len(slot.shape))
            elif not slot.nullable:
                raise refusals.no_tensor_error(slot.name, tensor)
        self.device = self._place()

    def _place(self) -> Any:
        """Return where the tensors lie."""
        live = [
            (slot.name, tensor)
            for slot in self.plan.inputs
            if (tensor := self.tensors[slot.index]) is not None
        ]
        for name, tensor in live:
            if tensor.device.type not in (*self._kinds, _ANYWHERE):
                raise refusals.place_error(name, tensor, self._kinds[0])
            if tensor.device != live[0][1].device:
                raise rows.OTHER_PLACE(name, tensor.device, live[0][1].device, live[0][0])
        return live[0][1].device if live else self._kinds[0]

    def _require_layouts(self) -> None:
        for slot in self.plan.inputs:
            tensor = self.tensors[slot.index]
            if slot.strides is None and tensor is not None and not tensor.is_contiguous():
                raise refusals.layout_error(slot.name, tensor)

    def _read_number(self, slot: ScalarSlot | PointerSlot | StructSlot) -> None:
        if isinstance(slot, ScalarSlot):  # an address, or bytes, decide no shape
            super()._read_number(slot)

    def _live(self, source: Source) -> bool:
        if source.kind != "stride":
            return True
        tensor = self.tensors[source.slot]
        return bool(tensor.shape[source.axis] > 1 and tensor.numel() > 0)
