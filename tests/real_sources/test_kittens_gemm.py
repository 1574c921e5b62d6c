"""ThunderKittens' globals: three layouts of 256 bytes, each with address, extents and a map over panels."""

from __future__ import annotations

import struct as packing

import pytest
from real_programs import kittens_gemm as SUBJECT  # noqa: N812 - what the fixtures build

from trunnion.sim.tensormap import decode

LAYOUT = 256
"""Bytes: 8 and 2 times 8 of address and extents, to a multiple of 64, 128 of the map, 1 of the empty rest, padding."""


@pytest.mark.parametrize("shape", SUBJECT.SHAPES[:2])
def test_the_globals_arrive_as_declared(launched, shape):
    (a, b), c, (event,) = launched(SUBJECT, shape)
    (data,) = event.parameters
    assert len(data) == 3 * LAYOUT
    for place, matrix in enumerate((a, b, c)):
        rows, columns = matrix.shape
        one = data[place * LAYOUT : (place + 1) * LAYOUT]
        address, unused, found_rows, found_columns = packing.unpack("<QQQQ", one[:32])
        assert (address, unused, found_rows, found_columns) == (matrix.data_ptr(), 0, rows, columns)
        _check_map(decode(one[64:192]), matrix)
        assert one[32:64] == bytes(32)
        assert one[192:] == bytes(64)
    assert (event.grid, event.block) == ((132, 1, 1), (384, 1, 1))
    assert event.dynamic_smem_bytes == 232448 - 1024


def _check_map(map_, matrix):
    """Compare a map with what the project's own host code asks of the driver, innermost dimension first."""
    rows, columns = matrix.shape
    assert map_.address == matrix.data_ptr()
    assert map_.data_type.name == "BFLOAT16"
    assert map_.dims == (64, rows, columns // 64, 1, 1)
    assert map_.strides == (columns * 2, 128, rows * columns * 2, rows * columns * 2)
    assert map_.box == (64, 64, 1, 1, 1)
    assert map_.element_strides == (1, 1, 1, 1, 1)
    assert (map_.swizzle.name, map_.interleave.name, map_.oob_fill.name) == ("B128", "NONE", "NONE")
