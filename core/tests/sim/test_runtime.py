import threading
from typing import TYPE_CHECKING

import pytest
import torch

from trunnion.errors import ArgumentValueError, LifecycleError
from trunnion.model.dtypes import DTYPES
from trunnion.sim.runtime import SimRuntime
from trunnion.sim.trace import Allocated

if TYPE_CHECKING:
    from trunnion.contract.runtime import Runtime


@pytest.fixture
def runtime(simulator):
    return simulator.runtime


def test_it_is_a_runtime(runtime, simulator):
    typed: Runtime = runtime
    assert typed.tensor_type is torch.Tensor
    assert typed.strided is torch.strided
    assert simulator.runtime is runtime


@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_every_type_can_be_allocated(runtime, row):
    tensor = runtime.allocate((2, 3), runtime.dtype(row), 1, 0)
    assert (str(tensor.device), tensor.dtype, tensor.stride()) == ("cuda:1", getattr(torch, row.name), (3, 1))


def test_allocations_are_traced_with_their_stream(runtime, simulator):
    stream = simulator.new_stream(1)
    tensor = runtime.allocate((5,), torch.int32, 1, stream)
    assert simulator.trace == (Allocated(tensor.data_ptr(), 20, 1, stream),)
    assert tensor.tolist() == [-1] * 5
    with pytest.raises(ArgumentValueError):
        runtime.allocate((5,), torch.int32, simulator.devices, 0)


def test_there_is_a_quick_way_to_allocate_where_one_device_is_told_of(runtime, simulator):
    assert runtime.quick_allocator() is None
    quick, stream = SimRuntime(simulator, alone=True).quick_allocator(), simulator.new_stream(0)
    with simulator.stream(stream, 0), simulator.stream(simulator.new_stream(1), 1), simulator.current(1):
        made = quick((2, 3), (1, 2), torch.int32)
    assert (str(made.device), tuple(made.shape), made.stride()) == ("cuda:0", (2, 3), (1, 2))
    assert simulator.trace == (Allocated(made.data_ptr(), 24, 0, stream),)


def test_who_intercepts_allocations_sees_each_once(simulator):
    runtime = SimRuntime(simulator, alone=True)
    quick = runtime.quick_allocator()
    with simulator.fault("allocate", nth=2) as fault:
        with pytest.raises(LifecycleError, match="intercepted"):
            quick((2,), (1,), torch.int32)
        runtime.allocate((2,), torch.int32, 0, 0)
    assert (fault.calls, fault.hits) == (1, 0)
    assert quick((2,), (1,), torch.int32).tolist() == [-1, -1]


def test_current_streams_are_of_a_thread_and_a_device(runtime, simulator):
    get = runtime.current_stream_getter()
    first, second = simulator.new_stream(0), simulator.new_stream(1)
    seen = []
    with simulator.stream(first), simulator.stream(second, device=1):
        assert (get(0), get(1), runtime.current_stream(1)) == (first, second, second)
        thread = threading.Thread(target=lambda: seen.append((get(0), get(1))))
        thread.start()
        thread.join()
        with simulator.stream(2):
            assert get(0) == 2
        assert get(0) == first
    assert (get(0), get(1)) == (0, 0)
    assert seen == [(0, 0)]
    with pytest.raises(ArgumentValueError), simulator.stream(0, device=5):
        pass


def test_others_may_be_called_on_a_device_and_a_stream(runtime, simulator):
    stream = simulator.new_stream(1)
    depth = len(simulator.state.stack())
    with runtime.on_stream(1, stream):
        assert runtime.current_stream(1) == stream
        assert simulator.state.current().device.ordinal == 1
    assert runtime.current_stream(1) == 0
    assert len(simulator.state.stack()) == depth


def test_storage_and_device(runtime, simulator):
    from torch._subclasses.fake_tensor import FakeTensorMode

    tensor = simulator.tensor(torch.ones(3, dtype=torch.complex64))
    with FakeTensorMode():
        fake = torch.ones(3)
    assert runtime.presents_device(tensor)
    assert not runtime.presents_device(torch.ones(3))
    assert runtime.has_storage(tensor)
    assert runtime.has_storage(simulator.tensor(torch.ones(0)))
    assert not runtime.has_storage(tensor.conj())
    assert not runtime.has_storage(tensor.conj().imag)
    assert not runtime.has_storage(fake)
    assert runtime.has_storage(torch.ones(3))
    assert runtime.room(tensor) == 3 * 8
    assert runtime.room(tensor[1:2]) == 2 * 8
    assert runtime.room(torch.ones(3)) == 0


def test_a_guard_tells_tensors_that_a_launcher_would_tell_apart(simulator):
    x = simulator.tensor(torch.ones(3, 4), device=1)
    guard = simulator.runtime.guard((x, x))
    assert guard is not None
    assert guard(x, simulator.tensor(torch.zeros(3, 4), device=1))
    for other in (
        simulator.tensor(torch.zeros(3, 4), device=0),
        simulator.tensor(torch.zeros(3, 5), device=1),
        simulator.tensor(torch.zeros(4, 3), device=1).t(),
        simulator.tensor(torch.zeros(3, 4, dtype=torch.float64), device=1),
        torch.zeros(3, 4),
        None,
    ):
        assert not guard(x, other)
