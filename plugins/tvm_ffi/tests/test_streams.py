"""The stream and the device that a foreign function sees, on simulated devices, whose memory it can truly read."""

from __future__ import annotations

import os
import threading

import pytest
import torch
import tvm_ffi
from torch.utils._python_dispatch import TorchDispatchMode

from trunnion import errors, symbols
from trunnion.dlpack import CPU, CUDA, Device, Tensor, address_in
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.sim.trace import Allocated

pytestmark = pytest.mark.tvm_ffi_abi

(N,) = symbols("n")
X = TensorParam("x", "float32", (N,))
NOTE = Signature((X,), (TensorParam("seen", "int64", (3,)),))


@pytest.fixture
def on(simulator):
    """Return a vector on a simulated device."""

    def made(device=0, n=4):
        return simulator.tensor(torch.arange(n, dtype=torch.float32), device)

    return made


def test_a_function_runs_on_the_current_stream_of_the_tensors_device(function, simulator, on):
    note = function("note_stream", NOTE)
    first, second = simulator.new_stream(0), simulator.new_stream(1)
    for device, stream in ((0, 0), (0, first), (1, second), (1, 0), (0, 2), (0, first)):
        with simulator.stream(stream, device):
            seen = note(on(device))
            assert (type(seen), seen.get_device()) == (type(on(device)), device)
            assert seen.tolist() == [stream, CUDA, device]
    assert note(on(0)).tolist() == [0, CUDA, 0]


@pytest.mark.parametrize("signature", [NOTE, None])
def test_a_stream_that_is_named_counts_even_beside_torch_s(function, simulator, on, signature):
    note = function("note_stream", signature)
    side, current = simulator.new_stream(1), simulator.new_stream(1)
    with simulator.stream(current, 1):
        for stream in (side, 0, 1, 2):
            out = simulator.tensor(torch.zeros(3, dtype=torch.int64), 1)
            note(*(on(1),) if signature else (on(1), out), out=out if signature else None, stream=stream)
            assert out.tolist() == [stream, CUDA, 1]
        assert simulator.runtime.current_stream(1) == current


def test_outputs_are_allocated_under_the_call_s_stream(function, simulator, on):
    note, x = function("note_stream", NOTE), on(1)
    side = simulator.new_stream(1)
    simulator.clear_trace()
    note(x, stream=side)
    with simulator.stream(side, 1):
        note(x)
    made = [event for event in simulator.trace if isinstance(event, Allocated)]
    assert [(event.nbytes, event.device, event.stream) for event in made] == [(24, 1, side)] * 2


def test_what_a_function_allocates_is_allocated_there_too(function, simulator, on):
    twice = function("twice", Signature((X,), (TensorParam("y", "float32", (N,)),)), returns="callee")
    side, x = simulator.new_stream(1), on(1)
    simulator.clear_trace()
    out = twice(x, stream=side)
    assert (out.get_device(), out.tolist()) == (1, [0, 2, 4, 6])
    (made,) = [event for event in simulator.trace if isinstance(event, Allocated)]
    assert (made.device, made.stream) == (1, side)


def test_the_device_is_the_current_one_meanwhile(simulator, on):
    from trunnion_tvm_ffi import from_module

    seen = []

    def look(*_):
        seen.append(simulator.state.current().device.ordinal)

    look = from_module(tvm_ffi.convert(look), "look", Signature((X,)))
    with simulator.current(0):
        look(on(1))
        look(on(0))
        assert simulator.state.current().device.ordinal == 0
    assert seen == [1, 0]


def test_each_thread_has_its_own_current_stream(function, simulator, on):
    note = function("note_stream", NOTE)
    streams = [simulator.new_stream(0) for _ in range(4)]
    wrong = []
    barrier = threading.Barrier(len(streams))

    def work(stream):
        x = on(0)
        with simulator.stream(stream, 0):
            barrier.wait()
            wrong.extend(seen for _ in range(25) if (seen := note(x).tolist()) != [stream, CUDA, 0])

    threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_bound_call_keeps_its_stream(function, simulator, on):
    note, side = function("note_stream", NOTE), simulator.new_stream(0)
    with simulator.stream(side, 0):
        bound = note.bind(on(0))
    assert (bound.device, bound.stream) == (0, side)
    assert bound().tolist() == [side, CUDA, 0]
    assert bound() is bound()
    other = note.bind(on(1), stream=0)
    with simulator.stream(simulator.new_stream(1), 1):
        assert other().tolist() == [0, CUDA, 1]


@pytest.mark.parametrize("stream", [5, 1])
def test_the_host_has_no_streams(function, stream):
    for signature in (NOTE, None):
        note = function("note_stream", signature)
        args = (torch.zeros(3),) if signature else (torch.zeros(3), torch.zeros(3, dtype=torch.int64))
        with pytest.raises(errors.ArgumentValueError) as caught:
            note(*args, stream=stream)
        assert caught.value.argument == "stream"
        note(*args, stream=0)
    assert function("note_stream", NOTE)(torch.zeros(3)).tolist() == [0, 1, 0]


# Other libraries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("age", ["producer", "old_producer"])
def test_a_library_that_tells_no_stream_needs_one(function, simulator, on, age, request):
    kind = request.getfixturevalue(age)
    side = simulator.new_stream(0)
    for signature in (NOTE, None):
        note, array = function("note_stream", signature), kind(on(0))
        out = simulator.tensor(torch.zeros(3, dtype=torch.int64), 0)
        named = {"out": out} if signature else {}
        args = (array,) if signature else (array, out)
        with simulator.stream(side, 0), pytest.raises(errors.ArgumentValueError) as caught:
            note(*args, **named)
        assert caught.value.argument == "stream"
        assert array.streams == []
        note(*args, **named, stream=side)
        assert out.tolist() == [side, CUDA, 0]
        assert array.streams == [side], "the library waits for its own work"
        note(*args, **named, stream=0)
        assert out.tolist() == [0, CUDA, 0]
        assert array.streams == [side, 1], "what DLPack calls the legacy stream"


@pytest.mark.parametrize("stream", [0, 1, 2, 1 << 40])
def test_without_torch_tensors_every_stream_will_do(function, simulator, on, stream, producer):
    out = producer(simulator.tensor(torch.zeros(3, dtype=torch.int64), 1))
    for signature in (NOTE, None):
        note = function("note_stream", signature)
        if signature:
            assert note(producer(on(1)), out=out, stream=stream) is out
        else:
            note(producer(on(1)), out, stream=stream)
        seen = simulator.runtime.tensor_type.tolist(torch.from_dlpack(_Host(out.tensor)))
        assert seen == [stream, CUDA, 1]
    assert tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", 1)) == 0


class _Host:
    """A simulated array as one of the host, which its memory is."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        capsule = self.tensor.__dlpack__()
        described = Tensor.from_address(address_in(capsule, b"dltensor"))
        described.device = Device(CPU, 0)
        return capsule


def test_libraries_that_tell_their_stream_are_asked(function, simulator, on):
    """Another library with DLPack's exchange API, whose current stream is TVM-FFI's own."""
    note, side = function("stream"), simulator.new_stream(0)
    array = tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(on(0)))
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), side):
        assert note(array) == side
        with pytest.raises(errors.ArgumentValueError) as caught:
            note(array, on(0))
        assert caught.value.argument == "stream"
    other = simulator.new_stream(0)
    assert note(array, on(0), stream=other) == other
    assert note([array, {"x": (on(0),)}], on(0), stream=other) == other
    described = function("note_stream", NOTE)
    out = simulator.tensor(torch.zeros(3, dtype=torch.int64), 0)
    with pytest.raises(errors.ArgumentValueError, match="each of these libraries"):
        described(array, out=out)
    described(array, out=out, stream=other)
    assert out.tolist() == [other, CUDA, 0]


def test_arrays_may_stand_within_containers(function, simulator, on, producer):
    stream, side = function("stream"), simulator.new_stream(1)
    inner = [producer(on(1))]
    with pytest.raises(errors.ArgumentValueError) as caught:
        stream(on(1), {"list": inner})
    assert caught.value.argument == "stream"
    assert stream(on(1), {"list": inner}, stream=side) == side
    assert inner[0].streams == [side]


def test_a_call_without_tensors_takes_the_stream_of_its_device(function, simulator):
    seen = function("env_stream", None)
    described = Signature((ScalarParam("type", "int32"), ScalarParam("ordinal", "int32")))
    side = simulator.new_stream(1)
    with simulator.stream(side, 1):
        assert seen(CUDA, 1, device=1) == side
        assert seen(CUDA, 1, device="cuda:1", stream=7) == 7
    assert seen(CUDA, 1) == 0
    for program in (seen, function("nothing", described)):
        with pytest.raises(errors.DeviceRequirementError):
            program(CUDA, 1, stream=side)


def test_tensors_on_several_devices_are_refused(function, simulator, on):
    nothing = function("nothing", Signature((X, TensorParam("y", "float32", (N,)))))
    for y, where in ((on(1), "cuda:1"), (torch.zeros(4), "cpu")):
        with pytest.raises(errors.ArgumentValueError, match=where) as caught:
            nothing(on(0), y)
        assert caught.value.argument == "y"
    for device in (1, "cpu"):
        with pytest.raises(errors.ArgumentValueError) as caught:
            nothing(on(0), on(0), device=device)
        assert caught.value.argument == "device"
    out = function("note_stream", NOTE)
    with pytest.raises(errors.ArgumentValueError, match="cuda:0"):
        out(on(0), out=torch.zeros(3, dtype=torch.int64))


def test_an_output_is_filled_on_its_device(function, simulator, on, producer):
    for dtype, fill in (("float32", 1.5), ("complex64", 2j), ("int8", -1), ("bfloat16", 0.5)):
        signature = Signature((X,), (TensorParam("y", dtype, (2, N), fill=fill),))
        filled = function("nothing", signature)(on(1))
        assert filled.get_device() == 1
        assert torch.equal(filled.cpu(), torch.full((2, 4), fill, dtype=getattr(torch, dtype)))
    scalar = Signature((X,), (TensorParam("y", "float64", (), fill=0.0),))
    assert function("nothing", scalar)(on(0)).item() == 0
    zero = simulator.tensor(torch.zeros((), dtype=torch.float64))
    with pytest.raises(errors.ArgumentTypeError, match="filled"):
        function("nothing", scalar)(on(0), out=producer(zero), stream=0)


@pytest.mark.parametrize("named", [False, True])
def test_an_output_is_filled_on_the_stream_of_its_call(function, simulator, on, named):
    """Else the fill may come behind what the function writes."""
    filled = function("nothing", Signature((X,), (TensorParam("y", "float32", (N,), fill=1.5),)))
    current, side, x, seen = simulator.new_stream(1), simulator.new_stream(1), on(1), []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, args=(), kwargs=None):
            if called is torch.ops.aten.fill_.Scalar:
                seen.append(simulator.runtime.current_stream(1))
            return called(*args, **kwargs or {})

    with simulator.stream(current, 1), Seeing():
        filled(x, **({"stream": side} if named else {}))
    assert {*seen} == {side if named else current}


def test_a_fork_ends_what_used_a_device(function, simulator, on):
    used, unused = function("note_stream", NOTE), function("note_stream", NOTE)
    used(on(0))
    tensor, bound = on(0), used.bind(on(0))
    child = os.fork()
    if child == 0:  # no assertion may leave the child, which would go on as the test run
        refused = 0
        try:
            for call in (lambda: used(tensor), lambda: used(tensor, out=tensor), bound):
                try:
                    call()
                except errors.LifecycleError as error:
                    refused += "the process forked after a call on a CUDA device" in str(error)
            on_host = [program(torch.zeros(2)).tolist()[1] for program in (used, unused)]
            os._exit(0 if refused == 3 and on_host == [1, 1] else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert used(on(0)).tolist() == [0, CUDA, 0]


ALONE = """
from concurrent.futures import ThreadPoolExecutor
from trunnion import sim
simulator = sim.start(devices=1)
simulator.torch_mode().__enter__()
import torch, trunnion
from trunnion import examples
from trunnion.sim.trace import Launched
example = examples.load("vector_add")
with trunnion.compile(example.program, "tvm_ffi") as add:
    a = torch.ones(8, device="cuda:0")
    add(a, a)
    simulator.clear_trace()
    bound = add.bind(a, a, stream=2)
    for _ in range(2):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(bound).result()
    print(sum(isinstance(event, Launched) for event in simulator.trace))
"""


def test_the_only_device_s_own_stream_is_waited_for_in_a_thread_without_a_context(forked_python):
    done = forked_python(ALONE, warnings=("ignore",))
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stdout + done.stderr
