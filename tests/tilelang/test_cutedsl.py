"""The corpus in CuTeDSL: every kernel compiles that TileLang writes rightly, and the others are told."""

from __future__ import annotations

import pytest
from tilelang_corpus.corpus import CORPUS, TARGET

import trunnion
from trunnion.errors import CompileError, ProgramError
from trunnion_tilelang import from_prim_func

pytestmark = pytest.mark.filterwarnings("ignore:`tl.disable_tma_lower` is deprecated:DeprecationWarning")

FAULTS = {
    "raw_source": (ProgramError, "given as CUDA source"),
    "odd_grid": (ProgramError, "text that is no Python"),
    "gemm_without_maps": (CompileError, "'_Tensor' object has no attribute 'toint'"),
    "outputs_apart": (CompileError, "name 'floorf' is not defined"),
    "running_sum": (CompileError, "CumSum2D.run() takes 5 positional arguments but 7 were given"),
    "int4_copy": (Exception, "int4"),  # TVM's own, out of TileLang's lowering
}
"""What TileLang 0.1.15 writes wrongly, or not at all, and how that is told."""


def compiled(entry):
    target = {"kind": "cutedsl", "arch": TARGET}
    program = from_prim_func(entry.make(), target, entry.pass_configs)
    return trunnion.compile(program, "nvrtc", compiler="cutedsl", trust=True)


@pytest.mark.parametrize(
    "name", [name for name, entry in CORPUS.items() if not entry.refused and name not in FAULTS]
)
def test_it_compiles_and_takes_what_is_passed(name):
    kernels = compiled(CORPUS[name]).artifact.manifest.kernels
    assert len(kernels) >= 1


@pytest.mark.parametrize("name", FAULTS)
def test_what_tilelang_writes_wrongly_is_told(name):
    kind, words = FAULTS[name]
    with pytest.raises(kind) as caught:
        compiled(CORPUS[name])
    assert words in str(caught.value)
