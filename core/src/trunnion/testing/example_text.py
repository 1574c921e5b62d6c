"""A drawn example as the text of a Python program that makes it again, as short as a person would write it."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import keyword
import math
import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

import trunnion
from trunnion.model.code import DeviceCode
from trunnion.model.dtypes import DType
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Symbol
from trunnion.model.facts import Fact
from trunnion.model.float_expr import FloatBinary, FloatCast, FloatConst, FloatExpr, IntegerValue, SquareRoot
from trunnion.model.memory import Memory
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Struct
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["example_text", "programs_in"]

_WIDTH = 100
_MOST_TEXT = 6000
_LEAST_PATTERN, _LONGEST_PERIOD = 60, 8
_WORD = re.compile(r"[a-z][a-z0-9_]{0,15}")
_NAMED = (
    DeviceCode, Memory, MovedAddress, ScalarParam, PointerParam, StructParam, TensorMap, TensorView, Struct,
)  # fmt: skip
"""What gets a name of its own where it stands more than once; symbols and programs always do."""
_NONE = dataclasses.MISSING


class _UnwritableError(Exception):
    """A value has no text; never leaves this module."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    """Something in brackets, which may be broken into lines."""

    head: str
    items: tuple[_Call | str, ...]
    tail: str

    def flat(self) -> str:
        return self.head + ", ".join(_flat(item) for item in self.items) + self.tail

    def lines(self, indent: str, room: int) -> str:
        """Return the text in lines; ``room`` characters of the first one are taken."""
        flat = self.flat()
        if room + len(flat) <= _WIDTH or not self.items:
            return flat
        inner = indent + "    "
        broken = "".join(f"{inner}{_lines(item, inner, len(inner) + 1)},\n" for item in self.items)
        return f"{self.head}\n{broken}{indent}{self.tail.lstrip(',')}"


def _flat(item: _Call | str) -> str:
    return item if isinstance(item, str) else item.flat()


def _lines(item: _Call | str, indent: str, room: int) -> str:
    return item if isinstance(item, str) else item.lines(indent, room)


def example_text(example: object) -> tuple[str, str] | None:
    """Return statements, and an expression over them that is equal to an example.

    Parameters
    ----------
    example
        What a law's strategy drew.

    Returns
    -------
    tuple[str, str] or None
        The statements, imports first, and the expression; None if the example cannot be made from a text, or only from
        a very long one.
    """
    for plain in (True, False):
        try:
            text = _Writer(plain=plain).write(example)
        except _UnwritableError:
            return None
        if sum(map(len, text)) <= _MOST_TEXT and _makes(text, example):
            return text
    return None


def programs_in(value: object) -> tuple[KernelProgram, ...]:
    """Return the programs that an example holds, each once."""
    return tuple(dict.fromkeys(one for one in _walk(value) if isinstance(one, KernelProgram)))


def _makes(text: tuple[str, str], example: object) -> bool:
    """Whether a text makes an equal example. Texts are compared: a NaN is equal to nothing, and 0 to -0.0."""
    statements, expression = text
    names: dict[str, Any] = {}
    try:
        exec(statements, names)  # noqa: S102 - a text of this module's own, of values that this process holds
        return repr(eval(expression, names)) == repr(example)  # noqa: S307 - likewise
    except (TypeError, ValueError, NameError, AttributeError, ImportError, SyntaxError, ArithmeticError):
        return False  # such as a number where only an expression will do


def _walk(value: object) -> Iterator[object]:
    """Yield a value and everything in it that a text would name."""
    yield value
    if isinstance(value, (tuple, list, set, frozenset)):
        inner: Any = value
    elif isinstance(value, dict):
        inner = (*value, *value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, DType, enum.Enum)):
        inner = [getattr(value, field.name) for field in dataclasses.fields(value) if field.init]
    else:
        return
    for one in inner:
        yield from _walk(one)


class _Writer:
    """One text."""

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._imports: dict[str, set[str]] = {}
        self._names: dict[
            str, str
        ] = {}  # by the whole text of a value: equal ones may differ in their labels
        self._statements: list[str] = []
        self._often: Counter[str] = Counter()

    def write(self, example: object) -> tuple[str, str]:
        """Return the statements and the expression."""
        for one in _walk(example):
            if isinstance(one, _NAMED):
                self._often[repr(one)] += 1
        expression = _lines(self._value(example), "", 0)
        lines = [_import(module, names) for module, names in sorted(self._imports.items())]
        return "\n".join((*lines, "", *self._statements, "")), expression

    def _value(self, value: Any) -> _Call | str:  # noqa: PLR0911 - one for each kind of value
        if isinstance(value, enum.Enum):
            return f"{self._imported(type(value))}.{value.name}"
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, (str, bytes)):
            return _repeated(value)
        if isinstance(value, (float, complex)):
            return _number(value)
        if isinstance(value, DType):
            return f'{self._imported(trunnion.dtype)}("{value.name}")'
        if isinstance(value, (tuple, list, set, frozenset, dict)):
            return self._collection(value)
        if isinstance(value, (Symbol, KernelProgram)) or self._often.get(repr(value), 0) > 1:
            return self._named(value)
        return self._made(value)

    def _collection(self, value: Any) -> _Call | str:
        if isinstance(value, dict):
            pairs = (f"{_flat(self._value(key))}: {_flat(self._value(one))}" for key, one in value.items())
            return _Call("{", tuple(pairs), "}")
        if isinstance(value, (set, frozenset)):
            ordered: Any = sorted(value, key=repr)
            return _Call(f"{type(value).__name__}([", tuple(map(self._value, ordered)), "])")
        if type(value) not in (tuple, list):
            raise _UnwritableError
        items = tuple(map(self._value, value))
        if isinstance(value, list):
            return _Call("[", items, "]")
        return _Call("(", items, ",)" if len(items) == 1 else ")")

    def _named(self, value: Any) -> str:
        """Return the name of a value that a statement makes, or that one has made."""
        key = repr(value)
        if key not in self._names:
            text = self._made(value)
            name = "program" if isinstance(value, KernelProgram) else self._name(value)
            self._statements.append(f"{name} = {_lines(text, '', len(name) + 3)}")
            self._names[key] = name
        return self._names[key]

    def _name(self, value: Any) -> str:
        name = str(getattr(value, "name", ""))
        taken = {"program", "replay", *self._names.values(), *vars(trunnion)}
        if not _WORD.fullmatch(name) or keyword.iskeyword(name) or hasattr(__builtins__, name):
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(value).__name__).lower()
        while name in taken:
            name += "_"
        return name

    def _made(self, value: Any) -> _Call | str:
        if isinstance(value, Expr) and not isinstance(value, (Symbol, Fact)):
            return self._expression(value, outermost=True)
        if isinstance(value, FloatCast):
            return f'{self._float(value.value)}.cast("{value.to.name}")'
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            raise _UnwritableError
        items: list[_Call | str] = []
        positional = True
        for field in dataclasses.fields(value):
            given = getattr(value, field.name)
            required = field.default is field.default_factory  # both are missing
            default = field.default if required or field.default_factory is _NONE else field.default_factory()
            if not field.init or (not required and repr(default) == repr(given)):
                continue
            text = self._value(given)
            positional = positional and required and not field.kw_only
            items.append(text if positional else _keyword(field.name, text))
        return _Call(f"{self._imported(type(value))}(", tuple(items), ")")

    def _expression(  # noqa: PLR0911 - one for each kind of node
        self, value: Expr, *, outermost: bool = False
    ) -> str:
        match value:
            case Const(number):
                return str(number) if self._plain or not outermost else f"{self._imported(Const)}({number})"
            case Symbol() | Fact():
                return self._named(value)
            case Binary(op, left, right):
                operands = self._expression(left), self._expression(right)
                if op.is_infix:
                    text = f"{operands[0]} {op.value} {operands[1]}"
                    return text if outermost else f"({text})"
                return f"{self._imported(getattr(trunnion, op.value))}({', '.join(operands)})"
            case Select(condition, then, otherwise):
                parts = ", ".join(map(self._expression, (condition, then, otherwise)))
                return f"{self._imported(trunnion.select)}({parts})"
            case Cast(Const(number), to):
                return f'{self._imported(Const)}({number}).cast("{to.name}")'
            case Cast(operand, to):
                return f'{self._expression(operand)}.cast("{to.name}")'
        raise _UnwritableError

    def _float(self, value: FloatExpr) -> str:
        match value:
            case FloatConst(number):
                return f"{self._imported(trunnion.real)}({number!r})"
            case IntegerValue(operand):
                return f"{self._imported(trunnion.real)}({self._expression(operand)})"
            case FloatBinary(op, left, right):
                return f"({self._float(left)} {op.value} {self._float(right)})"
            case SquareRoot(operand):
                return f"{self._imported(trunnion.sqrt)}({self._float(operand)})"
        raise _UnwritableError

    def _imported(self, what: Any) -> str:
        """Return the name of a class or a function, which is imported from where a user would, if it is there."""
        name, home = what.__name__, what.__module__
        if getattr(trunnion, name, None) is what:
            home = "trunnion"
        elif what.__qualname__ != name or getattr(importlib.import_module(home), name, None) is not what:
            raise _UnwritableError
        self._imports.setdefault(home, set()).add(name)
        return str(name)


def _import(module: str, names: set[str]) -> str:
    line = f"from {module} import {', '.join(sorted(names))}"
    if len(line) <= _WIDTH:
        return line
    listed = textwrap.fill(", ".join(sorted(names)), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"from {module} import (\n{listed},\n)"


def _keyword(name: str, text: _Call | str) -> _Call | str:
    return (
        f"{name}={text}" if isinstance(text, str) else dataclasses.replace(text, head=f"{name}={text.head}")
    )


def _repeated(value: str | bytes) -> str:
    """Return a text or bytes; a long repetition as what is repeated, and how often."""
    for period in range(1, _LONGEST_PERIOD + 1) if len(value) > _LEAST_PATTERN else ():
        part = value[:period]
        times = -(-len(value) // period)
        if (part * times)[: len(value)] == value:
            whole = f"{part!r} * {times}"
            return whole if times * period == len(value) else f"({whole})[:{len(value)}]"
    return repr(value)


def _number(value: float | complex) -> str:  # noqa: PYI041 - they are told apart
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if math.isfinite(value) else f'float("{value}")'
