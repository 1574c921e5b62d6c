"""Integer arithmetic: where it is exact, both backends are; where it has no value, both say so in the same words."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st
from twins.sheets import Sheet, Variable

from trunnion.errors import ExprError
from trunnion.model.expr import Op, Symbol, binary, ceildiv, eq, select
from trunnion.testing.arithmetic import integer_range
from trunnion.testing.draws import for_examples
from trunnion.testing.strategies import expressions
from trunnion.testing.strategies.expressions import INTEGERS

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EDGES = (
    0,
    1,
    -1,
    2,
    -3,
    7,
    63,
    64,
    2**31 - 1,
    -(2**31),
    2**32,
    2**53,
    2**62,
    INT64_MAX,
    INT64_MIN + 1,
    INT64_MIN,
)
CONSTANTS = (-3, -1, 7, 63, 2**31, INT64_MIN)
SHEETS, EXPRESSIONS, ROWS = 10, 32, 8


def compared(twins, sheet, rows):
    """Compare every expression of a sheet at every row of values; return how many had no value, and one."""
    with twins.loaded(sheet.program()) as pair:
        for call in sheet.calls(rows):
            pair.compare(call)
    return pair.refused, pair.launched


def test_every_operation_at_every_edge(twins):
    x, y = (Symbol(name, min=INT64_MIN) for name in "xy")
    found = [binary(op, x, y) for op in Op]
    found += [x.cast(kind) for kind in INTEGERS]
    found += [(x.cast("int8") * y.cast("int8")).cast("int16"), -x, ceildiv(-x, y), (x * y) // y, x - x % y]
    found += [select(y, x // y, x), select(eq(y, 0), 0, x % y), select(x, y.cast("uint8"), y * y)]
    sheet = Sheet((Variable(x, "int64"), Variable(y, "int64")), tuple(found))
    refused, launched = compared(twins, sheet, list(itertools.product(EDGES, repeat=2)))
    assert min(refused, launched) > 500


def test_every_operation_with_a_constant(twins):
    x = Symbol("x", min=INT64_MIN)
    found = []
    for op, constant in itertools.product(Op, CONSTANTS):
        found += valued(lambda op=op, constant=constant: binary(op, x, constant))
        found += valued(lambda op=op, constant=constant: binary(op, constant, x))
    sheet = Sheet((Variable(x, "int64"),), tuple(found))
    refused, launched = compared(twins, sheet, [(value,) for value in EDGES])
    assert min(refused, launched) > 100


def test_a_boolean_in_every_operation(twins):
    x, f = Symbol("x", min=INT64_MIN), Symbol("f", max=1)
    found = [binary(op, *pair) for op in Op for pair in ((x, f), (f, x), (f, f))]
    found += [select(f, x, f), f.cast("int8"), f * 2**62 * 2, select(eq(f, 0), 7, x)]
    sheet = Sheet((Variable(x, "int64"), Variable(f, "bool")), tuple(found))
    refused, launched = compared(twins, sheet, [(value, flag) for value in EDGES for flag in (False, True)])
    assert min(refused, launched) > 100


def valued(build):
    """Return an expression; none where the model says at once that it has no value in any call."""
    try:
        return (build(),)
    except ExprError:
        return ()


@st.composite
def variables(draw, name):
    """Draw a variable of narrow or wide bounds: what bounds prove need not be checked in a call."""
    kind = draw(st.sampled_from(("int8", "int32", "uint32", "int64", "int64", "uint64")))
    least, greatest = integer_range(kind)
    low, high = draw(
        st.sampled_from(((0, INT64_MAX), (INT64_MIN, INT64_MAX), (1, 100), (-5, 2**33), (-3, 3), (-7, -1)))
    )
    low, high = max(low, least), min(high, greatest, INT64_MAX)
    if low > high:
        low, high = max(least, INT64_MIN), min(greatest, INT64_MAX)
    return Variable(Symbol(name, min=low, max=high, multiple_of=draw(st.sampled_from((1, 1, 1, 2)))), kind)


@st.composite
def values(draw, variable):
    """Draw a value that the scalar can hold, and as a rule the symbol too."""
    symbol = variable.symbol
    least, greatest = integer_range(variable.dtype)
    near = draw(st.sampled_from((symbol.min, symbol.max, 0, -1, 1, 2**31, 2**32 - 1, *EDGES)))
    value = near + draw(st.sampled_from((0, 0, 0, 1, -1)))
    if draw(st.integers(0, 7)):
        value = min(max(value, symbol.min), symbol.max)
        value -= value % symbol.multiple_of
    return min(max(value, least), greatest)


@st.composite
def sheets(draw):
    found = tuple(draw(variables(name)) for name in "xyz")
    symbols = [variable.symbol for variable in found]
    # Most draws end early, in a leaf or in what the model refuses: those are of no interest.
    drawn = [draw(expressions(symbols, draw(st.integers(1, 4)))) for _ in range(EXPRESSIONS)]
    rows = [tuple(draw(values(variable)) for variable in found) for _ in range(ROWS)]
    return Sheet(found, tuple(drawn)), rows


def test_drawn_expressions_over_bounded_symbols(twins):
    counts = []
    for_examples(sheets(), SHEETS, lambda example: counts.append(compared(twins, *example)))
    refused, launched = (sum(column) for column in zip(*counts, strict=True))
    assert min(refused, launched) > SHEETS * ROWS
