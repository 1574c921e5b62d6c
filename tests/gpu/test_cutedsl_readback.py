"""What the examples in CuTeDSL launch, read back from a graph.

A tensor is its pointer, extents as int32 and strides as int64, where only a call decides them.
"""

from __future__ import annotations

import struct

import pytest
from gpu_reading import maps
from gpu_reading.captures import PLAIN, capture, int32, pointer, scratch, shown

from trunnion.testing.gpu import readback

pytestmark = pytest.mark.gpu


def named(launch, kernel):
    """Compare a symbol with the name that it was made of, and return what else says what is launched."""
    assert kernel in launch.symbol
    return launch.grid, launch.block


def check_vectors(parameters, *tensors):
    """Compare parameters with what vectors travel as, but for the bytes behind, which mean nothing."""
    for parameter, tensor in zip(parameters, tensors, strict=True):
        assert parameter[:12] == pointer(tensor) + struct.pack("<i", len(tensor))


def matrix(tensor):
    rows, columns = tensor.shape
    return pointer(tensor) + struct.pack("<iiq", rows, columns, columns)


def test_cutedsl_vector_add(build):
    with capture(build, "cutedsl_vector_add") as (taken, (a, b), c):
        (launch,) = taken.nodes
        assert named(launch, "vector_add") == ((391, 1, 1), (256, 1, 1))
        check_vectors(launch.parameters, a, b, c)
        assert shown(launch) == PLAIN


def test_cutedsl_pdl_pair(build):
    with capture(build, "cutedsl_pdl_pair") as (taken, (x, bias), y):
        produce, consume = taken.nodes
        squares = produce.parameters[1]
        scratch(squares[:8])
        assert squares[8:12] == struct.pack("<i", len(x))
        assert named(produce, "produce") == named(consume, "consume") == ((391, 1, 1), (256, 1, 1))
        check_vectors(produce.parameters[:1], x)
        assert consume.parameters[0][:12] == squares[:12]
        check_vectors(consume.parameters[1:], bias, y)
        assert taken.edges == {(0, 1, readback.PROGRAMMATIC)}


def test_cutedsl_split_k(build):
    with capture(build, "cutedsl_split_k") as (taken, (a, b), c):
        zeroed, part, finish = taken.nodes
        total = scratch(part.parameters[2][:8])
        assert (zeroed.address, zeroed.value, zeroed.nbytes) == (total, 0, 50 * 70 * 4)
        assert named(part, "multiply_part") == ((3, 7, 8), (32, 8, 1))
        whole = struct.pack("<Qiiq", total, 50, 70, 70)
        assert part.parameters == (matrix(a), matrix(b), whole, *int32(126))
        assert named(finish, "finish") == ((14, 1, 1), (256, 1, 1))
        assert finish.parameters == (whole, matrix(c))
        assert taken.edges == {(0, 1, readback.SERIAL), (1, 2, readback.SERIAL)}


def test_cutedsl_hopper_gemm(build):
    with capture(build, "cutedsl_hopper_gemm") as (taken, (a, b), c):
        (launch,) = taken.nodes
        assert named(launch, "hopper_gemm") == ((2, 6, 1), (128, 1, 1))
        like = {"swizzle": "128B", "l2_promotion": "L2_128B"}
        assert launch.parameters == (
            maps.tiled(a, "FLOAT16", (128, 64), **like),
            maps.tiled(b, "FLOAT16", (64, 64), **like),
            matrix(c),
            *int32(136),
        )
        assert shown(launch) == PLAIN | {"dynamic_smem_bytes": 1024 + 3 * 2 * 64 * (128 + 64)}
