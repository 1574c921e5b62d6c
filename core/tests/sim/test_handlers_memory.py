import ctypes

import pytest

from trunnion.sim.status import Status
from trunnion.sim.trace import MemoryCopied, MemorySet


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


@pytest.mark.parametrize(("bits", "dtype"), [(8, "uint8"), (16, "int16"), (32, "int32")])
def test_rows_of_memory_are_set(library, simulator, bits, dtype):
    import torch

    tensor = simulator.runtime.allocate((3, 8), getattr(torch, dtype), 0, 0)
    itemsize = bits // 8
    size = ctypes.c_uint64
    arguments = (tensor.data_ptr() + itemsize, size(8 * itemsize), 7, size(2), size(3))
    library.ok(f"cuMemsetD2D{bits}Async", *arguments, None)
    rows = [[row[0] == row[3], row[1:3]] for row in tensor.tolist()]
    assert rows == [[True, [7, 7]]] * 3
    expected = MemorySet(tensor.data_ptr() + itemsize, 7, itemsize, 2, 0, 0, 3, 8 * itemsize)
    assert simulator.trace[-1] == expected
    library.ok(f"cuMemsetD2D{bits}_v2_ptds", *arguments)
    assert simulator.trace[-1].stream == 2
    one = (tensor.data_ptr(), size(3), 9, size(8), size(1))  # the documentation: one row has no pitch
    library.ok(f"cuMemsetD2D{bits}Async", *one, None)
    assert tensor.tolist()[0] == [9] * 8
    assert simulator.trace[-1].pitch == 0


@pytest.mark.parametrize(
    ("start", "pitch", "width", "height"),
    [(2, 32, 1, 2), (0, 30, 1, 2), (0, 16, 8, 2), (0, 32, 8, 4), (0, 32, 9, 3), (96, 32, 1, 1)],
)
def test_rows_that_are_refused(library, simulator, start, pitch, width, height):
    import torch

    tensor = simulator.runtime.allocate((3, 8), torch.int32, 0, 0)
    sizes = [ctypes.c_uint64(value) for value in (pitch, width, height)]
    status = library("cuMemsetD2D32Async", tensor.data_ptr() + start, sizes[0], 0, *sizes[1:], None)
    assert status is Status.INVALID_VALUE
    assert tensor.tolist() == [[-1] * 8] * 3


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_memory_is_set_at_once_too(library, simulator, bits):
    import torch

    tensor = simulator.runtime.allocate((4,), torch.int32, 0, 0)
    library.ok(f"cuMemsetD{bits}_v2", tensor.data_ptr(), 0, ctypes.c_uint64(128 // bits))
    assert tensor.tolist() == [0] * 4
    assert simulator.trace[-1].stream == 0


def test_memory_is_copied(library, simulator):
    import torch

    source = simulator.tensor(torch.arange(8, dtype=torch.int32))
    target = simulator.tensor(torch.zeros(8, dtype=torch.int32), device=1)
    host = (ctypes.c_int32 * 8)()
    nbytes = ctypes.c_uint64(32)
    library.ok("cuMemcpyDtoHAsync_v2", ctypes.addressof(host), source.data_ptr(), nbytes, None)
    assert list(host) == list(range(8))
    host[0] = 70
    library.ok("cuMemcpyHtoDAsync_v2", target.data_ptr(), ctypes.addressof(host), nbytes, None)
    assert target.tolist() == [70, *range(1, 8)]
    library.ok("cuMemcpyDtoD_v2", target.data_ptr(), source.data_ptr(), ctypes.c_uint64(4))
    assert target.tolist() == list(range(8))
    library.ok("cuMemcpyAsync", ctypes.addressof(host), target.data_ptr(), nbytes, None)
    assert host[0] == 0
    last = simulator.trace[-1]
    assert last == MemoryCopied(target.data_ptr(), ctypes.addressof(host), 32, "DtoH", 0, 0)


def test_copies_that_are_refused(library, simulator):
    import torch

    tensor = simulator.tensor(torch.zeros(8, dtype=torch.int32))
    host = ctypes.addressof(ctypes.create_string_buffer(64))
    size = ctypes.c_uint64
    assert library("cuMemcpyHtoD_v2", tensor.data_ptr(), host, size(33)) is Status.INVALID_VALUE
    assert library("cuMemcpyHtoD_v2", tensor.data_ptr(), size(16), size(4)) is Status.INVALID_VALUE
    assert library("cuMemcpyDtoH_v2", host, host, size(4)) is Status.INVALID_VALUE
    library.ok("cuMemcpyHtoD_v2", size(0), size(0), size(0))
