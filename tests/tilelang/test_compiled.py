"""Kernels that are really compiled: NVRTC's images have the signatures that the programs and the device functions have.

`make test` compiles some, chosen for what they include and for how they are told apart. With
``TRUNNION_TILELANG_KERNELS=all`` in the environment, every one that is imported is compiled by NVRTC, and, lowered for
CuTeDSL, by that; this takes many minutes.
"""

from __future__ import annotations

import os

import pytest
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_corpus.cutedsl import WRITTEN
from tilelang_host.bench import Bench, synthetic

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.registry import default_registry

IMPORTED = [name for name, entry in CORPUS.items() if not entry.refused]
COMPILED = [
    "vector_add_dynamic",
    "hostile_names",
    "integer_scalars",
    "raw_source",
    "two_boxes",
    "split_k",
    "convolution",
]
FOR_CUTEDSL = ("hostile_names", "two_boxes", "split_k")
NO_MAP = {"float4_copy": "compute capability 10.0"}
"""What TileLang gives a tensor map for CuTeDSL that the architecture does not have, and what a call is told."""

ALL = os.environ.get("TRUNNION_TILELANG_KERNELS") == "all"


@pytest.fixture(scope="module")
def compilers():
    return {spec.name: spec.load_compiler()() for spec in default_registry().compilers()}


def compiled(compiler, program):
    request = CompileRequest(
        code=program.code,
        kernels=program.plan().kernels,
        plan=program.plan(),
        target=Target("cuda", TARGET),
        accepts=("cubin",),
    )
    return compiler.compile(request)


def signatures(image):
    return {kernel.name: kernel.parameters for kernel in image.kernels}


@pytest.mark.parametrize("name", IMPORTED if ALL else COMPILED)
def test_what_nvrtc_makes_is_launched_by_every_backend(name, bench, harnesses, compilers):
    subject = bench(name)
    image = compiled(compilers["nvrtc"], subject.program)
    assert signatures(image) == signatures(synthetic(subject.artifact, TARGET))
    given = subject.given(harnesses[0], 1, 0)
    found = set()
    for harness in harnesses:
        with subject.loaded(harness, image) as loaded:
            found.add(subject.compared(subject.call(harness, loaded, given, 0), given))
    assert len(found) == 1


@pytest.mark.parametrize("name", WRITTEN if ALL else FOR_CUTEDSL)
def test_what_cutedsl_makes_is_launched_as_well(name, harnesses, compilers):
    from trunnion_tilelang import from_artifact

    entry = CORPUS[name]
    artifact = entry.lower("cutedsl")
    subject = Bench(entry, artifact, from_artifact(artifact, out_idx=entry.out_idx))
    assert [code.language for code in subject.program.code] == ["cutedsl"]
    image = compiled(compilers["cutedsl"], subject.program)
    symbols = {kernel.symbol: kernel.name for kernel in image.kernels}
    given = subject.given(harnesses[0], 1, 0)
    with subject.loaded(harnesses[0], image) as loaded:
        observed = subject.call(harnesses[0], loaded, given, 0)
    if name in NO_MAP:
        assert NO_MAP[name] in str(observed.error)
    else:
        assert subject.compared(observed, given, symbols)
