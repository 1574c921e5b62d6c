"""Kernels for the CPU that write down what they are given, for any program; and the reader of what they wrote.

On the CPU there is no driver to watch. So a program's kernels are replaced by C++ that records: each call of a kernel,
which is one block, appends a record to a file. Read back, the records are launches as the simulated driver traces them,
and are compared with the oracle's word in the same way.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trunnion.contract.spec import Capability
from trunnion.model.code import DeviceCode
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.trace import Launched
from trunnion.testing.laws import LawViolation
from trunnion.testing.reference import kernel_of, parameter_layouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import Kernel

__all__ = [
    "HOST_CAPABILITIES",
    "HostCall",
    "read_calls",
    "read_launches",
    "recorded_names",
    "recording_program",
]

HOST_CAPABILITIES: Final = frozenset(
    {
        Capability.DYNAMIC_SHAPES,
        Capability.STRIDED_TENSORS,
        Capability.NULLABLE_TENSORS,
        Capability.POINTER_PARAMS,
        Capability.STRUCT_PARAMS,
        Capability.TENSOR_VIEWS,
        Capability.OUTPUT_FILL,
        Capability.WORKSPACE,
        Capability.MULTI_LAUNCH,
        Capability.CONDITIONAL_LAUNCH,
    }
)
"""What a program may require that is launched on the CPU: everything that needs no GPU.

It is said here again, on purpose, and not read from a backend that is tested: what a backend no longer declared would
then no longer be tried either. A test compares the two.
"""

_HEADER: Final = struct.Struct("<II3I3I3IIQ")
"""Kernel, bytes of parameters, index, grid, block, whether scratch is what was asked for, bytes of scratch."""

_SUPPORT: Final = """#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <trunnion/block.h>
#include <unistd.h>

namespace {
template <unsigned Size, unsigned Alignment>
struct alignas(Alignment) Bytes {
  unsigned char bytes[Size];
};

struct Record {
  struct Header {
    uint32_t kernel, nbytes, index[3], grid[3], block[3], good;
    uint64_t shared_bytes;
  } header;
  unsigned char bytes[1 << 17];

  Record(uint32_t kernel, const trunnion_block_t* block) {
    header.kernel = kernel;
    header.nbytes = 0;
    memcpy(header.index, block->index, sizeof header.index);
    memcpy(header.grid, block->grid, sizeof header.grid);
    memcpy(header.block, block->block, sizeof header.block);
    header.shared_bytes = block->shared_bytes;
    const bool aligned = reinterpret_cast<uintptr_t>(block->shared) % 64 == 0;
    header.good = aligned && (block->shared == nullptr) == (block->shared_bytes == 0);
    if (block->shared_bytes != 0) memset(block->shared, 0x5A, block->shared_bytes);
  }

  template <typename T>
  void add(const T& value) {
    memcpy(bytes + header.nbytes, &value, sizeof value);
    header.nbytes += sizeof value;
  }

  // One write at the end of the file, which no other one can divide.
  ~Record() {
    const size_t count = sizeof header + header.nbytes;
    const int file = open(RECORDING, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, this, count) != static_cast<ssize_t>(count)) __builtin_trap();
    close(file);
  }
};
static_assert(sizeof(Record::Header) == 56, "as the reader has it");
}  // namespace
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """One call of a kernel: one block of a launch."""

    kernel: int
    """The kernel's place, in the order of the program's first launches."""

    index: tuple[int, int, int]
    """Which block: x, y, z."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    scratch: int
    """Bytes of scratch."""

    scratch_is_good: bool
    """Whether scratch was there if bytes were, and aligned."""

    parameters: tuple[bytes, ...]
    """By ordinal."""


def recording_program(program: KernelProgram, file: Path) -> KernelProgram:
    """Return a program that launches the same, with kernels for the CPU that record.

    Parameters
    ----------
    program
        Any program that requires nothing but `HOST_CAPABILITIES`.
    file
        Where the records go; appended to.
    """
    names = recorded_names(program)
    layouts = enumerate(parameter_layouts(program).values())
    kernels = "\n".join(_kernel(index, layout) for index, layout in layouts)
    code = DeviceCode(
        "c++", _SUPPORT + kernels, name="recorder.cc", defines=(("RECORDING", json.dumps(str(file))),)
    )
    launches = tuple(
        replace(one, kernel=names[kernel_of(program, one)], code=None) for one in program.launches
    )
    return replace(program, code=(code,), launches=launches)


def recorded_names(program: KernelProgram) -> dict[Kernel, str]:
    """Return what each kernel of a program is called in its recording program."""
    return {kernel: _name(index) for index, kernel in enumerate(parameter_layouts(program))}


def _name(index: int) -> str:
    """Return the name of a kernel; names of C and of C++ take turns."""
    return f"recorded_{index}" if index % 2 else f"recorded_{index}::kernel<{index}>"


def _kernel(index: int, layout: Sequence[tuple[int, int]]) -> str:
    given = [f"Bytes<{size}, {alignment}> p{ordinal}" for ordinal, (size, alignment) in enumerate(layout)]
    signature = ", ".join([*given, "const trunnion_block_t* block"])
    adds = "".join(f" record.add(p{ordinal});" for ordinal in range(len(layout)))
    body = f"({signature}) {{ Record record({index}, block);{adds} }}"
    if index % 2:
        return f'extern "C" void recorded_{index}{body}'
    return f"namespace recorded_{index} {{ template <int> void kernel{body} }}"


# Reading ------------------------------------------------------------------------------------------------------------


def read_calls(program: KernelProgram, data: bytes) -> tuple[HostCall, ...]:
    """Return what the kernels of a recording program were given, in the order in which they were called.

    Parameters
    ----------
    program
        The program that was recorded, or what `recording_program` made of it.
    data
        The file's bytes.
    """
    layouts = tuple(parameter_layouts(program).values())
    calls, at = [], 0
    while at < len(data):
        kernel, nbytes, *numbers = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        parameters = []
        for size, _ in layouts[kernel]:
            parameters.append(data[at : at + size])
            at += size
        if sum(map(len, parameters)) != nbytes:
            raise ValueError(f"a record of kernel {kernel} has {nbytes} bytes of parameters")
        calls.append(
            HostCall(
                kernel=kernel,
                index=(numbers[0], numbers[1], numbers[2]),
                grid=(numbers[3], numbers[4], numbers[5]),
                block=(numbers[6], numbers[7], numbers[8]),
                scratch_is_good=bool(numbers[9]),
                scratch=numbers[10],
                parameters=tuple(parameters),
            )
        )
    return tuple(calls)


def read_launches(program: KernelProgram, data: bytes, *, ordered: bool = True) -> tuple[Launched, ...]:
    """Return the launches of a recording program, as a driver would have seen them; for kernels see `recorded_names`.

    Parameters
    ----------
    program
        The program that was recorded, or what `recording_program` made of it.
    data
        The file's bytes.
    ordered
        Whether the blocks of a launch must come in order, x fastest; else in any, as several threads leave them.

    Raises
    ------
    LawViolation
        If the blocks of a launch are not those of its grid, or were told different things.
    """
    calls = read_calls(program, data)
    launches, at = [], 0
    while at < len(calls):
        first = calls[at]
        own = calls[at : at + math.prod(first.grid)]
        at += len(own)
        _check_blocks(own, ordered=ordered)
        launches.append(
            Launched(
                kernel=_name(first.kernel),
                library=0,
                device=0,
                stream=0,
                grid=first.grid,
                block=first.block,
                cluster=None,
                dynamic_smem_bytes=first.scratch,
                parameters=first.parameters,
                attributes=LaunchAttributes(),
            )
        )
    return tuple(launches)


def _check_blocks(calls: Sequence[HostCall], *, ordered: bool) -> None:
    first = calls[0]
    indices = [call.index for call in calls]
    wanted = list(_indices(first.grid))
    if (indices if ordered else sorted(indices)) != (wanted if ordered else sorted(wanted)):
        raise LawViolation(
            "", f"kernel {first.kernel} was called for the blocks {indices}, expected {wanted}"
        )
    for call in calls:
        if replace(call, index=first.index) != first or not call.scratch_is_good:
            raise LawViolation(
                "", f"block {call.index} of kernel {call.kernel} was told {call}, another {first}"
            )


def _indices(grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    for z, y, x in itertools.product(*(range(extent) for extent in reversed(grid))):
        yield x, y, z
