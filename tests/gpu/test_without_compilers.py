"""Built in one process, run on a GPU in another: CuTeDSL cannot be imported there, and nothing can be started."""

from __future__ import annotations

import pytest

import trunnion
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

pytestmark = pytest.mark.gpu

RUN = """
import subprocess, sys
import torch, trunnion
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

def refuse(*_, **__):
    raise AssertionError("a process was started")

subprocess.Popen.__init__ = refuse
with trunnion.load(sys.argv[1]) as program:
    for seed, make in enumerate((EXAMPLE.inputs, *EXAMPLE.edges)):
        args = make(torch.Generator().manual_seed(seed), "cuda:0")
        assert torch.equal(program(*args), EXAMPLE.reference(*args)), make
    a = torch.rand(5000, device="cuda:0")
    graph, out = torch.cuda.CUDAGraph(), torch.empty_like(a)
    program.preload(0)
    with torch.cuda.graph(graph):
        program(a, a, out=out)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, a + a)
print("right", trunnion.load(sys.argv[1]).artifact.digest)
"""


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_what_cutedsl_made_runs_without_it(words_without, backend, tmp_path):
    built = trunnion.compile(EXAMPLE.program, backend, trust=True)
    built.artifact.save(tmp_path / "artifact")
    assert words_without(("cutlass",), RUN, tmp_path / "artifact") == ["right", built.artifact.digest]


def test_a_lazy_program_is_compiled_for_the_device_of_this_machine():
    with trunnion.compile(EXAMPLE.program, "cutedsl", trust=True, lazy=True) as program:
        import torch

        a = torch.rand(5000, device="cuda:0")
        assert torch.equal(program(a, a), a + a)
        major, minor = torch.cuda.get_device_capability(0)
        assert str(program.target).startswith(f"cuda:sm_{major}{minor}")
