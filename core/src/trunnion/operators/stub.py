"""`torch_stub`: what an operator takes and returns, as a stub that type checkers and editors read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect
from trunnion.codegen.writer import SourceWriter
from trunnion.compiled import CompiledProgram
from trunnion.model.params import TensorParam
from trunnion.operators.schema import OperatorName, OperatorSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.model.program import KernelProgram

__all__ = ["torch_stub"]

_TYPES: Final = {
    "SymInt": "int | SymInt",
    "float": "float",
    "bool": "bool",
    "complex": "complex",
    "int": "int",
    "int?": "int | None",
    "int[]": "Sequence[int]",
}


def torch_stub(program: CompiledProgram, name: str, *, defaults: Mapping[str, Any] | None = None) -> str:
    """Return the text of a ``.pyi`` file for an operator: of the module that holds what `torch_op` returned.

    Parameters
    ----------
    program
        The program.
    name
        What the operator is called, such as ``"mine::scale"``.
    defaults
        As `torch_op` takes them.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is none of these.
    """
    expect(program, CompiledProgram, "program", "a CompiledProgram, as trunnion.compile returns it")
    named, schema = OperatorName.of(name), OperatorSchema.of(program.program.signature, defaults)
    given = ", ".join(["self", *_arguments(schema)])
    outputs = len(schema.signature.outputs)
    result = ("None", "Tensor")[outputs] if outputs <= 1 else f"tuple[{', '.join(['Tensor'] * outputs)}]"
    out = SourceWriter()
    out.lines(f'"""The operator {named}."""', "", "from collections.abc import Sequence", "")
    out.lines("from torch import SymInt, Tensor", "")
    kind = f"_{named.name}"
    with out.block(f"class {kind}:"):
        for line in _described(schema, program.program):
            out.line(line)
        for method in ("__call__", "default"):
            out.line(f"def {method}({given}) -> {result}: ...")
        if outputs:
            into = ", ".join(f"{one}: Tensor" for one in schema.out_names)
            out.line(f"def out({given}, *, {into}) -> None: ...")
    out.lines("", f"{named.name}: {kind}")
    return out.text()


def _arguments(schema: OperatorSchema) -> Iterator[str]:
    types = schema.argument_types()
    for param, name, kind in zip(schema.signature.params, schema.names, types, strict=True):
        tensor = "Tensor | None" if getattr(param, "nullable", False) else "Tensor"
        written = tensor if isinstance(param, TensorParam) else _TYPES[kind]
        yield f"{name}: {written}{' = ...' if param.name in schema.defaults else ''}"


def _described(schema: OperatorSchema, program: KernelProgram) -> Iterator[str]:
    """Yield a docstring: the schema, in which no name of a user's ends it."""
    yield f'"""{schema.functional()}"""'
    if schema.mutated:
        places = [schema.names[program.signature.params.index(one)] for one in schema.mutated]
        yield f"# It writes into {', '.join(places)}."
