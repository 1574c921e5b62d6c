"""The arguments of a call as TVM-FFI carries them, after every check that only Python can make."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentError
from trunnion.launcher import refusals, scalars
from trunnion.model.dtypes import Kind
from trunnion.model.dtypes import dtype as dtype_of
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan import refusals as rows
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.codegen.cpp.call_signature import CallSignature, ParamSignature
    from trunnion.launcher.tensors import TensorChecks

__all__ = ["NO_ARGUMENT", "Carried", "Preparation"]

NO_ARGUMENT = ""
"""What travels in the place of what cannot: a launcher takes no text, whatever the parameter."""

_CARRIED_DEVICES = ("cpu", "cuda")
"""Of tensors elsewhere TVM-FFI cannot carry all."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A call as it travels."""

    given: list[Any]
    """Arguments, then destinations; `NO_ARGUMENT` in the place of each that is wrong."""

    wrong: dict[tuple[str, str], ArgumentError]
    """The errors of those, by the argument's name and the place among the destinations."""

    def refuse(self, name: str, place: str, error: ArgumentError) -> None:
        """Let an argument travel of which Python knows that it is wrong, and remember why."""
        self.wrong[name, place] = error
        self.given.append(NO_ARGUMENT)

    def told(self, refusal: BaseException) -> BaseException:
        """Return what a launcher's refusal means: it tells the first place, and what is wrong there is known better.

        The other errors are let go of: their frames hold this, and so the call's tensors.
        """
        known = self.wrong.copy()
        self.wrong.clear()
        if not isinstance(refusal, ArgumentError):
            return refusal
        return known.get((refusal.argument, refusal.place), refusal)


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

    def __init__(self, facts: CallSignature, checks: TensorChecks) -> None:
        self._params = facts.params
        self._outputs = facts.outputs
        self._checks = checks
        self._class: Any = checks.any_tensor
        self._on_cuda = checks.runtime.only_device is None
        named = {param.dtype for param in (*facts.params, *facts.outputs) if param.kind == "tensor"}
        self._dtypes = {name: checks.dtype(name) for name in named}

    def carried(self, args: Sequence[Any], out: Sequence[Any] | None, device: int | None) -> Carried:
        """Return what a call was given, as it travels.

        Parameters
        ----------
        args
            The arguments.
        out
            The tensors that the caller gives for the outputs; None: none.
        device
            The device of the call, for messages.

        Raises
        ------
        ArgumentTypeError
            If the number of arguments is wrong, or if there are destinations for a program without outputs.
        """
        if len(args) != len(self._params):
            raise refusals.count_error(tuple(args), tuple(param.name for param in self._params))
        carried = Carried([], {})
        for param, value in zip(self._params, args, strict=True):
            try:
                carried.given.append(self._argument(param, value))
            except ArgumentError as error:
                carried.refuse(param.name, "", error)
        if out is not None:
            self._destinations(carried, out, device)
        return carried

    def _destinations(self, carried: Carried, out: Sequence[Any], device: int | None) -> None:
        count = len(self._outputs)
        if len(out) != count:
            names = tuple(tensor.name for tensor in self._outputs)
            if not count:  # there is no place at which a launcher could refuse that
                raise refusals.out_count_error(out, names)
            for index, name in enumerate(names):
                carried.refuse(name, refusals.out_place(index, count), refusals.out_count_error(out, names))
            return
        for index, (tensor, value) in enumerate(zip(self._outputs, out, strict=True)):
            try:
                carried.given.append(self._destination(tensor, value, device))
            except ArgumentError as error:
                error.place = refusals.out_place(index, count)
                carried.refuse(tensor.name, error.place, error)

    def _argument(self, param: ParamSignature, value: Any) -> Any:
        """Return a tensor, a number, an address or bytes as they travel."""
        if param.kind == "tensor":
            if value is not None or not param.nullable:
                self._tensor(param.name, value, param.dtype)
            return value
        if param.kind == "scalar":
            return self._scalar(param, value)
        if param.kind == "pointer":
            address = scalars.address(param.name, value, param.alignment, nullable=param.nullable)
            return ctypes.c_void_p(address) if address > INT64_MAX else address
        return scalars.struct_bytes(param.name, value, param.nbytes)

    def _destination(self, tensor: ParamSignature, value: Any, device: int | None) -> Any:
        if is_a(value, self._class) and not self._checks.runtime.presents_device(value):
            if self._on_cuda:
                raise rows.OUTPUT_DEVICE(tensor.name, value.device, device)
            raise rows.OUTPUT_ON_CPU(tensor.name, value.device)
        self._tensor(tensor.name, value, tensor.dtype, output=True)
        return value

    def _tensor(self, name: str, value: Any, dtype: str, *, output: bool = False) -> None:
        checks = self._checks
        try:
            checks.check_argument(name, value, output=output)
            if value.is_nested:  # of one without an extent for each dimension the error below says so
                value.stride()
            if value.dtype is not self._dtypes[dtype]:
                raise refusals.dtype_error(name, value, dtype)
            if output or checks.runtime.presents_device(value):
                checks.check_storage((name,), (value,))
            elif value.device.type not in _CARRIED_DEVICES:
                raise refusals.place_error(name, value, "cuda" if self._on_cuda else "cpu")
        except RuntimeError as error:
            raise refusals.unreadable_error((name,), (value,), error) from error

    def _scalar(self, param: ParamSignature, value: Any) -> Any:
        kind = dtype_of(param.dtype)
        number: Any = scalars.number(param.name, value, kind)
        if kind.kind is Kind.COMPLEX:
            return struct.pack("<2d", number.real, number.imag)
        wide = kind.is_integer and number > INT64_MAX
        return ctypes.c_void_p(number) if wide else number
