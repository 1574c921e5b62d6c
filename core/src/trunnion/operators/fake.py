"""`FakeCall`: what a call of a program gives back to torch, known from the structure of its arguments; nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentError
from trunnion.launcher import refusals
from trunnion.launcher.scalars import struct_bytes
from trunnion.model.dtypes import dtype
from trunnion.model.interval import INT64_MAX, INT64_MIN
from trunnion.model.plan import refusals as rows
from trunnion.model.plan.places import author_extents
from trunnion.model.plan.slots import ScalarSlot, StructSlot
from trunnion.operators.kernels import as_bytes, expect_no_gradient
from trunnion.operators.shapes import symbolic_condition, symbolic_value
from trunnion.operators.structure import StructureWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, Source
    from trunnion.model.plan.slots import Binding, PointerSlot, TensorSlot
    from trunnion.operators.schema import OperatorSchema

__all__ = ["FakeCall", "fake_of", "fake_out_of"]


class FakeCall(StructureWalk):
    """One call, of torch's tensors; extents, strides and numbers may be symbols of a trace.

    Parameters are those of `StructureWalk`.
    """

    def __init__(self, plan: LaunchPlan, kinds: tuple[str, ...], args: Sequence[Any]) -> None:
        import torch  # noqa: PLC0415 - importing trunnion must not import torch

        super().__init__(plan, kinds, args)
        self._torch = torch

    def outputs(self) -> tuple[Any, ...]:
        """Return what the call would allocate, under whatever mode torch is in; errors are those of `walk`."""
        self.walk()
        return tuple(
            self._torch.empty(
                self.shapes[slot.index], dtype=self.element_type(slot.dtype.name), device=self.device
            )
            for slot in self.plan.outputs
        )

    def check_destinations(self, out: Sequence[Any]) -> None:
        """Accept what the call is given to write into; to be asked behind `walk`.

        Raises
        ------
        ArgumentError
            If one does not fit.
        """
        for place, (slot, tensor) in enumerate(zip(self.plan.outputs, out, strict=True)):
            try:
                self._check_destination(slot, tensor)
            except ArgumentError as error:
                error.place = refusals.out_place(place, len(out))
                raise

    def _check_destination(self, slot: TensorSlot, tensor: Any) -> None:
        shape, texts = self.shapes[slot.index], author_extents(self.plan, slot)
        self._check_structure(slot.name, tensor, slot.dtype.name, len(shape))
        for axis, (got, extent) in enumerate(zip(tensor.shape, shape, strict=True)):
            if not self._holds(got == extent):
                raise refusals.extent_error(slot.name, axis, got, extent, texts[axis])
        if tensor.device != self.device:
            raise rows.OUTPUT_PLACE(slot.name, tensor.device, self.device)
        if not tensor.is_contiguous():
            raise refusals.destination_error(slot.name, tensor)

    def element_type(self, name: str) -> Any:
        """Return torch's object for an element type."""
        return dtype(name).in_torch(self._torch)

    def _read_number(self, slot: ScalarSlot | PointerSlot | StructSlot) -> None:
        given = self._args[slot.position]
        symbols = self._torch.SymInt, self._torch.SymFloat, self._torch.SymBool
        if isinstance(slot, StructSlot):
            struct_bytes(slot.name, as_bytes(slot.name, given), slot.nbytes)
            return
        if not isinstance(slot, ScalarSlot) or not isinstance(given, symbols):
            super()._read_number(slot)
            return
        self.scalars[slot.index] = given
        if isinstance(given, self._torch.SymInt):
            low, high = slot.dtype.integer_range
            if not self._between(low, given, high):
                raise rows.INTEGER_RANGE(slot.name, given, low, high)

    def _allowed(self, binding: Binding, value: Any) -> bool:
        inside = self._between(binding.min, value, binding.max)
        return inside and self._holds(value % binding.multiple_of == 0)

    def _between(self, low: int, value: Any, high: int) -> bool:
        """Whether a number is between others; what every number of 64 bits is, no trace has to remember."""
        above = low <= INT64_MIN or self._holds(low <= value)
        return above and (high >= INT64_MAX or self._holds(value <= high))

    def _holds(self, condition: Any) -> bool:
        """Whether a condition holds; of a number that only memory knows, the graph asserts it when it runs."""
        from torch.fx.experimental.symbolic_shapes import expect_true  # noqa: PLC0415 - it is slow to import

        return expect_true(condition) if isinstance(condition, self._torch.SymBool) else bool(condition)

    def _met(self, condition: Expr) -> bool:
        return self._holds(symbolic_condition(condition, self.values, self.plan.symbols))

    def _live(self, source: Source) -> bool:
        """Whether a stride matters: one does along an extent of which only memory knows, as it mostly will."""
        from torch.fx.experimental.symbolic_shapes import guard_or_true  # noqa: PLC0415 - it is slow to import

        if source.kind != "stride":
            return True
        tensor = self.tensors[source.slot]
        return guard_or_true(tensor.shape[source.axis] > 1) and guard_or_true(tensor.numel() > 0)

    def _number(self, source: Source) -> Any:
        if source.kind == "scalar":
            given = self.scalars[source.slot]
            return int(given) if isinstance(given, bool) else given
        tensor = self.tensors[source.slot]
        return (tensor.shape if source.kind == "shape" else tensor.stride())[source.axis]

    def _value(self, expr: Expr) -> Any:
        return symbolic_value(expr, self.values, self.plan.symbols)


def _expect_no_gradient(schema: OperatorSchema, args: tuple[Any, ...], out: Iterable[Any] = ()) -> None:
    """Refuse what the call refuses; but what is exported may be a model for calls without gradients."""
    from torch.compiler import is_exporting  # noqa: PLC0415 - importing trunnion must not import torch

    if not is_exporting():
        expect_no_gradient(schema, args, out)


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
        if schema.mutated:
            _expect_no_gradient(schema, args)
        made = FakeCall(plan, kinds, schema.completed(args)).outputs()
        return made if len(made) > 1 else made[0] if made else None

    return fake


def fake_out_of(plan: LaunchPlan, kinds: tuple[str, ...], schema: OperatorSchema) -> Callable[..., None]:
    """Return the fake of the overload ``out``: it checks, and gives nothing back; parameters are those of `fake_of`."""

    def fake(*args: Any, **out: Any) -> None:
        _expect_no_gradient(schema, args, out.values())
        call = FakeCall(plan, kinds, schema.completed(args))
        call.walk()
        call.check_destinations([out[name] for name in schema.out_names])

    return fake
