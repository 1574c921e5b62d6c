"""Everything that a launch can be, on the simulated driver: what it was asked, in which order, and what is left."""

from __future__ import annotations

import ctypes
import struct

import pytest
import torch

import trunnion
from trunnion import errors
from trunnion.sim.runtime import SimRuntime
from trunnion.sim.trace import (
    Allocated,
    AttributeSet,
    Launched,
    LimitSet,
    MemorySet,
    PersistingLinesReset,
    StreamAttributeSet,
    TensorMapEncoded,
)

SOURCE = r"""
extern "C" __global__ void two(const float* x, const float* y) {}
extern "C" __global__ void one(const float* x) {}
extern "C" __global__ void far(const void* p, const void* q) {}
struct Pair { int a; double b; };
extern "C" __global__ void pair(char c, Pair p) {}
extern "C" __global__ void none() {}
struct __align__(64) Map { char bytes[128]; };
extern "C" __global__ void map(const __grid_constant__ Map m) {}
"""
CODE = trunnion.DeviceCode("cuda", SOURCE)


def events(simulator, *kinds):
    return [event for event in simulator.trace if isinstance(event, kinds)]


def on(device, *shape):
    return torch.zeros(*shape, dtype=torch.float32, device=f"cuda:{device}")


def test_an_absent_tensor_is_a_null_pointer(simulator, build):
    def write(p):
        (n,) = trunnion.symbols("n")
        x = p.input("x", "float32", (n,), nullable=True)
        y = p.input("y", "float32", (n,), nullable=True)
        p.launch("two", (x, y), n, 32)

    program, y = build(write), on(1, 3)
    program(None, y)
    (launch,) = events(simulator, Launched)
    assert (launch.device, launch.grid) == (1, (3, 1, 1))
    assert launch.parameters == (bytes(8), struct.pack("<Q", y.data_ptr()))
    with pytest.raises(errors.UnboundSymbolError):
        program(None, None, device=0)


def test_addresses_and_structs(simulator, build):
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))

    def write(p):
        p.launch("far", (p.pointer("q", nullable=True), p.pointer("r", alignment=8)), 1, 32)
        p.launch("pair", (p.scalar("c", "int8"), p.struct("s", 16, 8)), 1, 32)

    pair = Pair(-7, 0.5)
    build(write)(None, 1 << 40, 3, pair, device=0)
    first, second = events(simulator, Launched)
    assert first.parameters == (bytes(8), struct.pack("<Q", 1 << 40))
    assert second.parameters == (b"\x03", bytes(pair))


@pytest.mark.parametrize(
    ("kind", "fill"), [("float32", 1.5), ("int64", 1 << 40), ("complex128", 2 - 3j), ("int8", -1)]
)
def test_an_output_is_filled_before_the_launch(simulator, build, kind, fill):
    def write(p):
        (n,) = trunnion.symbols("n")
        x = p.input("x", "float32", (n,))
        y = p.output("y", kind, (n, 5), fill=fill)
        p.launch("two", (x, y), n, 32)

    program, stream = build(write), simulator.new_stream(1)
    y = program(on(1, 3), stream=stream)
    assert torch.equal(y.cpu(), torch.full((3, 5), fill, dtype=getattr(torch, kind)))
    kinds = [type(event) for event in events(simulator, Allocated, MemorySet, Launched)]
    assert kinds == [Allocated, *[MemorySet] * kinds.count(MemorySet), Launched]
    assert {event.stream for event in events(simulator, MemorySet)} == {stream}
    given = torch.zeros(3, 5, dtype=getattr(torch, kind), device="cuda:1")
    program(on(1, 3), out=given)
    assert torch.equal(given.cpu(), y.cpu())


def test_a_zeroed_workspace_lies_between_two_launches(simulator, build):
    def write(p):
        n, s = trunnion.symbols("n s")
        x = p.input("x", "float32", (n,))
        p.scalar("s", "int32", symbol=s)
        scratch = p.workspace("scratch", "float32", (s, n), zeroed=True, alignment=1 << 12)
        p.launch("two", (x, scratch), s, 32)
        p.launch("two", (scratch, x), s, 32)

    program, stream = build(write), simulator.new_stream(0)
    program(on(0, 6), 0)
    assert events(simulator, Allocated, MemorySet, Launched) == []
    program(on(0, 6), 4, stream=stream)
    allocated, zeroed, first, second = events(simulator, Allocated, MemorySet, Launched)
    assert first.parameters[1] == second.parameters[0]
    (address,) = struct.unpack("<Q", first.parameters[1])
    assert address % (1 << 12) == 0
    assert (zeroed.address, zeroed.value, zeroed.count * zeroed.itemsize) == (address, 0, 96)
    assert {event.stream for event in (allocated, zeroed, first, second)} == {stream}


def test_a_launch_with_a_condition(simulator, build):
    def write(p):
        (n,) = trunnion.symbols("n")
        p.scalar("n", "int32", symbol=n)
        p.launch("none", (), 1, 32)
        p.launch("none", (), n, 32, when=trunnion.gt(n, 5))

    program = build(write)
    for n, grids in ((5, [1]), (6, [1, 6])):
        simulator.clear_trace()
        program(n, device=1)
        assert [event.grid[0] for event in events(simulator, Launched)] == grids


def test_attributes_reach_the_driver(simulator, build):
    def write(p):
        how = {"cluster": (2, 1, 1), "priority": -1, "carveout": 50, "scheduling_policy": "load_balancing"}
        p.launch("none", (), 4, 32, mem_sync_domain="remote", preferred_cluster=(4, 1, 1), **how)
        p.launch("none", (), 1, 32, cooperative=True, pdl=True)

    build(write)(device=0)
    first, second = events(simulator, Launched)
    assert (first.cluster, second.cluster) == ((2, 1, 1), None)
    assert first.priority == -1
    said = repr(first.attributes)
    assert "(4, 1, 1)" in said
    assert "50" in said
    assert second.attributes != first.attributes
    assert "True" in repr(second.attributes)


def test_a_cluster_of_sixteen_sets_the_functions_attribute(simulator, build):
    build(lambda p: p.launch("none", (), 16, 32, cluster=16))(device=1)
    assert [(event.device, event.attribute, event.value) for event in events(simulator, AttributeSet)] == [
        (1, 14, 1)
    ]
    (launch,) = events(simulator, Launched)
    assert launch.cluster == (16, 1, 1)


def test_a_cooperative_launch_that_does_not_fit_needs_a_larger_device(simulator, build):
    program = build(lambda p: p.launch("none", (), 1_000_000, 1024, cooperative=True))
    with pytest.raises(errors.DeviceRequirementError, match="cooperative"):
        program(device=0)
    simulator.forget_pending()


def test_an_im2col_map(simulator, build):
    def write(p):
        n, h, w = trunnion.symbols("n h w")
        x = p.input("x", "float16", (n, h, w, 64))
        corners = {"pixel_box_lower_corner": (-1, -2), "pixel_box_upper_corner": (1, 0)}
        p.launch("map", (x.im2col(channels_per_pixel=64, pixels_per_column=32, **corners),), 1, 32)

    program = build(write)
    for _ in range(2):
        program(torch.zeros(2, 8, 9, 64, dtype=torch.float16, device="cuda:0"))
    (encoded,) = events(simulator, TensorMapEncoded)
    request = encoded.request
    assert request.dims == (64, 9, 8, 2)
    assert (request.lower, request.upper) == ((-2, -1), (0, 1))
    assert len(events(simulator, Launched)) == 2


def window(policy, **fields):
    def write(p):
        (n,) = trunnion.symbols("n")
        x = p.input("x", "float32", (n,))
        p.launch("one", (x,), 1, 32, window=x.window(hit_ratio=0.75, policy=policy, **fields))

    return write


def test_a_window_of_a_launch_follows_its_tensor(simulator, build):
    program = build(window("launch"))
    tensors = [on(1, 1000), on(1, 1000), on(1, 500), on(0, 250)]
    for x in tensors:
        program(x)
    windows = [event.window for event in events(simulator, Launched)]
    assert [(w.address, w.nbytes) for w in windows] == [(x.data_ptr(), x.numel() * 4) for x in tensors]
    assert {w.hit_ratio for w in windows} == {0.75}
    assert [(event.device, event.value) for event in events(simulator, LimitSet)] == [(1, 4000), (0, 1000)]
    simulator.clear_trace()
    program.close()
    assert sorted(event.device for event in events(simulator, LimitSet)) == [0, 1]


def test_a_window_of_a_stream_leaves_nothing(simulator, build):
    program, stream, x = build(window("stream")), simulator.new_stream(0), on(0, 1000)
    program(x, stream=stream)
    kinds = [type(e) for e in events(simulator, LimitSet, StreamAttributeSet, Launched, PersistingLinesReset)]
    assert kinds == [
        LimitSet,
        StreamAttributeSet,
        Launched,
        StreamAttributeSet,
        PersistingLinesReset,
        LimitSet,
    ]
    set_, cleared = (event.value for event in events(simulator, StreamAttributeSet))
    assert (set_.address, set_.nbytes, cleared.nbytes if cleared else 0) == (x.data_ptr(), 4000, 0)
    (launch,) = events(simulator, Launched)
    assert launch.stream == stream


def test_a_stream_of_another_device_is_refused(simulator, build):
    program, stream = (
        build(lambda p: p.launch("one", (p.input("x", "float32", (3,)),), 1, 32)),
        simulator.new_stream(1),
    )
    with pytest.raises(errors.ArgumentValueError) as caught:
        program(on(0, 3), stream=stream)
    assert caught.value.argument == "stream"
    program(on(1, 3), stream=stream)
    (launch,) = events(simulator, Launched)
    assert (launch.device, launch.stream) == (1, stream)


def test_a_bound_launch(simulator, build):
    def write(p):
        x = p.input("x", "float32", (5,))
        p.launch("two", (x, p.output("y", "float32", (5,), fill=2.0)), 1, 32)

    program, x = build(write), on(1, 5)
    bound = program.bind(x)
    assert events(simulator, Launched) == []
    y = bound()
    assert torch.equal(y.cpu(), torch.full((5,), 2.0))
    y.zero_()
    assert bound.entry() is y
    assert torch.equal(y.cpu(), torch.full((5,), 2.0))
    first, second = events(simulator, Launched)
    assert first == second
    assert first.parameters == tuple(struct.pack("<Q", t.data_ptr()) for t in (x, y))
    with pytest.raises(errors.ArgumentError):
        program.bind(on(1, 6))
    program.close()
    with pytest.raises(errors.LifecycleError):
        bound()


def test_more_shared_memory_than_the_device_has_is_a_device_requirement(simulator, build):
    def write(p):
        n = trunnion.Symbol("n")  # a launch that may be skipped is no mistake of the build's
        x = p.input("x", "float32", (n,))
        p.launch("one", (x,), 1, 32, dynamic_smem_bytes=232_449, when=trunnion.gt(n, 5))

    program = build(write)
    program.preload(0)
    program(on(0, 5))
    for call in (program, program.bind):
        with pytest.raises(errors.DeviceRequirementError, match=r"232449 bytes .* device 0, .* 232448 bytes"):
            call(on(0, 6))
    assert not events(simulator, Launched)


def test_more_shared_memory_than_the_target_has_is_refused_when_it_is_built(build):
    def write(p):
        p.launch("one", (p.input("x", "float32", (5,)),), 1, 32, dynamic_smem_bytes=232_449)

    with pytest.raises(errors.DeviceRequirementError, match=r"232449 bytes .* sm_90a, .* 232448 bytes"):
        build(write)


# One device ---------------------------------------------------------------------------------------------------------

ONE_DEVICE = """
import threading, torch, trunnion
from trunnion import examples, sim
from trunnion.sim.trace import CallRefused, Launched
simulator = sim.start(devices=1)
example = examples.load("vector_add")
with simulator.torch_mode(), trunnion.compile(example.program, backend="nvrtc", target="sm_90a") as program:
    for kernel in program.artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, example.bodies[kernel.name])
    a = torch.arange(8.0, device="cuda:0")
    program.preload(0)
    bound = program.bind(a, a)
    for call in (lambda: program(a, a), bound):
        def attempt():
            results.append(call().cpu())
            contexts.append(list(simulator.state.stack()))
        for thread in (True, False):
            results, contexts = [], []
            simulator.state.stack().clear()
            if thread:
                worker = threading.Thread(target=attempt); worker.start(); worker.join()
            else:
                attempt()
            assert torch.equal(results[0], 2 * a.cpu())
            assert contexts == [[]], contexts
refused = [event for event in simulator.trace if isinstance(event, CallRefused)]
launches = [event.call for event in refused].count("cuLaunchKernelEx")
assert launches == 4, refused
"""


def test_with_one_device_a_thread_without_a_context_is_found_by_the_launch_itself(forked_python):
    done = forked_python(ONE_DEVICE, warnings=("error",), timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


class Unbound:
    """A proxy of nothing, which raises an error of its own whatever it is asked."""

    def __getattr__(self, name):
        raise RuntimeError(f"it is bound to nothing that has {name}")


@pytest.mark.parametrize("helped", [True, False])
def test_a_proxy_of_nothing_is_no_tensor_in_a_later_call_too(build, simulator, monkeypatch, helped):
    if not helped:
        runtime = SimRuntime(simulator, lambda: None)
        monkeypatch.setattr(type(simulator), "runtime", property(lambda _: runtime))
    program = build(lambda b: b.launch("one", (b.input("x", "float32", (4,)),), 1, 1))
    x = on(0, 4)
    for _ in range(4):
        program(x)
        with pytest.raises(errors.ArgumentTypeError, match="expected a tensor"):
            program(Unbound())
