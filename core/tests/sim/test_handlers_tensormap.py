import ctypes

import pytest

from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.status import Status
from trunnion.sim.tensormap import (
    Im2colRequest,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
    decode,
)
from trunnion.sim.trace import TensorMapEncoded

ADDRESS = 0x7F00_0000_0000
GOOD = {
    "address": ADDRESS,
    "data_type": 7,
    "dims": (64, 64),
    "strides": (256,),
    "box": (32, 8),
    "element_strides": None,
    "interleave": 0,
    "swizzle": 0,
    "l2_promotion": 0,
    "oob_fill": 0,
    "rank": None,
    "offset": 0,
}


def encode(library, **changes):
    """Encode a good request with changes; return the status and the bytes."""
    request = GOOD | changes
    rank = len(request["dims"]) if request["rank"] is None else request["rank"]
    raw = ctypes.create_string_buffer(512)
    target = -(-ctypes.addressof(raw) // 128) * 128 + request["offset"]
    steps = request["element_strides"] or (1,) * 5
    status = library(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(target),
        request["data_type"],
        rank,
        ctypes.c_void_p(request["address"]),
        (ctypes.c_uint64 * 5)(*request["dims"]),
        (ctypes.c_uint64 * 5)(*request["strides"]),
        (ctypes.c_uint32 * 5)(*request["box"]),
        (ctypes.c_uint32 * 5)(*steps),
        request["interleave"],
        request["swizzle"],
        request["l2_promotion"],
        request["oob_fill"],
    )
    return status, ctypes.string_at(target, TENSOR_MAP_BYTES)


R3 = {"dims": (64, 8, 8), "strides": (256, 2048), "box": (32, 2, 2)}

# Every row as an H200 under driver 580 answers, in the same order of arguments.
MEASURED = [
    ({}, True),
    ({"offset": 16}, True),
    ({"offset": 4}, True),
    ({"element_strides": (0, 1)}, False),
    ({"element_strides": (9, 1)}, False),
    ({"element_strides": (1, 0)}, False),
    ({"element_strides": (1, 8)}, True),
    ({"element_strides": (1, 9)}, False),
    ({"oob_fill": 1}, True),
    ({"oob_fill": 1, "data_type": 11}, True),
    ({"oob_fill": 1, "data_type": 3}, False),
    ({"oob_fill": 2}, False),
    ({"swizzle": 3}, True),
    ({"swizzle": 1}, False),
    ({"swizzle": 2}, False),
    ({"swizzle": 4}, False),
    ({"swizzle": 7}, False),
    ({"data_type": 13}, False),
    ({"data_type": 16}, False),
    ({"interleave": 1}, False),
    ({"interleave": 3}, False),
    ({"l2_promotion": 4}, False),
    ({"rank": 0}, False),
    ({"rank": 6}, False),
    ({"address": ADDRESS + 8}, False),
    ({"address": 0}, True),
    ({"strides": (0,)}, True),
    ({"strides": (16,)}, True),
    ({"strides": (264,)}, False),
    ({"strides": (1 << 40,)}, False),
    ({"strides": ((1 << 40) - 16,)}, True),
    ({"dims": (0, 64)}, False),
    ({"dims": (1 << 32, 64)}, True),
    ({"dims": ((1 << 32) + 1, 64)}, False),
    ({"box": (32, 257)}, False),
    ({"box": (32, 8), "dims": (64, 4)}, True),
    ({"box": (0, 8)}, False),
    ({"box": (3, 8)}, False),
    ({"dims": (64,), "strides": (), "box": (32,)}, True),
    (R3 | {"strides": (4096, 256)}, True),
    (R3 | {"interleave": 1}, True),
    (R3 | {"interleave": 1, "box": (3, 2, 2)}, False),
    (R3 | {"interleave": 1, "swizzle": 3, "box": (64, 2, 2)}, True),
    (R3 | {"interleave": 2, "swizzle": 1}, True),
    ({"dims": (1024, 1024), "strides": (4096,), "box": (256, 228)}, True),
    ({"dims": (1024, 1024), "strides": (4096,), "box": (256, 232)}, False),
]


@pytest.mark.parametrize(("changes", "good"), MEASURED)
def test_tiled_maps_are_checked_as_on_a_gpu(library, changes, good):
    assert encode(library, **changes)[0] is (Status.SUCCESS if good else Status.INVALID_VALUE)


@pytest.mark.parametrize(
    "changes",
    [
        R3 | {"interleave": 2, "swizzle": 0},
        R3 | {"interleave": 2, "swizzle": 1, "address": ADDRESS + 16},
        R3 | {"interleave": 2, "swizzle": 1, "strides": (272, 2048)},
    ],
)
def test_tiled_maps_that_the_documentation_forbids(library, changes):
    assert encode(library, **changes)[0] is Status.INVALID_VALUE


def test_all_broken_rules_are_named(library, simulator):
    assert encode(library, address=ADDRESS + 8, box=(3, 257))[0] is Status.INVALID_VALUE
    reason = simulator.trace[-1].reason
    assert all(word in reason for word in ("globalAddress", "boxDim[0]", "boxDim[1]"))


def test_null_arrays_are_refused(library):
    raw = ctypes.create_string_buffer(128)
    arguments = (7, 2, None, None, None, None, None, 0, 0, 0, 0)
    assert library("cuTensorMapEncodeTiled", raw, *arguments) is Status.INVALID_VALUE
    assert library("cuTensorMapEncodeTiled", None, *arguments) is Status.INVALID_VALUE


def test_one_dimension_has_no_stride_but_needs_the_array(library):
    dims, box, ones = (ctypes.c_uint64 * 1)(64), (ctypes.c_uint32 * 1)(4), (ctypes.c_uint32 * 1)(1)
    raw = ctypes.create_string_buffer(128)
    for strides, wanted in ((None, Status.INVALID_VALUE), ((ctypes.c_uint64 * 1)(), Status.SUCCESS)):
        arguments = (7, 1, ADDRESS, dims, strides, box, ones, 0, 0, 0, 0)
        assert library("cuTensorMapEncodeTiled", raw, *arguments) is wanted


def test_a_map_needs_a_context(library):
    library.ok("cuCtxSetCurrent", None)
    assert encode(library)[0] is Status.INVALID_CONTEXT


def test_the_map_holds_the_whole_request(library, simulator):
    status, data = encode(
        library,
        data_type=6,
        dims=(64, 7, 9),
        strides=(256, 2048),
        box=(64, 3, 5),
        element_strides=(1, 2, 3),
        swizzle=3,
        l2_promotion=2,
        oob_fill=1,
    )
    assert status is Status.SUCCESS
    assert decode(data) == TiledRequest(
        address=ADDRESS,
        data_type=TensorMapDataType.FLOAT16,
        dims=(64, 7, 9),
        strides=(256, 2048),
        box=(64, 3, 5),
        element_strides=(1, 2, 3),
        interleave=Interleave.NONE,
        swizzle=Swizzle.B128,
        l2_promotion=L2Promotion.L2_128B,
        oob_fill=OobFill.NAN_REQUEST_ZERO_FMA,
    )
    assert simulator.trace[-1] == TensorMapEncoded(decode(data))


def encode_im2col(library, **changes):
    """Encode a good im2col request with changes; return the status and the bytes."""
    request = {
        "dims": (64, 8, 6, 2),
        "strides": (256, 2048, 12288),
        "lower": (-1, -2),
        "upper": (-1, 0),
        "channels": 32,
        "pixels": 64,
        "element_strides": (1, 1, 2, 1),
        "rank": 4,
        "swizzle": 0,
    } | changes
    raw = ctypes.create_string_buffer(128)
    status = library(
        "cuTensorMapEncodeIm2col",
        raw,
        7,
        request["rank"],
        ctypes.c_void_p(ADDRESS),
        (ctypes.c_uint64 * 5)(*request["dims"]),
        (ctypes.c_uint64 * 5)(*request["strides"]),
        (ctypes.c_int32 * 3)(*request["lower"]),
        (ctypes.c_int32 * 3)(*request["upper"]),
        request["channels"],
        request["pixels"],
        (ctypes.c_uint32 * 5)(*request["element_strides"]),
        0,
        request["swizzle"],
        3,
        1,
    )
    return status, raw.raw


def test_an_im2col_map_holds_the_whole_request(library, simulator):
    status, data = encode_im2col(library)
    assert status is Status.SUCCESS
    assert decode(data) == Im2colRequest(
        address=ADDRESS,
        data_type=TensorMapDataType.FLOAT32,
        dims=(64, 8, 6, 2),
        strides=(256, 2048, 12288),
        lower=(-1, -2),
        upper=(-1, 0),
        channels=32,
        pixels=64,
        element_strides=(1, 1, 2, 1),
        l2_promotion=L2Promotion.L2_256B,
        oob_fill=OobFill.NAN_REQUEST_ZERO_FMA,
    )
    assert simulator.trace[-1] == TensorMapEncoded(decode(data))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"rank": 2}, "tensorRank"),
        ({"rank": 6}, "tensorRank"),
        ({"lower": (-129, 0)}, "pixelBoxLowerCorner[0]"),
        ({"upper": (0, 128)}, "pixelBoxUpperCorner[1]"),
        ({"lower": (0, 0), "upper": (-8, 0)}, "bounding box"),
        ({"channels": 257}, "channelsPerPixel"),
        ({"channels": 0}, "channelsPerPixel"),
        ({"pixels": 1025}, "pixelsPerColumn"),
        ({"pixels": 0}, "pixelsPerColumn"),
        ({"element_strides": (1, 9, 1, 1)}, "elementStrides[1]"),
        ({"strides": (264, 2048, 12288)}, "globalStrides[0]"),
        ({"swizzle": 1}, "swizzle"),
    ],
)
def test_im2col_maps_that_the_documentation_forbids(library, simulator, changes, word):
    assert encode_im2col(library, **changes)[0] is Status.INVALID_VALUE
    assert word in simulator.trace[-1].reason
