"""Expressions in C++: what they give is what the Python launcher's text gives, errors and their order included."""

from __future__ import annotations

import itertools
import struct
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.codegen.cpp.exprs import CPP
from trunnion.codegen.exprs import ExprPrinter
from trunnion.errors import ExprError
from trunnion.launcher import arithmetic
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Binary, Cast, Const, Expr, Op, Select, Slot
from trunnion.model.expr_text import brief_expr
from trunnion.model.interval import INT64, INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EDGES = (
    INT64_MIN,
    INT64_MIN + 1,
    -(2**31),
    -7,
    -2,
    -1,
    0,
    1,
    2,
    3,
    62,
    63,
    64,
    127,
    128,
    2**31,
    2**32,
    2**53,
    INT64_MAX - 1,
    INT64_MAX,
)
NAMES = ("x", 'y "?" {text}')  # the third slot has none
WIDE = tuple(Slot(index, INT64_MIN, INT64_MAX) for index in range(3))
A, B, C = WIDE


def made(make: Callable[..., Expr], *args: Any) -> Expr:
    try:
        return make(*args)
    except ExprError:  # it has a value in no call
        return next(arg for arg in args if isinstance(arg, Expr))


def number(random: Random) -> int:
    return random.choice((random.choice(EDGES), random.randint(-9, 9), random.randint(INT64_MIN, INT64_MAX)))


def tree(random: Random, leaves: tuple[Slot, ...], depth: int) -> Expr:
    """Draw with the classes themselves: constants are not folded, as they are not in a plan."""
    if depth == 0 or random.random() < 0.1:
        return Const(number(random)) if random.random() < 0.25 else random.choice(leaves)
    parts = [tree(random, leaves, depth - 1) for _ in range(3)]
    match random.randrange(7):
        case 0:
            return Select(*parts)
        case 1:
            return made(Cast, parts[0], dtype(random.choice(INTEGERS)))
    return made(Binary, random.choice(tuple(Op)), *parts[:2])


def drawn(count: int) -> Iterator[tuple[Expr, tuple[Slot, ...]]]:
    """Yield the same expressions in every run: one program holds them all."""
    random = Random(20)  # noqa: S311 - not for secrets
    for _ in range(count):
        leaves = WIDE
        if random.random() < 0.7:
            leaves = tuple(Slot(index, *sorted((number(random), number(random)))) for index in range(3))
        yield tree(random, leaves, random.randint(2, 4)), leaves


def deep(depth: int, wrap: Callable[[Expr, int], Expr]) -> Expr:
    expr: Expr = A
    for level in range(depth):
        expr = wrap(expr, level)
    return expr


def hand_made() -> Iterator[Expr]:
    small = Slot(0, -100, 100)
    for op, (left, right) in itertools.product(Op, ((A, B), (small, Slot(1, 1, 7)), (A, Const(-1)))):
        other = Const(63) if op.shifts and right == Const(-1) else right
        yield Binary(op, left, other)
        yield Binary(op, Binary(Op.ADD, left, A), Binary(Op.MUL, other, B))  # both may be an error
    for name in INTEGERS:
        yield Cast(A, dtype(name))
    yield Binary(Op.ADD, Const(2**31 - 1), Const(1))
    yield Binary(Op.MUL, Const(INT64_MIN), Const(1))
    yield Binary(Op.SUB, Slot(0, 0, 5), Const(INT64_MIN + 1))
    # Behind an error, what was proven for the bounds must still hold: else the process would die.
    yield Binary(Op.FLOORDIV, B, Binary(Op.ADD, Slot(0, 5, INT64_MAX), Const(1)))
    yield Binary(Op.MOD, B, Cast(Slot(0, 1, 1000), dtype("uint8")))
    yield Binary(Op.ADD, Const(INT64_MAX), Binary(Op.FLOORDIV, Const(5), Slot(1, -4, 0)))
    yield Binary(Op.SHL, Slot(0, -1, 1), Binary(Op.SHR, B, Slot(1, 0, 1)))
    yield Binary(Op.SHL, Const(-1), Slot(1, 62, INT64_MAX))
    yield Binary(Op.FLOORDIV, C, Binary(Op.SHL, Const(1), Slot(1, INT64_MIN, 3)))
    yield Binary(Op.SHR, Const(INT64_MIN), Binary(Op.AND, B, Const(63)))
    yield Select(A, Binary(Op.FLOORDIV, B, A), Binary(Op.SUB, Const(0), B))
    yield deep(99, lambda expr, level: Binary(Op.FLOORDIV, B, expr))
    yield deep(99, lambda expr, level: Binary(Op.CEILDIV, expr, B if level % 2 else Const(-1)))
    yield deep(98, lambda expr, level: Binary(tuple(Op)[level % 6], Binary(Op.ADD, B, C), expr))
    yield deep(90, lambda expr, level: Select(C, expr, expr * B) if level < 6 else Binary(Op.MAX, expr, C))


def inputs(leaves: tuple[Slot, ...]) -> list[tuple[int, ...]]:
    """Return values within the slots' bounds: their ends, and the edges between."""
    columns = []
    for leaf in leaves:
        inside = [edge for edge in EDGES if leaf.low <= edge <= leaf.high]
        columns.append(list(dict.fromkeys((leaf.low, leaf.high, *inside))))
    longest = max(map(len, columns))
    strides = (1, 3, 7)  # prime to each other: the columns meet in other combinations as the rounds go on
    rounds = range(3 * longest)
    return [
        tuple(
            column[(turn * stride + turn // len(column)) % len(column)]
            for column, stride in zip(columns, strides, strict=True)
        )
        for turn in rounds
    ]


def computed(expr: Expr, values: tuple[int, ...]) -> int:
    """Compute with the Python launcher's own checks, from left to right, at each node; knows nothing of bounds."""
    match expr:
        case Const(value):
            return value
        case Slot(index):
            return values[index]
        case Select(condition, then, otherwise):
            return computed(then if computed(condition, values) else otherwise, values)
        case Cast(operand, to):
            text = brief_expr(operand, NAMES)
            return arithmetic.in_range(computed(operand, values), *to.integer_range, to.name, text)
        case Binary(op, left, right):
            a, b, text = computed(left, values), computed(right, values), brief_expr(expr, NAMES)
            if not op.admits(b):
                b = (arithmetic.divisor if op.divides else arithmetic.shift_count)(b, text)
            return arithmetic.fits(op.compute(a, b), text)
    raise AssertionError


def expected(expr: Expr, values: tuple[int, ...]) -> str:
    try:
        return str(computed(expr, values))
    except ExprError as error:
        return f"ValueError: {error}"


def test_cpp_gives_what_the_python_launcher_gives(native: Any) -> None:
    cases = [*drawn(150), *((expr, WIDE) for expr in hand_made())]
    assert len(cases) == 293
    printer = ExprPrinter(CPP, "v{}".format, NAMES)
    table = [
        f"static int64_t e{number}([[maybe_unused]] bool& failed, const int64_t* v) {{\n"
        "  [[maybe_unused]] const int64_t v0 = v[0], v1 = v[1], v2 = v[2];\n"
        f"  return {printer.text(expr)};\n}}\n"
        for number, (expr, _) in enumerate(cases)
    ]
    names = ", ".join(f"e{number}" for number in range(len(cases)))
    table.append(f"static int64_t (*const table[])(bool&, const int64_t*) = {{{names}}};\n")
    run = native("expressions", "".join(table))
    calls = [
        (number, values)
        for number, (expr, leaves) in enumerate(cases)
        for values in inputs(leaves_of(expr, leaves))
    ]
    got = run(b"".join(struct.pack("<4q", number, *values) for number, values in calls)).decode().splitlines()
    wanted = [expected(cases[number][0], values) for number, values in calls]
    wrong = [
        (printer.text(cases[number][0]), values, a, b)
        for (number, values), a, b in zip(calls, got, wanted, strict=True)
        if a != b
    ]
    assert not wrong, wrong[:3]
    assert {line.split(" ")[1] for line in wanted if ":" in line} == {"division", "the", "a"}
    assert {"bits", "18446744073709551615)", "127)"} <= {line.split(" ")[-1] for line in wanted}


def leaves_of(expr: Expr, leaves: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Return the slots of an expression, by their indices, each with the narrowest bounds that some occurrence has."""
    found = {leaf.index: leaf for leaf in leaves}
    pending = [expr]
    while pending:
        node = pending.pop()
        match node:
            case Slot():
                found[node.index] = Slot(
                    node.index,
                    max(node.low, found[node.index].low),
                    min(node.high, found[node.index].high),
                )
            case Binary():
                pending += [node.left, node.right]
            case Select():
                pending += [node.condition, node.then, node.otherwise]
            case Cast():
                pending.append(node.operand)
    return tuple(found[index] for index in range(3))


def test_every_operation_is_spelled() -> None:
    assert set(CPP.operations) == set(CPP.ordered) == set(CPP.checked) == set(Op)
    assert INT64.low == INT64_MIN


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary(Op.CEILDIV, Slot(0, 0, 100), Const(128)), "ceil_div(v0, 128LL)"),
        (
            Binary(Op.ADD, Slot(0, 0, INT64_MAX), Const(1)),
            'Checked<Add>{failed, v0, 1LL, "x + 1", 1LL}.value',
        ),
        (
            Binary(Op.MOD, A, Slot(2, -4, 0)),
            'floor_mod(v0, divisor(failed, v2, "x % \\042slot 2\\042", (-1LL)))',
        ),
        (Binary(Op.SHL, Slot(0, -9, 9), Slot(1, 0, 40)), "shift_left(v0, v1)"),
        (Binary(Op.GCD, Slot(0, -9, 9), Slot(2, 0, 40)), "static_cast<int64_t>(common_divisor(v0, v2))"),
        (
            Binary(Op.SHR, A, Slot(2, 60, 70)),
            '(v0 >> shift_count(failed, v2, "x >> \\042slot 2\\042", 60LL))',
        ),
        (Cast(A, dtype("uint64")), 'in_range(failed, v0, 0, 18446744073709551615u, "uint64", "x", 0LL)'),
        (Binary(Op.SUB, Slot(0, -9, 0), Const(INT64_MIN + 1)), "(v0 - (-9223372036854775807LL))"),
        (Const(INT64_MIN), "INT64_MIN"),
    ],
)
def test_only_what_is_not_proven_is_checked(expr: Expr, text: str) -> None:
    printer = ExprPrinter(CPP, "v{}".format, NAMES)
    assert printer.text(expr) == text
    assert printer.may_fail(expr) == ("failed" in text)
