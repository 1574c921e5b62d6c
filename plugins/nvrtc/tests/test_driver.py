"""The facade on the simulated driver, through ``cuda.bindings`` itself: whose context is current, and what fails."""

from __future__ import annotations

import subprocess
import sys
import threading

import cuda.bindings.driver as cu
import pytest
import torch

import trunnion
from trunnion import errors, examples
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.launcher.facade import StreamState
from trunnion.model.facts import ATTRIBUTES
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Launched
from trunnion_nvrtc.backend.driver import CudaDriver
from trunnion_nvrtc.backend.status import calls, check, driver_error


def ok(result):
    status, *values = result
    assert status == cu.CUresult.CUDA_SUCCESS
    return values[0] if values else None


@pytest.fixture
def facade(simulator):
    return CudaDriver()


@pytest.fixture(scope="module")
def vector_add(running_simulator):
    program = trunnion.compile(examples.load("vector_add").program, backend="nvrtc", target="sm_90a")
    with program:
        yield program


def context(device):
    return ok(cu.cuDevicePrimaryCtxRetain(device))


def contexts(simulator):
    return list(simulator.state.stack())


def current():
    status, device = cu.cuCtxGetDevice()
    return None if status else int(device)


@pytest.mark.parametrize("before", [[], [1], [0, 1]])
@pytest.mark.parametrize("again", [False, True])
def test_another_context_or_none_is_covered_and_found_again(simulator, facade, before, again):
    for device in before:
        ok(cu.cuCtxPushCurrent(context(device)))
    stack = contexts(simulator)
    for _ in range(1 + again):  # the second time, the context is retained already
        assert facade.enter(0) is True
        assert current() == 0
        assert len(contexts(simulator)) == len(stack) + 1
        facade.leave()
        assert contexts(simulator) == stack


@pytest.mark.parametrize("device", [0, 1])
def test_a_context_of_the_device_is_left_alone(simulator, facade, device):
    ok(cu.cuCtxPushCurrent(context(device)))
    stack = contexts(simulator)
    assert facade.enter(device) is False
    assert contexts(simulator) == stack


def test_two_first_calls_at_once_retain_a_context_once(simulator, facade):
    """The second thread asks while the first one's call is under way."""
    before = simulator.state.contexts[1].references
    second = threading.Thread(target=lambda: facade.enter(1) and facade.leave())

    def meanwhile(proceed, *arguments):
        if threading.current_thread() is not second:
            second.start()
            second.join()
        proceed(*arguments)

    with simulator.intercept("cuDevicePrimaryCtxRetain", meanwhile):
        facade.enter(1)
    facade.leave()
    assert simulator.state.contexts[1].references == before + 1


def test_leaving_nothing_is_an_error(facade):
    with pytest.raises(errors.DriverError) as caught:
        facade.leave()
    assert caught.value.call == "cuCtxPopCurrent"


def test_synchronizing_leaves_the_contexts_as_they_were(simulator, facade):
    ok(cu.cuCtxPushCurrent(context(1)))
    stack = contexts(simulator)
    facade.synchronize(0)
    assert contexts(simulator) == stack


@pytest.mark.parametrize("before", [[], [0], [1]])
def test_a_call_launches_on_its_tensors_device_and_leaves_no_context(simulator, vector_add, before):
    a, b = (simulator.tensor(torch.ones(8), device=0) for _ in range(2))
    vector_add(a, b)  # loads the image
    simulator.state.stack().clear()
    for device in before:
        ok(cu.cuCtxPushCurrent(context(device)))
    stack = contexts(simulator)
    simulator.clear_trace()
    vector_add(a, b)
    (launch,) = [event for event in simulator.trace if isinstance(event, Launched)]
    assert (launch.device, launch.stream) == (0, 0)
    assert contexts(simulator) == stack


@pytest.mark.parametrize("before", [[], [0], [1]])
def test_a_call_that_fails_leaves_no_context(simulator, vector_add, before):
    a, b = (simulator.tensor(torch.ones(8), device=0) for _ in range(2))
    (kernel,) = vector_add.artifact.manifest.kernels

    def fail(_):
        raise ZeroDivisionError

    simulator.register_body(kernel.symbol, fail)
    try:
        for device in before:
            ok(cu.cuCtxPushCurrent(context(device)))
        stack = contexts(simulator)
        with pytest.raises(ZeroDivisionError) as caught:
            vector_add(a, b)
        assert isinstance(caught.value.__context__, errors.DriverError)  # what the launcher itself raised
        assert contexts(simulator) == stack
    finally:
        simulator.unregister_body(kernel.symbol)
        simulator.forget_pending()


def test_each_thread_has_its_own_contexts(simulator, facade):
    ok(cu.cuCtxPushCurrent(context(0)))
    seen = []

    def attempt():
        seen.append(facade.enter(0))
        facade.leave()
        seen.append(current())

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert seen == [True, None]


def test_a_stream_knows_its_device_and_the_drivers_own_are_the_contexts(simulator, facade):
    stack = contexts(simulator)
    for device in (0, 1):
        state = facade.stream_state(simulator.new_stream(device))
        assert (state.device, state.capturing) == (device, False)
        assert contexts(simulator) == stack
    ok(cu.cuCtxPushCurrent(context(1)))
    for own in (0, 1, 2):
        assert facade.stream_state(own).device == 1


def test_an_error_names_its_code_and_says_what_to_do():
    error = driver_error("cuLibraryLoadData", cu.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU)
    assert (error.call, error.code, error.code_name) == (
        "cuLibraryLoadData",
        209,
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
    )
    assert "pass target=" in str(error)
    assert "bundle.on(name, device)" in str(error)
    later = driver_error("cuLibraryLoadData", cu.CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    assert "update the driver" in str(later)
    assert "target='sm_90a'" in str(later)
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU (209)" in str(error)
    plain = driver_error("cuLaunchKernelEx", cu.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    assert (plain.call, plain.code) == ("cuLaunchKernelEx", 701)
    captured = driver_error("cuCtxSynchronize", cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    assert type(captured) is errors.CaptureError
    assert "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)" in str(captured)
    for status in (
        cu.CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        cu.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE,
    ):
        assert type(driver_error("cuLaunchKernelEx", status)) is errors.DeviceRequirementError
    check("cuInit", cu.CUresult.CUDA_SUCCESS)
    with pytest.raises(errors.DriverError) as caught:
        check("cuInit", cu.CUresult.CUDA_ERROR_NO_DEVICE)
    assert "CUDA_VISIBLE_DEVICES" in str(caught.value)


def unknown(*_):
    raise Refusal(1234, "a status of a later driver")


def test_a_launch_may_fail_with_a_status_that_the_bindings_do_not_know(simulator, vector_add):
    a, b = (simulator.tensor(torch.ones(8), device=0) for _ in range(2))
    with simulator.intercept("cuLaunchKernelEx", unknown), pytest.raises(errors.DriverError) as caught:
        vector_add(a, b)
    assert (caught.value.call, caught.value.code) == ("cuLaunchKernelEx", 1234)
    assert caught.value.code_name == "status 1234"


def test_a_name_that_the_driver_has_is_told_though_the_bindings_know_none(simulator, vector_add):
    a, b = (simulator.tensor(torch.ones(8), device=0) for _ in range(2))
    with simulator.fault("cuLaunchKernelEx", Status.NEWER), pytest.raises(errors.DriverError) as caught:
        vector_add(a, b)
    assert (caught.value.code, caught.value.code_name) == (1998, "CUDA_ERROR_NEWER")


@pytest.mark.parametrize("call", ["cuCtxSynchronize", "cuDriverGetVersion"])
def test_so_may_every_other_call(simulator, facade, call):
    made = {"cuCtxSynchronize": lambda: facade.synchronize(0), "cuDriverGetVersion": facade.driver_version}
    made[call]()
    with simulator.intercept(call, unknown), pytest.raises(errors.DriverError) as caught:
        made[call]()
    assert (caught.value.call, caught.value.code) == (call, 1234)


def test_other_errors_of_the_bindings_stay_what_they_are(simulator):
    with pytest.raises(TypeError):
        calls.cuInit("x")
    with pytest.raises(AttributeError):
        calls.cuNothing  # noqa: B018 - it is the look-up that fails


def test_without_a_driver_the_backend_is_unavailable():
    source = """
import ctypes, os
real = ctypes.CDLL
import cuda.bindings.driver as cu
def cuInit(flags):
    raise RuntimeError("Failed to dlopen libcuda.so.1")
try:
    real("libcuda.so.1")
except OSError:
    pass  # none on this machine: the bindings say so themselves
else:
    cu.cuInit = cuInit
from trunnion.errors import DeviceRequirementError
from trunnion_nvrtc.backend.driver import CudaDriver
try:
    CudaDriver()
except DeviceRequirementError as error:
    assert error.refusal == "no-driver"
    assert isinstance(error.__cause__, RuntimeError), error.__cause__
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60
    )
    assert "libcuda.so.1" in done.stdout
    assert "trunnion.sim.start()" in done.stdout


def test_a_driver_that_lacks_libraries_is_too_old():
    source = """
from trunnion import sim
simulator = sim.start(driver_version=11080)
from trunnion.errors import DeviceRequirementError
from trunnion_nvrtc.backend.driver import CudaDriver
from trunnion_nvrtc.backend.status import calls
try:
    CudaDriver()
except DeviceRequirementError as error:
    print(error)
with simulator.configured(driver_version=13000):
    try:
        calls.cuLibraryUnload(None)
    except DeviceRequirementError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60
    )
    assert (
        done.stdout.splitlines()[0]
        == "needs a driver for CUDA 12.0 or later, with cuLibraryLoadData, got one for CUDA 11.8; update the driver"
    )
    assert done.stdout.splitlines()[1].startswith(
        "needs a driver for CUDA 12.0 or later, with cuLibraryUnload, got "
    )


@pytest.mark.parametrize("current_device", [0, 1])
def test_a_stream_is_known_while_it_captures_and_its_capture_stays_valid(simulator, facade, current_device):
    ok(cu.cuCtxPushCurrent(context(current_device)))
    stream = simulator.new_stream(1)
    assert facade.stream_state(stream) == StreamState(1, capturing=False)
    with simulator.capture(stream, device=1, mode="global"):
        assert facade.stream_state(stream) == StreamState(1, capturing=True)
        assert current() == current_device
    assert facade.stream_state(stream) == StreamState(1, capturing=False)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_fact_is_the_attribute_of_its_name(name):
    attribute = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name.upper()}")
    assert int(attribute) == ATTRIBUTES[name].number


def test_the_occupancy_of_a_kernel_is_that_of_the_current_device(simulator, facade):
    library = facade.load(synthetic_cubin([SyntheticKernel(name="k", registers=64)], "sm_90a"))
    kernel = facade.kernel(library, "k")
    with pytest.raises(errors.DriverError, match="cuOccupancyMaxActiveBlocksPerMultiprocessor"):
        facade.occupancy(kernel, 256, 0)  # no context is current
    entered = facade.enter(0)
    assert facade.occupancy(kernel, 256, 0) == 4
    assert facade.occupancy(kernel, 256, 49153) == 0
    facade.set_kernel_attribute(kernel, 0, 8, 100_000)
    assert facade.occupancy(kernel, 256, 100_000) == 2
    if entered:
        facade.leave()
    facade.unload(library)
