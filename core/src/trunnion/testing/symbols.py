"""The exact names of kernels and variables in the images of machines: short ones, and long ones as templates have."""

from __future__ import annotations

from typing import Final

__all__ = ["kernel_index", "kernel_symbol", "variable_symbol"]

_LENGTHS: Final = (72, 0, 300)
"""Characters of which a name has as many at least, by its place: those of C++ are so long once they are mangled."""


def kernel_symbol(index: int) -> str:
    """Return a kernel's exact name, by its place among those of a program."""
    return _padded(f"kernel_{index}", index)


def kernel_index(symbol: str) -> int:
    """Return the place of the kernel that has a name."""
    return int(symbol.strip("_").removeprefix("kernel_"))


def variable_symbol(index: int) -> str:
    """Return a module variable's exact name, by its place in the program."""
    return _padded(f"variable_{index}", index)


def _padded(name: str, index: int) -> str:
    return name.ljust(_LENGTHS[index % len(_LENGTHS)], "_")
