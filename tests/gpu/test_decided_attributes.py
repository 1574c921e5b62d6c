"""Clusters and early starts that a call decides, on a GPU: kernels see them, and so does the graph of a capture."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch

from trunnion import DeviceCode, ProgramBuilder, errors, ge, symbols

pytestmark = pytest.mark.gpu

SOURCE = """
extern "C" __global__ void told(int* seen) {
  unsigned x, y;
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(x));
  asm volatile("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(y));
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    seen[0] = x;
    seen[1] = y;
  }
}"""


def program():
    x, y, early = symbols("x y early")
    p = ProgramBuilder("decided_cluster", DeviceCode("cuda", SOURCE))
    for symbol in (x, y, early):
        p.scalar(symbol.name, "int32", symbol=symbol)
    seen = p.output("seen", "int32", (2,))
    p.launch("told", (seen,), grid=(x * 4, y * 2), block=32, cluster=(x, y), pdl=ge(early, 2))
    return p.build()


CLUSTERS = [(1, 1), (2, 1), (2, 4), (1, 8), (1, 1), (4, 2)]


def test_kernels_run_in_the_clusters_of_their_calls(build):
    with build(program()) as told:
        for early, (x, y) in enumerate(CLUSTERS):
            assert told(x, y, early, device=0).cpu().tolist() == [x, y]
            bound = told.bind(x, y, early, device=0)
            assert [bound().cpu().tolist() for _ in range(2)] == [[x, y]] * 2


def test_more_than_eight_blocks_are_asked_for_by_the_call(build):
    """What is not portable runs where there is room for it: a device may refuse it, by its own word."""
    with build(program()) as told:
        with suppress(errors.DeviceRequirementError):
            assert told(4, 4, 0, device=0).cpu().tolist() == [4, 4]
        assert told(2, 1, 0, device=0).cpu().tolist() == [2, 1]


@pytest.mark.parametrize(("x", "y"), [(0, 1), (17, 1), (8, 4)])
def test_what_is_no_cluster_is_refused(build, x, y):
    p = ProgramBuilder("refused_cluster", DeviceCode("cuda", SOURCE))
    a, b = symbols("a b")
    p.scalar("a", "int32", symbol=a)
    p.scalar("b", "int32", symbol=b)
    p.launch("told", (p.output("seen", "int32", (2,)),), grid=(544, 32), block=32, cluster=(a, b))
    with build(p.build()) as told:
        with pytest.raises(errors.ArgumentValueError, match="a cluster of"):
            told(x, y, device=0)
        assert told(2, 2, device=0).cpu().tolist() == [2, 2]


def test_a_captured_launch_keeps_what_its_call_decided(build):
    with build(program()) as told:
        told.preload(0)
        stream = torch.cuda.Stream()
        for x, y, early in ((2, 1, 0), (1, 4, 3)):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                seen = told(x, y, early, device=0)
            graph.replay()
            torch.cuda.synchronize()
            assert seen.cpu().tolist() == [x, y]
