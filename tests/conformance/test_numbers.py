"""Numbers at their edges: every installed backend delivers the same bytes, or raises the same error."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trunnion.errors import TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv, select
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import Launched
from trunnion.testing.machine import synthetic_image

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram
    from trunnion.testing.harness import Harness

INT64_MIN, INT64_MAX, UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


@dataclass(frozen=True)
class Case:
    program: KernelProgram
    calls: tuple[tuple[Any, ...], ...]


def symbol_of_uint64() -> Case:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n", min=-5)
    p.scalar("s", "uint64", symbol=n)
    p.launch("k", (n + 7,), 1, 1)
    return Case(p.build(), ((5,), (UINT64_MAX,), (-1,), (2**63,), (2**64,)))


def symbol_of_two_scalars() -> Case:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n", min=-5, multiple_of=5)
    p.scalar("narrow", "int8", symbol=n)
    p.scalar("wide", "uint64", symbol=n)
    p.launch("k", (n + 7,), 1, 1)
    return Case(p.build(), ((5, 5), (-5, UINT64_MAX - 4), (-5, -5), (5, 10), (0, 2**63), (7, 7)))


def symbol_of_the_least_integers() -> Case:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n", min=INT64_MIN, max=5)
    p.scalar("s", "int64", symbol=n)
    p.launch("k", (n - 7, ceildiv(n, 3), n // -1, n % -3, select(n + 5, -n, n).cast("uint64")), 1, 1)
    near = (INT64_MIN, INT64_MIN + 1, INT64_MIN + 6, INT64_MIN + 7, INT64_MIN + 8)
    return Case(p.build(), tuple((value,) for value in (5, 6, 0, -5, -1, *near, INT64_MIN - 1)))


def symbol_of_an_absent_tensor() -> Case:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, m = Symbol("n"), Symbol("m", min=1)
    t = p.input("t", "float32", (n, m), nullable=True)
    p.scalar("signed", "int32", symbol=n)
    p.scalar("unsigned", "uint64", symbol=m)
    p.launch("k", (t, 100 // (n + 1), 100 // m), 1, 1)
    return Case(p.build(), ((None, 4, 3), (None, -1, 3), (None, -5, 3), (None, 4, 0), (None, 4, UINT64_MAX)))


def scalars_of_every_width() -> Case:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    kinds = ("int8", "uint16", "uint64", "bool", "float16", "bfloat16", "float8_e4m3fn", "complex32")
    p.launch("k", tuple(p.scalar(f"s{kind}", kind) for kind in kinds), 1, 1)
    good = (-128, 65535, UINT64_MAX, True, 65519.999, 2.0**-133, 464.0, 0.1 - 65504j)
    others = {
        0: (-129, 1.0, True, None, np.int64(5)),
        2: (2**63, -1, 2**64, INT64_MIN, 10**400, np.uint64(UINT64_MAX), ctypes.c_void_p(7)),
        3: (1, np.True_, None),
        4: (65520.0, -65520, 2**70, math.inf, 10**400, np.float32(0.1), "1"),
        6: (464.1, math.inf, -0.0, 7, False),
        7: (1, 1.5, complex(0, 65520), True, "1j", np.complex64(1j), b"12345678"),
    }
    calls = [good]
    for place, values in others.items():
        calls += [(*good[:place], value, *good[place + 1 :]) for value in values]
    return Case(p.build(), tuple(calls))


def addresses_and_bytes() -> Case:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (p.pointer("p", nullable=True, alignment=16), p.pointer("q"), p.struct("u", 9, 1)), 1, 1)
    data = b"123456789"
    calls = [(None, 1, data), (0, UINT64_MAX, bytearray(data)), (2**63, 2**63 + 1, memoryview(data))]
    calls += [(wrong, 1, data) for wrong in (8, -16, 2**64, 2**63 + 8, 16.0, True, "16", b"16")]
    calls += [(16, wrong, data) for wrong in (None, 0, -1)]
    calls += [
        (16, 1, wrong) for wrong in (data[1:], data + b"0", "123456789", 9, None, memoryview(data * 2)[::2])
    ]
    return Case(p.build(), tuple(calls))


CASES = (
    symbol_of_uint64,
    symbol_of_two_scalars,
    symbol_of_the_least_integers,
    symbol_of_an_absent_tensor,
    scalars_of_every_width,
    addresses_and_bytes,
)


def outcomes(harness: Harness, case: Case) -> list[str]:
    """Return what the driver was given, or the error, for each call."""
    loaded = harness.load(harness.build(case.program, synthetic_image(case.program)))
    found = []
    for args in case.calls:
        before = len(harness.simulator.trace)
        try:
            loaded.call(args, device=0)
        except TrunnionError as error:
            found.append(f"{type(error).__name__}: {error}")
        else:
            launched = [one for one in harness.simulator.trace[before:] if isinstance(one, Launched)]
            found.append(str([one.parameters for one in launched]))
    loaded.close()
    return found


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_numbers_at_their_edges(harnesses: Any, make: Any) -> None:
    case = make()
    found = {name: outcomes(harness, case) for name, harness in harnesses.items()}
    first = next(iter(found.values()))
    assert any("Error" in one for one in first)
    assert not all("Error" in one for one in first)
    for name, other in found.items():
        assert other == first, name
