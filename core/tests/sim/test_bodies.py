import ctypes
import struct

import pytest
import torch

from trunnion.errors import CorruptArtifactError, DriverError, KernelBodyError
from trunnion.sim.bodies import KernelBodyWarning, KernelCall
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
        ("float8_e4m3fn", b"\x38", 1.0),
        ("float8_e8m0fnu", b"\x7e", 0.5),
        ("complex64", struct.pack("<2f", 0.5, -2.0), 0.5 - 2j),
        ("complex32", struct.pack("<2e", 0.5, -2.0), 0.5 - 2j),
    ],
)
def test_scalars_are_decoded_from_their_bytes(dtype, data, value):
    found = call_of(data).scalar(0, dtype)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda call: call.scalar(0, "int64"), "parameter 0 as int64; it has 4 bytes, not 8"),
        (lambda call: call.scalar(1, "float32"), "parameter 1 as float32; it has 8 bytes, not 4"),
        (lambda call: call.scalar(9, "int32"), "parameter 9 as int32; the kernel has 4 parameters"),
        (lambda call: call.scalar(-1, "int32"), "parameter -1 as int32; the kernel has 4 parameters"),
        (lambda call: call.scalar(3, "float4_e2m1fn_x2"), "that type cannot travel as a scalar"),
        (lambda call: call.fields(4, (0, 1)), "parameter 4 as a struct; the kernel has 4 parameters"),
        (
            lambda call: call.fields(1, (0, 4), (4, 8)),
            "parameter 1 as a field of 8 bytes at offset 4; it has 8 bytes",
        ),
        (
            lambda call: call.fields(1, (-4, 8)),
            "parameter 1 as a field of 8 bytes at offset -4; it has 8 bytes",
        ),
        (lambda call: call.pointer(0), "parameter 0 as a pointer; it has 4 bytes, not 8"),
        (lambda call: call.tensor_map(1), "parameter 1 as a tensor map; it has 8 bytes, not 128"),
        (lambda call: call.im2col_map(1), "parameter 1 as a tensor map; it has 8 bytes, not 128"),
    ],
)
def test_what_a_body_asks_for_in_vain_is_said_of_the_body(wrong, said):
    call = call_of(bytes(4), bytes(8), bytes(128), bytes(1))
    with pytest.raises(KernelBodyError) as caught:
        wrong(call)
    assert said in str(caught.value)
    assert str(caught.value).startswith("kernel 'k' was asked for ")
    assert (caught.value.kernel, caught.value.actual in str(caught.value)) == ("k", True)


def test_bytes_that_are_no_map_are_corrupt():
    call = call_of(bytes(4), bytes(8), bytes(128))
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


def test_bodies_that_no_launch_ran_are_known(library, simulator, body):
    simulator.register_body("plan", double)
    try:
        body(double)
        assert launch(library, simulator.tensor(torch.arange(4.0)), 3) is Status.SUCCESS
        assert "plan" in simulator.unused_bodies
        assert "plain" not in simulator.unused_bodies
    finally:
        simulator.unregister_body("plan")
    assert "plan" not in simulator.unused_bodies


def test_a_misspelled_body_is_not_silent(library, simulator, body):
    """The kernel is launched and computes nothing, once said with the name that was probably meant."""
    simulator.register_body("plan", double)
    try:
        said = "'plain' .* no body.* a body for 'plan'.*did you mean 'plain' by 'plan'"
        with pytest.warns(KernelBodyWarning, match=said) as told:
            assert launch(library, simulator.tensor(torch.arange(4.0)), 3) is Status.SUCCESS
        assert "/trunnion/sim/" not in told[0].filename
        launch(library, simulator.tensor(torch.arange(4.0)), 3)  # which says it no more
    finally:
        simulator.unregister_body("plan")
    simulator.state.bodiless.clear()


def test_a_body_for_another_kernel_of_an_image_is_not_misspelled(library, simulator):
    simulator.register_body("empty", double)
    try:
        launch(library, simulator.tensor(torch.arange(4.0)), 3)
    finally:
        simulator.unregister_body("empty")


def test_a_tensor_with_its_layout_is_decoded():
    data = struct.pack("<Qiii4xqq", 4096, 7, 8, 9, 72, -9)
    found = call_of(data).view(0, (None, None, 3, None), (None, None, 1, 2))
    assert (found.address, found.shape, found.strides) == (4096, (7, 8, 3, 9), (72, -9, 1, 2))
    with pytest.raises(KernelBodyError, match="parameter 0 as a view; it has 40 bytes, not 8"):
        call_of(data).view(0, (3,), (1,))


def test_a_struct_is_read_field_by_field():
    data = struct.pack("<Qii", 4096, 7, -8)
    call = call_of(b"\1", data)
    held = call.fields(1, (12, 4), (0, 8), (0, 16))
    assert (held.scalar(0, "int32"), held.pointer(1), held.parameters[2]) == (-8, 4096, data)
    assert held.fields(2, (8, 4)).scalar(0, "int32") == 7
    assert (type(held), held.grid, held.memory) == (type(call), call.grid, call.memory)
    assert call.parameters == (b"\1", data)
