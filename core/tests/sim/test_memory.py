import gc

import pytest
import torch

from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DriverError
from trunnion.model.dtypes import DTYPES
from trunnion.sim.memory import DeviceMemory
from trunnion.sim.status import Refusal, Status


@pytest.fixture
def memory():
    return DeviceMemory()


def code(caught):
    return caught.value.code_name


def test_memory_lives_as_long_as_its_buffer(memory):
    allocation, buffer = memory.allocate(100, 0)
    assert memory.allocations() == (allocation,)
    assert memory.find(allocation.address + 99) == allocation
    assert memory.find(allocation.address + 100) is None
    assert memory.find(allocation.address - 1) is None
    view = memory.on(0).view(allocation.address, "float32", (25,))
    del buffer
    gc.collect()
    assert memory.allocations() == (allocation,)
    del view
    gc.collect()
    assert memory.allocations() == ()
    with pytest.raises(DriverError) as caught:
        memory.on(0).read(allocation.address, 1)
    assert code(caught) == "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_fresh_memory_is_no_zeros(memory):
    allocation, _buffer = memory.allocate(16, 0)
    assert memory.on(0).read(allocation.address, 16) == b"\xff" * 16
    assert memory.on(0).view(allocation.address, "float32", (4,)).isnan().all()


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_can_be_viewed(memory, name):
    allocation, _buffer = memory.allocate(256, 0)
    view = memory.on(0).view(allocation.address, name, (3, 2), (4, 2))
    assert (view.dtype, view.stride(), view.data_ptr()) == (getattr(torch, name), (4, 2), allocation.address)
    assert memory.on(0).view(0, name, (3, 0)).shape == (3, 0)


def test_writes_go_through(memory):
    allocation, _buffer = memory.allocate(64, 0)
    memory.on(0).view(allocation.address + 8, "int32", (2, 2))[:] = torch.tensor([[1, 2], [3, 4]])
    assert memory.on(0).view(allocation.address, "int32", (6,)).tolist() == [-1, -1, 1, 2, 3, 4]
    memory.on(0).write(allocation.address, b"\1\0\0\0")
    assert memory.on(0).read(allocation.address, 4) == b"\1\0\0\0"


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "expected"),
    [
        (0, (17,), None, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (4, (16,), None, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (0, (2, 2), (16, 1), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (-4, (1,), None, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (4, (2,), (-1,), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (2, (1,), None, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    ],
)
def test_views_that_are_refused(memory, offset, shape, strides, expected):
    allocation, _buffer = memory.allocate(64, 0)
    with pytest.raises(DriverError) as caught:
        memory.on(0).view(allocation.address + offset, "float32", shape, strides)
    assert code(caught) == expected


@pytest.mark.parametrize(
    ("shape", "strides", "kind", "said"),
    [
        (3, None, ArgumentTypeError, "'shape': got int"),
        ((4,), 1, ArgumentTypeError, "'strides': got int"),
        ((-1,), None, ArgumentValueError, "'shape': got .-1,., expected extents from 0 on"),
        ((0, -1), None, ArgumentValueError, "extents from 0 on"),
        ((2, -3), (1, 1), ArgumentValueError, "extents from 0 on"),
        ((2, 2), (1,), ArgumentValueError, "'strides': got .1,., expected 2 of them"),
    ],
)
def test_views_of_no_shape_are_refused_for_it(memory, shape, strides, kind, said):
    allocation, _buffer = memory.allocate(64, 0)
    with pytest.raises(kind, match=said):
        memory.on(0).view(allocation.address + 32, "float32", shape, strides)


@pytest.mark.parametrize("nbytes", [-1, 1.0, None])
def test_bytes_are_counted_from_0_on(memory, nbytes):
    allocation, _buffer = memory.allocate(64, 0)
    with pytest.raises(ArgumentError, match="nbytes"):
        memory.on(0).read(allocation.address, nbytes)


def test_another_devices_memory_is_out_of_bounds(memory):
    allocation, _buffer = memory.allocate(64, 1)
    for touch in (
        lambda: memory.on(0).view(allocation.address, "float32", (1,)),
        lambda: memory.on(0).read(allocation.address, 1),
        lambda: memory.on(0).write(allocation.address, b"x"),
    ):
        with pytest.raises(DriverError) as caught:
            touch()
        assert code(caught) == "CUDA_ERROR_ILLEGAL_ADDRESS"
        assert "device 1" in str(caught.value)


@pytest.mark.parametrize("nbytes", [1 << 60, 1 << 70])
def test_memory_that_the_host_lacks_is_refused_as_a_device_does(memory, nbytes):
    with pytest.raises(Refusal) as caught:
        memory.allocate(nbytes, 0)
    assert caught.value.status is Status.OUT_OF_MEMORY
    assert memory.allocations() == ()


def test_memory_that_shrinks_holds_no_more_than_it_says(memory):
    allocation, owner = memory.allocate(64, 0)
    memory.shrink(allocation.address, 8)
    assert memory.find(allocation.address + 7).nbytes == 8
    assert memory.find(allocation.address + 8) is None
    memory.shrink(allocation.address, 16)  # it does not grow again
    assert memory.used(0) == 8
    del owner
    gc.collect()
    assert memory.used(0) == 0
