"""Programs that ship with trunnion: what the demo runs, the documentation shows and the tests measure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.examples.example import Example

if TYPE_CHECKING:
    from trunnion.registry import Registry

__all__ = ["CPU_EXAMPLES", "EXAMPLES", "Example", "contributed", "known_examples", "load"]

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


def contributed(registry: Registry | None = None) -> dict[str, str]:
    """Return the module of each example that an installed device compiler brings, by the example's name.

    Parameters
    ----------
    registry
        The plugins; None: those that are installed.
    """
    from trunnion.registry import default_registry  # noqa: PLC0415 - whoever wants but the names above pays nothing

    plugins = default_registry() if registry is None else registry
    modules = (module for spec in plugins.compilers() for module in spec.examples)
    return {module.rpartition(".")[2]: module for module in modules}


def known_examples() -> tuple[str, ...]:
    """Return the name of every example, the installed plugins' last."""
    return (*EXAMPLES, *CPU_EXAMPLES, *contributed())


def load(name: str) -> Example:
    """Return an example.

    Parameters
    ----------
    name
        One of `known_examples`.

    Raises
    ------
    ProgramError
        If there is no such example.
    """
    own = name in (*EXAMPLES, *CPU_EXAMPLES)
    module = f"trunnion.examples.{name}" if own else contributed().get(name, "")
    if not module:
        raise ProgramError(f"got example {shorten(name)}, expected one of {', '.join(known_examples())}")
    example: Example = import_module(module).EXAMPLE
    return example
