"""Programs as JSON: a schema with a version, every field named, unknown fields refused.

References are positions: ``{"param": 0}``, ``{"output": 0}``, ``{"map": {...}}``. Expressions are text in the grammar
of `trunnion.model.expr_text`; symbols are declared once, with their bounds.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from trunnion.errors import ExprError, ProgramError, shorten
from trunnion.model.expr import Expr, Symbol
from trunnion.model.expr_text import format_expr, parse_expr
from trunnion.model.fields import place
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Check, Param, ScalarParam, Signature, TensorParam
from trunnion.model.program import DeviceCode, KernelProgram
from trunnion.model.record import Record
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.model.launch import Argument

__all__ = ["SCHEMA", "dump_program", "load_program"]

SCHEMA = "trunnion.program/1"
"""The schema's name and version."""


# Writing ------------------------------------------------------------------------------------------------------------


def dump_program(program: KernelProgram) -> str:
    """Return a program as JSON text, indented, in ASCII, the same for equal programs."""
    signature = program.signature
    tree = {
        "schema": SCHEMA,
        "name": program.name,
        "symbols": [
            {"name": s.name, "min": s.min, "max": s.max, "multiple_of": s.multiple_of}
            for s in signature.symbols()
        ],
        "params": [_dump_param(param) for param in signature.params],
        "outputs": [_dump_param(output) for output in signature.outputs],
        "checks": [{"condition": format_expr(c.condition), "message": c.message} for c in signature.checks],
        "code": [_dump_code(part) for part in program.code],
        "launches": [_dump_launch(launch, signature) for launch in program.launches],
    }
    return json.dumps(tree, indent=1)


def _texts(exprs: Iterable[Expr]) -> list[str]:
    return [format_expr(expr) for expr in exprs]


def _optional(exprs: Iterable[Expr] | None) -> list[str] | None:
    return None if exprs is None else _texts(exprs)


def _dump_param(param: Param) -> dict[str, Any]:
    if isinstance(param, ScalarParam):
        symbol = None if param.symbol is None else param.symbol.name
        return {"kind": "scalar", "name": param.name, "dtype": param.dtype.name, "symbol": symbol}
    return {
        "kind": "tensor",
        "name": param.name,
        "dtype": param.dtype.name,
        "shape": _texts(param.shape),
        "strides": _optional(param.strides),
        "access": param.access,
        "alignment": param.alignment,
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


def _dump_launch(launch: KernelLaunch, signature: Signature) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "args": [_dump_argument(argument, signature) for argument in launch.args],
        "grid": _texts(launch.grid),
        "block": _texts(launch.block),
        "dynamic_smem_bytes": format_expr(launch.dynamic_smem_bytes),
        "cluster": _optional(launch.cluster),
        "cooperative": launch.cooperative,
        "pdl": launch.pdl,
    }


def _reference(param: Param, signature: Signature) -> dict[str, int]:
    if param in signature.params:
        return {"param": signature.params.index(param)}
    return {"output": list[Param](signature.outputs).index(param)}


def _dump_argument(argument: Argument, signature: Signature) -> dict[str, Any]:
    match argument:
        case TensorParam() | ScalarParam():
            return _reference(argument, signature)
        case TiledTensorMap():
            return {"map": _dump_map(argument, signature)}
    return {"expr": format_expr(argument)}


def _dump_map(tensor_map: TiledTensorMap, signature: Signature) -> dict[str, Any]:
    steps = tensor_map.element_strides
    return {
        "kind": "tiled",
        "tensor": _reference(tensor_map.tensor, signature),
        "box_dim": list(tensor_map.box_dim),
        "element_strides": None if steps is None else list(steps),
        "interleave": tensor_map.interleave.word,
        "swizzle": tensor_map.swizzle.word,
        "l2_promotion": tensor_map.l2_promotion.word,
        "oob_fill": tensor_map.oob_fill.word,
        "dtype": None if tensor_map.dtype is None else tensor_map.dtype.name,
        "element_offset": format_expr(tensor_map.element_offset),
        "shape": _optional(tensor_map.shape),
        "strides": _optional(tensor_map.strides),
        "label": tensor_map.label,
    }


# Reading ------------------------------------------------------------------------------------------------------------


def load_program(text: str) -> KernelProgram:
    """Read what `dump_program` wrote.

    Raises
    ------
    ProgramError
        If the text is not such a program; the wrong field is named.
    """
    try:
        tree = json.loads(text, object_pairs_hook=_unique)
    except ProgramError:
        raise
    except (ValueError, RecursionError, TypeError) as error:
        raise ProgramError(f"is not JSON: {error}", field="program") from error
    root = Record(tree, "program")
    schema = root.text("schema")
    if schema != SCHEMA:
        raise ProgramError(f"got schema {shorten(schema)}, expected {SCHEMA!r}", field="schema")
    return _Loader(root).program()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its fields; JSON itself would keep the last of two that share a name, and drop the other."""
    tree = dict(pairs)
    if len(tree) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProgramError(f"got the field {shorten(twice)} twice", field="program")
    return tree


class _Loader:
    """One program while it is read."""

    def __init__(self, root: Record) -> None:
        self.root = root
        self.symbols: dict[str, Symbol] = {}
        for record in root.records("symbols"):
            name, bounds = record.text("name"), {n: record.integer(n) for n in ("min", "max", "multiple_of")}
            with place(record.path):
                symbol = Symbol(name, **bounds)
            if self.symbols.setdefault(symbol.name, symbol) is not symbol:
                raise ProgramError(f"symbol {shorten(symbol.name)} is declared twice", field=record.path)
            record.done()
        self.params: list[Param] = []
        self.outputs: list[TensorParam] = []

    def program(self) -> KernelProgram:
        root = self.root
        self.params = [self._param(record) for record in root.records("params")]
        for record in root.records("outputs"):
            output = self._param(record)
            if not isinstance(output, TensorParam):
                raise ProgramError("an output is a tensor", field=record.path)
            self.outputs.append(output)
        checks = [self._check(record) for record in root.records("checks")]
        signature = Signature(tuple(self.params), tuple(self.outputs), tuple(checks))
        code = tuple(_load_code(record) for record in root.records("code"))
        launches = tuple(self._launch(record) for record in root.records("launches"))
        name = root.text("name")
        root.done()
        return KernelProgram(name, signature, code, launches)

    def _symbol(self, name: str) -> Symbol:
        found = self.symbols.get(name)
        if found is None:
            raise ExprError(f"symbol {shorten(name)} is not declared")
        return found

    def _expr(self, record: Record, name: str) -> Expr:
        with place(f"{record.path}.{name}"):
            return parse_expr(record.text(name), self._symbol)

    def _exprs(self, record: Record, name: str) -> tuple[Expr, ...]:
        exprs = []
        for index, text in enumerate(record.texts(name)):
            with place(f"{record.path}.{name}[{index}]"):
                exprs.append(parse_expr(text, self._symbol))
        return tuple(exprs)

    def _optional(self, record: Record, name: str) -> tuple[Expr, ...] | None:
        return None if record.null(name) else self._exprs(record, name)

    def _param(self, record: Record) -> Param:
        kind, name, dtype = record.text("kind"), record.text("name"), record.text("dtype")
        if kind == "scalar":
            param = self._scalar(record, name, dtype)
        elif kind == "tensor":
            param = self._tensor(record, name, dtype)
        else:
            raise ProgramError(f"got kind {shorten(kind)}, expected 'tensor' or 'scalar'", field=record.path)
        record.done()
        return param

    def _scalar(self, record: Record, name: str, dtype: str) -> Param:
        symbol = None
        if not record.null("symbol"):
            with place(f"{record.path}.symbol"):
                symbol = self._symbol(record.text("symbol"))
        with place(record.path):
            return ScalarParam(name, dtype, symbol)  # type: ignore[arg-type]  # the constructor reads spellings too

    def _tensor(self, record: Record, name: str, dtype: str) -> Param:
        shape, strides = self._exprs(record, "shape"), self._optional(record, "strides")
        access = record.text("access")
        alignment = None if record.null("alignment") else record.integer("alignment")
        with place(record.path):
            return TensorParam(name, dtype, shape, strides, access, alignment)  # type: ignore[arg-type]  # spellings too

    def _check(self, record: Record) -> Check:
        condition, message = self._expr(record, "condition"), record.text("message")
        record.done()
        with place(record.path):
            return Check(condition, message)

    def _launch(self, record: Record) -> KernelLaunch:
        kernel = record.text("kernel")
        args = tuple(self._argument(argument) for argument in record.records("args"))
        grid, block = self._exprs(record, "grid"), self._exprs(record, "block")
        smem, cluster = self._expr(record, "dynamic_smem_bytes"), self._optional(record, "cluster")
        flags = {name: record.boolean(name) for name in ("cooperative", "pdl")}
        record.done()
        with place(record.path):
            return KernelLaunch(kernel, args, grid, block, smem, cluster, **flags)  # type: ignore[arg-type]  # it counts

    def _argument(self, record: Record) -> Argument:
        argument: Argument
        if record.has("map"):
            argument = self._map(record.record("map"))
        elif record.has("expr"):
            argument = self._expr(record, "expr")
        else:
            return self._reference(record)
        record.done()
        return argument

    def _reference(self, record: Record) -> Param:
        name = "param" if record.has("param") else "output"
        members: list[Param] = self.params if name == "param" else [*self.outputs]
        index = record.integer(name)
        record.done()
        if not 0 <= index < len(members):
            raise ProgramError(f"got {name} {index}, expected 0 to {len(members) - 1}", field=record.path)
        return members[index]

    def _map(self, record: Record) -> TiledTensorMap:
        kind = record.text("kind")
        tensor = self._reference(record.record("tensor"))
        if kind != "tiled" or not isinstance(tensor, TensorParam):
            raise ProgramError(f"got kind {shorten(kind)}, expected 'tiled' over a tensor", field=record.path)
        fields: dict[str, Any] = {
            "box_dim": record.integers("box_dim"),
            "element_strides": None if record.null("element_strides") else record.integers("element_strides"),
            "dtype": None if record.null("dtype") else record.text("dtype"),
            "element_offset": self._expr(record, "element_offset"),
            "shape": self._optional(record, "shape"),
            "strides": self._optional(record, "strides"),
        }
        for name in ("interleave", "swizzle", "l2_promotion", "oob_fill", "label"):
            fields[name] = record.text(name)
        record.done()
        with place(record.path):
            return TiledTensorMap(tensor, **fields)


def _load_code(record: Record) -> DeviceCode:
    fields: dict[str, Any] = {name: record.text(name) for name in ("language", "name", "target")}
    fields |= {name: record.pairs(name) for name in ("includes", "defines")}
    fields["options"] = record.texts("options")
    if record.has("base64"):
        encoded = record.text("base64")
        try:
            fields["source"] = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise ProgramError(f"is not base64: {error}", field=f"{record.path}.base64") from error
    else:
        fields["source"] = record.text("source")
    record.done()
    try:
        return DeviceCode(**fields)
    except ProgramError as error:
        raise ProgramError(error.message, field=record.path + error.field.removeprefix("code")) from None
