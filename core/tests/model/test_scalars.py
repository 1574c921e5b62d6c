"""Rounding against a list of every value that a format has, and against the platform's own conversions."""

from __future__ import annotations

import bisect
import itertools
import math
import struct
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import ProgramError
from trunnion.model.dtypes import DTYPES, Kind, dtype
from trunnion.model.scalars import FLOAT_FORMATS, scalar_bytes, scalar_value

EIGHT_BITS = sorted(name for name in FLOAT_FORMATS if name.startswith("float8"))


def values(name: str) -> list[tuple[Fraction, int]]:
    """Return every finite value with its bits, as torch reads them, in ascending order."""
    bits = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    numbers = bits.view(getattr(torch, name)).to(torch.float64).tolist()
    finite = [(Fraction(x), code) for code, x in enumerate(numbers) if math.isfinite(x)]
    return sorted(finite, key=lambda pair: (pair[0], pair[1] < 128))


def nearest(name: str, value: float) -> set[int]:
    """Return the bits of the nearest values: two only where a zero has two signs."""
    table, exact = values(name), Fraction(value)
    numbers = [number for number, _ in table]
    at = bisect.bisect_left(numbers, exact)
    around = sorted({numbers[i] for i in (at - 1, at) if 0 <= i < len(numbers)})
    least = min(abs(exact - number) for number in around)
    best = [number for number in around if abs(exact - number) == least]
    if len(best) == 2:  # a tie: the even one of two neighbours
        best = [number for number in best if all(code % 2 == 0 for n, code in table if n == number)]
    return {code for number, code in table if number == best[0]}


def greatest(name: str) -> float:
    return float(max(number for number, _ in values(name)))


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_every_value_of_eight_bits_keeps_its_bits(name: str) -> None:
    for number, code in values(name):
        got = FLOAT_FORMATS[name].encode(float(number))
        assert got == code or number == 0


@pytest.mark.parametrize("name", [name for name in EIGHT_BITS if name != "float8_e8m0fnu"])
@given(st.data())
def test_eight_bits_are_rounded_once_to_the_nearest(name: str, data: st.DataObject) -> None:
    top = greatest(name)
    number = data.draw(st.floats(-top, top) | st.floats(-(2.0**-5), 2.0**-5))
    assert FLOAT_FORMATS[name].encode(number) in nearest(name, number)


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_ties_between_neighbours_go_to_the_even_one(name: str) -> None:
    table = sorted({number for number, _ in values(name)})
    for low, high in itertools.pairwise(table):
        middle = float((low + high) / 2)
        got = FLOAT_FORMATS[name].encode(middle)
        if name == "float8_e8m0fnu":  # no fraction: the significand 1.5 lies between 1 and 2, and 2 is even
            assert got == dict(values(name))[high]
        else:
            assert got in nearest(name, middle)


@given(st.floats(allow_nan=False))
@pytest.mark.parametrize(("name", "code"), [("float16", "e"), ("float32", "f"), ("float64", "d")])
def test_the_platform_rounds_alike(name: str, code: str, number: float) -> None:
    try:
        wanted = struct.pack(f"<{code}", number)
    except OverflowError:
        with pytest.raises(ProgramError):
            scalar_bytes(number, dtype(name), "fill")
    else:
        assert scalar_bytes(number, dtype(name), "fill") == wanted


@given(st.floats(allow_nan=False, width=32, max_value=2.0**127, min_value=-(2.0**127)))
def test_bfloat16_is_torch_s(number: float) -> None:
    wanted = torch.tensor(number, dtype=torch.float32).to(torch.bfloat16).view(torch.uint16).item()
    assert FLOAT_FORMATS["bfloat16"].encode(number) == wanted


def test_a_double_just_above_a_tie_is_rounded_once() -> None:
    # By way of float32 this would be a tie, and go down to 1.
    number = 1 + 2**-8 + 2**-40
    assert FLOAT_FORMATS["bfloat16"].encode(number) == 0x3F81
    assert FLOAT_FORMATS["bfloat16"].encode(1 + 2**-8) == 0x3F80


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("float8_e4m3fn", 465.0),
        ("float8_e4m3fn", math.inf),
        ("float8_e4m3fnuz", -249.0),
        ("float8_e5m2", 61440.0),
        ("float8_e8m0fnu", 0.0),
        ("float8_e8m0fnu", -1.0),
        ("float8_e8m0fnu", 2.0**-129),
        ("float16", 65520.0),
        ("float32", 10**400),
        ("complex32", complex(1, 65520.0)),
        ("float4_e2m1fn_x2", 1.0),
        ("int8", 128),
        ("uint8", -1),
        ("int32", 1.0),
        ("int32", True),
        ("bool", 1),
        ("float32", True),
        ("float32", 1j),
        ("float32", "1"),
    ],
)
def test_what_a_type_cannot_hold_is_refused(name: str, number: object) -> None:
    with pytest.raises(ProgramError) as caught:
        scalar_bytes(number, dtype(name), "fill")
    assert caught.value.field == "fill"


def test_zeros_infinities_and_nan_keep_what_the_format_has() -> None:
    encode = {name: form.encode for name, form in FLOAT_FORMATS.items()}
    assert encode["float8_e5m2"](math.inf) == 0x7C
    assert encode["float8_e5m2"](-math.inf) == 0xFC
    assert encode["float8_e4m3fn"](-0.0) == 0x80
    assert encode["float8_e4m3fnuz"](-0.0) == 0
    assert encode["float8_e4m3fnuz"](-(2.0**-30)) == 0
    for name in FLOAT_FORMATS:
        raw = scalar_bytes(math.nan, dtype(name), "fill")
        assert math.isnan(
            torch.frombuffer(bytearray(raw), dtype=getattr(torch, name)).to(torch.float64).item()
        )


def test_every_type_with_a_scalar_form_has_bytes_of_its_size() -> None:
    for row in DTYPES.values():
        if row.struct_code:
            one: object = True if row.kind is Kind.BOOL else 1
            raw = scalar_bytes(one, row, "fill")
            assert len(raw) == row.itemsize
            assert (
                torch.frombuffer(bytearray(raw), dtype=getattr(torch, row.name)).to(torch.complex128).item()
                == 1
            )


@pytest.mark.parametrize("name", [name for name in FLOAT_FORMATS if name not in {"float32", "float64"}])
def test_every_pattern_of_a_small_float_is_read_as_torch_reads_it(name: str) -> None:
    kind = dtype(name)
    integers = torch.arange(1 << 8 * kind.itemsize, dtype=torch.int32).to(
        torch.uint8 if kind.itemsize == 1 else torch.uint16
    )
    wanted = integers.view(kind.in_torch(torch)).to(torch.float64).tolist()
    found = [scalar_value(pattern.to_bytes(kind.itemsize, "little"), kind) for pattern in integers.tolist()]
    assert list(map(repr, found)) == list(map(repr, wanted))  # equal, NaNs and the sign of 0 too


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("bool", True),
        ("int8", -128),
        ("uint16", 65535),
        ("int64", -(1 << 63)),
        ("float32", 0.5),
        ("float64", 0.1),
        ("float64", 5e-324),
        ("float64", -math.inf),
        ("complex32", 1.5 - 2j),
        ("complex64", complex(-0.0, 0.25)),
        ("complex128", complex(math.inf, 0.1)),
    ],
)
def test_a_number_comes_back_from_its_bytes(name: str, number: complex) -> None:
    found = scalar_value(scalar_bytes(number, dtype(name), "x"), dtype(name))
    assert (type(found), repr(found)) == (type(number), repr(number))
