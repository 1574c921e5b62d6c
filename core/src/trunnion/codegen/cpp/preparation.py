"""The arguments of a call as TVM-FFI carries them, after every check that only Python can make."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import TYPE_CHECKING, Any

from trunnion.codegen.python import scalars, support
from trunnion.codegen.python.arguments import FLOAT_LIMITS
from trunnion.errors import ArgumentError, ArgumentValueError
from trunnion.model.dtypes import Kind
from trunnion.model.dtypes import dtype as dtype_of
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.codegen.cpp.facts import CallFacts, ParamFacts
    from trunnion.codegen.python.tensors import TensorChecks

__all__ = ["Preparation"]

_SIGNED_END = 1 << 63
_COMPLEX_PART = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def _is_lazy(tensor: Any) -> bool:
    return bool(tensor.is_neg() or tensor.is_conj())


def _is_left_out(param: ParamFacts, value: Any) -> bool:
    return value is None and param.nullable


class Preparation:
    """Checks and converts what a caller passes.

    TVM-FFI shows a launcher a tensor's address, type, extents, strides and device. What it does not show is asked here:
    whether the tensor is one at all, lazy, fake, or larger than its storage; and numbers of other libraries are made
    Python's.

    Parameters
    ----------
    facts
        What is known of the program's calls.
    checks
        The checks over the tensor library.
    """

    def __init__(self, facts: CallFacts, checks: TensorChecks) -> None:
        self._params = facts.params
        self._outputs = facts.outputs
        self._checks = checks
        self._class: Any = checks.tensor_type
        self._on_cuda = checks.runtime.only_device is None
        named = {param.dtype for param in (*facts.params, *facts.outputs) if param.kind == "tensor"}
        self._dtypes = {name: checks.dtype(name) for name in named}

    def arguments(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments as they travel.

        Raises
        ------
        ArgumentError
            If their number is wrong, or one is not what its parameter says, as far as Python can tell.
        """
        if len(args) != len(self._params):
            raise support.count_error(tuple(args), tuple(param.name for param in self._params))
        given = tuple(zip(self._params, args, strict=True))
        tensors = [pair for pair in given if pair[0].kind == "tensor" and not _is_left_out(*pair)]
        for param, value in tensors:
            self._tensor(param.name, value, param.dtype)
        for param, value in tensors:
            self._place(param.name, value)
        return tuple(self._number(param, value) for param, value in given)

    def certain(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments of a call that looks well, as they travel.

        Raises
        ------
        ArgumentError
            If a tensor is lazily negated or conjugated, or has no memory; or if a number is one for TVM-FFI alone.
        """
        given = tuple(zip(self._params, args, strict=True))
        for param, value in given:
            if param.kind == "tensor" and value is not None:
                self._checks.check_tensor(param.name, value)
        return tuple(self._number(param, value) for param, value in given)

    def destinations(self, out: Sequence[Any], device: int | None) -> tuple[Any, ...]:
        """Return the tensors that the caller gives for the outputs, on the device of a call.

        Raises
        ------
        ArgumentError
            If their number is wrong, or one is no tensor in memory.
        """
        if len(out) != len(self._outputs):
            raise support.out_count_error(out, tuple(tensor.name for tensor in self._outputs))
        for index, (tensor, value) in enumerate(zip(self._outputs, out, strict=True)):
            try:
                if is_a(value, self._class) and not self._checks.runtime.presents_device(value):
                    expected = f"CUDA device {device}" if self._on_cuda else "the CPU"
                    raise ArgumentValueError(tensor.name, f"a tensor on {value.device}", expected)
                self._tensor(tensor.name, value, tensor.dtype, output=True)
            except ArgumentError as error:
                error.place = support.out_place(index, len(self._outputs))
                raise
        return tuple(out)

    def _number(self, param: ParamFacts, value: Any) -> Any:
        """Return an argument as it travels; a tensor travels as it is."""
        if param.kind == "tensor":
            return value
        if param.kind == "scalar":
            return self._scalar(param, value)
        if param.kind == "pointer":
            address = scalars.address(param.name, value, param.alignment, nullable=param.nullable)
            return ctypes.c_void_p(address) if address >= _SIGNED_END else address
        return scalars.struct_bytes(param.name, value, param.nbytes)

    def _tensor(self, name: str, value: Any, dtype: str, *, output: bool = False) -> None:
        checks = self._checks
        try:
            if type(value) is not self._class or value.layout is not checks.strided or _is_lazy(value):
                checks.check_tensor(name, value, output=output)
            if value.is_nested:  # of one without an extent for each dimension the error below says so
                value.stride()
            if value.dtype is not self._dtypes[dtype]:
                raise support.dtype_error(name, value, dtype)
            if checks.runtime.presents_device(value):  # another device is another error
                checks.check_storage((name,), (value,))
        except RuntimeError as error:
            raise support.unreadable_error((name,), (value,), error) from error

    def _place(self, name: str, value: Any) -> None:
        """Accept a tensor of the program's kind of device: of others TVM-FFI cannot carry all."""
        if not self._checks.runtime.presents_device(value):
            raise support.place_error(name, value, "cuda" if self._on_cuda else "cpu")

    def _scalar(self, param: ParamFacts, value: Any) -> Any:
        kind, name = dtype_of(param.dtype), param.name
        if kind.kind is Kind.BOOL:
            return scalars.boolean(name, value)
        if kind.is_integer:
            number = scalars.integer(name, value, *kind.integer_range)
            return ctypes.c_void_p(number) if number >= _SIGNED_END else number
        if kind.kind is Kind.COMPLEX:
            limit = FLOAT_LIMITS[_COMPLEX_PART[kind.name]]
            return struct.pack("<2d", *scalars.complex_parts(name, value, limit, kind.name))
        if kind.name not in FLOAT_LIMITS:
            scalars.small_float(name, value, kind.name)
            return scalars.real(name, value, math.inf, kind.name)
        return scalars.real(name, value, FLOAT_LIMITS[kind.name], kind.name)
