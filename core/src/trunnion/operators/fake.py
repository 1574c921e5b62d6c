"""`FakeCall`: what a call of a program gives back, known from the structure of its arguments; nothing runs.

It is a walk through the plan's steps, as a launcher's is, but for what needs memory, a driver or a stream. So what is
refused, and in which words, is what the call itself says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentValueError, shorten
from trunnion.launcher import refusals
from trunnion.launcher.walk import Walk
from trunnion.model.dtypes import dtype
from trunnion.model.plan.lowering import Bind, ReadNumber, ReadTensors, Require, RequireLayouts, ShapeOutput
from trunnion.model.plan.places import author_extents
from trunnion.model.plan.slots import ScalarSlot
from trunnion.operators.shapes import symbolic_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, Source
    from trunnion.model.plan.slots import PointerSlot, StructSlot
    from trunnion.operators.schema import OperatorSchema

__all__ = ["FakeCall", "fake_of", "fake_out_of"]

_SEEN = (Bind, ReadNumber, ReadTensors, Require, RequireLayouts, ShapeOutput)


class FakeCall(Walk):
    """One call, of tensors without memory.

    Parameters
    ----------
    plan
        What is called.
    kinds
        The kinds of devices that it runs on.
    args
        The arguments, in the signature's order; extents, strides and numbers may be symbols of a trace.
    """

    def __init__(self, plan: LaunchPlan, kinds: tuple[str, ...], args: Sequence[Any]) -> None:
        import torch  # noqa: PLC0415 - importing trunnion must not import torch

        super().__init__(plan, None, args)  # type: ignore[arg-type]  # no step that is taken asks a context
        self._torch, self._kinds = torch, kinds

    def outputs(self) -> tuple[Any, ...]:
        """Return what the call would allocate, under whatever mode torch is in.

        Raises
        ------
        ArgumentError, ExprError, UnboundSymbolError
            If the structure of the arguments is enough for the call to be refused.
        """
        self.walk()
        slots = self.plan.outputs
        return tuple(
            self._torch.empty(self.shapes[slot.index], dtype=self._dtype(slot.dtype.name), device=self.device)
            for slot in slots
        )

    def walk(self) -> None:
        """Do the steps that structure decides; errors are those of `outputs`."""
        for step in self.plan.steps:
            if isinstance(step.action, _SEEN) and not self._read(step.action):
                self._derive(step.action)

    def check_destinations(self, out: Sequence[Any]) -> None:
        """Accept what the call is given to write into; to be asked behind `walk`.

        Raises
        ------
        ArgumentError
            If one does not fit.
        """
        for place, (slot, tensor) in enumerate(zip(self.plan.outputs, out, strict=True)):
            where = refusals.out_place(place, len(out))
            shape, texts = self.shapes[slot.index], author_extents(self.plan, slot)
            self._check_structure(slot.name, tensor, slot.dtype.name, len(shape), where)
            for axis, (got, extent) in enumerate(zip(tensor.shape, shape, strict=True)):
                if got != extent:
                    error = refusals.extent_error(slot.name, axis, got, extent, texts[axis])
                    error.place = where
                    raise error
            if not tensor.is_contiguous():
                error = refusals.destination_error(slot.name, tensor)
                error.place = where
                raise error

    def _dtype(self, name: str) -> Any:
        return dtype(name).in_torch(self._torch)

    def _check_structure(self, name: str, tensor: Any, kind: str, rank: int, where: str = "") -> None:
        if tensor.dtype is not self._dtype(kind):
            error = refusals.dtype_error(name, tensor, kind)
        elif tensor.dim() != rank:
            error = refusals.rank_error(name, tensor, rank)
        else:
            return
        error.place = where
        raise error

    # What a walk does otherwise ----------------------------------------------------------------------------------

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
        live = [(slot.name, tensor) for slot in self.plan.inputs if (tensor := self.tensors[slot.index]) is not None]
        for name, tensor in live:
            if tensor.device.type not in (*self._kinds, "meta"):
                raise refusals.place_error(name, tensor, self._kinds[0])
            if tensor.device != live[0][1].device:
                expected = f"{live[0][1].device}, where {shorten(live[0][0])} lies"
                raise ArgumentValueError(name, f"a tensor on {tensor.device}", expected)
        return live[0][1].device if live else self._torch.device(self._kinds[0])

    def _require_layouts(self) -> None:
        for slot in self.plan.inputs:
            tensor = self.tensors[slot.index]
            if slot.strides is None and tensor is not None and not tensor.is_contiguous():
                raise refusals.layout_error(slot.name, tensor)

    def _read_number(self, slot: ScalarSlot | PointerSlot | StructSlot) -> None:
        given = self._args[slot.position]
        if not isinstance(slot, ScalarSlot):
            return  # an address or bytes, which decide no shape
        symbols = self._torch.SymInt, self._torch.SymFloat, self._torch.SymBool
        if not isinstance(given, symbols):
            super()._read_number(slot)
            return
        self.scalars[slot.index] = given
        if isinstance(given, self._torch.SymInt):
            low, high = slot.dtype.integer_range
            if not low <= given <= high:
                raise ArgumentValueError(slot.name, str(given), f"an integer, {low} to {high}")

    def _number(self, source: Source) -> Any:
        if source.kind == "scalar":
            given = self.scalars[source.slot]
            return int(given) if isinstance(given, bool) else given
        tensor = self.tensors[source.slot]
        return (tensor.shape if source.kind == "shape" else tensor.stride())[source.axis]

    def _live(self, source: Source) -> bool:
        if source.kind != "stride":
            return True
        tensor = self.tensors[source.slot]
        return bool(tensor.shape[source.axis] > 1 and tensor.numel() > 0)

    def _value(self, expr: Expr) -> Any:
        return symbolic_value(expr, self.values, self.plan.symbols)


def fake_of(plan: LaunchPlan, kinds: tuple[str, ...], schema: OperatorSchema) -> Callable[..., Any]:
    """Return the fake of the overload that allocates: what comes back, of arguments without memory.

    Parameters
    ----------
    plan
        What is called.
    kinds
        The kinds of devices that it runs on.
    schema
        How it is called.
    """

    def fake(*args: Any) -> Any:
        made = FakeCall(plan, kinds, schema.completed(args)).outputs()
        return made if len(made) > 1 else made[0] if made else None

    return fake


def fake_out_of(plan: LaunchPlan, kinds: tuple[str, ...], schema: OperatorSchema) -> Callable[..., None]:
    """Return the fake of the overload ``out``: it checks, and gives nothing back; parameters are those of `fake_of`."""

    def fake(*args: Any, **out: Any) -> None:
        call = FakeCall(plan, kinds, schema.completed(args))
        call.walk()
        call.check_destinations([out[name] for name in schema.out_names])

    return fake
