"""Programs as operators of torch on a GPU: every example with tensors, in Python and in C++, and in graphs."""

from __future__ import annotations

import itertools

import pytest
import torch
from gpu_reading import trials

import trunnion
from trunnion import examples

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # of torch's own compiler
]

EXAMPLES = [name for name in examples.EXAMPLES if examples.load(name).program.signature.tensors]
_NAMES = itertools.count()


def name():
    return f"trunnion_gpu::op{next(_NAMES)}"


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def plain(args):
    """Return arguments as an operator takes them: a struct is the list of its bytes, an address a number."""
    return tuple(
        [*one] if isinstance(one, bytes) else one.__index__() if type(one).__name__ == "Address" else one
        for one in args
    )


# A Python launcher is no operator in C++: tests that need no GPU show the refusal.
@pytest.fixture(scope="module", params=["nvrtc", "tvm_ffi", "cutedsl", "tvm_ffi in C++", "cutedsl in C++"])
def way(request):
    backend, _, language = request.param.partition(" in ")
    return backend, bool(language)


@pytest.fixture(scope="module", params=EXAMPLES)
def registered(request, way):
    backend, in_cpp = way
    example = examples.load(request.param)
    program = trunnion.compile(example.program, backend)
    return example, trunnion.torch_op(program, name(), cpp=in_cpp)


def test_torch_finds_nothing_wrong_with_an_example(registered):
    example, op = registered
    for seed, make in enumerate((example.inputs, *example.edges)):
        args = make(seeded(seed), "cuda:0")
        trials.poison_free_memory()
        results = op(*plain(args))
        trials.assert_right(example, results, args)
        # Some add by atomics, in another order each time: two calls differ by what rounding allows, each of them.
        made = results if isinstance(results, tuple) else (results,)
        greatest = max((float(one.abs().max()) for one in made if one.numel()), default=0.0)
        rounding = 2 * example.tolerance
        # Either of them 0, and torch takes its own for both.
        torch.library.opcheck(op.default, plain(args), atol=rounding * greatest, rtol=rounding)


def test_given_outputs_are_written_whole(registered):
    example, op = registered
    args = example.inputs(seeded(3), "cuda:0")
    out = trials.poisoned_like(trials.host_reference(example, args))
    names = [argument.name for argument in op.out._schema.arguments if argument.kwarg_only]
    op.out(*plain(args), **dict(zip(names, out, strict=True)))
    trials.assert_right(example, tuple(out) if len(out) > 1 else out[0], args)
    assert {one._version > 0 for one in out} == {True}


def test_it_is_captured_by_hand(registered):
    example, op = registered
    args = example.inputs(seeded(0), "cuda:0")
    op(*plain(args))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = op(*plain(args))
    for seed in (1, 2):
        fresh = trials.tensors_of(example.inputs(seeded(seed), "cuda:0"))
        for held, new in zip(trials.tensors_of(args), fresh, strict=True):
            held.copy_(new)
        graph.replay()
        torch.cuda.synchronize()
        trials.assert_right(example, results, args)


def test_it_runs_on_the_current_stream(registered):
    example, op = registered
    args = example.inputs(seeded(4), "cuda:0")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        results = op(*plain(args))
    stream.synchronize()
    trials.assert_right(example, results, args)


@pytest.fixture(scope="module")
def adding(way):
    backend, in_cpp = way
    program = trunnion.compile(examples.load("vector_add").program, backend)
    return trunnion.torch_op(program, name(), cpp=in_cpp)


def test_it_is_compiled_once_for_ten_shapes(adding):
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("inductor")

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def model(a, b):
        return adding(a + 1, b) * 2

    for count in range(1000, 1010):
        a, b = torch.randn(count, device="cuda"), torch.randn(count, device="cuda")
        assert torch.allclose(model(a, b), (a + 1 + b) * 2)
    assert counter.frame_count == 1


def test_torchs_compiler_captures_it(adding):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()

    @torch.compile(fullgraph=True, mode="reduce-overhead")
    def model(a, b):
        return adding(adding(a + 1, b), b) * 2

    for seed in range(5):
        a, b = (torch.randn(4096, generator=seeded(seed + i)).cuda() for i in range(2))
        torch.compiler.cudagraph_mark_step_begin()
        assert torch.allclose(model(a, b), (a + 1 + b + b) * 2)
    skips = torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]
    assert skips == 0


def test_what_is_no_argument_is_refused(adding, way):
    a = torch.ones(8, device="cuda")
    kind = RuntimeError if way[1] else trunnion.errors.ArgumentValueError
    with pytest.raises(kind, match="argument 'b': got extent 4 along dimension 0, expected 8"):
        adding(a, a[:4].clone())
    with pytest.raises(NotImplementedError, match="CPU"):  # torch's own: nothing is registered there
        adding(a.cpu(), a.cpu())


def test_one_operator_runs_on_both_kinds_of_device():
    source = """
#include <trunnion/block.h>
void vector_add(const float* a, const float* b, float* c, int n, const trunnion_block_t* block) {
  for (int i = block->index[0] * block->block[0], e = i + block->block[0]; i < e && i < n; ++i) c[i] = a[i] + b[i];
}
"""
    from dataclasses import replace

    on_gpu = examples.load("vector_add").program
    code = (trunnion.DeviceCode("c++", source),)
    on_cpu = replace(on_gpu, code=code)
    op = trunnion.torch_op([trunnion.compile(on_gpu), trunnion.compile(on_cpu)], name())
    for device in ("cuda", "cpu"):
        a = torch.randn(100, device=device)
        assert torch.equal(op(a, a), a + a)


def test_an_exported_folder_is_loaded_without_trunnion(tmp_path):
    import subprocess
    import sys

    program = trunnion.compile(examples.load("vector_add").program, "tvm_ffi")
    made = trunnion.export_torch_op(program, "elsewhere::add", tmp_path / "add")
    source = (
        "import sys\n"
        "sys.modules['trunnion'] = None\n"  # whoever imports it fails
        "import torch, tvm_ffi\n"
        "torch.ops.load_library(sys.argv[1])\n"
        "a = torch.randn(1000, device='cuda')\n"
        "assert torch.equal(torch.ops.elsewhere.add(a, a), a + a)\n"
    )
    words = [sys.executable, "-c", source, str(made)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_model_that_was_compiled_ahead_of_time_calls_it(tmp_path):
    program = trunnion.compile(examples.load("vector_add").program, "tvm_ffi")
    op = trunnion.torch_op(program, name(), cpp=True)

    class Model(torch.nn.Module):
        def forward(self, a, b):
            return op(a + 1, b) * 2

    count = torch.export.Dim("n", max=1 << 20)
    a = torch.randn(1000, device="cuda")
    exported = torch.export.export(Model(), (a, a.clone()), dynamic_shapes=({0: count}, {0: count}))
    package = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
    model = torch._inductor.aoti_load_package(package)
    for length in (5, 4096):
        a = torch.randn(length, device="cuda")
        assert torch.equal(model(a, a), (a + 1 + a) * 2)  # in the order in which the model adds
