"""Every example that can be shown: trunnion's own, and those that installed device compilers bring."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import trunnion

if TYPE_CHECKING:
    from trunnion.contract.spec import CompilerSpec
    from trunnion.examples import Example

__all__ = ["brought_by", "known_examples", "load_example"]


def brought_by(compiler: CompilerSpec) -> dict[str, str]:
    """Return the module of each example that a device compiler brings, by the example's name."""
    return {module.rpartition(".")[2]: module for module in compiler.examples}


def _brought() -> dict[str, str]:
    compilers = trunnion.default_registry().compilers()
    return {name: module for spec in compilers for name, module in brought_by(spec).items()}


def known_examples() -> tuple[str, ...]:
    """Return the name of every example, the plugins' last."""
    from trunnion import examples

    return (*examples.EXAMPLES, *examples.CPU_EXAMPLES, *_brought())


def load_example(name: str) -> Example:
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
    from trunnion import examples

    module = _brought().get(name)
    if module is None:
        return examples.load(name)
    example: Example = import_module(module).EXAMPLE
    return example
