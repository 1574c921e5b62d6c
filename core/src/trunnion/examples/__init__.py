"""Programs that ship with trunnion: what the demo runs, the documentation shows and the tests measure."""

from __future__ import annotations

from importlib import import_module

from trunnion.errors import ProgramError, shorten
from trunnion.examples.example import Example

__all__ = ["EXAMPLES", "Example", "load"]

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
"""The names of all examples, the simplest first."""


def load(name: str) -> Example:
    """Return an example.

    Parameters
    ----------
    name
        One of `EXAMPLES`.

    Raises
    ------
    ProgramError
        If there is no such example.
    """
    if name not in EXAMPLES:
        raise ProgramError(f"got example {shorten(name)}, expected one of {', '.join(EXAMPLES)}")
    example: Example = import_module(f"trunnion.examples.{name}").EXAMPLE
    return example
