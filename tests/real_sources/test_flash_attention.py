"""FlashAttention-3's parameters as its own host code would set them, by hand; compiled to PTX."""

from __future__ import annotations

import math
import struct as packing

import pytest
from real_programs import flash_attention
from real_programs.flash_attention import COLUMNS, DIM, GROUPS, HEADS, ROWS, SHAPES

import trunnion
from trunnion.sim.tensormap import decode

NBYTES = 2368
LOADS = {448: ROWS, 640: None, 832: None}
"""Where the maps of queries, keys and values lie, and how many rows one of each loads; None: as many as the tile's."""
STORE = 1984


@pytest.fixture(scope="module", params=[False, True], ids=["full", "causal"])
def attention(request, running_simulator):
    """Yield whether it is causal, and the program as PTX: NVRTC 13.0's assembler ends the process on it."""
    program = flash_attention.program(causal=request.param)
    with trunnion.compile(program, "nvrtc", target="compute_90a") as built:
        yield request.param, built


def divmod_fields(number):
    """Return the project's divisor: ``2 ** (31 + log2)`` over the number, both rounded up, and the shift."""
    power = (number - 1).bit_length()
    rest = (0, 0) if number == 1 else (-(-(1 << (31 + power)) // number), power - 1)
    return packing.pack("<iII", number, *rest)


def scheduler_fields(batch, m, n, *, causal):
    """Return what lies from where the scheduler's parameters begin, without the counter."""
    tiles = -(-m // ROWS)
    common = packing.pack("<i", tiles * batch * HEADS) + divmod_fields(tiles) + divmod_fields(HEADS)
    if not causal:
        return common + divmod_fields(1)
    head = n * (DIM + DIM) * 2
    fitting = 1 if head > 1 << 25 else 1 << (((1 << 25) // head).bit_length() - 1)
    section = fitting * HEADS // GROUPS
    rest = batch * HEADS % section or 1
    numbers = b"".join(map(divmod_fields, (section, section * tiles, rest)))
    return common + numbers + packing.pack("<i", batch * HEADS // section)


def fields(given, results, shape):
    """Return the bytes that belong to each offset, maps and the scheduler excepted."""
    (q, k, v), (out, lse), (batch, m, n) = ([one.data_ptr() for one in given], results, shape)
    queries = packing.pack("<4i4x", m, DIM, HEADS, batch)[:16]
    keys = packing.pack("<4i", n, DIM, GROUPS, batch)
    rows, cached = (packing.pack("<3q", h * DIM, DIM, s * h * DIM) for s, h in ((m, HEADS), (n, GROUPS)))
    extents, strides = packing.pack("<5i4x", m, DIM, HEADS, batch, 1), rows + bytes(8)
    weights = packing.pack("<3q", m, m * HEADS, 0)
    scale = packing.pack("<f", math.log2(math.e) / math.sqrt(DIM))
    return {
        0: packing.pack("<Q", q) + (queries + rows) * 2 + packing.pack("<Q", k) + keys + cached,
        136: packing.pack("<Qi4x", v, DIM) + cached,
        400: divmod_fields(1) * 2 + divmod_fields(HEADS // GROUPS),
        1416: scale,
        1500: packing.pack("<2i", -1, -1),
        1520: packing.pack("<i", 1),
        1600: packing.pack("<Q", out.data_ptr()) + (extents + strides) * 2,
        1792: packing.pack("<Q", lse.data_ptr())
        + weights
        + packing.pack("<4i", m, HEADS, batch, 1)
        + weights,
        2244: packing.pack("<i", 132),
    }


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_the_params_are_what_the_projects_host_code_sets(attention, simulator, shape):
    causal, built = attention
    with simulator.torch_mode():
        given = flash_attention.arguments(shape, "cuda")
        results = built(*given)
    (event,) = (one for one in simulator.trace if isinstance(one, trunnion.sim.trace.Launched))
    (data,) = event.parameters
    start = 2280 if causal else 2276
    expected = bytearray(NBYTES)
    held = fields(given, results, shape) | {start: scheduler_fields(*shape, causal=causal)}
    held |= {offset: data[offset : offset + 128] for offset in (*LOADS, STORE)}
    if causal:
        held[2352] = data[2352:2360]  # a counter of the launcher's own
        assert any(held[2352])
    for offset, some in held.items():
        expected[offset : offset + len(some)] = some
    assert data == bytes(expected)
    for (offset, rows), tensor in zip(LOADS.items(), given, strict=True):
        check_map(decode(data[offset : offset + 128]), tensor, (64, rows or COLUMNS[causal], 1, 1))
    check_map(decode(data[STORE : STORE + 128]), results[0], (64, ROWS, 1, 1, 1))
    assert (event.grid, event.block) == ((132, 1, 1), (384, 1, 1))


def check_map(map_, tensor, box):
    batch, tokens, heads, _ = tensor.shape
    more = len(box) - 4
    assert map_.address == tensor.data_ptr()
    assert map_.dims == (DIM, tokens, heads, batch, *(1,) * more)
    assert map_.strides[:3] == (heads * DIM * 2, DIM * 2, tokens * heads * DIM * 2)
    assert map_.box == box
    assert map_.swizzle.name == "B128"
