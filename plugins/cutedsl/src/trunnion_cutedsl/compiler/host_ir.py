"""What only the host's half of a compiled module says of a kernel: its shared memory and its block.

CuTeDSL adds up the shared memory of a kernel's allocators, and writes it where the host function launches the kernel.
In the host function's LLVM dialect a launch is: stores into a ``cudaLaunchConfig_t`` (grid, block, bytes of shared
memory, ...), the address of a global ``kernels_NAME``, and a call of ``_cudaLaunchKernelEx``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HostIrError", "LaunchFacts", "read_launches"]

_CONFIG: Final = "(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32)"
_ADDRESS = re.compile(r"(%\w+) = llvm\.getelementptr %\w+\[0, ([\d, ]+)\]")
_STORE = re.compile(r"llvm\.store (%\w+), (%\w+) :")
_CONSTANT = re.compile(r"(%\w+) = llvm\.mlir\.constant\((-?\d+) : i\d+\)")
_KERNEL = re.compile(r"(%\w+) = llvm\.mlir\.addressof @\"?kernels_([^\s\"]+)\"? :")
_LOAD = re.compile(r"(%\w+) = llvm\.load (%\w+) :")
_LAUNCH = re.compile(r"llvm\.call @_cudaLaunchKernelEx\(%\w+, (%\w+), %\w+\)")
_BLOCK, _SMEM = "1", "2"


class HostIrError(Exception):
    """The host function is not written as this module knows it."""


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the host function says of one launch."""

    symbol: str
    """The kernel's exact name."""

    dynamic_smem_bytes: int
    """The shared memory that its allocators add up to, in bytes."""

    block: tuple[int, ...] | None
    """The threads of a block; None: they are no constants."""


@dataclass(slots=True)
class _Values:
    """What is known of the values of one function so far."""

    constants: dict[str, int] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    stored: dict[str, int | None] = field(default_factory=dict)


def read_launches(module: Any) -> list[LaunchFacts]:
    """Return every launch of the host function, in order.

    Parameters
    ----------
    module
        The compiled module (``ir_module`` of what ``cute.compile`` returns): something with ``body.operations``.

    Raises
    ------
    HostIrError
        If there is no such function, or a launch in it has no size of shared memory.
    """
    functions = [one for one in module.body.operations if one.operation.name == "llvm.func"]
    found = [list(_launches(str(function))) for function in functions]
    launching = [launches for launches in found if launches]
    if len(launching) != 1:
        raise HostIrError(f"{len(launching)} functions of the host's module launch kernels, expected 1")
    return launching[0]


def _launches(text: str) -> Iterator[LaunchFacts]:
    values = _Values()
    for line in text.splitlines():
        _note(line, values)
        call = _LAUNCH.search(line)
        if call is None:
            continue
        symbol = values.kernels.get(call[1], "")
        smem = values.stored.get(_SMEM)
        if not symbol or smem is None:
            raise HostIrError(f"the launch of {symbol or 'a kernel'} names no size of shared memory")
        axes = [values.stored.get(f"{_BLOCK}, {axis}") for axis in range(3)]
        known = tuple(axis for axis in axes if axis is not None)
        yield LaunchFacts(symbol, smem, known if len(known) == len(axes) else None)
        values.stored.clear()


def _note(line: str, values: _Values) -> None:
    """Take note of what one line says."""
    if found := _CONSTANT.search(line):
        values.constants[found[1]] = int(found[2])
    elif (found := _ADDRESS.search(line)) and _CONFIG in line:
        values.members[found[1]] = found[2]
    elif found := _KERNEL.search(line):
        values.kernels[found[1]] = found[2]
    elif found := _LOAD.search(line):
        if found[2] in values.kernels:
            values.kernels[found[1]] = values.kernels[found[2]]
    elif (found := _STORE.search(line)) and found[2] in values.members:
        values.stored[values.members[found[2]]] = values.constants.get(found[1])
