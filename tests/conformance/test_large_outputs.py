"""Outputs that no memory could have are refused as the program asks for them, whoever aligns them."""

from __future__ import annotations

import contextlib

import pytest

from trunnion.errors import ArgumentValueError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols


@pytest.mark.parametrize("alignment", [None, 4096])
@pytest.mark.parametrize("rows", [1 << 31, (1 << 31) + 1, 1 << 30])
def test_an_output_beyond_all_memory_is_refused(harnesses, rows, alignment):
    p = ProgramBuilder("p", DeviceCode("cuda", "// no text"))
    (n,) = symbols("n")
    p.scalar("n", "int64", symbol=n)
    # With 2**31 rows its bytes are a multiple of 2**64, which 64 bits take for none.
    y = p.output("y", "int8", (n, 1 << 33), alignment=alignment)
    p.launch("k", args=(y,), grid=1, block=1)
    program = p.build()
    for harness in harnesses.values():
        with (
            contextlib.closing(harness.load(harness.build(program))) as loaded,
            pytest.raises(ArgumentValueError, match=r"below 2\*\*63") as caught,
        ):
            harness.simulator.call(loaded.call, (rows,), device=0)
        assert str((rows, 1 << 33)) in str(caught.value), harness.name
        assert not harness.observed_launches()
