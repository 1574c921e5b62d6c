"""Launchers in simulation: with the helper they do what they do without it, and they do use it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

import trunnion
import trunnion_fastcall
from trunnion.call_helper import installed_helper, no_helper
from trunnion.errors import TrunnionError
from trunnion.sim.trace import Allocated, Launched, LibraryLoaded, TensorMapEncoded
from trunnion.torch_runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = r"""
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {}
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void mapped(const __grid_constant__ Map a, float* c) {}
"""


def add() -> Any:
    p = trunnion.ProgramBuilder("add", trunnion.DeviceCode("cuda", SOURCE))
    (n,) = trunnion.symbols("n")
    a, b, k = p.input("a", "float32", (n,)), p.input("b", "float32", (n,)), p.scalar("k", "int32")
    p.launch("add", (a, b, p.output("c", "float32", (n,)), k), trunnion.ceildiv(n, 128), 128)
    return p.build()


def mapped() -> Any:
    p = trunnion.ProgramBuilder("mapped", trunnion.DeviceCode("cuda", SOURCE))
    m, n = trunnion.symbols("m n")
    n = trunnion.Symbol("n", multiple_of=4)
    a = p.input("a", "float32", (m, n))
    p.launch("mapped", (a.tiled((8, 4)), p.input("c", "float32", (m, n))), m, 32)
    p.launch("add", (a, a, p.input("d", "float32", (m, n)), m.cast("int32")), 1, 32)
    return p.build()


class Watched:
    """The helper, with a note of all that it makes and all that is called."""

    contract_version = trunnion_fastcall.contract_version

    def __init__(self) -> None:
        self.reads = self.refused = self.calls = 0

    def tensor_reader(self, *given: Any) -> Callable[..., Any]:
        read = trunnion_fastcall.tensor_reader(*given)

        def watched(*tensors: Any) -> Any:
            found = read(*tensors)
            self.reads += 1
            self.refused += found is None
            return found

        return watched

    def caller(self, *given: Any) -> Callable[[], int]:
        call = trunnion_fastcall.caller(*given)

        def watched() -> int:
            self.calls += 1
            return call()

        return watched


@pytest.fixture
def load(simulator: Any) -> Iterator[Callable[..., Any]]:
    made = []

    def loaded(program: Any, find_helper: Any) -> Any:
        artifact = trunnion.compile(program, backend="nvrtc", target="sm_90a").artifact
        runtime = default_runtime("cuda", find_helper)
        made.append(trunnion.CompiledProgram.from_artifact(artifact, runtime=runtime))
        return made[-1]

    with simulator.torch_mode():
        yield loaded
    for program in made:
        program.close()


def trace_of(simulator: Any, call: Callable[..., Any], *given: object, **named: object) -> list[object]:
    """What a call did, with addresses of what it allocated left out, or the error that it raised."""
    simulator.clear_trace()
    try:
        result = call(*given, **named)
    except TrunnionError as error:
        return [type(error), str(error)]
    own = set() if result is None else {result.data_ptr().to_bytes(8, "little")}
    seen: list[object] = []
    for event in simulator.trace:
        if isinstance(event, Launched):
            received = tuple(None if raw in own else raw for raw in event.parameters)
            seen.append(replace(event, library=0, parameters=received))
        elif not isinstance(event, (Allocated, LibraryLoaded)):
            seen.append(event)
    return seen


def calls_of_add() -> list[tuple[Any, ...]]:
    def on(device: int, *shape: int, dtype: Any = torch.float32) -> Any:
        return torch.zeros(*shape, dtype=dtype, device=f"cuda:{device}")

    a, b, other = on(0, 300), on(0, 300), on(0, 300)
    wide = on(0, 600)
    return [
        *[(a, b, 1)] * 4,
        (a, b, 2),
        (a, other, 2),
        (a, a, 2),
        (wide[:300], wide[300:], 2),
        (wide[::2], b, 2),
        (wide[1:301], b, 2),
        (wide, b, 2),
        (wide, wide, 2),
        (on(1, 300), b, 2),
        (on(1, 300), on(1, 300), 2),
        (on(0, 300, dtype=torch.int32), b, 2),
        (a.cpu(), b, 2),
        (None, b, 2),
        (a, [], 2),
        (a, b, "2"),
        (a, b),
        (on(0, 0), on(0, 0), 2),
        (a.reshape(20, 15), b, 2),
        (torch._neg_view(a), b, 2),
        *[(a, b, 1)] * 2,
    ]


def test_both_ways_do_the_same(simulator: Any, load: Any) -> None:
    watched = Watched()
    helped, plain = load(add(), lambda: watched), load(add(), no_helper)
    for arguments in calls_of_add():
        for way in ("entry", "__call__"):
            traces = [trace_of(simulator, getattr(one, way), *arguments) for one in (helped, plain)]
            assert traces[0] == traces[1], arguments
            assert traces[0] or not arguments[0].numel(), "or nothing was compared"
    assert watched.reads > watched.refused > 0
    assert watched.calls > 10


def test_both_ways_encode_the_same_maps(simulator: Any, load: Any) -> None:
    watched = Watched()
    helped, plain = load(mapped(), lambda: watched), load(mapped(), no_helper)
    a, c, d = (torch.zeros(16, 8, device="cuda:0") for _ in range(3))
    other = torch.zeros(16, 8, device="cuda:0")
    for arguments in [*[(a, c, d)] * 4, (other, c, d), (a, c, d), (c, a, d), (a[4:], c[4:], d[4:])]:
        stream = simulator.new_stream(0)
        traces = [trace_of(simulator, one, *arguments, stream=stream) for one in (helped, plain)]
        assert traces[0] == traces[1]
        assert sum(isinstance(event, TensorMapEncoded) for event in traces[0]) <= 1
    assert watched.reads
    assert watched.calls == 16


def test_the_installed_one_is_used_by_default() -> None:
    assert installed_helper() is trunnion_fastcall


def test_bound_launches_are_called_by_it(simulator: Any, load: Any) -> None:
    watched = Watched()
    a, b = (torch.zeros(300, device="cuda:0") for _ in range(2))
    bound = load(add(), lambda: watched).bind(a, b, 3)
    simulator.clear_trace()
    bound()
    bound()
    assert watched.calls == 2
    launched = [event for event in simulator.trace if isinstance(event, Launched)]
    assert len(launched) == 2


def test_a_refused_launch_is_tried_again_or_raised(simulator: Any, load: Any) -> None:
    program = load(add(), installed_helper)
    a, b = (torch.zeros(300, device="cuda:0") for _ in range(2))
    program.entry(a, b, 1)
    with simulator.fault("cuLaunchKernelEx"), pytest.raises(TrunnionError, match="cuLaunchKernelEx"):
        program.entry(a, b, 1)
    program.entry(a, b, 1)


def test_a_kernel_may_call_the_program_again_and_other_threads_too(simulator: Any, load: Any) -> None:
    """A launch has given up the lock; a call within a call has a frame of its own."""
    program = load(add(), installed_helper)
    tensors = [torch.zeros(300 + size, device="cuda:0") for size in range(4)]
    depth = threading.local()

    def body(call: Any) -> None:
        if not getattr(depth, "within", False):
            depth.within = True
            inner = program.entry(tensors[3], tensors[3], 9)
            assert inner.shape == (303,)
            depth.within = False
        size = call.scalar(3, "int32")
        call.memory.view(call.pointer(2), "float32", (300 + size,) if size < 4 else (303,)).fill_(float(size))

    simulator.register_body("add", body)
    wrong: list[object] = []

    def work(size: int) -> None:
        for _ in range(20):
            made = program.entry(tensors[size], tensors[size], size)
            if made.shape != (300 + size,) or not bool((made.cpu() == size).all()):
                wrong.append((size, made))

    threads = [threading.Thread(target=work, args=(size,)) for size in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
