"""What TileLang makes of the corpus in CuTeDSL."""

from __future__ import annotations

from tilelang_corpus.corpus import CORPUS

from trunnion.errors import CompileError, ProgramError

__all__ = ["FAULTS", "LATER", "WRITTEN"]

FAULTS = {
    "raw_source": (ProgramError, "given as CUDA source"),
    "odd_grid": (ProgramError, "text that is no Python"),
    "gemm_without_maps": (CompileError, "'_Tensor' object has no attribute 'toint'"),
    "outputs_apart": (CompileError, "name 'floorf' is not defined"),
    "running_sum": (CompileError, "CumSum2D.run() takes 5 positional arguments but 7 were given"),
    "int4_copy": (Exception, "int4"),  # TVM's own, out of TileLang's lowering
}
"""What TileLang 0.1.15 writes wrongly, or not at all, and how that is told."""

LATER = {"float4_copy": (10, 0)}
"""What TileLang copies by tensor maps that only GPUs of that compute capability, and later ones, have."""

WRITTEN = [name for name, entry in CORPUS.items() if not entry.refused and name not in FAULTS]
"""The names of the others that a program can say."""
