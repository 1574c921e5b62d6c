import ctypes

import pytest

from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.status import Status
from trunnion.sim.tensormap import (
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
    decode,
)
from trunnion.sim.trace import MemorySet, TensorMapEncoded

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


@pytest.mark.parametrize(
    ("bits", "itemsize", "value", "dtype"),
    [(8, 1, 0x12, "uint8"), (16, 2, 0x1234, "int16"), (32, 4, 0x12345678, "int32")],
)
def test_memory_is_set(library, simulator, bits, itemsize, value, dtype):
    import torch

    tensor = simulator.runtime.allocate((8,), getattr(torch, dtype), 0, 0)
    name = f"cuMemsetD{bits}Async"
    address = tensor.data_ptr() + itemsize
    library.ok(name, address, value, ctypes.c_uint64(3), None)
    assert tensor.cpu().tolist()[1:4] == [value] * 3
    assert tensor.cpu()[0] == tensor.cpu()[4] == (255 if dtype == "uint8" else -1)
    assert simulator.trace[-1] == MemorySet(address, value, itemsize, 3, 0, 0)
    stream = library.handle("cuStreamCreate", 1)
    library.ok(f"{name}_ptsz", address, 0, ctypes.c_uint64(3), None)
    library.ok(name, address, 0, ctypes.c_uint64(3), stream)
    assert [event.stream for event in simulator.trace[-2:]] == [2, stream]


def test_memory_sets_that_are_refused(library, simulator):
    import torch

    tensor = simulator.runtime.allocate((8,), torch.int32, 0, 0)
    start, four = tensor.data_ptr(), ctypes.c_uint64(4)
    assert library("cuMemsetD16Async", start + 1, 0, four, None) is Status.INVALID_VALUE
    assert library("cuMemsetD32Async", start + 2, 0, four, None) is Status.INVALID_VALUE
    assert library("cuMemsetD8Async", ctypes.c_uint64(16), 0, four, None) is Status.INVALID_VALUE
    assert library("cuMemsetD8Async", start, 0, ctypes.c_uint64(33), None) is Status.INVALID_VALUE
    assert library("cuMemsetD8Async", ctypes.c_uint64(0), 0, ctypes.c_uint64(0), None) is Status.SUCCESS
    library.context(1)
    assert library("cuMemsetD8Async", start, 0, four, None) is Status.INVALID_VALUE
    library.ok("cuCtxSetCurrent", None)
    assert library("cuMemsetD8Async", start, 0, four, None) is Status.INVALID_CONTEXT
