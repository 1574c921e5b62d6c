"""Every example on a GPU: numbers against torch, over poisoned memory, from any stream, thread, device and graph."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from gpu_reading import stalls, trials

from trunnion import errors, examples
from trunnion.cli.exhibits import known_examples, load_example

pytestmark = pytest.mark.gpu


THREADS = 8


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Those that device compilers bring, too: where such a compiler is missing, its examples fail.
EXAMPLES = [name for name in known_examples() if name not in examples.CPU_EXAMPLES]


@pytest.fixture(scope="module", params=EXAMPLES)
def compiled(build, request):
    example = load_example(request.param)
    with build(example.program) as program:
        yield example, program


@pytest.fixture(scope="module")
def all_compiled(build):
    with contextlib.ExitStack() as stack:
        loaded = [load_example(name) for name in EXAMPLES]
        yield [(one, stack.enter_context(build(one.program))) for one in loaded]


def test_numbers_match_torch_over_poisoned_memory(compiled):
    example, program = compiled
    for seed in range(5):
        args = example.inputs(seeded(seed), "cuda:0")
        trials.poison_free_memory()
        trials.assert_right(example, program(*args), args)


def test_edges_match_torch(compiled):
    example, program = compiled
    for seed, edge in enumerate(example.edges):
        args = edge(seeded(seed), "cuda:0")
        trials.poison_free_memory()
        trials.assert_right(example, program(*args), args)


def test_given_outputs_are_written_whole(compiled):
    example, program = compiled
    for seed, make in enumerate((example.inputs, *example.edges)):
        args = make(seeded(seed), "cuda:0")
        out = trials.poisoned_like(trials.host_reference(example, args))
        result = program(*args, out=out)
        results = result if isinstance(result, tuple) else (result,)
        assert all(one is given for one, given in zip(results, out, strict=True))
        trials.assert_right(example, out if len(out) > 1 else out[0], args)


def test_a_call_leaves_its_inputs_alone(compiled):
    example, program = compiled
    args = example.inputs(seeded(11), "cuda:0")
    before = [one.clone() for one in trials.tensors_of(args)]
    program(*args)
    assert all(torch.equal(one, kept) for one, kept in zip(trials.tensors_of(args), before, strict=True))


def test_a_captured_call_replays_with_what_its_inputs_hold_then(compiled):
    example, program = compiled
    args = example.inputs(seeded(0), "cuda:0")
    program(*args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = program(*args)
    for seed in (1, 2, 3):
        fresh = trials.tensors_of(example.inputs(seeded(seed), "cuda:0"))
        for held, new in zip(trials.tensors_of(args), fresh, strict=True):
            held.copy_(new)
        for one in result if isinstance(result, tuple) else (result,):
            one.view(-1).view(torch.uint8).fill_(0xFF)
        graph.replay()
        torch.cuda.synchronize()
        trials.assert_right(example, result, args)


def test_a_side_stream_waits_for_nothing_but_itself(compiled):
    """The inputs are made on the side stream once it may go on: a launch elsewhere would read them too early."""
    example, program = compiled
    args = example.inputs(seeded(5), "cuda:0")
    tensors = trials.tensors_of(args)
    kept = [one.clone() for one in tensors]
    for one, saved in zip(tensors, kept, strict=True):  # all that is launched below is loaded
        one.zero_()
        one.copy_(saved)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        program(*args)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for one in tensors:
            one.zero_()
        with stalls.stalled(stream):
            for one, saved in zip(tensors, kept, strict=True):
                one.copy_(saved)
            result = program(*args)
            assert not stream.query()  # the call has not waited
    trials.assert_right(example, result, args)


def test_eight_threads_on_their_own_streams(all_compiled):
    failures = []

    def work(seed: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for turn in range(4):
                for example, program in all_compiled:
                    args = example.inputs(seeded(100 * seed + turn), "cuda:0")
                    result = program(*args)
                    if not example.largest_error(result, args) <= example.tolerance:
                        failures.append((example.name, seed, turn))

    _together(work)
    assert failures == []


def test_eight_threads_call_one_program_at_once(all_compiled):
    """Many launches between synchronisations, each thread with inputs of its own."""
    failures = []
    chosen = [pair for pair in all_compiled if pair[0].name in {"vector_add", "two_boxes", "split_k"}]

    def work(seed: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for example, program in chosen:
                calls = [example.inputs(seeded(seed * 31 + turn), "cuda:0") for turn in range(20)]
                results = [program(*args) for args in calls]
                for args, result in zip(calls, results, strict=True):
                    if not example.largest_error(result, args) <= example.tolerance:
                        failures.append((example.name, seed))

    _together(work)
    assert failures == []


def _together(work) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, seed) for seed in range(THREADS)]:
            done.result()


def test_a_closed_program_refuses(build, compiled):
    example, _ = compiled
    program = build(example.program)
    args = example.inputs(seeded(0), "cuda:0")
    entry = program.entry
    trials.assert_right(example, entry(*args), args)
    program.close()
    program.close()
    for call in (program, entry):
        with pytest.raises(errors.LifecycleError):
            call(*args)


@pytest.mark.skipif("torch.cuda.device_count() < 2", reason="needs two devices")
def test_tensors_on_either_device_under_either_current_device(compiled):
    example, program = compiled
    for tensors, current in ((1, 0), (0, 1), (1, 1), (0, 0)):
        with torch.cuda.device(current):
            args = example.inputs(seeded(tensors), f"cuda:{tensors}")
            trials.poison_free_memory(f"cuda:{tensors}")
            result = program(*args)
            assert torch.cuda.current_device() == current
            torch.cuda.synchronize(tensors)
            for one in result if isinstance(result, tuple) else (result,):
                assert one.get_device() == tensors
            trials.assert_right(example, result, args)


@pytest.mark.skipif("torch.cuda.device_count() < 2", reason="needs two devices")
def test_fresh_threads_launch_on_either_device(compiled):
    """A fresh thread has no context at all, and torch has set none of its devices there."""
    example, program = compiled
    for device in (1, 0):
        args = example.inputs(seeded(device), f"cuda:{device}")
        torch.cuda.synchronize(device)
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(program, *args).result()
        torch.cuda.synchronize(device)
        trials.assert_right(example, result, args)


@pytest.mark.skipif("torch.cuda.device_count() < 2", reason="needs two devices")
def test_a_capture_on_the_second_device(compiled):
    example, program = compiled
    program.preload(1)
    args = example.inputs(seeded(8), "cuda:1")
    with torch.cuda.device(1):
        program(*args)  # a window's cache is set aside by a first call
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph, stream=torch.cuda.Stream()
        ):  # torch's own is of the device captured first
            result = program(*args)
        graph.replay()
        torch.cuda.synchronize()
    trials.assert_right(example, result, args)


@pytest.mark.skipif("torch.cuda.device_count() < 2", reason="needs two devices")
def test_tensors_of_two_devices_are_refused(build):
    with build(examples.load("vector_add").program) as program:
        a = torch.randn(5000, device="cuda:1")
        with pytest.raises(errors.ArgumentValueError) as caught:
            program(a, a.to("cuda:0"))
        assert caught.value.argument == "b"
