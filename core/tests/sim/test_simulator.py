"""Devices and drivers of another kind, contexts' limits, and processes."""

import ctypes
import subprocess
import sys

import pytest

from trunnion import sim
from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DeviceRequirementError
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.sim.abi import DeviceAttribute, LaunchAttributeId, LaunchAttributeStruct
from trunnion.sim.status import Status
from trunnion.sim.trace import LimitSet, PersistingLinesReset

PERSISTING = 6


def attribute(library, number, device=0):
    out = ctypes.c_int()
    status = library("cuDeviceGetAttribute", ctypes.byref(out), number, device)
    return out.value if status is Status.SUCCESS else status


def limit(library, number=PERSISTING):
    out = ctypes.c_size_t(99)
    library.ok("cuCtxGetLimit", ctypes.byref(out), number)
    return out.value


def cluster(width):
    made = LaunchAttributeStruct(id=LaunchAttributeId.CLUSTER_DIMENSION)
    made.value.clusterDim.x, made.value.clusterDim.y, made.value.clusterDim.z = width, 1, 1
    return made


def test_a_limit_is_held_for_each_context_and_clamped(library, simulator):
    assert limit(library) == 0
    library.ok("cuCtxSetLimit", PERSISTING, ctypes.c_uint64(1 << 20))
    assert simulator.trace[-1] == LimitSet(PERSISTING, 1 << 20, 1 << 20, 0)
    library.ok("cuCtxSetLimit", PERSISTING, ctypes.c_uint64(1 << 40))
    most = attribute(library, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE)
    assert (limit(library), simulator.trace[-1].value) == (most, most)
    library.context(1)
    assert limit(library) == 0
    library.ok("cuCtxResetPersistingL2Cache")
    assert simulator.trace[-1] == PersistingLinesReset(1)
    library.context(0)
    library.ok("cuCtxSetLimit", PERSISTING, ctypes.c_uint64(0))
    assert limit(library) == 0
    assert limit(library, 0) == 1024


@pytest.mark.parametrize("number", [3, 7, 99])
def test_limits_that_are_not_there(library, number):
    out = ctypes.c_size_t()
    assert library("cuCtxGetLimit", ctypes.byref(out), number) is Status.UNSUPPORTED_LIMIT
    assert library("cuCtxSetLimit", number, ctypes.c_uint64(1)) is Status.UNSUPPORTED_LIMIT


def test_limits_are_of_a_context(library):
    library.ok("cuCtxSetCurrent", None)
    out = ctypes.c_size_t()
    assert library("cuCtxGetLimit", ctypes.byref(out), PERSISTING) is Status.INVALID_CONTEXT
    assert library("cuCtxSetLimit", PERSISTING, ctypes.c_uint64(1)) is Status.INVALID_CONTEXT
    assert library("cuCtxResetPersistingL2Cache") is Status.INVALID_CONTEXT


@pytest.mark.parametrize("mode", ["mig", "mps"])
def test_a_shared_device_sets_no_cache_aside(library, simulator, mode):
    with simulator.configured(mode=mode):
        library.ok("cuCtxSetLimit", PERSISTING, ctypes.c_uint64(1 << 20))
        assert limit(library) == 0
        assert attribute(library, DeviceAttribute.MPS_ENABLED) == (mode == "mps")
    assert attribute(library, DeviceAttribute.MPS_ENABLED) == 0


def test_another_architecture_has_other_rules(library, simulator):
    tensor_maps = DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED
    with simulator.configured(arch="sm_80"):
        assert simulator.arch == "sm_80"
        assert attribute(library, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR) == 8
        assert attribute(library, tensor_maps) == 0
        image = library.library()
        out = ctypes.c_void_p()
        refused = library("cuLibraryGetKernel", ctypes.byref(out), image, b"empty")
        assert refused is Status.NO_BINARY_FOR_GPU
        older = library.library(synthetic_cubin([SyntheticKernel(name="older")], "sm_80"))
        assert library.launch(library.kernel("older", older)) is Status.SUCCESS
        two_blocks = library.launch(library.kernel("older", older), grid=(2, 1, 1), attributes=(cluster(2),))
        assert two_blocks is Status.INVALID_VALUE
        assert library.launch(library.kernel("older", older), attributes=(cluster(1),)) is Status.SUCCESS
    assert attribute(library, tensor_maps) == 1


def test_an_older_driver_knows_less(library, simulator):
    kernel, out = library.kernel("empty"), ctypes.c_int()
    with simulator.configured(driver_version=11060):
        library.ok("cuDriverGetVersion", ctypes.byref(out))
        assert out.value == 11060
        assert attribute(library, DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED) is Status.INVALID_VALUE
        assert attribute(library, DeviceAttribute.WARP_SIZE) == 32
        assert library.launch(kernel, attributes=(cluster(1),)) is Status.INVALID_VALUE
        assert "11080" in simulator.trace[-1].reason
        assert library("cuKernelSetAttribute", 14, 1, kernel, 0) is Status.INVALID_VALUE
        library.ok("cuKernelSetAttribute", 8, 1024, kernel, 0)
    with simulator.configured(driver_version=12040):
        carveout = LaunchAttributeStruct(id=LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT)
        assert library.launch(kernel, attributes=(carveout,)) is Status.INVALID_VALUE
    assert library.launch(kernel, attributes=(carveout,)) is Status.SUCCESS


def test_single_attributes_are_changed(library, simulator):
    with simulator.configured(attributes={DeviceAttribute.MULTIPROCESSOR_COUNT: 20}):
        assert attribute(library, DeviceAttribute.MULTIPROCESSOR_COUNT) == 20
    assert attribute(library, DeviceAttribute.MULTIPROCESSOR_COUNT) == 132


def test_what_cannot_be_simulated_is_refused(simulator):
    with pytest.raises(ArgumentValueError, match="mig"), simulator.configured(mode="slice"):
        pass
    with pytest.raises(ArgumentValueError), simulator.configured(attributes={9999: 1}):
        pass
    with pytest.raises(DeviceRequirementError), simulator.configured(arch="sm_10"):
        pass


def test_a_devices_memory_is_told(library):
    out = ctypes.c_size_t()
    library.ok("cuDeviceTotalMem_v2", ctypes.byref(out), 1)
    assert out.value == 139 << 30


def fresh(source):
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "arch"),
    [
        ("", "sm_90a"),
        ("compute_capability=(9, 0)", "sm_90a"),
        ("compute_capability=(8, 6)", "sm_86"),
        ("arch='sm_100a', mode='mig'", "sm_100a"),
        ("arch=('sm_80', 'sm_90a')", "sm_80"),
    ],
)
def test_a_process_starts_what_it_asks_for(arguments, arch):
    done = fresh(f"from trunnion import sim\nprint(sim.start(devices=2, {arguments}).arch)")
    assert (done.stdout.strip(), done.stderr) == (arch, "")


UNLIKE = """
import ctypes, json, sys
from trunnion import sim
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.status import Status

simulator = sim.start(arch=("sm_90a", "sm_80", "sm_80"), attributes=(None, None, {16: 20}))
driver = ctypes.CDLL(simulator.library_path)
assert (simulator.devices, simulator.archs) == (3, ("sm_90a", "sm_80", "sm_80"))
assert [simulator.device(each).attribute(DeviceAttribute.MULTIPROCESSOR_COUNT) for each in range(3)] == [132, 108, 20]
library, kernel, function, number = (ctypes.c_void_p() for _ in range(4))
for arch, runs in (("sm_80", (1, 2)), ("sm_90a", (0,)), ("sm_100a", ())):
    image = synthetic_cubin([SyntheticKernel(name="k")], arch)
    assert driver.cuLibraryLoadData(ctypes.byref(library), image, None, None, 0, None, None, 0) == 0
    status = driver.cuLibraryGetKernel(ctypes.byref(kernel), library, b"k")
    assert status == (0 if runs else Status.NO_BINARY_FOR_GPU), (arch, status)
    for device in range(3) if runs else ():
        wanted = 0 if device in runs else Status.NO_BINARY_FOR_GPU
        with simulator.current(device):
            grid = (1,) * 6
            assert driver.cuKernelSetAttribute(8, 16, kernel, device) == wanted
            assert driver.cuKernelGetAttribute(ctypes.byref(number), 8, kernel, device) == wanted
            assert driver.cuFuncGetAttribute(ctypes.byref(number), 8, kernel) == wanted
            assert driver.cuKernelGetFunction(ctypes.byref(function), kernel) == wanted
            assert driver.cuLaunchKernel(kernel, *grid, 0, None, None, None) == wanted
print("done")
"""


def test_devices_of_one_machine_can_differ():
    done = fresh(UNLIKE)
    assert (done.stdout.strip(), done.stderr) == ("done", "")


@pytest.mark.parametrize(
    "arguments", ["compute_capability=(7, 0)", "arch='sm_90a', compute_capability=(9, 0)", "mode='all'"]
)
def test_a_process_refuses_what_is_not_there(arguments):
    done = fresh(f"from trunnion import sim\nsim.start({arguments})")
    assert done.returncode == 1
    assert "DeviceRequirementError" in done.stderr or "ArgumentValueError" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        {"driver_version": -5},
        {"driver_version": 1},
        {"driver_version": 13},
        {"driver_version": 13001},
        {"driver_version": "13"},
        {"arch": ""},
        {"arch": 90},
        {"attributes": {16: -5}},
        {"attributes": {16: 1 << 31}},
        {"attributes": {16: "x"}},
        {"attributes": {"16": 1}},
        {"attributes": [16]},
    ],
)
def test_nonsense_is_refused_at_once(simulator, arguments):
    with pytest.raises((ArgumentError, DeviceRequirementError)), simulator.configured(**arguments):
        pass


@pytest.mark.parametrize(
    "arguments",
    [
        {"devices": "2"},
        {"devices": 1.5},
        {"devices": 0},
        {"devices": True},
        {"compute_capability": 90},
        {"compute_capability": (9, "0")},
        {"driver_version": 1},
        {"arch": ""},
        {"arch": ()},
        {"arch": ("sm_90a", 80)},
        {"arch": ("sm_90a", "sm_80"), "devices": 1},
        {"arch": ("sm_90a", "sm_80"), "devices": 3},
        {"attributes": ({16: 1},), "devices": 2},
        {"attributes": ({16: 1}, 3), "devices": 2},
    ],
)
def test_a_start_with_nonsense_starts_nothing(monkeypatch, arguments):
    monkeypatch.setattr("trunnion.sim.process.Process.simulator", None)
    with pytest.raises((ArgumentError, DeviceRequirementError)):
        sim.start(**arguments)
    assert sim.active() is None


@pytest.mark.parametrize("nbytes", [-1, 1.5, "1"])
def test_a_limit_that_is_none_is_refused(simulator, nbytes):
    with pytest.raises(ArgumentError), simulator.memory_limit(nbytes):
        pass


@pytest.mark.parametrize(("symbol", "body"), [("k", 5), (5, print), ("k", None)])
def test_a_body_that_is_none_is_refused(simulator, symbol, body):
    with pytest.raises(ArgumentTypeError):
        simulator.register_body(symbol, body)


FORK = """
import ctypes, os
from trunnion import sim
simulator = sim.start()
driver = ctypes.CDLL(simulator.library_path)
if {before}:
    assert driver.cuInit(0) == 0
pid = os.fork()
if pid == 0:
    count = ctypes.c_int()
    os._exit(10 * driver.cuInit(0) + driver.cuDeviceGetCount(ctypes.byref(count)))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), driver.cuInit(0))
"""


@pytest.mark.parametrize(("before", "child"), [(True, 33), (False, 0)])
def test_a_child_that_was_forked_after_the_start_has_no_driver(before, child):
    done = fresh(FORK.format(before=before))
    assert (done.stdout.strip(), done.stderr) == (f"{child} 0", "")


FORKED_TENSORS = """
import os
import torch
from trunnion import sim
from trunnion.errors import LifecycleError
simulator = sim.start()
simulator.tensor(torch.ones(2))
pid = os.fork()
if pid == 0:
    refused = 0
    for make in (
        lambda: simulator.runtime.allocate((2,), torch.float32, 0, 0),
        lambda: simulator.tensor(torch.ones(2)),
    ):
        try:
            make()
        except LifecycleError:
            refused += 1
    os._exit(refused)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_forked_child_is_not_told_that_memory_ran_out():
    done = fresh(FORKED_TENSORS)
    assert (done.stdout.strip(), done.stderr) == ("2", "")


@pytest.mark.parametrize("stream", [0, 1, 2, 12345, -1, 2**70, None, "x", True])
def test_a_stream_that_cannot_be_replaced_is_refused(simulator, stream):
    with pytest.raises(ArgumentError, match="argument 'stream': got "):
        simulator.replace_stream(stream)
    live = simulator.new_stream()
    simulator.replace_stream(live)
