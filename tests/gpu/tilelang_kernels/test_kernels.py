"""TileLang's kernels on a GPU: each of the corpus against torch, over poisoned memory, through every backend.

These need TileLang, and so a run of their own: ``pytest tests/gpu/tilelang_kernels``; a run of ``tests/gpu`` leaves
them out. With ``-n`` they compile side by side.
"""

from __future__ import annotations

import functools

import pytest
import torch
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_corpus.cutedsl import LATER, WRITTEN

import trunnion
from tilelang_runs.judging import RIGHT, Judgement, Place, judge
from tilelang_runs.launchers import indices_to_ask
from trunnion_tilelang import UnsupportedStatementError, from_artifact, from_prim_func, jit
from trunnion_tvm_ffi import from_module

pytestmark = pytest.mark.filterwarnings("ignore:`tl.disable_tma_lower` is deprecated:DeprecationWarning")

IMPORTED = [name for name, entry in CORPUS.items() if not entry.refused]
REFUSED = [name for name, entry in CORPUS.items() if entry.refused]
HERE = Place("cuda:0")


def imported(entry, kind="cuda"):
    """The program of an entry; its name is no other program's, where programs are prebuilt."""
    func = entry.make()
    target = {"kind": kind, "arch": TARGET}
    outputs = indices_to_ask(func, entry.out_idx)
    return from_prim_func(func, target, entry.pass_configs, out_idx=outputs, name=f"tilelang_{entry.name}")


def launching(program, entry):
    """What launches a program: a call of one that takes no tensor says on which device."""
    if any(isinstance(value, torch.Tensor) for value in entry.passed(entry.arguments(1))):
        return program
    return functools.partial(program, device=0)


@pytest.fixture(scope="module", params=IMPORTED)
def compiled(build, request):
    entry = CORPUS[request.param]
    with build(imported(entry)) as program:
        yield entry, program


def test_numbers_match_torch_over_poisoned_memory(compiled):
    entry, program = compiled
    assert judge(entry, launching(program, entry), HERE) == Judgement(RIGHT)


def test_the_launcher_itself_gives_the_same(compiled):
    entry, program = compiled
    if any(isinstance(value, torch.Tensor) for value in entry.passed(entry.arguments(1))):
        assert judge(entry, program.entry, HERE) == Judgement(RIGHT)


def test_a_captured_call_replays(compiled):
    entry, program = compiled
    given = tuple(HERE.put(value) for value in entry.arguments(1))
    kept = [value.clone() if isinstance(value, torch.Tensor) else value for value in given]
    call = launching(program, entry)
    call(*entry.passed(given))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        returned = call(*entry.passed(given))

    def replayed(*_):
        for value, before in zip(given, kept, strict=True):
            if isinstance(value, torch.Tensor):
                value.copy_(before)
        graph.replay()
        return returned

    replayed()
    torch.cuda.synchronize()
    expected = entry.reference(*entry.arguments(1))
    for got, want in zip(entry.results(given, returned), expected, strict=True):
        torch.testing.assert_close(
            _comparable(got.cpu()), _comparable(want), rtol=entry.tolerance, atol=entry.tolerance
        )


def _comparable(tensor):
    """A tensor of a type that torch compares."""
    return tensor.contiguous().view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_program_cannot_say_is_refused(name):
    with pytest.raises(UnsupportedStatementError):
        imported(CORPUS[name])


@pytest.mark.parametrize("name", WRITTEN)
def test_text_for_cutedsl(name):
    entry = CORPUS[name]
    with trunnion.compile(imported(entry, "cutedsl"), "cutedsl", trust=True) as program:
        judgement = judge(entry, launching(program, entry), HERE)
    if torch.cuda.get_device_capability() < LATER.get(name, (0, 0)):
        assert judgement.verdict == "refused"
        assert "TensorMapError" in judgement.reason
    else:
        assert judgement == Judgement(RIGHT)


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
@pytest.mark.parametrize("name", ["split_k", "row_extremes", "in_place"])
def test_the_drop_in(name, backend):
    """TileLang's own calling convention: one output, a list of two, and none."""
    entry = CORPUS[name]
    kernel = jit(entry.make, backend=backend, out_idx=list(entry.out_idx), target=TARGET)()
    assert judge(entry, kernel, HERE) == Judgement(RIGHT)


def test_a_module_that_tilelang_builds(tmp_path):
    """Its host code launches its kernel; the function in it is called as any other of TVM-FFI's."""
    import tilelang

    entry = CORPUS["vector_add_dynamic"]
    kernel = tilelang.compile(
        entry.make(), execution_backend="tvm_ffi", target={"kind": "cuda", "arch": TARGET}
    )
    path = tmp_path / "vector_add.so"
    kernel.export_library(str(path))
    signature = from_artifact(entry.lower()).signature
    program = from_module(str(path), "main", signature)
    a, b, c = (torch.randn(1000, device="cuda") for _ in range(3))
    program(a, b, c)
    torch.testing.assert_close(c, a + b, rtol=0, atol=0)
