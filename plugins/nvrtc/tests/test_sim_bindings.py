"""The simulated driver as ``cuda.bindings`` sees it."""

import ctypes
import threading

import pytest
from cuda.bindings import driver

from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.sim.abi import (
    DeviceAttribute,
    FunctionAttribute,
    LaunchAttributeId,
    LaunchAttributeStruct,
    LaunchConfigStruct,
)
from trunnion.sim.launch_attributes import AccessProperty, LaunchAttributes, WindowAttribute
from trunnion.sim.status import Status
from trunnion.sim.tensormap import Interleave, L2Promotion, OobFill, Swizzle, TensorMapDataType, decode
from trunnion.sim.trace import Launched

IMAGE = synthetic_cubin(
    (
        SyntheticKernel(name="scale", parameters=pack_parameters(((8, 8), (4, 4), (8, 8)))),
        SyntheticKernel(name="mapped", parameters=pack_parameters(((128, 64),))),
    )
)

pytestmark = pytest.mark.usefixtures("current_context")


def ok(result):
    status, *values = result
    assert status == driver.CUresult.CUDA_SUCCESS
    return values[0] if values else None


def launch(kernel, config, values, kinds):
    return driver.cuLaunchKernelEx(config, driver.CUfunction(int(kernel)), (values, kinds), 0)


def config_of(stream=0, attributes=()):
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 4, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 64, 1, 1
    config.hStream = driver.CUstream(stream)
    config.attrs = list(attributes)
    config.numAttrs = len(attributes)
    return config


KINDS = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_double)


def test_every_constant_is_the_drivers():
    named = set(Status) - {Status.NEWER, Status.UNNAMED}
    assert {int(row): row.symbol for row in named} == {int(row): row.name for row in driver.CUresult}
    for ours, prefix, theirs in (
        (DeviceAttribute, "CU_DEVICE_ATTRIBUTE_", driver.CUdevice_attribute),
        (FunctionAttribute, "CU_FUNC_ATTRIBUTE_", driver.CUfunction_attribute),
        (LaunchAttributeId, "CU_LAUNCH_ATTRIBUTE_", driver.CUlaunchAttributeID),
        (L2Promotion, "CU_TENSOR_MAP_L2_PROMOTION_", driver.CUtensorMapL2promotion),
        (OobFill, "CU_TENSOR_MAP_FLOAT_OOB_FILL_", driver.CUtensorMapFloatOOBfill),
        (AccessProperty, "CU_ACCESS_PROPERTY_", driver.CUaccessProperty),
    ):
        names = {row.name.removeprefix(prefix).removeprefix("CU_FUNC_"): int(row) for row in theirs}
        for row in ours:
            assert names[row.name.removeprefix("CU_FUNC_")] == row, row
    for row in driver.CUtensorMapDataType:
        name = row.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_")
        assert TensorMapDataType(int(row)).name.removeprefix("PACKED_") == name
    for ours, theirs in ((Interleave, driver.CUtensorMapInterleave), (Swizzle, driver.CUtensorMapSwizzle)):
        for row in theirs:
            # an identifier cannot begin with a digit: the driver's 128B_ATOM_32B is our B128_ATOM_32B
            name = row.name.split("_", 4)[4].replace("B", "", 1)
            assert ours(int(row)).name.removeprefix("B") == name


def test_every_structure_has_the_drivers_layout():
    """Fields that cuda.bindings writes are read back through our structure, at the same places."""
    config = config_of(stream=0x7000, attributes=())
    config.sharedMemBytes = 99
    ours = LaunchConfigStruct.from_address(int(config.getPtr()))
    assert (ours.gridDimX, ours.blockDimX, ours.sharedMemBytes, ours.hStream) == (4, 64, 99, 0x7000)
    attributes = [driver.CUlaunchAttribute(), driver.CUlaunchAttribute()]
    attributes[1].id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
    attributes[1].value.priority = -3
    config.attrs, config.numAttrs = attributes, 2
    array = (LaunchAttributeStruct * ours.numAttrs).from_address(ours.attrs)
    assert (array[1].id, array[1].value.priority) == (LaunchAttributeId.PRIORITY, -3)


def test_the_driver_is_the_simulated_one(simulator):
    assert ok(driver.cuDriverGetVersion()) == simulator.driver_version
    assert ok(driver.cuDeviceGetCount()) == simulator.devices
    assert ok(driver.cuDeviceGetName(32, 0)).startswith(b"Simulated")
    assert ok(driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_INVALID_VALUE)) == b"CUDA_ERROR_INVALID_VALUE"


def test_what_is_not_simulated_is_an_error_and_no_crash(simulator):
    with pytest.raises(RuntimeError, match="not found"):
        driver.cuMemAlloc(16)


def test_a_launch_delivers_bytes_and_attributes(simulator, kernels):
    attributes = [driver.CUlaunchAttribute() for _ in range(3)]
    attributes[0].id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    cluster = attributes[0].value.clusterDim
    cluster.x, cluster.y, cluster.z = 2, 1, 1
    attributes[1].id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attributes[1].value.programmaticStreamSerializationAllowed = 1
    attributes[2].id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    window = attributes[2].value.accessPolicyWindow
    window.base_ptr, window.num_bytes, window.hitRatio = 0x4000, 8192, 0.5
    window.hitProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    window.missProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    stream = ok(driver.cuStreamCreate(1))
    ok(launch(kernels("scale"), config_of(int(stream), attributes), (0x1234, -2, 0.5), KINDS))
    event = simulator.trace[-1]
    assert isinstance(event, Launched)
    assert (event.kernel, event.stream, event.cluster) == ("scale", int(stream), (2, 1, 1))
    assert event.parameters == (
        (0x1234).to_bytes(8, "little"),
        (-2).to_bytes(4, "little", signed=True),
        bytes.fromhex("000000000000e03f"),
    )
    assert event.attributes == LaunchAttributes(
        cluster=(2, 1, 1),
        programmatic_stream_serialization=True,
        window=WindowAttribute(0x4000, 8192, 0.5, AccessProperty.PERSISTING, AccessProperty.STREAMING),
    )


def test_a_body_runs_and_its_exception_comes_out(simulator, kernels):
    import torch

    tensor = simulator.tensor(torch.arange(4.0))

    def scale(call):
        view = call.memory.view(call.pointer(0), "float32", (call.scalar(1, "int32"),))
        view.mul_(call.scalar(2, "float64"))

    simulator.register_body("scale", scale)
    try:
        arguments = (kernels("scale"), config_of(), (tensor.data_ptr(), 4, 0.5), KINDS)
        ok(launch(*arguments))
        assert tensor.tolist() == [0, 0.5, 1, 1.5]
        simulator.register_body("scale", lambda call: call.scalar(0, "int32"))
        assert launch(*arguments) == (driver.CUresult.CUDA_ERROR_UNKNOWN,)
        with pytest.raises(ValueError, match="parameter 0"):
            simulator.raise_pending()
    finally:
        simulator.unregister_body("scale")


def test_a_thread_with_no_context(simulator, kernels):
    kernel, found = kernels("scale"), []

    def attempt():
        found.append(launch(kernel, config_of(), (0, 0, 0.0), KINDS))
        found.append(driver.cuCtxGetCurrent())
        found.append(driver.cuCtxGetDevice()[0])

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert found[0] == (driver.CUresult.CUDA_ERROR_INVALID_CONTEXT,)
    assert int(found[1][1]) == 0
    assert found[2] == driver.CUresult.CUDA_ERROR_INVALID_CONTEXT


def test_an_encoded_map_arrives_in_the_kernel(simulator, kernels):
    import torch

    tensor = simulator.tensor(torch.arange(64 * 64, dtype=torch.float16).reshape(64, 64))
    u64, u32 = driver.cuuint64_t, driver.cuuint32_t
    encoded = ok(
        driver.cuTensorMapEncodeTiled(
            driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            2,
            tensor.data_ptr(),
            [u64(64), u64(64)],
            [u64(128)],
            [u32(64), u32(8)],
            [u32(1), u32(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    boxes = []
    simulator.register_body("mapped", lambda call: boxes.append(call.tensor_map(0).load((0, 16))))
    try:
        ok(launch(kernels("mapped"), config_of(), (encoded,), (None,)))
    finally:
        simulator.unregister_body("mapped")
    simulator.raise_pending()
    assert torch.equal(boxes[0], tensor.cpu()[16:24])
    request = decode(simulator.trace[-1].parameters[0])
    assert (request.address, request.dims, request.swizzle) == (tensor.data_ptr(), (64, 64), Swizzle.B128)
