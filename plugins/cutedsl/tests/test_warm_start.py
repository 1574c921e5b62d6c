"""Compiled once, a CuTeDSL program starts where CuTeDSL cannot be imported, and no process is started for it."""

from __future__ import annotations

import pytest

import trunnion
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

WARM = """
import sys
import torch, trunnion
from trunnion import sim
from trunnion_cutedsl.compiler import workers
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

def refuse(*_, **__):
    raise AssertionError("a process was started to compile")

workers.Workers.run = refuse
simulator = sim.start()
if sys.argv[1] == "load":
    program = trunnion.load(sys.argv[2])
else:
    lazy = sys.argv[1] == "lazy"
    program = trunnion.compile(
        EXAMPLE.program, "cutedsl", target="sm_90a", cache=sys.argv[2], trust=True, lazy=lazy
    )
with program, simulator.torch_mode():
    (kernel,) = program.artifact.manifest.kernels
    simulator.register_body(kernel.symbol, EXAMPLE.bodies[kernel.name])
    a = torch.arange(1000.0, device="cuda")
    print(torch.equal(program(a, a), a + a), program.artifact.digest)
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a cache that holds the program, its artifact's folder, and its digest."""
    cache = tmp_path_factory.mktemp("kept") / "cache"
    program = trunnion.compile(EXAMPLE.program, "cutedsl", target="sm_90a", cache=cache, trust=True)
    return {
        "cache": cache,
        "folder": cache / "entries" / program.artifact.manifest.key,
    }, program.artifact.digest


@pytest.mark.parametrize(("way", "place"), [("compile", "cache"), ("lazy", "cache"), ("load", "folder")])
def test_it_starts_without_cutedsl(words_without, kept, way, place):
    places, digest = kept
    assert words_without(("cutlass", "cutlass_dsl"), WARM, way, places[place]) == ["True", digest]
