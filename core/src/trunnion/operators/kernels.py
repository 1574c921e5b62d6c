"""What torch's dispatcher calls: a program behind an operator's arguments, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentValueError, UnsupportedFeatureError, shorten
from trunnion.model.params import StructParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trunnion.compiled import CompiledProgram
    from trunnion.operators.schema import OperatorSchema

__all__ = ["as_bytes", "count_writes_of", "expect_no_gradient", "kernel", "out_kernel"]


def kernel(program: CompiledProgram, schema: OperatorSchema) -> Callable[..., Any]:
    """Return what the overload that allocates calls.

    Parameters
    ----------
    program
        The program.
    schema
        How the operator is called.
    """
    read, writes, modes = _reader(schema), _writes_of(schema), _modes()

    def call(*args: Any) -> Any:
        if modes._current_level >= 0:  # noqa: SLF001 - no public name
            raise _forward_mode(program)
        return program(*args)

    def call_and_count(*args: Any) -> Any:
        if modes._current_level >= 0:  # noqa: SLF001 - no public name
            raise _forward_mode(program)
        if writes:
            expect_no_gradient(schema, args)
        made = program(*args) if read is None else program(*read(args))
        _count_writes([args[place] for place in writes if place < len(args)])
        return made

    return call if read is None and not writes else call_and_count


def out_kernel(program: CompiledProgram, schema: OperatorSchema) -> Callable[..., None]:
    """Return what the overload ``out`` calls; parameters are those of `kernel`."""
    read, writes, modes, names = _reader(schema), _writes_of(schema), _modes(), schema.out_names
    single = len(names) == 1  # a list would go a longer way

    def call(*args: Any, **out: Any) -> None:
        if modes._current_level >= 0:  # noqa: SLF001 - no public name
            raise _forward_mode(program)
        given = [out[name] for name in names]
        expect_no_gradient(schema, args, given)
        program(*(args if read is None else read(args)), out=given[0] if single else tuple(given))
        _count_writes([*given, *(args[place] for place in writes if place < len(args))])

    return call


def expect_no_gradient(schema: OperatorSchema, args: tuple[Any, ...], out: Iterable[Any] = ()) -> None:
    """Accept the tensors of a call that writes: there is no gradient of it, so none may be asked for.

    Parameters
    ----------
    schema
        How the operator is called.
    args
        The arguments.
    out
        What else it writes into.

    Raises
    ------
    UnsupportedFeatureError
        If one requires a gradient, and gradients are recorded.
    """
    from torch import is_grad_enabled  # noqa: PLC0415 - importing trunnion must not import torch

    if not is_grad_enabled():
        return
    tensors = [
        value
        for param, value in zip(schema.signature.params, args, strict=False)
        if isinstance(param, TensorParam)
    ]
    if any(tensor is not None and tensor.requires_grad for tensor in (*tensors, *out)):
        hint = "call it under torch.no_grad(), or with tensors that are detached"
        raise UnsupportedFeatureError(
            "an operator of torch", ["a gradient of what it is given to write into"], hint
        )


def count_writes_of(torch: Any, operator: Any, schema: OperatorSchema) -> None:
    """Have the writes counted, and gradients of them refused, of an overload whose kernel is no Python.

    Parameters
    ----------
    torch
        The module.
    operator
        The overload.
    schema
        How it is called.
    """
    writes, names, own = _writes_of(schema), schema.out_names, torch._C  # noqa: SLF001 - as torch's own operators do
    namespace, _, name = operator.name().partition("::")
    library = torch.library.Library(namespace, "FRAGMENT")

    def call(keyset: Any, /, *args: Any, **out: Any) -> Any:
        expect_no_gradient(schema, args, out.values())
        below = keyset & own._after_ADInplaceOrView_keyset  # noqa: SLF001 - as above
        with own._AutoDispatchBelowADInplaceOrView():  # noqa: SLF001 - as above
            made = operator.redispatch(below, *args, **out)
        written = [out[name] for name in names] if out else []
        _count_writes([*written, *(args[place] for place in writes if place < len(args))])
        return made

    vars(call)["library"] = library  # which goes with this function
    library.impl(name, call, "ADInplaceOrView", with_keyset=True)


def _writes_of(schema: OperatorSchema) -> tuple[int, ...]:
    """Return the places of the arguments that a call writes into."""
    params = enumerate(schema.signature.params)
    return tuple(place for place, one in params if isinstance(one, TensorParam) and one.access != "read")


def _count_writes(tensors: Sequence[Any]) -> None:
    """Tell autograd that tensors were written into: what it saved of them, it then finds changed.

    A tensor of inference mode keeps no count.
    """
    from torch.autograd.graph import increment_version  # noqa: PLC0415 - importing trunnion must not import torch

    for tensor in tensors:
        if tensor is not None and not tensor.is_inference():
            increment_version(tensor)


def _modes() -> Any:
    import torch.autograd.forward_ad  # noqa: PLC0415 - importing trunnion must not import torch

    return torch.autograd.forward_ad


def _forward_mode(program: CompiledProgram) -> UnsupportedFeatureError:
    """Return the refusal of forward-mode differentiation: torch would take every tangent for zero, and say nothing."""
    hint = "call it outside of torch.func.jvp and dual_level, whether or not its arguments have tangents"
    name = f"the operator of {shorten(program.program.name)}"
    return UnsupportedFeatureError(name, ["forward-mode differentiation"], hint)


def _reader(schema: OperatorSchema) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Return what makes a program's arguments of an operator's; None: they are what the program takes."""
    params = schema.signature.params
    structs = tuple(place for place, param in enumerate(params) if isinstance(param, StructParam))
    if not structs and not schema.defaults:
        return None

    def read(args: tuple[Any, ...]) -> tuple[Any, ...]:
        given = [*schema.completed(args)]
        for place in structs:
            given[place] = as_bytes(params[place].name, given[place])
        return tuple(given)

    return read


def as_bytes(name: str, numbers: Sequence[int]) -> bytes:
    """Return the bytes of a struct, of which an operator takes the list.

    Parameters
    ----------
    name
        The parameter's name.
    numbers
        The list.

    Raises
    ------
    ArgumentValueError
        If one is no byte.
    """
    try:
        return bytes(numbers)
    except ValueError as error:
        raise ArgumentValueError(
            name, "a number that is no byte", "bytes, as a list: 0 to 255 each"
        ) from error
