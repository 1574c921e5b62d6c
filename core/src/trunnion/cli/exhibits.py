"""Every example that can be shown: trunnion's own, and those that installed device compilers bring."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import trunnion

if TYPE_CHECKING:
    from trunnion.contract.spec import CompilerSpec
    from trunnion.examples import Example

__all__ = ["brought_by", "is_known", "known_examples", "load_example"]


def brought_by(compiler: CompilerSpec) -> dict[str, str]:
    """Return the module of each example that a device compiler brings, by the example's name."""
    return {module.rpartition(".")[2]: module for module in compiler.examples}


def _brought() -> dict[str, str]:
    compilers = trunnion.default_registry().compilers()
    return {name: module for spec in compilers for name, module in brought_by(spec).items()}


def _is_own(name: str) -> bool:
    """Whether an example is trunnion's own: then no plugin is asked."""
    from trunnion import examples

    return name in examples.EXAMPLES or name in examples.CPU_EXAMPLES


def is_known(name: str) -> bool:
    """Whether there is an example of that name."""
    return _is_own(name) or name in _brought()


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

    module = "" if _is_own(name) else _brought().get(name, "")
    if not module:
        return examples.load(name)
    example: Example = import_module(module).EXAMPLE
    return example
