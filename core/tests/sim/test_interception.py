import ctypes
import math
import threading
import time

import pytest
import torch

from trunnion.errors import ArgumentTypeError, ArgumentValueError, DriverError
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Allocated, CallRefused, Launched


@pytest.fixture
def kernel(library):
    return library.kernel("empty")


def test_every_call_fails(library, simulator, kernel):
    with simulator.fault("cuLaunchKernelEx", Status.LAUNCH_FAILED) as fault:
        assert [library.launch(kernel) for _ in range(2)] == [Status.LAUNCH_FAILED] * 2
    assert (fault.calls, fault.hits) == (2, 2)
    assert isinstance(simulator.trace[-1], CallRefused)
    assert "planted" in simulator.trace[-1].reason
    assert library.launch(kernel) is Status.SUCCESS
    assert sum(isinstance(event, Launched) for event in simulator.trace) == 1


@pytest.mark.parametrize(("nth", "failing"), [(2, [2]), ((1, 3), [1, 3]), (range(3, 9), [3, 4]), ((), None)])
def test_chosen_calls_fail(library, simulator, kernel, nth, failing):
    if failing is None:
        with pytest.raises(ArgumentValueError), simulator.fault("cuLaunchKernelEx", nth=nth):
            pass
        return
    with simulator.fault("cuLaunchKernelEx", Status.OUT_OF_MEMORY, nth=nth):
        found = [library.launch(kernel) for _ in range(4)]
    assert [number for number, status in enumerate(found, 1) if status is not Status.SUCCESS] == failing


def test_calls_are_chosen_by_their_arguments(library, simulator):
    tensor = simulator.runtime.allocate((8,), torch.uint8, 0, 0)
    address, three = tensor.data_ptr(), ctypes.c_uint64(3)
    with simulator.fault("cuMemsetD8Async", Status.LAUNCH_FAILED, when=lambda *a: a[1] == 7, nth=2) as fault:
        found = [library("cuMemsetD8Async", address, value, three, None) for value in (7, 5, 7, 7)]
    assert [status is Status.SUCCESS for status in found] == [True, True, False, True]
    assert (fault.calls, fault.hits) == (3, 1)


def test_both_abis_of_a_call_are_meant(library, simulator, kernel):
    with simulator.fault("cuLaunchKernelEx", Status.LAUNCH_FAILED):
        assert library.launch(kernel, entry="cuLaunchKernelEx_ptsz") is Status.LAUNCH_FAILED


def test_a_call_is_slow(library, simulator, kernel):
    with simulator.fault("cuLaunchKernelEx", None, delay=0.05) as fault:
        began = time.monotonic()
        assert library.launch(kernel) is Status.SUCCESS
        assert time.monotonic() - began >= 0.05
    assert fault.hits == 1
    with pytest.raises(ArgumentValueError), simulator.fault("cuLaunchKernelEx", delay=-1):
        pass


def test_faults_nest_and_end_with_their_blocks(library, simulator, kernel):
    with simulator.fault("cuLaunchKernelEx", Status.LAUNCH_FAILED) as outer:
        with simulator.fault("cuLaunchKernelEx", Status.LAUNCH_TIMEOUT, nth=1):
            assert library.launch(kernel) is Status.LAUNCH_TIMEOUT
            assert library.launch(kernel) is Status.LAUNCH_FAILED
        assert outer.calls == 1
    with pytest.raises(ZeroDivisionError), simulator.fault("cuLaunchKernelEx"):
        raise ZeroDivisionError
    assert library.launch(kernel) is Status.SUCCESS


def test_a_call_that_is_not_there_is_named(simulator):
    with pytest.raises(ArgumentValueError, match="cuLaunchKernelEx"), simulator.fault("cuLaunchKernelX"):
        pass
    with pytest.raises(ArgumentValueError), simulator.intercept("cuMemsetD8Async_ptsz", print):
        pass


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("x", ArgumentTypeError),
        (True, ArgumentTypeError),
        (-1, ArgumentValueError),
        (10**6, ArgumentValueError),
    ],
)
def test_a_status_that_the_driver_does_not_have_is_refused(simulator, status, kind):
    with pytest.raises(kind, match="ILLEGAL_ADDRESS"), simulator.fault("cuLaunchKernelEx", status):
        pass
    assert simulator.state.interceptions.standing == {}


def test_a_status_may_be_given_as_its_number(library, simulator, kernel):
    with simulator.fault("cuLaunchKernelEx", 700):
        assert library.launch(kernel) is Status.ILLEGAL_ADDRESS


def test_threads_share_a_fault(library, simulator, kernel):
    stream = library.handle("cuStreamCreate", 1)
    found = []

    def launch():
        found.extend(library.launch(kernel, stream=stream) for _ in range(20))

    with simulator.fault("cuLaunchKernelEx", Status.LAUNCH_FAILED, nth=range(1, 41)) as fault:
        threads = [threading.Thread(target=launch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (fault.calls, fault.hits) == (80, 40)
    assert found.count(Status.LAUNCH_FAILED) == 40


def test_an_interceptor_changes_what_arrives(library, simulator):
    tensor = simulator.runtime.allocate((4,), torch.uint8, 0, 0)

    def doubled(proceed, address, value, count, stream):
        proceed(address, 2 * value, count, stream)

    with simulator.intercept("cuMemsetD8Async", doubled):
        library.ok("cuMemsetD8Async", tensor.data_ptr(), 21, ctypes.c_uint64(4), None)
    assert tensor.tolist() == [42] * 4


def test_an_interceptor_leaves_out_refuses_and_sees_refusals(library, simulator, kernel):
    with simulator.intercept("cuLaunchKernelEx", lambda proceed, *_: None):
        assert library.launch(kernel) is Status.SUCCESS
    assert not any(isinstance(event, Launched) for event in simulator.trace)
    seen = []

    def watch(proceed, *arguments):
        try:
            proceed(*arguments)
        except Refusal as refusal:
            seen.append(refusal.status)
            raise Refusal(Status.LAUNCH_TIMEOUT, "instead") from refusal

    with simulator.intercept("cuLaunchKernelEx", watch):
        assert library.launch(kernel, grid=(0, 1, 1)) is Status.LAUNCH_TIMEOUT
    assert seen == [Status.INVALID_VALUE]


def test_what_an_interceptor_raises_is_pending(library, simulator, kernel):
    def broken(proceed, *arguments):
        raise ZeroDivisionError

    with simulator.intercept("cuLaunchKernelEx", broken):
        assert library.launch(kernel) is Status.UNKNOWN
    with pytest.raises(ZeroDivisionError):
        simulator.raise_pending()


def test_an_allocation_fails_as_the_tensor_library_fails(simulator):
    asked = []

    def large(nbytes, device, stream):
        asked.append((nbytes, device, stream))
        return nbytes > 16

    with simulator.fault("allocate", Status.OUT_OF_MEMORY, when=large):
        assert simulator.runtime.allocate((4,), torch.float32, 1, 7).shape == (4,)
        with pytest.raises(torch.OutOfMemoryError):
            simulator.runtime.allocate((5,), torch.float32, 1, 7)
    assert asked == [(16, 1, 7), (20, 1, 7)]
    assert sum(isinstance(event, Allocated) for event in simulator.trace) == 1


@pytest.mark.parametrize(
    ("status", "kind"), [((), torch.OutOfMemoryError), ((Status.NOT_INITIALIZED,), DriverError)]
)
def test_only_used_up_memory_is_told_as_such(simulator, status, kind):
    with simulator.fault("allocate", *status), pytest.raises(kind):
        simulator.runtime.allocate((5,), torch.float32, 1, 7)


def test_a_tensor_larger_than_the_host_is_out_of_memory(simulator):
    with simulator.torch_mode():
        for make in (
            lambda: simulator.runtime.allocate((1 << 58,), torch.float32, 0, 0),
            lambda: torch.empty(1 << 58, device="cuda"),
            lambda: torch.zeros(1 << 58, device="cuda"),
            lambda: torch.ones(1, device="cuda").new_zeros(1 << 58),
        ):
            with pytest.raises(torch.OutOfMemoryError):
                make()


def test_memory_runs_out(simulator):
    held = simulator.runtime.allocate((1000,), torch.uint8, 1, 0)
    used = simulator.memory.used(1)
    assert used >= 1000
    with simulator.memory_limit(used + 1000, device=1):
        more = simulator.runtime.allocate((1000,), torch.uint8, 1, 0)
        with pytest.raises(torch.OutOfMemoryError), simulator.torch_mode():
            torch.zeros(1, device="cuda:1")
        assert simulator.runtime.allocate((2000,), torch.uint8, 0, 0).shape == (2000,)
        del more
        simulator.runtime.allocate((1000,), torch.uint8, 1, 0)
    assert simulator.runtime.allocate((2000,), torch.uint8, 1, 0).shape == (2000,)
    assert held.shape == (1000,)
    with pytest.raises(ArgumentValueError), simulator.memory_limit(1, device=9):
        pass


@pytest.mark.parametrize("name", [None, range(10**18), 7])
def test_a_call_is_named_by_a_text(simulator, name):
    with pytest.raises(ArgumentTypeError, match="expected the name of a call"), simulator.fault(name, 1):
        pass


@pytest.mark.parametrize("device", [None, "cuda:0", 0.0])
def test_a_device_is_named_by_its_ordinal(simulator, device):
    with pytest.raises(ArgumentTypeError, match="expected the ordinal of a simulated device"):
        simulator.new_stream(device)


@pytest.mark.parametrize(
    ("argument", "given", "kind"),
    [
        ("nth", "a", ArgumentTypeError),
        ("nth", 1.0, ArgumentTypeError),
        ("nth", True, ArgumentTypeError),
        ("nth", (1, "2"), ArgumentTypeError),
        ("nth", (1, None), ArgumentTypeError),
        ("nth", ([1],), ArgumentTypeError),
        ("nth", (1, 0), ArgumentValueError),
        ("delay", "a", ArgumentTypeError),
        ("delay", None, ArgumentTypeError),
        ("delay", math.nan, ArgumentValueError),
        ("delay", math.inf, ArgumentValueError),
        ("when", 3, ArgumentTypeError),
    ],
)
def test_wrong_arguments_of_a_fault_are_refused_by_their_names(simulator, argument, given, kind):
    with pytest.raises(kind, match=f"'{argument}'"), simulator.fault("cuInit", **{argument: given}):
        pass
    assert simulator.state.interceptions.standing == {}


@pytest.mark.parametrize("interceptor", [3, None, "print"])
def test_who_stands_before_a_call_can_be_called(simulator, interceptor):
    with (
        pytest.raises(ArgumentTypeError, match="'interceptor'"),
        simulator.intercept("cuInit", interceptor),
    ):
        pass
    assert simulator.state.interceptions.standing == {}


@pytest.mark.parametrize(
    ("nbytes", "device", "kind"),
    [
        (5, "cuda", ArgumentTypeError),
        (5, None, ArgumentTypeError),
        (5, -1, ArgumentValueError),
        (5, 1 << 40, ArgumentValueError),
        ("5", 0, ArgumentTypeError),
        (-5, 0, ArgumentValueError),
    ],
)
def test_wrong_limits_of_memory_are_refused(simulator, nbytes, device, kind):
    with pytest.raises(kind), simulator.memory_limit(nbytes, device=device):
        pass
    assert simulator.memory.limits == {}


def test_who_holds_python_s_lock_is_told(library, simulator, kernel):
    held = []

    def look(proceed, *arguments):
        held.append(simulator.holds_lock())
        proceed(*arguments)

    own = ctypes.PyDLL(simulator.library_path)
    value = ctypes.c_int()
    with simulator.intercept("cuDriverGetVersion", look):
        for driver in (ctypes.CDLL(simulator.library_path), own):
            driver.cuDriverGetVersion(ctypes.byref(value))
    assert held == [False, True]
