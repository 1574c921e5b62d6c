"""An expression that has no value in a call is told in its author's words, and both backends say the same."""

from __future__ import annotations

import pytest

from trunnion.errors import ExprError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, gcd, maximum, select
from trunnion.model.float_expr import real
from trunnion.model.struct import array, struct
from trunnion.testing.strategies import CallSpec

LEAST = -(2**63)
N, M = Symbol("n", min=LEAST), Symbol("m", min=LEAST)
HOSTILE = (
    'a"b',
    "a'b\\",
    "a\nb\r\t",
    "a\0b",
    "??/",
    "{a} {fallback} %s %n",
    "*/ // #",
    "\N{GREEK SMALL LETTER ALPHA}\U0001f600",
    "a\udc80b",
    "failed",
    "select",
    '"); raise SystemExit("',
    "n" * 9999,
)


def builder_of(*symbols):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    for index, symbol in enumerate(symbols):
        builder.scalar(f"s{index}", "int64", symbol=symbol)
    return builder


def said_of(twins, builder, *rows):
    """Return what each backend says of calls with such numbers: one text where they agree."""
    said = []
    with twins.loaded(builder.build()) as pair:
        for row in rows:
            pair.compare(CallSpec(args=row, device=0))
            texts = set()
            for _, loaded in pair.loaded:
                with pytest.raises(ExprError) as caught:
                    loaded.call(row, device=0)
                assert caught.value.message == str(caught.value)
                texts.add(str(caught.value))
            assert len(texts) == 1, texts
            said += texts
    return said


def grid_of(expr):
    builder = builder_of(N, M)
    builder.launch("k", (), expr, 1)
    return builder


@pytest.mark.parametrize(
    ("expr", "row", "text"),
    [
        (ceildiv(N, M), (5, 0), "division by zero in ceildiv(n, m)"),
        (N // M, (LEAST, -1), "the value 9223372036854775808 of n // m does not fit 64 signed bits"),
        (N * M, (2**62, 2), "the value 9223372036854775808 of n * m does not fit 64 signed bits"),
        (N << M, (1, 63), "the value 9223372036854775808 of n << m does not fit 64 signed bits"),
        (N << M, (0, 64), "a shift by 64 in n << m, expected 0 to 63"),
        (N >> M - 1, (LEAST, 0), "a shift by -1 in n >> (m - 1), expected 0 to 63"),
        (gcd(N, M), (LEAST, 0), "the value 9223372036854775808 of gcd(n, m) does not fit 64 signed bits"),
        ((N + 1).cast("uint8"), (299, 0), "the value 300 of n + 1 does not fit uint8 (0 to 255)"),
        (N.cast("int8"), (128, 0), "the value 128 of n does not fit int8 (-128 to 127)"),
        (1 + maximum(N, 7 % (M - 3)), (2, 3), "division by zero in 7 % (m - 3)"),
        (select(N, 3, 12 // N), (0, 0), "division by zero in 12 // n"),
        (
            N.cast("int32") * M + 1,
            (2, 2**62),
            "the value 9223372036854775808 of cast(int32, n) * m does not fit 64 signed bits",
        ),
    ],
)
def test_what_has_no_value_is_named(twins, expr, row, text):
    assert said_of(twins, grid_of(expr), row) == [text]


def test_it_is_named_wherever_it_stands(twins):
    """In each place that a launcher computes; each divides its own number, so that each is seen alone."""
    symbols = [Symbol(f"x{index}") for index in range(8)]
    parts = [8 // symbol for symbol in symbols]
    builder = builder_of(*symbols)
    builder.check(parts[0], "no")
    out = builder.output("out", "float32", (parts[1] + 8, 64))
    scratch = builder.workspace("scratch", "float32", (parts[2], 64))
    builder.launch(
        "k",
        (parts[3], scratch, out.tiled((8, 64), element_offset=parts[7] * 0)),
        parts[4],
        parts[5],
        dynamic_smem_bytes=parts[6],
    )
    rows = [tuple(int(place != zero) for place in range(8)) for zero in range(8)]
    assert said_of(twins, builder, *rows) == [f"division by zero in 8 // x{index}" for index in range(8)]


def test_of_a_struct_the_field_is_named_whose_type_does_not_hold_a_value(twins):
    builder = builder_of(N, M)
    rows = array(*(struct(("\N{GREEK SMALL LETTER ALPHA}", one.cast("int8"))) for one in (N, M)))
    whole = struct(("fits", N + M), ("rows", rows), ('a"b', (real(N) * 1000).cast("float16")))
    builder.launch("k", (whole,), 1, 1)
    assert said_of(twins, builder, (128, 0), (0, 200), (100, 0)) == [
        "the value 128 of n, in field '.rows[0].\\u03b1', does not fit int8 (-128 to 127)",
        "the value 200 of m, in field '.rows[1].\\u03b1', does not fit int8 (-128 to 127)",
        "the value 100000.0 of n * 1000.0, in field ['a\"b'], does not fit float16",
    ]


def test_hostile_names_stay_text(twins):
    symbols = [Symbol(name) for name in HOSTILE]
    builder = builder_of(*symbols)
    builder.launch("k", tuple(8 // symbol for symbol in symbols), 1, 1)
    rows = [tuple(int(place != zero) for place in range(len(symbols))) for zero in range(len(symbols))]
    assert said_of(twins, builder, *rows) == [
        'division by zero in 8 // "a\\"b"',
        'division by zero in 8 // "a\'b\\\\"',
        'division by zero in 8 // "a\\nb\\r\\t"',
        'division by zero in 8 // "a\\u0000b"',
        'division by zero in 8 // "??/"',
        'division by zero in 8 // "{a} {fallback} %s %n"',
        'division by zero in 8 // "*/ // #"',
        'division by zero in 8 // "\\u03b1\\ud83d\\ude00"',
        'division by zero in 8 // "a\\udc80b"',
        "division by zero in 8 // failed",
        'division by zero in 8 // "select"',
        'division by zero in 8 // "\\"); raise SystemExit(\\""',
        f"division by zero in 8 // {'n' * 115}...",
    ]


def test_the_text_of_a_deep_expression_is_cut(twins):
    expr = N
    for _ in range(97):
        expr = M + expr
    (said,) = said_of(twins, grid_of(expr), (2**63 - 1, 1))
    assert said == "the value 9223372036854775808 of m + n does not fit 64 signed bits"
    (said,) = said_of(twins, grid_of(expr), (2**63 - 97, 1))
    assert said == f"the value 9223372036854775808 of {'m + (' * 24}... does not fit 64 signed bits"
