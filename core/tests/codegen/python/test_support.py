from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunnion.codegen.python import support
from trunnion.codegen.python.scalars import bfloat16_bits, boolean, integer, real
from trunnion.codegen.python.support import divisor, fits, in_range
from trunnion.errors import ArgumentTypeError, ArgumentValueError, ExprError, TrunnionError
from trunnion.model.interval import INT64_MAX, INT64_MIN

LIMIT = (2.0 - 2.0**-8) * 2.0**127


def value_of(bits: int) -> Fraction:
    """The exact value of a finite bfloat16."""
    (single,) = struct.unpack("<f", struct.pack("<I", bits << 16))
    return Fraction(single)


@given(
    st.floats(
        allow_nan=False,
        allow_infinity=False,
        min_value=-LIMIT,
        max_value=LIMIT,
        exclude_min=True,
        exclude_max=True,
    )
)
@example(1.00390625)  # a tie, to even below
@example(1.01171875)  # a tie, to even above
@example(1.00390625 + 2**-40)  # float32 would make it a tie first
@example(1.00390625 - 2**-40)
@example(-(1.01171875 - 2**-40))
@example(2.0**-134)  # half of the least subnormal: a tie, to zero
@example(2.0**-134 * (1 + 2**-50))
@example(5e-324)
@example(-5e-324)
@example(-0.0)
@example(2.0**-126 - 2.0**-170)
@example(math.nextafter(LIMIT, 0))
def test_bfloat16_is_the_nearest_with_ties_to_even(value: float) -> None:
    bits = bfloat16_bits(value)
    magnitude = bits & 0x7FFF
    assert magnitude < 0x7F80, "finite"
    assert bits >> 15 == (math.copysign(1, value) < 0)
    target = abs(Fraction(value))
    here = abs(target - value_of(magnitude))
    for other in (magnitude - 1, magnitude + 1):
        if 0 <= other < 0x7F80:
            there = abs(target - value_of(other))
            assert here < there or (here == there and magnitude % 2 == 0)


def test_bfloat16_of_what_is_not_finite() -> None:
    assert bfloat16_bits(math.inf) == 0x7F80
    assert bfloat16_bits(-math.inf) == 0xFF80
    assert bfloat16_bits(math.nan) == 0x7FC0


class Index:
    def __index__(self) -> int:
        return 5


class Tensorlike(Index):
    def data_ptr(self) -> int:
        return 0


@pytest.mark.parametrize(("value", "result"), [(3, 3), (-8, -8), (7, 7), (Index(), 5)])
def test_integer_takes(value: object, result: int) -> None:
    assert integer("x", value, -8, 7) == result


@pytest.mark.parametrize("value", [True, 1.0, "1", None, Tensorlike(), [1], 1j])
def test_integer_refuses_types(value: object) -> None:
    with pytest.raises(ArgumentTypeError, match="argument 'x'"):
        integer("x", value, -8, 7)


@pytest.mark.parametrize("value", [8, -9, 10**6000, -(10**6000)], ids=["8", "-9", "huge", "-huge"])
def test_integer_refuses_values(value: int) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        integer("x", value, -8, 7)
    assert caught.value.argument == "x"
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("value", "result"),
    [(1, 1.0), (1.5, 1.5), (Fraction(1, 4), 0.25), (-math.inf, -math.inf), (65519.99, 65519.99)],
)
def test_real_takes(value: object, result: float) -> None:
    assert real("x", value, 65520.0, "float16") == result
    assert math.isnan(real("x", math.nan, 65520.0, "float16"))


@pytest.mark.parametrize("value", [True, "1", None, 1j, Tensorlike(), [1.0]])
def test_real_refuses_types(value: object) -> None:
    with pytest.raises(ArgumentTypeError):
        real("x", value, 65520.0, "float16")


@pytest.mark.parametrize(
    "value", [65520, -65520.0, 1e300, 10**400, 10**6000, Fraction(10**6000)], ids=lambda v: type(v).__name__
)
def test_real_refuses_values(value: object) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        real("x", value, 65520.0, "float16")
    assert len(str(caught.value)) < 300


def test_boolean() -> None:
    assert boolean("x", True) is True
    for wrong in (0, 1, None, "True"):
        with pytest.raises(ArgumentTypeError):
            boolean("x", wrong)


def test_checked_arithmetic() -> None:
    for fine in (INT64_MIN, 0, INT64_MAX):
        assert fits(fine, "n + 1") == fine
    for wrong in (INT64_MIN - 1, INT64_MAX + 1):
        with pytest.raises(ExprError, match=rf"the value {wrong} of n \+ 1 does not fit 64 signed bits"):
            fits(wrong, "n + 1")
    assert divisor(-3, "n // m") == -3
    with pytest.raises(ExprError, match="division by zero in n // m"):
        divisor(0, "n // m")
    for left, right in ((7, -2), (-7, 2), (INT64_MIN, 1), (0, -1)):
        assert support.quotient(left, right, "q") == left // right
        assert support.remainder(left, right, "r") == left % right
        assert support.ceiling(left, right, "c") == -(-left // right)
    for divide in (support.quotient, support.remainder, support.ceiling):
        with pytest.raises(ExprError, match="division by zero in n // m"):
            divide(INT64_MIN, 0, "n // m")
    for divide in (support.quotient, support.ceiling):
        with pytest.raises(ExprError, match="of n // m does not fit 64 signed bits"):
            divide(INT64_MIN, -1, "n // m")
    assert in_range(5, 0, 5, "int8", "n") == 5
    for wrong in (-1, 6):
        with pytest.raises(ExprError, match=rf"the value {wrong} of n does not fit int8 \(0 to 5\)"):
            in_range(wrong, 0, 5, "int8", "n")


class Odd:
    dtype, shape, device = "torch.int8", (2, 3), "cpu"

    def dim(self) -> int:
        return 2

    def stride(self) -> tuple[int, ...]:
        return (1, 2)

    def is_contiguous(self) -> bool:
        raise RuntimeError


CALLS = {
    "count_error": (((1, 2), ("a",)), "got 2 arguments, expected 1 ('a')"),
    "out_count_error": (((1, 2), ("a",)), "got 2 tensors, expected 1 ('a')"),
    "dtype_error": (("a", Odd(), "int16"), "got a tensor of torch.int8, expected one of int16"),
    "no_tensor_error": (
        ("a", None),
        "got NoneType, expected a tensor; a parameter that is declared nullable=True",
    ),
    "place_error": (
        ("a", Odd(), "cuda"),
        "got a tensor on cpu, expected a tensor on a CUDA device; call .to('cuda')",
    ),
    "rank_error": (("a", Odd(), 3), "got 2 dimensions, shape (2, 3), expected 3 dimensions"),
    "extent_error": (("a", 1, 5, 6, "n"), "got extent 5 along dimension 1, expected 6 (n)"),
    "storage_error": (
        ("a", 4, 96),
        "got a storage with room for 4 bytes, expected room for the 96 bytes that its elements span",
    ),
    "stride_error": (("a", 1, 5, 6, "6"), "got stride 5 along dimension 1, expected 6"),
    "value_error": (("a", 5, 6, "n"), "got 5, expected 6 (n)"),
    "layout_error": (
        ("a", Odd()),
        "got strides (1, 2) for shape (2, 3), expected a contiguous row-major",
    ),
    "destination_error": (
        ("a", Odd()),
        "got strides (1, 2) for shape (2, 3), expected a contiguous row-major tensor to write into",
    ),
    "alignment_error": (("a", 24, 16), "got address 0x18, expected a multiple of 16 bytes"),
    "symbol_error": (("a", "the value", 5, "0 to 3"), "got 5 for the value, expected 0 to 3"),
    "condition_error": (("n is small",), "expected n is small"),
    "grid_error": (
        ("k", 1, 70000, 65535),
        "a grid of 70000 blocks along y for kernel 'k', expected 0 to 65535",
    ),
    "block_error": (("k", 0, 0, 1024), "got 0 threads along x for kernel 'k', expected 1 to 1024"),
    "wide_block_error": (("k", 2048), "a block of 2048 threads for kernel 'k', expected at most 1024"),
    "cluster_error": (
        ("k", 1, 5, 2),
        "a grid of 5 blocks along y for kernel 'k', expected a multiple of the cluster's 2",
    ),
    "negative_error": (("a", 1, -5), "got extent -5 along dimension 1, expected at least 0"),
    "view_error": (
        ("a", 1, 2**31),
        "got extent 2147483648 along dimension 1, expected -2147483648 to 2147483647: a view passes it as int32",
    ),
    "absent_error": (("a", "a window"), "got None, expected a tensor: a window reads it"),
    "unreadable_error": (
        (("a",), (Odd(),), RuntimeError("no shape\nat all")),
        "got Odd that refuses: no shape, expected a dense tensor in memory",
    ),
    "size_error": (
        ("w",),
        "argument 'w': got arguments that ask for 2**63 bytes of it or more, expected fewer",
    ),
    "smem_error": (("k", -1, 9), "got -1 bytes of shared memory for kernel 'k', expected 0 to 9"),
}


def test_every_error_is_one_of_ours_and_says_what_is_allowed() -> None:
    assert set(CALLS) == {name for name in support.__all__ if name.endswith("_error")}
    for name, (args, text) in CALLS.items():
        error = getattr(support, name)(*args)
        assert isinstance(error, TrunnionError)
        assert text in str(error)


def test_a_long_expression_is_cut() -> None:
    assert len(str(support.extent_error("a", 0, 1, 2, "n" * 10_000))) < 400
