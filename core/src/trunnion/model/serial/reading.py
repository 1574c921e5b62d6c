"""Read programs from JSON: what `trunnion.model.serial` writes, and nothing that differs from it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from trunnion.errors import ExprError, ProgramError, shorten
from trunnion.messages import describe
from trunnion.model.code import DeviceCode
from trunnion.model.constant import Constant
from trunnion.model.expr import Expr, Symbol
from trunnion.model.expr_text import parse_expr
from trunnion.model.fields import place
from trunnion.model.float_text import parse_float
from trunnion.model.launch import KernelLaunch
from trunnion.model.launch_attributes import COMPUTED_FIELDS, LAUNCH_ATTRIBUTES
from trunnion.model.limits import MOST_TEXT_BYTES, expect_at_most
from trunnion.model.memory import Memory
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import Check, Param, PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.record import Record
from trunnion.model.serial import SCHEMA
from trunnion.model.struct import MAX_STRUCT_DEPTH, Array, Struct
from trunnion.model.tensormap import Im2colTensorMap, TensorMap, TiledTensorMap
from trunnion.model.view import TensorView
from trunnion.model.window import AccessPolicyWindow
from trunnion.model.workspace import Workspace, by_name
from trunnion.plain import text as plain_text

if TYPE_CHECKING:
    from trunnion.model.float_expr import FloatCast
    from trunnion.model.launch import Argument

__all__ = ["load_program"]

_AXES = 3


def load_program(text: str) -> KernelProgram:
    """Read what `trunnion.model.serial.dump_program` wrote.

    Raises
    ------
    ProgramError
        If the text is not such a program; the wrong field is named.
    """
    plain = plain_text(text)
    if plain is None:
        raise ProgramError(f"got {describe(text)}, expected the text of a program", field="program")
    expect_at_most(_bytes(plain), MOST_TEXT_BYTES, "bytes of JSON", "program")
    try:
        tree = json.loads(plain, object_pairs_hook=_unique)
    except ProgramError:
        raise
    except (ValueError, RecursionError, TypeError) as error:
        raise ProgramError(f"is not JSON: {error}", field="program") from error
    root = Record(tree, "program", whole=True)
    schema = root.text("schema")
    if schema != SCHEMA:
        raise ProgramError(f"got schema {shorten(schema)}, expected {shorten(SCHEMA)}", field="schema")
    return _Loader(root).program()


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its fields; JSON itself would keep the last of two that share a name, and drop the other."""
    tree = dict(pairs)
    if len(tree) < len(pairs):
        last = {name: index for index, (name, _) in enumerate(pairs)}
        twice = next(name for index, (name, _) in enumerate(pairs) if last[name] != index)
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
        self.workspaces: list[Workspace] = []
        self.code: list[DeviceCode] = []
        self.variables: list[ModuleVariable] = []

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
        self.workspaces = [self._workspace(record) for record in root.records("workspaces")]
        by_name(self.workspaces, "workspaces")
        self.code = [_load_code(record) for record in root.records("code")]
        self.variables = [self._variable(record) for record in _some(root, "variables")]
        launches = tuple(self._launch(record) for record in root.records("launches"))
        copies = tuple(self._copy(record) for record in _some(root, "copies"))
        name = root.text("name")
        root.done()
        program = KernelProgram(name, signature, tuple(self.code), launches, tuple(self.variables), copies)
        if list(program.workspaces) != self.workspaces:
            raise ProgramError(
                "expected just those that launches are given, in the order of their first use",
                field="workspaces",
            )
        idle = self.symbols.keys() - {symbol.name for symbol in signature.symbols()}
        if idle:
            raise ProgramError(f"{shorten(min(idle))} stands nowhere in the signature", field="symbols")
        return program

    def _symbol(self, name: str) -> Symbol:
        found = self.symbols.get(name)
        if found is None:
            raise ExprError(f"symbol {shorten(name)} is not declared")
        return found

    def _expr(self, record: Record, name: str) -> Expr:
        with place(record.field(name)):
            return parse_expr(record.text(name), self._symbol)

    def _exprs(self, record: Record, name: str) -> tuple[Expr, ...]:
        exprs = []
        for index, text in enumerate(record.texts(name)):
            with place(f"{record.field(name)}[{index}]"):
                exprs.append(parse_expr(text, self._symbol))
        return tuple(exprs)

    def _optional(self, record: Record, name: str) -> tuple[Expr, ...] | None:
        return None if record.null(name) else self._exprs(record, name)

    def _one(self, record: Record, name: str) -> Expr | None:
        return None if record.null(name) else self._expr(record, name)

    def _param(self, record: Record) -> Param:
        kind, name = record.text("kind"), record.text("name")
        readers = {
            "tensor": self._tensor,
            "scalar": self._scalar,
            "pointer": self._pointer,
            "struct": self._struct,
        }
        if kind not in readers:
            raise ProgramError(
                f"got kind {shorten(kind)}, expected one of {', '.join(readers)}", field=record.path
            )
        param = readers[kind](record, name)
        record.done()
        return param

    def _scalar(self, record: Record, name: str) -> Param:
        dtype, symbol = record.text("dtype"), None
        if not record.null("symbol"):
            with place(f"{record.path}.symbol"):
                symbol = self._symbol(record.text("symbol"))
        with place(record.path):
            return ScalarParam(name, dtype, symbol)  # type: ignore[arg-type]  # the constructor reads spellings too

    def _pointer(self, record: Record, name: str) -> Param:
        nullable, alignment = record.boolean("nullable"), record.integer("alignment")
        with place(record.path):
            return PointerParam(name, nullable, alignment)

    def _struct(self, record: Record, name: str) -> Param:
        nbytes, alignment = record.integer("nbytes"), record.integer("alignment")
        with place(record.path):
            return StructParam(name, nbytes, alignment)

    def _tensor(self, record: Record, name: str) -> Param:
        fields: dict[str, Any] = {
            "dtype": record.text("dtype"),
            "shape": self._exprs(record, "shape"),
            "strides": self._optional(record, "strides"),
            "access": record.text("access"),
            "alignment": None if record.null("alignment") else record.integer("alignment"),
            "nullable": record.boolean("nullable"),
            "fill": record.number("fill"),
        }
        with place(record.path):
            return TensorParam(name, **fields)

    def _workspace(self, record: Record) -> Workspace:
        fields: dict[str, Any] = {
            "name": record.text("name"),
            "dtype": record.text("dtype"),
            "shape": self._exprs(record, "shape"),
            "alignment": record.integer("alignment"),
            "zeroed": record.boolean("zeroed"),
        }
        record.done()
        with place(record.path):
            return Workspace(**fields)

    def _variable(self, record: Record) -> ModuleVariable:
        fields: dict[str, Any] = {
            "name": record.text("name"),
            "dtype": record.text("dtype"),
            "shape": record.integers("shape"),
            "init": None if record.null("init") else _decoded(record, "init"),
            "code": None if record.null("code") else _at(self.code, record, "code"),
        }
        record.done()
        with place(record.path):
            return ModuleVariable(**fields)

    def _copy(self, record: Record) -> CopyToVariable:
        variable, before = _at(self.variables, record, "variable"), record.integer("before")
        tensor = self._memory(record, "tensor")
        record.done()
        with place(record.path):
            return CopyToVariable(variable, tensor, before)  # type: ignore[arg-type]  # which checks it

    def _check(self, record: Record) -> Check:
        condition, message = self._expr(record, "condition"), record.text("message")
        record.done()
        with place(record.path):
            return Check(condition, message)

    def _launch(self, record: Record) -> KernelLaunch:
        fields: dict[str, Any] = {
            "kernel": record.text("kernel"),
            "args": tuple(self._argument(argument) for argument in record.records("args")),
            "grid": _three(record, "grid", self._exprs(record, "grid")),
            "block": _three(record, "block", self._exprs(record, "block")),
            "dynamic_smem_bytes": self._expr(record, "dynamic_smem_bytes"),
            "when": self._one(record, "when"),
            "window": None if record.null("window") else self._window(record.record("window")),
            "code": None if record.null("code") else _at(self.code, record, "code"),
        }
        for row in LAUNCH_ATTRIBUTES:
            fields[row.field] = self._attribute(record, row.field)
        for name in ("cluster", "preferred_cluster"):
            if fields[name] is not None:
                _three(record, name, fields[name])
        record.done()
        with place(record.path):
            return KernelLaunch(**fields)

    def _attribute(self, record: Record, name: str) -> Any:
        """Read an attribute; of those that a call may decide a text, or texts, are expressions."""
        if name in COMPUTED_FIELDS:
            if record.holds(name, str):
                return self._expr(record, name)
            if record.holds(name, list, str):
                return self._exprs(record, name)
        return record.plain(name)

    def _argument(self, record: Record, depth: int = 0) -> Argument:
        argument: Argument
        if record.has("map"):
            argument = self._map(record.record("map"))
        elif record.has("view"):
            argument = TensorView(self._memory(record, "view"))
        elif record.has("at"):
            argument = self._moved(record.record("at"))
        elif record.has("const"):
            argument = _load_constant(record.record("const"))
        elif record.has("float"):
            argument = self._float(record.record("float"))
        elif record.has("expr"):
            argument = self._expr(record, "expr")
        elif record.has("struct"):
            argument = self._built(record.record("struct"), depth + 1)
        else:
            return self._reference(record)
        record.done()
        return argument

    def _built(self, record: Record, depth: int) -> Struct:
        expect_at_most(depth, MAX_STRUCT_DEPTH, "structs and arrays within one another", record.path)
        fields = []
        for one in record.records("fields"):
            fields.append((one.text("name"), self._field(one.record("value"), depth)))
            one.done()
        said: dict[str, Any] = {
            "offsets": None if record.null("offsets") else record.integers("offsets"),
            "nbytes": None if record.null("nbytes") else record.integer("nbytes"),
            "alignment": None if record.null("alignment") else record.integer("alignment"),
        }
        record.done()
        with place(record.path):
            return Struct(tuple(fields), **said)

    def _field(self, record: Record, depth: int) -> Argument | Array:
        if not record.has("array"):
            return self._argument(record, depth)
        expect_at_most(depth + 1, MAX_STRUCT_DEPTH, "structs and arrays within one another", record.path)
        values = tuple(self._field(one, depth + 1) for one in record.records("array"))
        record.done()
        with place(record.path):
            return Array(values)

    def _reference(self, record: Record) -> Param | Workspace | ModuleVariable:
        tables: dict[str, list[Any]] = {
            "param": self.params,
            "output": self.outputs,
            "workspace": self.workspaces,
            "variable": self.variables,
        }
        name = next((name for name in tables if record.has(name)), "param")
        member: Param | Workspace | ModuleVariable = _at(tables[name], record, name)
        record.done()
        return member

    def _moved(self, record: Record) -> MovedAddress:
        memory, offset = self._memory(record, "memory"), self._expr(record, "offset")
        record.done()
        with place(record.path):
            return MovedAddress(memory, offset)

    def _float(self, record: Record) -> FloatCast:
        text, kind = record.text("expr"), record.text("dtype")
        record.done()
        with place(record.path):
            with place("expr"):
                value = parse_float(text, self._symbol)
            return value.cast(kind)

    def _memory(self, record: Record, name: str) -> Memory:
        inner = record.record(name)
        found = self._reference(inner)
        if not isinstance(found, Memory):
            raise ProgramError("expected a tensor or a workspace", field=inner.path)
        return found

    def _map(self, record: Record) -> TensorMap:
        kind = record.text("kind")
        fields: dict[str, Any] = {
            "tensor": self._memory(record, "tensor"),
            "element_strides": None if record.null("element_strides") else record.integers("element_strides"),
            "dtype": None if record.null("dtype") else record.text("dtype"),
            "element_offset": self._expr(record, "element_offset"),
            "shape": self._optional(record, "shape"),
            "strides": self._optional(record, "strides"),
        }
        for name in ("interleave", "swizzle", "l2_promotion", "oob_fill", "label"):
            fields[name] = record.text(name)
        if kind == "tiled":
            fields["box_dim"] = record.integers("box_dim")
        elif kind == "im2col":
            for name in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
                fields[name] = record.integers(name)
            for name in ("channels_per_pixel", "pixels_per_column"):
                fields[name] = record.integer(name)
        else:
            raise ProgramError(f"got kind {shorten(kind)}, expected 'tiled' or 'im2col'", field=record.path)
        record.done()
        with place(record.path):
            return TiledTensorMap(**fields) if kind == "tiled" else Im2colTensorMap(**fields)

    def _window(self, record: Record) -> AccessPolicyWindow:
        fields: dict[str, Any] = {
            "memory": self._memory(record, "memory"),
            "hit_ratio": record.number("hit_ratio"),
            "nbytes": self._one(record, "nbytes"),
            "element_offset": self._expr(record, "element_offset"),
        }
        for name in ("hit_property", "miss_property", "policy"):
            fields[name] = record.text(name)
        record.done()
        with place(record.path):
            return AccessPolicyWindow(**fields)


def _some(root: Record, name: str) -> list[Record]:
    """Read a list that is there only if it has members."""
    found = root.records(name) if root.has(name) else None
    if found == []:
        raise ProgramError("got none, expected some, or no such field", field=name)
    return found or []


def _decoded(record: Record, name: str) -> bytes:
    encoded = record.text(name)
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise ProgramError(f"is not base64: {error}", field=record.field(name)) from error


def _at(table: list[Any], record: Record, name: str) -> Any:
    """Return the member of a table that a field names by its place."""
    index = record.integer(name)
    if not 0 <= index < len(table):
        allowed = f"expected 0 to {len(table) - 1}" if table else "where the program has none"
        raise ProgramError(f"got {name} {index}, {allowed}", field=record.path)
    return table[index]


def _three(record: Record, name: str, extents: Any) -> Any:
    """Return extents, which a document has for all axes, though a builder takes fewer."""
    if type(extents) is not tuple or len(extents) != _AXES:
        got = f"{len(extents)} members" if type(extents) is tuple else "no list"
        raise ProgramError(f"got {got}, expected {_AXES}, for x, y and z", field=record.field(name))
    return extents


def _load_constant(record: Record) -> Constant:
    value = record.number("value")
    kind = None if value is None and record.null("dtype") else record.text("dtype")
    record.done()
    with place(record.path):
        return Constant(value, kind)  # type: ignore[arg-type]  # the constructor reads spellings too


def _load_code(record: Record) -> DeviceCode:
    fields: dict[str, Any] = {name: record.text(name) for name in ("language", "name", "target")}
    fields |= {name: record.pairs(name) for name in ("includes", "defines")}
    fields["options"] = record.texts("options")
    if record.has("base64"):
        fields["source"] = _decoded(record, "base64")
    else:
        fields["source"] = record.text("source")
    record.done()
    try:
        return DeviceCode(**fields)
    except ProgramError as error:
        raise ProgramError(error.message, field=record.path + error.field.removeprefix("code")) from None
