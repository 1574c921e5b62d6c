"""Programs that ship with trunnion: what the demo runs, the documentation shows and the tests measure."""

from __future__ import annotations

from importlib import import_module

from trunnion.errors import ProgramError, shorten
from trunnion.examples.example import Example
from trunnion.messages import one_of
from trunnion.plain import text

__all__ = ["CPU_EXAMPLES", "EXAMPLES", "Example", "load"]

EXAMPLES: tuple[str, ...] = (
    "vector_add",
    "affine",
    "histogram",
    "pdl_pair",
    "split_k",
    "grid_sync",
    "cluster_norm",
    "cluster_norm_16",
    "segment_sum",
    "two_boxes",
    "hopper_gemm",
    "im2col_conv",
    "linked",
)
"""The names of the examples for GPUs, the simplest first."""

CPU_EXAMPLES: tuple[str, ...] = ("cpu_axpy", "cpu_softmax")
"""The names of the examples for the CPU, where they truly run on any machine."""


def load(name: str) -> Example:
    """Return an example.

    Parameters
    ----------
    name
        One of `EXAMPLES` or `CPU_EXAMPLES`.

    Raises
    ------
    ProgramError
        If there is no such example.
    """
    known = (*EXAMPLES, *CPU_EXAMPLES)
    wanted = text(name)
    if wanted not in known:
        raise ProgramError(f"got example {shorten(name)}, {one_of(name, known)}")
    example: Example = import_module(f"trunnion.examples.{wanted}").EXAMPLE
    return example
