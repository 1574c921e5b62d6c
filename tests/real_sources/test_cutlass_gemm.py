"""CUTLASS's kernel parameters: each field where the compiler puts it, with what the kernel's host code says."""

from __future__ import annotations

import struct as packing

import pytest
from real_programs import cutlass_gemm as SUBJECT  # noqa: N812 - what the fixtures build

from trunnion.sim.tensormap import decode


@pytest.mark.parametrize("shape", SUBJECT.SHAPES[:2])
def test_the_params_arrive_as_declared(launched, shape):
    (a, b, alpha), d, (event,) = launched(SUBJECT, shape)
    (data,) = event.parameters
    m, n, k = shape
    maps = {64: a, 256: b}
    fields = {
        0: packing.pack("<4i", m, n, k, 1),
        448: packing.pack("<3I", 2 * 128 * 64 * 2, 128 * 64 * 2, 128 * 64 * 2),
        512: packing.pack("<2f", alpha, 0.0),
        576: packing.pack("<Q2q", d.data_ptr(), n, 0),
    }
    expected = bytearray(640)
    for offset, field in (fields | {offset: data[offset : offset + 128] for offset in maps}).items():
        expected[offset : offset + len(field)] = field
    assert data == bytes(expected)
    for offset, matrix in maps.items():
        _check_map(decode(data[offset : offset + 128]), matrix)
    assert (event.grid, event.block) == ((-(-m // 128), -(-n // 128), 1), (256, 1, 1))
    assert event.cluster == (1, 1, 1)
    assert event.dynamic_smem_bytes == 131200


def _check_map(map_, matrix):
    rows, k = matrix.shape
    assert map_.address == matrix.data_ptr()
    assert map_.data_type.name == "FLOAT16"
    assert map_.dims == (k, rows, 1)
    assert map_.strides == (k * 2, rows * k * 2)
    assert map_.box == (64, 128, 1)
    assert (map_.swizzle.name, map_.interleave.name, map_.oob_fill.name) == ("B128", "NONE", "NONE")
