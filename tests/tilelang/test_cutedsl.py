"""The corpus in CuTeDSL: every kernel compiles that TileLang writes rightly, and the others are told."""

from __future__ import annotations

import pytest
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_corpus.cutedsl import FAULTS, WRITTEN

import trunnion
from trunnion_tilelang import from_prim_func

pytestmark = pytest.mark.filterwarnings("ignore:`tl.disable_tma_lower` is deprecated:DeprecationWarning")


def compiled(entry):
    target = {"kind": "cutedsl", "arch": TARGET}
    program = from_prim_func(entry.make(), target, entry.pass_configs)
    return trunnion.compile(program, "nvrtc", compiler="cutedsl", trust=True)


@pytest.mark.parametrize("name", WRITTEN)
def test_it_compiles_and_takes_what_is_passed(name):
    kernels = compiled(CORPUS[name]).artifact.manifest.kernels
    assert len(kernels) >= 1


@pytest.mark.parametrize("name", FAULTS)
def test_what_tilelang_writes_wrongly_is_told(name):
    kind, words = FAULTS[name]
    with pytest.raises(kind) as caught:
        compiled(CORPUS[name])
    assert words in str(caught.value)
