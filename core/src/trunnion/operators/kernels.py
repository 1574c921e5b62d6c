"""What torch's dispatcher calls: a program behind an operator's arguments, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentValueError
from trunnion.model.params import StructParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.compiled import CompiledProgram
    from trunnion.operators.schema import OperatorSchema

__all__ = ["count_writes", "kernel", "out_kernel", "writes_of"]


def kernel(program: CompiledProgram, schema: OperatorSchema) -> Callable[..., Any]:
    """Return what the overload that allocates calls; the program itself if nothing has to be done beside.

    Parameters
    ----------
    program
        The program.
    schema
        How the operator is called.
    """
    read, writes = _reader(schema), writes_of(schema)
    if read is None and not writes:
        return program

    def call(*args: Any) -> Any:
        made = program(*args) if read is None else program(*read(args))
        count_writes([args[place] for place in writes if place < len(args)])
        return made

    return call


def out_kernel(program: CompiledProgram, schema: OperatorSchema) -> Callable[..., None]:
    """Return what the overload ``out`` calls; parameters are those of `kernel`."""
    read, writes, names = _reader(schema), writes_of(schema), schema.out_names

    def call(*args: Any, **out: Any) -> None:
        given = [out[name] for name in names]
        program(*(args if read is None else read(args)), out=given)
        count_writes([*given, *(args[place] for place in writes if place < len(args))])

    return call


def writes_of(schema: OperatorSchema) -> tuple[int, ...]:
    """Return the places of the arguments that a call writes into."""
    params = enumerate(schema.signature.params)
    return tuple(place for place, one in params if isinstance(one, TensorParam) and one.access != "read")


def count_writes(tensors: Sequence[Any]) -> None:
    """Tell autograd that tensors were written into: what it saved of them, it then finds changed.

    A tensor of inference mode keeps no count.
    """
    from torch.autograd.graph import increment_version  # noqa: PLC0415 - importing trunnion must not import torch

    for tensor in tensors:
        if tensor is not None and not tensor.is_inference():
            increment_version(tensor)


def _reader(schema: OperatorSchema) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Return what makes a program's arguments of an operator's; None: they are what the program takes."""
    params = schema.signature.params
    structs = tuple(place for place, param in enumerate(params) if isinstance(param, StructParam))
    if not structs and not schema.defaults:
        return None

    def read(args: tuple[Any, ...]) -> tuple[Any, ...]:
        given = [*schema.completed(args)]
        for place in structs:
            given[place] = _bytes(params[place].name, given[place])
        return tuple(given)

    return read


def _bytes(name: str, numbers: Sequence[int]) -> bytes:
    try:
        return bytes(numbers)
    except ValueError as error:
        raise ArgumentValueError(name, "a number that is no byte", "bytes, as a list: 0 to 255 each") from error
