"""What each example launches, read back from a graph: every byte of every parameter, dims, attributes, order.

What must be there is written out here by hand, from the tensors of the call; nothing is asked of the plan.
"""

from __future__ import annotations

import struct

import pytest
import torch
from gpu_reading import maps, trials
from gpu_reading.captures import PLAIN, capture, int32, int64, pointer, scratch, shown

import trunnion
from trunnion import errors, examples
from trunnion.launcher.l2_persisting import SetAsideWarning
from trunnion.testing.gpu import readback

pytestmark = pytest.mark.gpu


def test_vector_add(build):
    with capture(build, "vector_add") as (taken, (a, b), c):
        (launch,) = taken.nodes
        assert launch.symbol == "vector_add"
        assert (launch.grid, launch.block) == ((391, 1, 1), (256, 1, 1))
        assert launch.parameters == (pointer(a), pointer(b), pointer(c), *int32(100_003))
        assert shown(launch) == PLAIN


def test_an_empty_vector_launches_nothing(build):
    with build(examples.load("vector_add").program) as program:
        empty, marker = torch.empty(0, device="cuda"), torch.zeros(1, device="cuda")
        program.preload(0)
        taken = readback.captured(lambda: (program(empty, empty), marker.add_(1))[0])
        (launch,) = taken.nodes  # the marker's: torch warns of a graph that holds nothing
        assert launch.symbol != "vector_add"
        assert taken.result.shape == (0,)


@pytest.mark.parametrize("bias", [True, False])
def test_affine(build, bias):
    def make(generator, device):
        return examples.load("affine").inputs(generator, device, bias=bias)

    with capture(build, "affine", make) as (taken, args, y):
        x, added, gain, offset, rectify, _ = args
        (launch,) = taken.nodes
        assert (launch.grid, launch.block) == ((2, 50, 1), (256, 1, 1))
        assert launch.parameters == (
            pointer(x),
            pointer(added) if bias else bytes(8),
            pointer(y),
            *int64(2, 100, 300),
            struct.pack("<f", gain),
            *int64(offset),
            struct.pack("<?", rectify),
            bytes.fromhex("cd3d"),  # 0.1 as a bfloat16, rounded to nearest: 0x3dcd
        )
        assert shown(launch) == PLAIN


def test_histogram(build):
    with capture(build, "histogram") as (taken, args, (counts, outside, shares)):
        x, limits, weights, bins, _ = args
        assert {(one.address, one.nbytes) for one in taken.memsets} == {
            (counts.data_ptr(), 4 * bins),
            (outside.data_ptr(), 4),
            (shares.data_ptr(), 4 * bins),
        }
        (filled,) = [one for one in taken.memsets if one.address == shares.data_ptr()]
        assert (filled.element_bytes, filled.value) == (4, 0xBF800000)  # -1.0
        count, share = taken.launches
        assert count.parameters == (
            pointer(x),
            limits,
            pointer(weights.tensor),
            pointer(counts),
            pointer(outside),
            *int32(bins, 10_007),
        )
        assert (share.grid, share.block) == ((1, 1, 1), (256, 1, 1))
        assert share.parameters == (pointer(counts), pointer(outside), pointer(shares), *int32(bins))
        assert isinstance(taken.nodes[-1], readback.ReadLaunch)
        assert taken.nodes[-1].symbol == "share"


def test_a_launch_that_is_not_wanted_is_not_there(build):
    def make(generator, device):
        return examples.load("histogram").inputs(generator, device, weighted=False, with_shares=False)

    with capture(build, "histogram", make) as (taken, _, _):
        (count,) = taken.launches
        assert count.symbol == "count"
        assert count.parameters[2] == bytes(8)


def test_pdl_pair(build):
    with capture(build, "pdl_pair") as (taken, (x, bias), y):
        produce, consume = taken.nodes
        assert (produce.symbol, consume.symbol) == ("produce", "consume")
        squares = produce.parameters[1]
        scratch(squares)
        assert produce.parameters == (pointer(x), squares, *int32(100_003))
        assert consume.parameters == (squares, pointer(bias), pointer(y), *int32(100_003))
        assert taken.edges == {(0, 1, readback.PROGRAMMATIC)}
        assert shown(produce) == shown(consume) == PLAIN


def test_split_k(build):
    with capture(build, "split_k") as (taken, (a, b), c):
        zeroed, part, finish = taken.nodes
        total = scratch(part.parameters[2])
        assert (zeroed.address, zeroed.value, zeroed.nbytes) == (total, 0, 50 * 70 * 4)
        assert (part.grid, part.block) == ((2, 3, 8), (32, 8, 1))
        sizes = int32(50, 70, 1001, 126)
        assert part.parameters == (pointer(a), pointer(b), struct.pack("<Q", total), *sizes)
        assert (finish.grid, finish.block) == ((14, 1, 1), (256, 1, 1))
        assert finish.parameters == (struct.pack("<Q", total), pointer(c), *int64(3500))
        assert taken.edges == {(0, 1, readback.SERIAL), (1, 2, readback.SERIAL)}


def test_grid_sync(build):
    with capture(build, "grid_sync") as (taken, (x,), y):
        zeroed, launch = taken.nodes
        partial, arrived = scratch(launch.parameters[2]), scratch(launch.parameters[3])
        assert abs(partial - arrived) >= 256
        assert (zeroed.address, zeroed.value, zeroed.nbytes) == (arrived, 0, 4)
        assert (launch.grid, launch.block) == ((64, 1, 1), (256, 1, 1))
        assert launch.parameters == (pointer(x), pointer(y), *launch.parameters[2:4], *int64(100_003))
        assert shown(launch) == PLAIN | {"cooperative": True}


@pytest.mark.parametrize(("name", "blocks"), [("cluster_norm", 2), ("cluster_norm_16", 16)])
def test_clusters(build, name, blocks):
    with capture(build, name) as (taken, (x, _), y):
        (launch,) = taken.nodes
        rows, n = x.shape
        assert (launch.grid, launch.block) == ((blocks, rows, 1), (256, 1, 1))
        assert launch.parameters == (pointer(x), pointer(y), *int32(n), struct.pack("<f", 1e-5))
        assert shown(launch) == PLAIN | {"cluster": (blocks, 1, 1)}


def test_segment_sum(build):
    with capture(build, "segment_sum") as (taken, (x, keys, segments), sums):
        zeroed, launch = taken.nodes
        nbytes = segments * x.shape[1] * 4
        assert (zeroed.address, zeroed.value, zeroed.nbytes) == (sums.data_ptr(), 0, nbytes)
        assert (launch.grid, launch.block) == ((300, 1, 1), (256, 1, 1))
        sizes = int32(x.shape[1], segments)
        assert launch.parameters == (pointer(x), pointer(keys), pointer(sums), *sizes)
        window = readback.Window(sums.data_ptr(), nbytes, 1.0, 2, 1)  # persisting, streaming
        assert shown(launch) == PLAIN | {"window": window}


def test_a_first_window_under_capture_is_captured_with_a_warning(build):
    example = examples.load("segment_sum")
    args = example.inputs(torch.Generator().manual_seed(3), "cuda:0")
    with build(example.program) as program:
        program.preload(0)
        with pytest.warns(SetAsideWarning, match="call it once before"):
            capture = readback.captured(lambda: program(*args))
        trials.assert_right(example, capture.replay(), args)
        trials.assert_right(example, program(*args), args)


def test_a_program_that_is_not_prepared_is_refused_under_capture_and_the_capture_goes_on(build):
    example = examples.load("pdl_pair")
    args = example.inputs(torch.Generator().manual_seed(3), "cuda:0")
    marker = torch.zeros(1, device="cuda")
    with build(example.program) as program:
        entry = program.entry  # loads the image, and prepares no device

        def call():
            with pytest.raises(errors.CaptureError, match="preload"):
                entry(*args)
            return marker.add_(1)

        assert readback.captured(call).replay().item() == 1
        trials.assert_right(example, program(*args), args)


def test_two_boxes(build):
    with capture(build, "two_boxes") as (taken, (matrix,), (rows, columns)):
        by_row, by_column = taken.nodes
        assert by_row.parameters == (
            maps.tiled(matrix, "FLOAT32", (8, 64)),
            pointer(rows),
            *int32(100, 72),
        )
        assert by_column.parameters == (
            maps.tiled(matrix, "FLOAT32", (64, 8)),
            pointer(columns),
            *int32(100, 72),
        )
        assert (by_row.grid, by_column.grid) == ((13, 1, 1), (9, 1, 1))
        assert taken.edges == {(0, 1, readback.SERIAL)}


def test_hopper_gemm(build):
    with capture(build, "hopper_gemm") as (taken, (a, b), c):
        (launch,) = taken.nodes
        assert (launch.grid, launch.block) == ((2, 3, 1), (288, 1, 1))
        like = {"swizzle": "128B", "l2_promotion": "L2_128B"}
        assert launch.parameters == (
            maps.tiled(a, "FLOAT16", (128, 64), **like),
            maps.tiled(b, "FLOAT16", (128, 64), **like),
            pointer(c),
            *int32(200, 328, 136),
        )
        assert shown(launch) == PLAIN | {"dynamic_smem_bytes": 99328}


def test_im2col_conv(build):
    with capture(build, "im2col_conv") as (taken, (pixels, filters), out):
        (launch,) = taken.nodes
        assert (launch.grid, launch.block) == ((4, 2, 1), (128, 1, 1))
        # Top 1, left 2; bottom 3 less the reach 2 of the taps, right 4 less their reach 4.
        corners = {"lower": (-1, -2), "upper": (1, 0)}
        assert launch.parameters == (
            maps.im2col(pixels, "FLOAT16", **corners, channels=32, pixels=64, l2_promotion="L2_128B"),
            maps.tiled(filters, "FLOAT16", (64, 1, 1, 32), l2_promotion="L2_128B"),
            pointer(out),
            *int32(2, 11, 9, 40, 72),
        )
        assert shown(launch) == PLAIN


def test_linked(build):
    with capture(build, "linked") as (taken, (x,), y):
        (launch,) = taken.nodes
        assert launch.symbol == "linked"
        assert launch.parameters == (pointer(x), pointer(y), *int64(10_007))


SOURCE = 'extern "C" __global__ void store(int* y) { y[blockIdx.x] = blockIdx.x + 1; }'


def stored(build, **fields):
    """Return what one launch of eight blocks with these fields is, and check that it ran."""
    p = trunnion.ProgramBuilder("store", trunnion.DeviceCode("cuda", SOURCE))
    y = p.output("y", "int32", (8,))
    p.launch("store", args=(y,), grid=8, block=32, **fields)
    with build(p.build()) as program:
        program.preload(0)
        taken = readback.captured(lambda: program(device=0))
        assert taken.replay().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
        (launch,) = taken.launches
        return launch


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ({"priority": -3}, {"priority": -3}),
        ({"carveout": 25}, {"carveout": 25}),
        ({"cluster": 2, "scheduling_policy": "spread"}, {"cluster": (2, 1, 1), "scheduling_policy": 1}),
        ({"cluster": 4, "scheduling_policy": "load_balancing"}, {"scheduling_policy": 2}),
        ({"mem_sync_domain": "remote"}, {"mem_sync_domain": 1}),
        ({"cooperative": True, "cluster": (2, 1, 1)}, {"cooperative": True, "cluster": (2, 1, 1)}),
        ({"cluster": (1, 1, 1)}, {"cluster": (1, 1, 1)}),
    ],
    ids=str,
)
def test_every_launch_attribute_arrives(build, fields, read):
    assert shown(stored(build, **fields), *read) == read


def test_a_window_over_part_of_a_tensor(build):
    p = trunnion.ProgramBuilder("store", trunnion.DeviceCode("cuda", SOURCE))
    y = p.output("y", "int32", (8,))
    part = y.window(
        element_offset=2, nbytes=16, hit_ratio=0.25, hit_property="streaming", miss_property="normal"
    )
    p.launch("store", args=(y,), grid=8, block=32, window=part)
    with build(p.build()) as program:
        program.preload(0)
        taken = readback.captured(lambda: program(device=0))
        (launch,) = taken.launches
        assert launch.window == readback.Window(taken.result.data_ptr() + 8, 16, 0.25, 1, 0)
