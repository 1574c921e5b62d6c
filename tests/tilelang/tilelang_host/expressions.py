"""Expressions of a host function, with concrete values."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from tilelang_host.values import Tensor, Words, type_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Evaluator", "as_type"]

_ARGUMENT, _SHAPED = (13, 15), range(1, 11)


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Div": _truncated,
    "Mod": lambda left, right: left - right * _truncated(left, right),
    "Min": min,
    "Max": max,
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
_BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


def as_type(value: Any, dtype: str) -> Any:
    """Return a number as a type holds it.

    Parameters
    ----------
    value
        The number; pointers are handed through.
    dtype
        The type's name.

    Raises
    ------
    OverflowError
        If an integer does not fit: no call of the corpus is that large.
    """
    if dtype == "handle" or not isinstance(value, int | float):
        return value
    if dtype == "bool":
        return bool(value)
    if dtype.startswith("float"):
        return float(np.dtype(dtype).type(value))
    limits = np.iinfo(dtype)
    whole = int(value)
    if not limits.min <= whole <= limits.max:
        raise OverflowError(f"{whole} as {dtype}")
    return whole


class Evaluator:
    """Computes expressions, given what the variables hold.

    Parameters
    ----------
    arguments
        What the host function is called with; variables other than its parameters are set in `variables`.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arguments = arguments
        self.variables: dict[Any, Any] = {}

    def value(self, node: Any) -> Any:
        """Return an expression's value.

        Raises
        ------
        NotImplementedError
            If it is of an unknown kind.
        """
        kind = type(node).__name__
        if kind in _BINARY:
            return as_type(_BINARY[kind](self.value(node.a), self.value(node.b)), str(node.dtype))
        known = getattr(self, f"_{kind.lower()}", None)
        if known is None:
            raise NotImplementedError(f"an expression of the kind {kind}: {node}")
        return known(node)

    def _var(self, node: Any) -> Any:
        return self.variables[node]

    _sizevar = _var

    def _intimm(self, node: Any) -> Any:
        return as_type(int(node.value), str(node.dtype))

    def _floatimm(self, node: Any) -> float:
        return float(as_type(float(node.value), str(node.dtype)))

    def _stringimm(self, node: Any) -> str:
        return str(node.value)

    def _cast(self, node: Any) -> Any:
        return as_type(self.value(node.value), str(node.dtype))

    def _and(self, node: Any) -> bool:
        return bool(self.value(node.a)) and bool(self.value(node.b))

    def _or(self, node: Any) -> bool:
        return bool(self.value(node.a)) or bool(self.value(node.b))

    def _not(self, node: Any) -> bool:
        return not self.value(node.a)

    def _select(self, node: Any) -> Any:
        return self.value(node.true_value if self.value(node.condition) else node.false_value)

    def _bufferload(self, node: Any) -> int:
        words, (index,) = self.variables[node.buffer.data], map(self.value, node.indices)
        if not isinstance(words, Words):
            raise TypeError(f"got {words!r}, which is read from: {node}")
        return words.words[index]

    def _call(self, node: Any) -> Any:
        name = str(node.op.name).split(".")[-1]
        if name in _BITWISE:
            return as_type(_BITWISE[name](*map(self.value, node.args)), str(node.dtype))
        known = getattr(self, f"_call_{name}", None)
        if known is None:
            raise NotImplementedError(f"a call of {name}: {node}")
        return known(node)

    def _call_if_then_else(self, node: Any) -> Any:
        condition, then, otherwise = node.args
        return self.value(then if self.value(condition) else otherwise)

    def _call_isnullptr(self, node: Any) -> bool:
        return self.value(node.args[0]) in (None, 0)

    def _call_reinterpret(self, node: Any) -> Any:
        value = self.value(node.args[0])
        if str(node.dtype) != "handle" or value != 0:
            raise NotImplementedError(f"other bits than those of a null pointer: {node}")

    def _call_handle_add_byte_offset(self, node: Any) -> Any:
        """Return the ``DLTensor`` behind a tensor object's header."""
        value, offset = map(self.value, node.args)
        if not isinstance(value, Tensor) or offset != 24:
            raise NotImplementedError(f"a place in {value!r}: {node}")
        return value

    def _call_tvm_struct_get(self, node: Any) -> Any:
        subject, index, field = (self.value(part) for part in node.args[:3])
        dtype = str(node.dtype)
        if field in _ARGUMENT and subject is self.arguments:
            value = subject[index]
            return type_index(value) if field == _ARGUMENT[0] else self._argument(value, dtype)
        if isinstance(subject, Tensor) and field in _SHAPED and index == 0:
            return as_type(subject.fields[field], dtype)
        raise NotImplementedError(f"the field {field} of {subject!r}: {node}")

    def _argument(self, value: Any, dtype: str) -> Any:
        if dtype == "handle":
            return None if value is None else Tensor(value)
        return as_type(value, dtype)
