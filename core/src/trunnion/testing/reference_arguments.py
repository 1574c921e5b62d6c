"""The oracle's reading of a call's arguments: what is wrong with them, and the value of each symbol."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    DeviceRequirementError,
    ExprError,
    TrunnionError,
    UnboundSymbolError,
)
from trunnion.model.expr import Symbol
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.testing.arithmetic import UncomputableError, evaluate
from trunnion.testing.expected import CallSignature, Problem, TensorFacts
from trunnion.testing.reference_facts import fact_value
from trunnion.testing.reference_numbers import (
    WrongArgumentError,
    encode_number,
    read_number,
    read_pointer,
    read_struct,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.expr import Expr
    from trunnion.model.facts import Fact
    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import ExpectedNumber

__all__ = ["Reading", "bytes_per_element"]

_TYPE = (ArgumentTypeError,)
_VALUE = (ArgumentValueError,)
_UNCOMPUTABLE = (ExprError,)


def bytes_per_element(dtype: str) -> int:
    """Return the storage of one element, from the type's name alone.

    Parameters
    ----------
    dtype
        For example ``"bfloat16"``; ``bool`` takes a byte.
    """
    digits = "".join(
        letter if letter.isdigit() else " " for letter in dtype.split("_", maxsplit=1)[0]
    ).split()
    return max(int(digits[0]) // 8, 1) if digits else 1


class Reading:
    """One call against one signature.

    Parameters
    ----------
    program
        What is called.
    call
        What it is called with.
    """

    def __init__(self, program: KernelProgram, call: CallSignature) -> None:
        self.program = program
        self.call = call
        self.problems: list[Problem] = []
        self.values: dict[str, int] = {}
        self.tensors: dict[str, TensorFacts] = {}
        self.absent: set[str] = set()
        self.integers: dict[str, int] = {}
        self.by_value: dict[str, ExpectedNumber] = {}
        self.output_shapes: dict[str, tuple[int, ...]] = {}
        self.destinations: dict[str, TensorFacts] = {}
        self.device = -1
        self.is_known = False

    def read(self) -> None:
        """Collect every problem; what builds upon an argument that is wrong in itself is left out.

        `is_known` says afterwards whether each number that a launch may need has a value, right or wrong: of two broken
        rules, one of the arguments and one of a launch, a backend may tell either.
        """
        params = self.program.signature.params
        if len(self.call.args) != len(params):
            self.refuse(_TYPE, ("",), f"{len(self.call.args)} arguments for {len(params)} parameters")
            return
        for param, given in zip(params, self.call.args, strict=True):
            if isinstance(param, TensorParam):
                self._read_tensor(param, given)
            else:
                self._read_value(param, given)
        self._read_device()
        if self.problems:
            return
        self._bind()
        if not self.problems:
            self._check_occurrences()
            self._check_conditions()
            self._check_copies()
            self._read_outputs()
            self.is_known = all(
                len(self.output_shapes[output.name]) == len(output.shape)
                for output in self.program.signature.outputs
            )

    def refuse(
        self,
        errors: tuple[type[TrunnionError], ...],
        arguments: tuple[str, ...] | None,
        reason: str,
        places: tuple[str, ...] = (),
    ) -> None:
        """Record a problem."""
        self.problems.append(Problem(errors, arguments, reason, places=places))

    def value(self, expr: Expr, what: str) -> int | None:
        """Return an expression's value, or None once the reason why it has none is recorded."""
        try:
            return evaluate(expr, self.values, self._fact)
        except UncomputableError as error:
            self.refuse(_UNCOMPUTABLE, None, f"{what}: {error}")
            return None

    def _fact(self, fact: Fact) -> int:
        return fact_value(fact, self.call.attributes, self.call.resources)

    # One argument by itself ------------------------------------------------------------------------------------

    def _read_tensor(self, param: TensorParam, given: object) -> None:
        if given is None and param.nullable:
            self.absent.add(param.name)
            return
        if not isinstance(given, TensorFacts):
            self.refuse(_TYPE, (param.name,), "not a tensor")
            return
        if given.dtype != param.dtype.name:
            self.refuse(_TYPE, (param.name,), f"a tensor of {given.dtype}")
        elif len(given.shape) != len(param.shape):
            self.refuse(_VALUE, (param.name,), f"{len(given.shape)} dimensions")
        elif given.lazy:
            self.refuse(_TYPE, (param.name,), "a lazy tensor")
        else:
            self.tensors[param.name] = given
            self._check_memory(param, given)

    def _check_memory(self, param: TensorParam, given: TensorFacts, places: tuple[str, ...] = ()) -> None:
        blamed, empty = (param.name,), given.is_empty
        if given.short:
            self.refuse(_VALUE + _TYPE, blamed, "a tensor that is longer than its storage", places)
        alignment = param.alignment or bytes_per_element(param.dtype.name)
        if given.address == 0 and not empty:
            self.refuse(_TYPE, blamed, "elements at the null address", places)
        if given.address % alignment:
            self.refuse(_VALUE, blamed, f"address {given.address:#x}, not a multiple of {alignment}", places)
        if param.strides is None and not empty and not _is_row_major(given):
            self.refuse(_VALUE, blamed, f"strides {given.strides} for shape {given.shape}", places)

    def _read_value(self, param: Param, given: object) -> None:
        try:
            match param:
                case ScalarParam(name, kind):
                    number = read_number(kind.name, given)
                    self.by_value[name] = encode_number(kind.name, number)
                    if kind.is_integer or kind.name == "bool":
                        self.integers[name] = int(number.real)
                case PointerParam(name):
                    self.by_value[name] = read_pointer(param, given).to_bytes(8, "little")
                case StructParam(name):
                    self.by_value[name] = read_struct(param, given)
        except WrongArgumentError as wrong:
            self.refuse(wrong.errors, (param.name,), str(wrong))

    # All of them together --------------------------------------------------------------------------------------

    def _read_device(self) -> None:
        found = {name: facts.device for name, facts in self.tensors.items()}
        for name, device in found.items():
            if device is None:
                self.refuse(_VALUE, (name,), "not on such a device")
        there = {name: device for name, device in found.items() if device is not None}
        devices = set(there.values())
        first = next(iter(there.values()), self.call.device)
        self._read_places(there, first)
        if self.call.device is not None:
            devices = devices or {self.call.device}
        elif not devices and self.call.only_device is not None:
            devices = {self.call.only_device}
        if not devices and {tensor.name for tensor in self.program.signature.tensors} <= self.absent:
            self.refuse((DeviceRequirementError, ArgumentError), None, "neither a tensor nor a device")
        self.device = min(devices, default=-1)

    def _read_places(self, there: dict[str, int], first: int | None) -> None:
        """Compare the devices of tensors: the first of them says where all must lie, so it is to blame for nothing."""
        apart: list[tuple[str, ...]] = []
        apart += [(name,) for name, device in there.items() if device != first][:1]
        other = [name for name, device in there.items() if self.call.device not in (None, device)][:1]
        if other:
            apart.append((*other, "device") if first != self.call.device else (*other,))
        if apart:  # then destinations that lie elsewhere may be told as well
            given = zip(self.program.signature.outputs, self.call.out or (), strict=False)
            apart += [
                (output.name,)
                for output, one in given
                if isinstance(one, TensorFacts) and one.device != first
            ]
        for names in apart:
            self.refuse(_VALUE, names, f"tensors on {there}, under device={self.call.device}")

    def _occurrences(self) -> Iterator[tuple[Param, Expr, int, bool]]:
        """Each number that the inputs show: its parameter, what must stand there, what does, and whether it counts."""
        signature = self.program.signature
        there = [tensor for tensor in signature.tensors if tensor.name not in self.absent]
        for tensor in there:
            for expr, got in zip(tensor.shape, self.tensors[tensor.name].shape, strict=True):
                yield tensor, expr, got, True
        for tensor in there:
            facts = self.tensors[tensor.name]
            for expr, got, extent in zip(
                tensor.strides or (), facts.strides, facts.shape, strict=tensor.strides is not None
            ):
                yield tensor, expr, got, extent > 1 and not facts.is_empty
        for scalar in signature.scalars:
            if scalar.symbol is not None:
                yield scalar, scalar.symbol, self.integers[scalar.name], True

    def _bind(self) -> None:
        every = list(self._occurrences())
        # What counts comes first; a number that means nothing is better than none.
        for param, expr, got, _ in (*(place for place in every if place[3]), *every):
            if not isinstance(expr, Symbol) or expr.name in self.values:
                continue
            self.values[expr.name] = got
            if not expr.min <= got <= expr.max or got % expr.multiple_of:
                self.refuse(_VALUE, (param.name,), f"{got} for symbol {expr.name!a}")
        for symbol in self.program.signature.symbols():
            if symbol.name not in self.values:
                self.refuse((UnboundSymbolError,), (symbol.name,), f"nothing gives {symbol.name!a} a value")

    def _check_occurrences(self) -> None:
        for param, expr, got, counts in self._occurrences():
            want = self.value(expr, f"a number of {param.name!a}")
            if want is not None and want != got and counts:
                self.refuse(_VALUE, (param.name,), f"{got} where {want} must stand")

    def _check_conditions(self) -> None:
        for check in self.program.signature.checks:
            if self.value(check.condition, "the author's check") == 0:
                self.refuse(_VALUE, ("",), check.message)

    def _check_copies(self) -> None:
        from trunnion.testing.reference_variables import check_copies  # noqa: PLC0415 - which reads this module

        check_copies(self)

    def _read_outputs(self) -> None:
        outputs = self.program.signature.outputs
        for output in outputs:
            extents = [self.value(extent, f"an extent of {output.name!a}") for extent in output.shape]
            known = tuple(extent for extent in extents if extent is not None)
            if any(extent < 0 for extent in known):
                self.refuse(_VALUE, (output.name,), f"output {output.name!a} of shape {known}")
            self.output_shapes[output.name] = known
            nbytes = math.prod(known) * bytes_per_element(output.dtype.name)
            if self.call.out is None and nbytes >= 1 << 63:
                self.refuse(_VALUE, None, f"output {output.name!a} of {nbytes} bytes")
        if self.call.out is None:
            return
        if len(self.call.out) != len(outputs):
            self.refuse(_TYPE, ("out",), f"{len(self.call.out)} destinations for {len(outputs)} outputs")
            return
        for output, given in zip(outputs, self.call.out, strict=True):
            self._check_destination(output, given)
        self._check_overlaps()

    def _check_destination(self, output: TensorParam, given: object) -> None:
        blamed, places = (output.name,), self._places(output.name)
        if not isinstance(given, TensorFacts):
            self.refuse(_TYPE, blamed, "not a tensor", places)
            return
        if given.dtype != output.dtype.name:
            self.refuse(_TYPE, blamed, f"a tensor of {given.dtype}", places)
        if given.lazy:
            self.refuse(_TYPE, blamed, "a lazy tensor", places)
        if given.shape != self.output_shapes[output.name]:
            self.refuse(_VALUE, blamed, f"shape {given.shape}", places)
        if given.device != self.device:
            self.refuse(_VALUE, blamed, f"a tensor on {given.device}", places)
        self.destinations[output.name] = given
        self._check_memory(output, given, places)

    def _places(self, *outputs: str) -> tuple[str, ...]:
        """Return where a call says the destinations of some outputs: a single one is ``out=`` itself."""
        names = [output.name for output in self.program.signature.outputs]
        return tuple("out" if len(names) == 1 else f"out[{names.index(name)}]" for name in outputs)

    def _check_overlaps(self) -> None:
        """Two outputs cannot share memory; an output may be an input as well, which kernels do in place."""
        for one, other in itertools.combinations(self.destinations.items(), 2):
            if all(_end(facts) > facts.address for _, facts in (one, other)) and (
                one[1].address < _end(other[1]) and other[1].address < _end(one[1])
            ):
                places = self._places(one[0], other[0])
                self.refuse(_VALUE, (one[0], other[0], "out"), "destinations that share memory", places)


def _end(facts: TensorFacts) -> int:
    return facts.address + (0 if facts.is_empty else (facts.last + 1) * bytes_per_element(facts.dtype))


def _is_row_major(facts: TensorFacts) -> bool:
    step = 1
    for extent, stride in zip(reversed(facts.shape), reversed(facts.strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
