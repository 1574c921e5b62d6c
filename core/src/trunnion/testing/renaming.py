"""Give everything in a program another name, and compare sources without their string literals."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from typing import Any

from trunnion.model.dtypes import DType
from trunnion.model.expr import Expr, Symbol
from trunnion.model.facts import Occupancy
from trunnion.model.float_expr import FloatCast, FloatExpr
from trunnion.model.launch import KernelLaunch
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import Check, PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Array, Struct
from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
from trunnion.model.view import TensorView
from trunnion.model.window import AccessPolicyWindow
from trunnion.model.workspace import Workspace

__all__ = ["LANGUAGES", "blank_literals", "renamed"]

LANGUAGES = ("python", "c++", "json")
"""What the text of a launcher may be in."""

_FIELD = {
    KernelProgram: "name",
    KernelLaunch: "kernel",
    TensorParam: "name",
    ScalarParam: "name",
    PointerParam: "name",
    ModuleVariable: "name",
    StructParam: "name",
    Workspace: "name",
    Symbol: "name",
    Check: "message",
    Occupancy: "kernel",
    TiledTensorMap: "label",
    Im2colTensorMap: "label",
}
_NAMESAKES: dict[type, type] = {Occupancy: KernelLaunch}
"""What is called by a name of something else."""

_NAMELESS = (
    Expr,
    FloatCast,
    FloatExpr,
    Signature,
    AccessPolicyWindow,
    MovedAddress,
    TensorView,
    Array,
    CopyToVariable,
)


def renamed(program: KernelProgram) -> KernelProgram:
    """Return an equal program in which every name, message and label is another one."""
    result: KernelProgram = _renamed(program, {})
    return result


def _renamed(value: Any, names: dict[tuple[type, str], str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_renamed(member, names) for member in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, (type, DType)):
        return value
    if isinstance(value, Struct):
        named = (_renamed(one, names) for _, one in value.fields)
        fields = tuple((f"field_{index}", one) for index, one in enumerate(named))
        return dataclasses.replace(value, fields=fields)
    field = _FIELD.get(type(value))
    if field is None and not isinstance(value, _NAMELESS):
        return value
    changed = {
        part.name: _renamed(getattr(value, part.name), names)
        for part in dataclasses.fields(value)
        if part.init
    }
    if field is not None and changed[field]:
        key = (_NAMESAKES.get(type(value), type(value)), changed[field])
        changed[field] = names.setdefault(key, f"other_{len(names)}")
    return dataclasses.replace(value, **changed)


class _Blank(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node


_CPP = re.compile(
    r'R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/', re.DOTALL
)


def _blank_values(value: Any) -> Any:
    """Return JSON's value with each text in it emptied; the names of members stay."""
    if isinstance(value, dict):
        return {name: _blank_values(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_blank_values(member) for member in value]
    return "" if isinstance(value, str) else value


def blank_literals(language: str, text: str) -> str:
    """Return a source with every string literal emptied; comments, which say nothing to a compiler, are dropped.

    Parameters
    ----------
    language
        ``"python"``, ``"c++"`` or ``"json"``.
    text
        The source.

    Raises
    ------
    ValueError
        If the language is none of them, or the text is no JSON.
    SyntaxError
        If the text is no Python.
    """
    if language == "python":
        return ast.dump(_Blank().visit(ast.parse(text)), indent=1)
    if language == "json":
        return json.dumps(_blank_values(json.loads(text)), indent=1)
    if language == "c++":
        return _CPP.sub(lambda match: "" if match[0].startswith("/") else '""', text)
    raise ValueError(f"no rule for the language {language!r}")
