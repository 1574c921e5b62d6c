"""Programs as JSON: a schema with a version, every field named, unknown fields refused.

References are positions: ``{"param": 0}``, ``{"output": 0}``, ``{"workspace": 0}``, ``{"variable": 0}``;
``{"view": ...}``, ``{"at": {...}}`` and ``{"map": {...}}`` hold one; ``{"const": {...}}`` is a value, and
``{"float": {...}}`` a floating-point expression, in the grammar of `trunnion.model.float_text`; ``{"struct": {...}}``
and ``{"array": [...]}`` hold arguments. Other expressions are text in the grammar of `trunnion.model.expr_text`;
symbols are declared once, with their bounds. What few programs have, ``variables`` and ``copies``, is left out of the
others. This module writes; `trunnion.model.serial.reading` reads.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from trunnion.json_text import over_lines
from trunnion.model.code import part_position
from trunnion.model.constant import Constant
from trunnion.model.dtypes import DType
from trunnion.model.enums import DriverEnum
from trunnion.model.expr import Expr
from trunnion.model.expr_text import format_expr
from trunnion.model.float_expr import FloatCast
from trunnion.model.float_text import format_float
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.limits import MOST_MEMBERS, MOST_TEXT_BYTES, expect_at_most
from trunnion.model.memory import Memory
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.precedence import expression_text
from trunnion.model.scalars import scalar_value
from trunnion.model.struct import Array, Struct
from trunnion.model.tensormap import TensorMap, TiledTensorMap
from trunnion.model.view import TensorView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.model.code import DeviceCode
    from trunnion.model.launch import Argument, KernelLaunch
    from trunnion.model.module_variable import ModuleVariable
    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram
    from trunnion.model.window import AccessPolicyWindow
    from trunnion.model.workspace import Workspace

__all__ = ["SCHEMA", "dump_program"]

SCHEMA = "trunnion.program/2"
"""The schema's name and version."""


def dump_program(program: KernelProgram) -> str:
    """Return a program as JSON text, indented, in ASCII, the same for equal programs of equal labels.

    Raises
    ------
    ProgramError
        If the text is longer than what is read again, or has more symbols or workspaces, or an expression in it is.
    """
    signature, workspaces, positions = program.signature, program.workspaces, _Positions(program)
    symbols = signature.symbols()
    for name, found in (("symbols", symbols), ("workspaces", workspaces)):  # of which no field is a list
        expect_at_most(len(found), MOST_MEMBERS, name, name)
    tree = {
        "schema": SCHEMA,
        "name": program.name,
        "symbols": [
            {"name": s.name, "min": s.min, "max": s.max, "multiple_of": s.multiple_of} for s in symbols
        ],
        "params": [_dump_param(param) for param in signature.params],
        "outputs": [_dump_param(output) for output in signature.outputs],
        "checks": [{"condition": _expr_text(c.condition), "message": c.message} for c in signature.checks],
        "workspaces": [_dump_workspace(workspace) for workspace in workspaces],
        "code": [_dump_code(part) for part in program.code],
        "launches": [_dump_launch(launch, positions) for launch in program.launches],
        **_dump_variables(program, positions),
    }
    text = over_lines(tree)
    expect_at_most(len(text), MOST_TEXT_BYTES, "bytes of JSON", "program")
    return text


class _Positions:
    """Where a program's members stand: each is looked up once for every reference to it, of which there are many."""

    def __init__(self, program: KernelProgram) -> None:
        self.part = part_position(program.code)
        self._members: dict[Param | Workspace | Memory | ModuleVariable, dict[str, int]] = {}
        for name, table in (
            ("param", program.signature.params),
            ("output", program.signature.outputs),
            ("workspace", program.workspaces),
            ("variable", program.variables),
        ):
            for index, member in enumerate(table):
                self._members.setdefault(member, {name: index})

    def of(self, member: Param | Workspace | Memory | ModuleVariable) -> dict[str, int]:
        """Return the reference of a member; the program checked that it is one."""
        return dict(self._members[member])


def _expr_text(expr: Expr) -> str:
    """Return the text of an expression, unless nobody could read it again: names of symbols may be long."""
    return expression_text(format_expr(expr))


def _texts(exprs: Iterable[Expr]) -> list[str]:
    return [_expr_text(expr) for expr in exprs]


def _optional(exprs: Iterable[Expr] | None) -> list[str] | None:
    return None if exprs is None else _texts(exprs)


def _number(value: complex | None) -> Any:
    """Return a number as JSON has it: text for what JSON has no number for, a pair for a complex one."""
    if isinstance(value, complex):
        return [_number(value.real), _number(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def _dump_param(param: Param) -> dict[str, Any]:
    match param:
        case ScalarParam():
            symbol = None if param.symbol is None else param.symbol.name
            return {"kind": "scalar", "name": param.name, "dtype": param.dtype.name, "symbol": symbol}
        case PointerParam():
            return {
                "kind": "pointer",
                "name": param.name,
                "nullable": param.nullable,
                "alignment": param.alignment,
            }
        case StructParam():
            return {
                "kind": "struct",
                "name": param.name,
                "nbytes": param.nbytes,
                "alignment": param.alignment,
            }
    return {
        "kind": "tensor",
        "name": param.name,
        "dtype": param.dtype.name,
        "shape": _texts(param.shape),
        "strides": _optional(param.strides),
        "access": param.access,
        "alignment": param.alignment,
        "nullable": param.nullable,
        "fill": None if param.fill_data is None else _number(scalar_value(param.fill_data, param.dtype)),
    }


def _dump_workspace(workspace: Workspace) -> dict[str, Any]:
    return {
        "name": workspace.name,
        "dtype": workspace.dtype.name,
        "shape": _texts(workspace.shape),
        "alignment": workspace.alignment,
        "zeroed": workspace.zeroed,
    }


def _dump_variables(program: KernelProgram, positions: _Positions) -> dict[str, Any]:
    """Return the fields of a program with module variables; none for one without."""
    if not program.variables:
        return {}
    copies = [
        {
            "variable": positions.of(one.variable)["variable"],
            "tensor": positions.of(one.tensor),
            "before": one.before,
        }
        for one in program.copies
    ]
    variables = [_dump_variable(one, positions) for one in program.variables]
    return {"variables": variables, **({"copies": copies} if copies else {})}


def _dump_variable(variable: ModuleVariable, positions: _Positions) -> dict[str, Any]:
    return {
        "name": variable.name,
        "dtype": variable.dtype.name,
        "shape": list(variable.shape),
        "init": None if variable.init is None else base64.b64encode(variable.init).decode(),
        "code": None if variable.code is None else positions.part(variable.code),
    }


def _dump_code(part: DeviceCode) -> dict[str, Any]:
    source: dict[str, Any] = {"source": part.source}
    if isinstance(part.source, bytes):
        source = {"base64": base64.b64encode(part.source).decode()}
    return {
        "language": part.language,
        **source,
        "name": part.name,
        "includes": [list(pair) for pair in part.includes],
        "options": list(part.options),
        "defines": [list(pair) for pair in part.defines],
        "target": part.target,
    }


def _dump_launch(launch: KernelLaunch, positions: _Positions) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "kernel": launch.kernel,
        "code": None if launch.code is None else positions.part(launch.code),
        "args": [_dump_argument(argument, positions) for argument in launch.args],
        "grid": _texts(launch.grid),
        "block": _texts(launch.block),
        "dynamic_smem_bytes": _expr_text(launch.dynamic_smem_bytes),
        "when": None if launch.when is None else _expr_text(launch.when),
        "window": None if launch.window is None else _dump_window(launch.window, positions),
    }
    for row in LAUNCH_ATTRIBUTES:
        value = getattr(launch, row.field)
        tree[row.field] = _dump_attribute(value)
    return tree


def _dump_attribute(value: object) -> object:
    """Write an attribute; expressions are texts, all extents of a cluster if one is."""
    if isinstance(value, Expr):
        return _expr_text(value)
    if isinstance(value, tuple) and any(isinstance(one, Expr) for one in value):
        return _texts(value)
    return value.word if isinstance(value, DriverEnum) else value


def _dump_argument(  # noqa: PLR0911 - one for each kind
    argument: Argument | Array, positions: _Positions
) -> dict[str, Any]:
    if isinstance(argument, Struct):
        return {"struct": _dump_struct(argument, positions)}
    if isinstance(argument, Array):
        return {"array": [_dump_argument(one, positions) for one in argument.values]}
    if isinstance(argument, TensorMap):
        return {"map": _dump_map(argument, positions)}
    if isinstance(argument, TensorView):
        return {"view": positions.of(argument.memory)}
    if isinstance(argument, MovedAddress):
        return {"at": {"memory": positions.of(argument.memory), "offset": _expr_text(argument.offset)}}
    if isinstance(argument, Constant):
        return {"const": _dump_constant(argument)}
    if isinstance(argument, FloatCast):
        return {"float": {"expr": expression_text(format_float(argument.value)), "dtype": argument.to.name}}
    if isinstance(argument, Expr):
        return {"expr": _expr_text(argument)}
    return positions.of(argument)


def _dump_constant(constant: Constant) -> dict[str, Any]:
    kind = None if constant.dtype is None else constant.dtype.name
    return {"value": _number(constant.held), "dtype": kind}


def _dump_struct(struct: Struct, positions: _Positions) -> dict[str, Any]:
    return {
        "fields": [
            {"name": name, "value": _dump_argument(value, positions)} for name, value in struct.fields
        ],
        "offsets": None if struct.offsets is None else list(struct.offsets),
        "nbytes": struct.nbytes,
        "alignment": struct.alignment,
    }


def _dump_map(tensor_map: TensorMap, positions: _Positions) -> dict[str, Any]:
    """Write every field by its name; a map's class is a field too."""
    tree: dict[str, Any] = {"kind": "tiled" if isinstance(tensor_map, TiledTensorMap) else "im2col"}
    for each in dataclasses.fields(tensor_map):
        tree[each.name] = _dump_value(getattr(tensor_map, each.name), positions)
    return tree


def _dump_window(window: AccessPolicyWindow, positions: _Positions) -> dict[str, Any]:
    return {
        each.name: _dump_value(getattr(window, each.name), positions) for each in dataclasses.fields(window)
    }


def _dump_value(value: object, positions: _Positions) -> Any:
    match value:
        case Memory():
            return positions.of(value)
        case DriverEnum():
            return value.word
        case DType():
            return value.name
        case Expr():
            return _expr_text(value)
        case tuple():
            return [_dump_value(one, positions) for one in value]
    return value
