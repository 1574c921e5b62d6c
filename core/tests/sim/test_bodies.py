import ctypes
import struct

import pytest
import torch

from trunnion.errors import CorruptArtifactError, DriverError, ParameterMismatchError
from trunnion.sim.bodies import KernelCall
from trunnion.sim.memory import DeviceMemory
from trunnion.sim.status import Status


def call_of(*parameters):
    return KernelCall(
        kernel="k",
        device=0,
        grid=(1, 1, 1),
        block=(1, 1, 1),
        cluster=None,
        dynamic_smem_bytes=0,
        parameters=parameters,
        memory=DeviceMemory().on(0),
    )


@pytest.mark.parametrize(
    ("dtype", "data", "value"),
    [
        ("bool", b"\1", True),
        ("int8", b"\xff", -1),
        ("uint16", b"\xff\xff", 65535),
        ("int32", struct.pack("<i", -7), -7),
        ("uint64", b"\xff" * 8, (1 << 64) - 1),
        ("float16", struct.pack("<e", 1.5), 1.5),
        ("bfloat16", struct.pack("<f", 1.5)[2:], 1.5),
        ("float32", struct.pack("<f", -0.25), -0.25),
        ("float64", struct.pack("<d", 0.1), 0.1),
    ],
)
def test_scalars_are_decoded_from_their_bytes(dtype, data, value):
    found = call_of(data).scalar(0, dtype)
    assert (type(found), found) == (type(value), value)


def test_a_parameter_of_another_size_is_an_error():
    call = call_of(bytes(4), bytes(8), bytes(128))
    for wrong in (
        lambda: call.scalar(0, "int64"),
        lambda: call.scalar(1, "float32"),
        lambda: call.scalar(3, "int32"),
        lambda: call.scalar(-1, "int32"),
        lambda: call.scalar(0, "float8_e4m3fn"),
        lambda: call.pointer(0),
        lambda: call.tensor_map(1),
    ):
        with pytest.raises(ParameterMismatchError):
            wrong()
    with pytest.raises(CorruptArtifactError):
        call.tensor_map(2)
    assert call.pointer(1) == 0


@pytest.fixture
def body(simulator):
    """Register a body for the kernel ``plain`` until the test ends."""
    yield lambda function: simulator.register_body("plain", function)
    simulator.unregister_body("plain")


def launch(library, tensor, count):
    values = (ctypes.c_int(count), ctypes.c_void_p(tensor.data_ptr()))
    return library.launch(library.kernel("plain"), values=values, grid=(2, 1, 1))


def double(call):
    view = call.memory.view(call.pointer(1), "float32", (call.scalar(0, "int32"),))
    view.mul_(call.grid[0])


def test_a_body_runs_inside_the_launch(library, simulator, body):
    body(double)
    tensor = simulator.tensor(torch.arange(4.0))
    assert launch(library, tensor, 3) is Status.SUCCESS
    assert tensor.cpu().tolist() == [0, 2, 4, 3]


def test_what_a_body_raises_comes_out_as_itself(library, simulator, body):
    error = KeyError("mine")

    def fail(_):
        raise error

    body(fail)
    tensor = simulator.tensor(torch.arange(4.0))
    assert launch(library, tensor, 3) is Status.UNKNOWN
    with pytest.raises(KeyError) as caught:
        simulator.raise_pending()
    assert caught.value is error
    with pytest.raises(KeyError):
        simulator.call(launch, library, tensor, 3)

    def launcher():
        launch(library, tensor, 3)
        launch(library, tensor, 3)
        raise RuntimeError("what the launcher makes of it")

    with pytest.raises(KeyError) as caught:
        simulator.call(launcher)
    assert isinstance(caught.value.__context__, RuntimeError)
    simulator.raise_pending()


def test_a_body_that_leaves_its_memory_is_stopped(library, simulator, body):
    body(double)
    tensor = simulator.tensor(torch.arange(4.0))
    with pytest.raises(DriverError) as caught:
        simulator.call(launch, library, tensor, 5)
    assert caught.value.code_name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    other = simulator.tensor(torch.arange(4.0), 1)
    with pytest.raises(DriverError):
        simulator.call(launch, library, other, 3)


def test_a_refusal_is_not_pending(library, simulator):
    with simulator.reraise():
        assert library.launch(0x7777_0000_0000) is Status.INVALID_HANDLE
