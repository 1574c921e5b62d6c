"""Doubles in the bits of narrower formats: every value, every boundary between two of them, and random doubles."""

from __future__ import annotations

import math
import struct
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from trunnion.codegen.cpp.formats import format_line
from trunnion.model.scalars import FLOAT_FORMATS, overflow_limit

NARROW = [name for name in FLOAT_FORMATS if name != "float64"]
"""In the order of the table in ``native/floats.cc``."""
NARROWED = len(NARROW)
"""The number under which that program knows ``narrow_float``."""
REFUSED = 0xFFFFFFFF
RECORD = np.dtype([("format", "<u8"), ("value", "<f8")])


@pytest.fixture(scope="module")
def encode(native: Any) -> Any:
    formats = [format_line(name) for name in NARROW]
    table = ", ".join(f"&kFormat_{name}" for name in NARROW)
    run = native("floats", "\n".join([*formats, f"static const FloatFormat* const table[] = {{{table}}};"]))

    def encoded(number: int, values: np.ndarray) -> np.ndarray:
        records = np.empty(len(values), RECORD)
        records["format"], records["value"] = number, values
        return np.frombuffer(run(records.tobytes()), "<u4")

    return encoded


def magnitudes(name: str) -> np.ndarray:
    """Return every value that is neither negative nor infinite, by its bits, and what would follow the greatest one."""
    form, kind = FLOAT_FORMATS[name], getattr(torch, name)
    bits = torch.arange(form.greatest + 1, dtype=torch.int64)
    narrow = torch.uint8 if kind.itemsize == 1 else torch.uint16
    values = bits.to(narrow).view(kind).to(torch.float64).numpy()
    step = values[-1] if form.mantissa_bits == 0 else values[-1] - values[-2]
    return np.append(values, values[-1] + step)


@pytest.mark.parametrize("name", [name for name in NARROW if name != "float32"])
def test_every_value_and_every_boundary(encode: Any, name: str) -> None:
    form, number = FLOAT_FORMATS[name], NARROW.index(name)
    values = magnitudes(name)
    codes = np.arange(len(values), dtype=np.uint32)
    low, middle = codes[:-1], (values[:-1] + values[1:]) / 2
    # An even significand; where none is stored, it is always 1, and the one of the carry is even.
    even = low + 1 if form.mantissa_bits == 0 else low + (low & 1)
    cases = [
        (values[:-1], low),
        (middle, even),
        (np.nextafter(middle, 0), low),
        (np.nextafter(middle, np.inf), low + 1),
        (np.nextafter(values[1:-1], 0), low[1:]),
        (np.nextafter(values[1:-1], np.inf), low[1:]),
    ]
    given = np.concatenate([case for case, _ in cases])
    wanted = np.concatenate([code for _, code in cases])
    beyond = wanted > form.greatest
    assert beyond.any()
    if form.signed:
        sign = 1 << (form.exponent_bits + form.mantissa_bits)
        negative = np.where((wanted == 0) & (not form.negative_zero), 0, wanted | sign)
        given, wanted = np.concatenate([given, -given]), np.concatenate([wanted, negative])
        beyond = np.concatenate([beyond, beyond])
    wanted = np.where(beyond, REFUSED, wanted)
    got = encode(number, given)
    wrong = np.flatnonzero(got != wanted)
    assert not len(wrong), [(given[i].hex(), hex(got[i]), hex(wanted[i])) for i in wrong[:5]]


def special() -> list[float]:
    edges = [0.0, 5e-324, 2.0**-1074 * 3, 2.0**-1022, 2.0**-1023, 1.7976931348623157e308, math.inf]
    for name in NARROW:
        form = FLOAT_FORMATS[name]
        least = 2.0 ** (1 - form.bias - form.mantissa_bits)
        edges += [least, least / 2, least * 0.75, least * 1.5, 2.0**-form.bias, 2.0 ** (-form.bias - 1)]
    edges += [limit for limit in map(overflow_limit, FLOAT_FORMATS) if math.isfinite(limit)]
    edges += [near for edge in edges for near in (math.nextafter(edge, 0), math.nextafter(edge, math.inf))]
    payloads = [
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, (0xFFF8 << 48) + 5)
    ]
    return [*edges, *(-edge for edge in edges), *payloads]


@pytest.mark.parametrize("name", NARROW)
def test_doubles_are_rounded_as_the_model_rounds_them(encode: Any, name: str) -> None:
    form = FLOAT_FORMATS[name]
    random = Random(name)  # noqa: S311 - not for secrets
    values = special()
    values += [math.ldexp(random.uniform(-2, 2), random.randint(-160, 130)) for _ in range(2000)]
    values += [struct.unpack("<d", random.randbytes(8))[0] for _ in range(500)]
    # Few bits: many lie exactly between two values.
    values += [
        math.ldexp(
            random.randrange(1 << (form.mantissa_bits + 3)), random.randint(-form.bias - 30, form.bias)
        )
        for _ in range(1000)
    ]
    got = encode(NARROW.index(name), np.array(values)).tolist()
    for value, bits in zip(values, got, strict=True):
        expected = form.encode(value)
        assert bits == (REFUSED if expected is None else expected), value.hex()


def test_a_float_is_what_the_python_launcher_packs(encode: Any) -> None:
    random = Random(32)  # noqa: S311 - not for secrets
    values = special() + [math.ldexp(random.uniform(-2, 2), random.randint(-160, 130)) for _ in range(2000)]
    limit = overflow_limit("float32")
    for value, bits in zip(values, encode(NARROWED, np.array(values)).tolist(), strict=True):
        refused = math.isfinite(value) and abs(value) >= limit
        wanted = REFUSED if refused else struct.unpack("<I", struct.pack("<f", value))[0]
        assert bits == wanted, value.hex()
