from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunnion.errors import ExprError, ProgramError
from trunnion.model.expr import Const, Expr, Op, Slot, Symbol, binary, ceildiv, minimum, select, symbols
from trunnion.model.expr_text import brief_expr, format_expr, parse_expr
from trunnion.model.interval import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from typing import SupportsIndex

HOSTILE = (
    "select",
    "cast",
    "ceildiv",
    "int32",
    '"',
    "\\",
    "a b",
    "\n",
    "\0",
    "é",
    "😀",
    "\ud800",
    "1",
    "-1",
    "x)",
    "",
    "٣",
)
NAMES = st.sampled_from([name for name in HOSTILE if name]) | st.text(min_size=1) | st.sampled_from("abn")
NUMBERS = st.integers(-3, 3) | st.sampled_from((INT64_MIN, INT64_MAX)) | st.integers(INT64_MIN, INT64_MAX)


def build(make: object, *args: object) -> Expr:
    try:
        return make(*args)
    except ExprError:  # fails in every call
        return args[-1]


EXPRS = st.recursive(
    NUMBERS.map(Const) | NAMES.map(Symbol),
    lambda inner: (
        st.builds(lambda op, a, b: build(binary, op, a, b), st.sampled_from(Op), inner, inner)
        | st.builds(select, inner, inner, inner)
        | st.builds(
            lambda to, a: build(lambda e: e.cast(to), a),
            st.sampled_from(("int8", "int32", "int64", "uint64")),
            inner,
        )
    ),
    max_leaves=20,
)


def read(text: str) -> Expr:
    return parse_expr(text, Symbol)


@given(EXPRS)
def test_parsing_undoes_formatting(expr: Expr) -> None:
    assert read(format_expr(expr)) == expr


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("1 + 2 * 3", "7"),
        ("n - m - 1", "((n - m) - 1)"),
        ("n - (m - 1)", "(n - (m - 1))"),
        ("n + m * 2", "(n + (m * 2))"),
        ("n // 2 % 3", "((n // 2) % 3)"),
        ("-n * m", "((0 - n) * m)"),
        ("1 | 2 ^ 6 & 3 << 1 + 1", "7"),
        ("n | m ^ n & m << n + m * 2", "(n | (m ^ (n & (m << (n + (m * 2))))))"),
        ("n * 2 + m >> 3 & m ^ n | m", "((((((n * 2) + m) >> 3) & m) ^ n) | m)"),
        ("n << m << 2 - 1", "((n << m) << 1)"),
        ("n & -2", "(n & -2)"),
        ("-n & m", "((0 - n) & m)"),
        ("gcd(n,12)", "gcd(n, 12)"),
        ('"gcd" ^ 1', '("gcd" ^ 1)'),
        ("--5", "5"),
        ("- 5", "-5"),
        ("n--5", "(n - -5)"),
        ("n+ -5", "(n + -5)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("ceildiv(n,128)", "ceildiv(n, 128)"),
        ('"a b" + "cast"', '("a b" + "cast")'),
        ('"n"', "n"),
        ("cast(int32, n)", "cast(int32, n)"),
        ("select(n, 1, m)", "select(n, 1, m)"),
        ("\tn\n", "n"),
    ],
)
def test_what_people_write(text: str, expr: str) -> None:
    assert format_expr(read(text)) == expr


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "(",
        ")",
        "()",
        "n m",
        "1 2",
        "1n",
        "n +",
        "+ n",
        "* n",
        "n / 2",
        "n ** 2",
        "n < 2",
        "n <",
        "n <<< 2",
        "n && m",
        "n || m",
        "~n",
        "n << 64",
        "n >> -1",
        "gcd(n)",
        "n.real",
        "n[0]",
        "f(n)",
        "select(n, 1)",
        "select(n, 1, 2, 3)",
        "select",
        "cast(n, int32)",
        "cast(float32, n)",
        "cast(",
        "ceildiv(n)",
        "minimum(1, 2",
        "9223372036854775808",
        "-9223372036854775809",
        "1" * 21,
        "1" * 5000,
        "n // 0",
        '"a',
        '"\\x"',
        '"a\nb"',
        '""',
        "\0",
        "٣",
        "n\u00b2",
        "__import__('os')",
        "n" * 30 + "$",
        "(" * 5000,
        "-" * 5000 + "n",
        "n" + "+n" * 200,
        "minimum(1," * 300,
        "x" * (1 << 20) + "y",
    ],
    ids=lambda text: text[:12].encode().hex(),
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        read(text)
    assert len(str(caught.value)) < 1000


@given(
    st.text()
    | st.text('()+-*/%,"\\ 019nselectcast')
    | st.lists(
        st.sampled_from(
            ("n", "1", "(", ")", "-", "+", "//", ",", "cast", "int32", "select", "minimum", '"a"', "//")
        )
    ).map(" ".join)
)
@example("-" * 90 + "n")
def test_garbage_never_raises_anything_else(text: str) -> None:
    try:
        expr = read(text)
    except ProgramError as error:
        assert len(str(error)) < 1000  # noqa: PT017 - to be refused is one of two right ends
    else:
        assert read(format_expr(expr)) == expr


def deepest(grow: object) -> Expr:
    expr = symbols("n")[0]
    while expr.depth < 100:
        expr = grow(expr)
    return expr


@pytest.mark.parametrize(
    "grow",
    [
        lambda e: e + 1,
        lambda e: 1 - e,
        lambda e: minimum(e, 3),
        lambda e: ceildiv(3, e + 1) if e.depth < 99 else -e,
        lambda e: select(e, e.cast("int64"), 1) if e.nodes < 1000 and e.depth < 99 else e.cast("int64"),
    ],
)
def test_the_deepest_expressions_have_a_text(grow: object) -> None:
    expr = deepest(grow)
    assert read(format_expr(expr)) == expr


@pytest.mark.parametrize(
    "opener", ["(", "-", "minimum(1, ", "1 + 1 * minimum(1, ", "select(1, 2, ", "cast(int64, "]
)
def test_deep_nesting_is_an_error_and_no_recursion_error(opener: str) -> None:
    """The reader itself may stand deep in a stack: no text may use up the rest."""
    limit = sys.getrecursionlimit()
    frames = len(list(iter_frames()))
    sys.setrecursionlimit(frames + 750)
    try:
        with pytest.raises(ExprError, match="nesting"):
            read(opener * 400 + "n")
    finally:
        sys.setrecursionlimit(limit)


def iter_frames() -> object:
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


class Watched(str):
    """A text that counts the characters that methods of its own look at: what is left over, stripped or sliced."""

    __slots__ = ()
    looked_at = 0

    def rstrip(self, *given: str | None) -> Watched:
        return self.seen(super().rstrip(*given))

    def lstrip(self, *given: str | None) -> Watched:
        return self.seen(super().lstrip(*given))

    def strip(self, *given: str | None) -> Watched:
        return self.seen(super().strip(*given))

    def __getitem__(self, index: SupportsIndex | slice) -> Watched:
        return self.seen(super().__getitem__(index))

    def seen(self, part: str) -> Watched:
        Watched.looked_at += len(part)
        return Watched(part)


def test_a_long_text_is_looked_at_once_not_again_for_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "1 " * 1000
    monkeypatch.setattr("trunnion.model.expr_text.expression_text", Watched)
    monkeypatch.setattr(Watched, "looked_at", 0)
    with pytest.raises(ExprError):
        read(text)
    assert 0 < Watched.looked_at < 3 * len(text)


def test_too_long_a_text_is_refused() -> None:
    with pytest.raises(ExprError, match="at most 1048576"):
        read("1" * ((1 << 20) + 1))


@pytest.mark.parametrize("junk", [None, 5, b"n"])
def test_only_text_is_read(junk: object) -> None:
    with pytest.raises(ProgramError):
        parse_expr(junk, Symbol)


def test_a_slot_has_no_text() -> None:
    with pytest.raises(ExprError, match="Slot"):
        format_expr(Slot(0, 0, 1) + 1)


def test_a_plan_s_slots_bear_the_names_that_they_are_given() -> None:
    expr = select(Slot(0, 0, 9), Slot(1, 0, 9) + 1, Slot(2, 0, 9))
    assert format_expr(expr, ["n", "a b"]) == 'select(n, ("a b" + 1), "slot 2")'


def test_an_expression_is_printed_as_its_author_would_write_it() -> None:
    n = Symbol("n")
    assert str(n * 2) == f"{n * 2}" == "(n * 2)"
    assert str(Slot(3, 0, 9) * 2) == '("slot 3" * 2)'
    assert repr(Const(2)) == "Const(value=2)"


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Symbol("n") * 2 + 1, "(n * 2) + 1"),
        (ceildiv(Symbol("n") - 1, 8), "ceildiv((n - 1), 8)"),
        (Symbol("(a)"), '"(a)"'),
        (Symbol("a" * 120), "a" * 120),
        (Symbol("a" * 121), "a" * 120 + "..."),
        (Symbol("é\n") + 1, '"\\u00e9\\n" + 1'),
    ],
)
def test_a_message_shows_an_expression_briefly(expr: Expr, text: str) -> None:
    assert brief_expr(expr, ()) == text


@given(EXPRS)
def test_what_a_message_shows_is_the_beginning_of_the_text(expr: Expr) -> None:
    brief, whole = brief_expr(expr, ()), format_expr(expr)
    assert len(brief) <= 123
    assert brief.removesuffix("...") in whole
    assert brief.isascii()
    assert brief.isprintable()


def test_the_caller_decides_which_symbols_there_are() -> None:
    n = Symbol("n", max=4)
    assert parse_expr("n", {"n": n}.__getitem__) is n


@pytest.mark.parametrize("text", ["{}", "-{}", "n + {}", 'occupancy("k", {}, 0)'])
def test_a_long_number_is_named_as_it_was_written(text: str) -> None:
    with pytest.raises(ExprError, match="got '1234567890123456789012345', which does not fit 64 signed bits"):
        parse_expr(text.format("1234567890123456789012345"), lambda _: Symbol("n"))
