"""Gradients of operators: by a function of torch's form, or by another program whose names say what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunnion.compiled import CompiledProgram
from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedFeatureError,
    shorten,
)
from trunnion.messages import describe, listed
from trunnion.model.dtypes import Kind
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.operators.cut_out import as_declared
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from trunnion.model.params import Param
    from trunnion.operators.schema import OperatorName, OperatorSchema

__all__ = ["Gradient", "expect_backward", "register_backward"]

_PREFIX = "grad_"


class Gradient(NamedTuple):
    """How an operator's gradient is computed."""

    backward: Any
    """A program, or a function of torch's form."""

    setup_context: Callable[..., None] | None
    """What keeps what such a function needs."""


def expect_backward(schema: OperatorSchema, backward: Any, setup_context: Any, kinds: list[str]) -> Gradient:
    """Return a gradient that fits an operator.

    Parameters
    ----------
    schema
        The operator's.
    backward
        A program, or a function.
    setup_context
        A function, or None.
    kinds
        The kinds of devices that the operator runs on.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If it is neither, or the program takes or gives what the operator does not have, or takes it as something else.
    UnsupportedFeatureError
        If the operator writes into its inputs, of which torch differentiates none, or the gradient's program does.
    """
    if schema.mutated:
        names = listed(param.name for param in schema.mutated)
        hint = f"the program writes into {names}; declare what it writes as an output"
        raise UnsupportedFeatureError(
            "an operator of torch", ["a gradient of what writes into its inputs"], hint
        )
    if not is_a(backward, CompiledProgram) and not callable(backward):
        expected = "a CompiledProgram, or a function (ctx, *gradients)"
        raise ArgumentTypeError("backward", describe(backward), expected)
    if is_a(backward, CompiledProgram):
        if setup_context is not None:
            expected = "None: what a program for backward= takes, its parameters' names say"
            raise ArgumentTypeError("setup_context", describe(setup_context), expected)
        _Names(schema, backward)
        _expect_pure(backward, kinds)
    elif setup_context is not None and not callable(setup_context):
        raise ArgumentTypeError("setup_context", describe(setup_context), "a function (ctx, inputs, output)")
    return Gradient(backward, setup_context)


def _expect_pure(backward: CompiledProgram, kinds: list[str]) -> None:
    if kinds != [backward.kind]:
        expected = f"one for {' and '.join(kinds)}; for several kinds of devices pass a function"
        raise ArgumentValueError("backward", f"a program for {backward.kind}", expected)
    written = [one.name for one in backward.program.signature.tensors if one.access != "read"]
    if written:
        hint = f"the program for backward= writes into {listed(written)}; declare what it writes as an output"
        raise UnsupportedFeatureError(
            "an operator of torch", ["a gradient that writes into its inputs"], hint
        )


def register_backward(name: OperatorName, schema: OperatorSchema, gradient: Gradient, lib: Any) -> None:
    """Register a gradient with torch.

    Parameters
    ----------
    name
        The operator's.
    schema
        Its schema.
    gradient
        What `expect_backward` returned.
    lib
        The `torch.library.Library` with which it goes; None: it stays.
    """
    from torch.library import register_autograd  # noqa: PLC0415 - importing trunnion must not import torch

    backward, setup_context = gradient
    if not is_a(backward, CompiledProgram):
        register_autograd(str(name), backward, setup_context=setup_context, lib=lib)
        return
    from trunnion.operators.registration import torch_op  # noqa: PLC0415 - it reads this module

    beside = name.beside("backward")
    operator = torch_op(backward, str(beside), lib=lib)
    register_autograd(str(beside), _refuse_twice(name), lib=lib)
    program = _ByProgram(name, _Names(schema, backward), operator.default)
    register_autograd(str(name), program.backward, setup_context=program.setup_context, lib=lib)


def _refuse_twice(name: OperatorName) -> Callable[..., NoReturn]:
    """Return the gradient of a gradient that is a program: there is none."""

    def refuse(ctx: Any, *gradients: Any) -> NoReturn:  # noqa: ARG001 - as torch calls it
        hint = "its gradient is a program: differentiate once, or pass a function for backward="
        raise UnsupportedFeatureError(f"the operator {name}", ["double backward"], hint)

    return refuse


class _Names:
    """What a gradient's program takes and gives, by name.

    Parameters
    ----------
    schema
        The operator's.
    backward
        The program.

    Raises
    ------
    ArgumentValueError
        If it takes or gives what the operator does not have, or takes it as something else.
    """

    def __init__(self, schema: OperatorSchema, backward: CompiledProgram) -> None:
        signature, self.program = schema.signature, backward.program
        self.schema = schema
        self.inputs = {param.name: place for place, param in enumerate(signature.params)}
        self.outputs = {output.name: place for place, output in enumerate(signature.outputs)}
        tensors = {param.name for param in signature.tensors}
        gradients = {f"{_PREFIX}{output}" for output in self.outputs}
        known = {**self.inputs, **self.outputs, **dict.fromkeys(gradients)}
        for param in self.program.signature.params:
            if param.name not in known:
                raise _misnamed(f"a parameter {shorten(param.name)}", f"one of {listed(known)}")
        self.given: dict[int, int] = {}
        for place, output in enumerate(self.program.signature.outputs):
            one = output.name.removeprefix(_PREFIX)
            if one == output.name or one not in tensors:
                wanted = listed(f"{_PREFIX}{tensor}" for tensor in sorted(tensors))
                raise _misnamed(f"an output {shorten(output.name)}", f"of {wanted} each at most once")
            self.given[self.inputs[one]] = place
        self._expect_kinds()
        self.taken = {self.gradient_of(param.name) for param in self.program.signature.params}
        if self.taken <= {None}:
            raise _misnamed(
                "no gradient among its parameters", f"one of {listed(sorted(gradients))} at least"
            )

    def _expect_kinds(self) -> None:
        """Refuse a parameter that is something else than what the operator has by its name, or the gradient of that."""
        signature = self.schema.signature
        named: dict[str, Param] = {one.name: one for one in (*signature.params, *signature.outputs)}
        for param in self.program.signature.params:
            place = self.gradient_of(param.name)
            got, wanted = (
                _kind(param),
                _kind(named[param.name] if place is None else signature.outputs[place]),
            )
            if got != wanted:
                raise _misnamed(
                    f"{got} for a parameter {shorten(param.name)}", f"{wanted}, as the operator has it"
                )

    def gradient_of(self, name: str) -> int | None:
        """Return the place of the output whose gradient a parameter is; None if it is none."""
        if name in self.inputs or name in self.outputs:
            return None
        return self.outputs.get(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None


def _kind(param: Param) -> str:
    """Return what an argument is; of numbers, as far as torch tells them apart."""
    match param:
        case TensorParam():
            return f"a tensor of {param.dtype}"
        case ScalarParam():
            return _NUMBERS[param.dtype.kind]
        case PointerParam():
            return "an address"
        case StructParam():
            return f"a struct of {param.nbytes} bytes"


_NUMBERS: Final = {
    Kind.BOOL: "a bool",
    Kind.INT: "an integer",
    Kind.UINT: "an integer",
    Kind.FLOAT: "a float",
    Kind.COMPLEX: "a complex number",
}


def _misnamed(got: str, expected: str) -> ArgumentValueError:
    return ArgumentValueError("backward", f"a program with {got}", expected)


class _ByProgram:
    """The functions that torch calls for a gradient that is a program.

    Parameters
    ----------
    name
        The name of the operator whose gradient it is.
    names
        What the program takes and gives.
    operator
        The program as an operator.
    """

    def __init__(self, name: OperatorName, names: _Names, operator: Any) -> None:
        self._name, self._names, self._operator = name, names, operator
        self._params = names.program.signature.params

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what the program takes of inputs and outputs; say of which outputs it takes no gradient."""
        outputs = output if isinstance(output, tuple) else (output,)
        names = self._names
        kept: list[Any] = []
        ctx.numbers = {}
        ctx.there = [value is not None for value in inputs]
        for param in self._params:
            if param.name in names.inputs:
                value = inputs[names.inputs[param.name]]
            elif param.name in names.outputs:
                value = outputs[names.outputs[param.name]]
            else:
                continue
            if isinstance(param, TensorParam):
                kept.append(value)
            else:
                ctx.numbers[param.name] = value
        ctx.save_for_backward(*kept)
        # Else torch would drop what comes back to them, without a word.
        ctx.mark_non_differentiable(*(one for place, one in enumerate(outputs) if place not in names.taken))

    def backward(self, ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        """Call the program; what it gives no gradient of has none, nor has what was left out."""
        saved = iter(ctx.saved_tensors)
        given = [self._argument(ctx, param, gradients, saved) for param in self._params]
        try:
            made = self._operator(*given)
        except ArgumentError as error:
            program = shorten(self._names.program.name)
            error.add_note(f"in the gradient of the operator {self._name}, by the program {program}")
            raise
        results = made if isinstance(made, tuple) else (made,)
        places = self._names.given
        return tuple(
            results[places[place]] if there and place in places else None
            for place, there in enumerate(ctx.there)
        )

    def _argument(self, ctx: Any, param: Param, gradients: tuple[Any, ...], saved: Any) -> Any:
        names = self._names
        if param.name in ctx.numbers:
            return ctx.numbers[param.name]
        known = param.name in names.inputs or param.name in names.outputs
        value = next(saved) if known else gradients[names.gradient_of(param.name) or 0]
        return as_declared(param, value)
