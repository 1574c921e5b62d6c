"""What messages are made of: numbers and names, as Python writes them."""

from __future__ import annotations

import math
import struct
from random import Random
from typing import Any

import pytest

from trunnion.codegen.literals import cpp_name
from trunnion.errors import shorten


@pytest.fixture(scope="module")
def names() -> list[str]:
    random = Random(20)  # noqa: S311 - not for secrets
    alphabets = ["ab'", 'ab"', "'\"\\", "\n\r\t\0\x7f\x80\xff", "aé\u0100\ud800\uffff\U00010000\U0010ffff"]
    lengths = (0, 1, 2, 39, 40, 41, 79, 80, 81, 82, 200)
    drawn = ["".join(random.choices(each, k=length)) for each in alphabets for length in lengths]
    return [*drawn, *map(chr, range(0x200)), "a" * 40 + "'" * 41, '"' * 40 + "'" * 41, "'" * 41 + '"' * 40]


def test_names_are_quoted_as_everywhere(native: Any, names: list[str]) -> None:
    lines = native("messages", "".join(f"{cpp_name(name)},\n" for name in names))(b"").decode().split("\n")
    assert lines == [*map(shorten, names), ""]


def test_a_double_is_written_as_python_writes_it(native: Any) -> None:
    random = Random(20)  # noqa: S311 - not for secrets
    values = [
        0.0,
        math.inf,
        math.nan,
        5e-324,
        1.7976931348623157e308,
        65520.0,
        9007199254740993.0,
        1e22,
        1e23,
    ]
    values += [math.ldexp(1.0, exponent) for exponent in range(-1074, 1024)]  # the doubles below are nearer
    values += [float(f"1e{exponent}") for exponent in range(-30, 30)]
    values += [float(f"9.999999999e{exponent}") for exponent in range(-8, 20)]
    values += [random.randrange(10**6) / 1000 for _ in range(200)]
    values += [struct.unpack("<d", random.randbytes(8))[0] for _ in range(2000)]
    values += [-value for value in values]
    lines = native("messages", '""_name,')(struct.pack(f"<{len(values)}d", *values)).decode().splitlines()
    assert lines[:-1] == [*map(repr, values)]
