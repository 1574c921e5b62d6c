"""Expressions as C++, with the operations of ``trunnion/numbers.hpp``.

Values are ``int64_t``, and ``failed`` is a local ``bool``: after each statement with a checked operation the launcher
ends if it is set. Brackets are at most two for each level of an expression, because compilers bound their nesting.
"""

from __future__ import annotations

from trunnion.codegen.exprs import ExprLanguage
from trunnion.codegen.literals import cpp_string
from trunnion.model.interval import INT64_MIN
from trunnion.model.op import Op

__all__ = ["CPP"]

_CLASSES = {
    Op.ADD: "Add",
    Op.SUB: "Sub",
    Op.MUL: "Mul",
    Op.FLOORDIV: "FloorDiv",
    Op.MOD: "Mod",
    Op.CEILDIV: "CeilDiv",
    Op.MIN: "Min",
    Op.MAX: "Max",
    Op.SHL: "Shl",
    Op.SHR: "Shr",
    Op.AND: "And",
    Op.OR: "Or",
    Op.XOR: "Xor",
    Op.GCD: "Gcd",
    Op.EQ: "Eq",
    Op.NE: "Ne",
    Op.LT: "Lt",
    Op.LE: "Le",
    Op.GT: "Gt",
    Op.GE: "Ge",
}


def _literal(value: int) -> str:
    if value == INT64_MIN:  # its magnitude alone is no number of 64 signed bits
        return "INT64_MIN"
    return f"{value}LL" if value >= 0 else f"({value}LL)"


CPP = ExprLanguage(
    operations={
        Op.ADD: "({a} + {b})",
        Op.SUB: "({a} - {b})",
        Op.MUL: "({a} * {b})",
        Op.FLOORDIV: "floor_div({a}, {b})",
        Op.MOD: "floor_mod({a}, {b})",
        Op.CEILDIV: "ceil_div({a}, {b})",
        Op.MIN: "minimum({a}, {b})",
        Op.MAX: "maximum({a}, {b})",
        Op.SHL: "shift_left({a}, {b})",
        Op.SHR: "({a} >> {b})",
        Op.AND: "({a} & {b})",
        Op.OR: "({a} | {b})",
        Op.XOR: "({a} ^ {b})",
        Op.GCD: "static_cast<int64_t>(common_divisor({a}, {b}))",
        Op.EQ: "int64_t({a} == {b})",
        Op.NE: "int64_t({a} != {b})",
        Op.LT: "int64_t({a} < {b})",
        Op.LE: "int64_t({a} <= {b})",
        Op.GT: "int64_t({a} > {b})",
        Op.GE: "int64_t({a} >= {b})",
    },
    ordered={op: f"Ordered<{name}>{{{{{{a}}, {{b}}}}}}.value" for op, name in _CLASSES.items()},
    checked={
        op: f"Checked<{name}>{{{{failed, {{a}}, {{b}}, {{text}}, {{fallback}}}}}}.value"
        for op, name in _CLASSES.items()
    },
    right={
        op: f"{'shift_count' if op.shifts else 'divisor'}(failed, {{a}}, {{text}}, {{fallback}})"
        for op in Op
        if op.divides or op.shifts
    },
    whole={},
    select="({c} != 0 ? {a} : {b})",
    cast='in_range(failed, {a}, {low}, {high}u, "{name}", {text}, {fallback})',
    literal=_literal,
    string=cpp_string,
)
"""C++17, in the namespace ``trunnion``."""
