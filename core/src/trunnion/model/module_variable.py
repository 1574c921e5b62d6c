"""`ModuleVariable`: a ``__device__`` or ``__constant__`` variable of the device code, and copies to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe
from trunnion.model.code import DeviceCode, device_code
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Const, Expr, OutsideExpr, as_expr, eq
from trunnion.model.fields import in_one_dimension, instance, integer, members, place, text
from trunnion.model.limits import expect_at_most
from trunnion.model.memory import MAX_RANK
from trunnion.model.params import TensorParam
from trunnion.model.scalars import scalar_bytes
from trunnion.plain import ForeignError, asked, is_a, is_exactly

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["MOST_INIT_BYTES", "MOST_VARIABLE_BYTES", "CopyToVariable", "ModuleVariable"]

MOST_VARIABLE_BYTES = 1 << 40
"""The most bytes of a variable; a device has far fewer."""

MOST_INIT_BYTES = 1 << 20
"""The most bytes that a program holds of one variable's beginning: what is larger is copied from a tensor."""


@dataclass(frozen=True, slots=True)
class ModuleVariable(OutsideExpr):
    """A variable of the device code, which all launches of a program share: ``__constant__ float filter[64];``.

    Each device has its own, and so has each program that is loaded. As a kernel's argument it is its address. What
    two calls write to it on different streams nobody orders.
    """

    name: str
    """What the device code calls it: a C identifier, or a C++ name expression such as ``"ns::filter"``."""

    dtype: DType
    """The element type."""

    shape: tuple[int, ...] = ()
    """Elements along each dimension, outermost first, each at least 1; ``()`` is one element."""

    init: bytes | None = None
    """What it holds before the first launch on a device, little-endian; None: what the device code says.

    Given as bytes, as a number that every element is, or as numbers in the variable's shape: nested sequences, or
    whatever has ``tolist()``, such as arrays of NumPy and torch's tensors. Each number is rounded once, to nearest
    even; one that the type cannot hold is refused.
    """

    code: DeviceCode | None = None
    """The part of the program's code that defines it; None: the first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        if "\0" in self.name:
            raise ProgramError("a variable's name cannot hold a NUL character", field="name")
        with place(f"variable {shorten(self.name)}"):
            with place("dtype"):
                object.__setattr__(self, "dtype", dtype(self.dtype))
            wanted = f"a sequence of integers, {in_one_dimension(self.shape, '64')}"
            given = members(self.shape, "shape", wanted)
            expect_at_most(len(given), MAX_RANK, "dimensions", "shape")
            shape = tuple(
                integer(one, f"shape[{axis}]", 1, MOST_VARIABLE_BYTES) for axis, one in enumerate(given)
            )
            object.__setattr__(self, "shape", shape)
            expect_at_most(self.nbytes, MOST_VARIABLE_BYTES, "bytes", "shape")
            if self.init is not None:
                object.__setattr__(self, "init", self._bytes(self.init))
            if self.code is not None:
                object.__setattr__(self, "code", device_code(self.code, "code"))
                instance(self.code, DeviceCode, "code")

    @property
    def count(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.count * self.dtype.itemsize

    def _instead(self) -> str:
        return "its value is the kernels' to read; as an argument of a launch it is its address"

    def _bytes(self, init: Any) -> bytes:
        """Return what it holds first."""
        if self.nbytes > MOST_INIT_BYTES:
            raise ProgramError(
                f"got one for {self.nbytes} bytes, expected at most {MOST_INIT_BYTES}; copy a tensor to it instead: "
                "p.copy(variable, tensor)",
                field="init",
            )
        if is_a(init, (bytes, bytearray)):
            given: Any = init  # of a subclass too the bytes themselves, not what it says of them
            data = bytes(memoryview(given))
            if len(data) != self.nbytes:
                raise ProgramError(f"got {len(data)} bytes, expected {self.nbytes}", field="init")
            return data
        if is_exactly(init, bool, int, float, complex):
            return scalar_bytes(init, self.dtype, "init") * self.count
        return b"".join(self._numbers(init, self.shape, "init"))

    def _numbers(self, given: Any, shape: Sequence[int], field: str) -> list[bytes]:
        given = _listed(given, field)
        if not shape:
            return [scalar_bytes(given, self.dtype, field)]
        found = members(
            given, field, f"{shape[0]} members: bytes, a number, or numbers in the variable's shape"
        )
        if len(found) != shape[0]:
            raise ProgramError(f"got {len(found)} members, expected {shape[0]}", field=field)
        rows = (self._numbers(one, shape[1:], f"{field}[{index}]") for index, one in enumerate(found))
        return [number for row in rows for number in row]


def _listed(given: Any, field: str) -> Any:
    """Return an array's numbers as Python's own, in lists; anything else as it is."""
    try:
        found = asked(lambda: getattr(given, "tolist", None))
        return given if found is None else asked(found)
    except ForeignError as error:
        raise ProgramError(
            f"got {describe(given)}, whose numbers cannot be read: {error.__cause__}", field=field
        ) from error.__cause__


@dataclass(frozen=True, slots=True)
class CopyToVariable:
    """A tensor is copied to a variable, on the call's stream: launches before it see what was there before.

    It is done in every call, whatever launches the call skips.
    """

    variable: ModuleVariable
    """Where to."""

    tensor: TensorParam
    """Where from: a contiguous tensor of the signature, of the variable's type, with as many elements."""

    before: int
    """The place of the launch before which it is done; copies before one launch are done in their order."""

    def __post_init__(self) -> None:
        instance(self.variable, ModuleVariable, "variable")
        instance(self.tensor, TensorParam, "tensor")
        integer(self.before, "before", 0, (1 << 31) - 1)
        tensor, variable = self.tensor, self.variable
        if tensor.dtype != variable.dtype:
            raise ProgramError(
                f"got a tensor of {tensor.dtype}, expected {variable.dtype}, as {shorten(variable.name)} has",
                field="tensor",
            )
        if tensor.strides is not None:
            raise ProgramError("got a tensor with strides, expected a contiguous one", field="tensor")
        if tensor.nullable:
            raise ProgramError(
                "got a tensor that may be None, expected one that is always there", field="tensor"
            )
        with place("tensor"):
            fits = self.fits
            if isinstance(fits, Const) and not fits.value:
                raise ProgramError(f"got {self._elements}, expected {self.expected}")

    @property
    def _elements(self) -> str:
        extents = " x ".join(str(one.value) for one in self.tensor.shape if isinstance(one, Const))
        return f"{extents} elements" if extents else "the one element of a tensor without dimensions"

    @property
    def fits(self) -> Expr:
        """Whether the tensor of a call has as many elements as the variable."""
        count: Expr = as_expr(1)
        for extent in self.tensor.shape:
            count = count * extent
        return eq(count, self.variable.count)

    @property
    def expected(self) -> str:
        """What the tensor must be, in words."""
        variable = self.variable
        return f"{variable.count} elements in {shorten(self.tensor.name)}, as variable {shorten(variable.name)} has"
