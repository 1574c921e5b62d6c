"""Kernels for the CPU that tell what they are given, for any program; and the reader of what they told.

On the CPU there is no driver to watch. So a program's kernels are replaced by C++ that tells: each call of a kernel,
which is one block, goes into a log in this process's memory, where neighbouring blocks that were told the same are one
record. Read back, the records are launches as the simulated driver traces them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.model.code import DeviceCode
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.trace import Launched
from trunnion.testing.symbols import kernel_symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.testing.probe_compiler import Layout

__all__ = [
    "HostRecord",
    "Log",
    "image_number",
    "launches_of",
    "process_log",
    "read_records",
    "recorder_source",
]

_VARIABLE: Final = "TRUNNION_CONFORMANCE_LOG"
_CAPACITY: Final = 8 << 20
_HEADER: Final = struct.Struct("<II3I3IQQQII")

_SOURCE: Final = """#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trunnion/block.h>

namespace {
template <unsigned Size, unsigned Alignment>
struct alignas(Alignment) Bytes {
  unsigned char bytes[Size];
};

struct Record {
  uint32_t kernel, nbytes, grid[3], block[3];
  uint64_t shared_bytes, first, count;
  uint32_t good, image;
};
static_assert(sizeof(Record) == 64, "as the reader has it");

struct Log {
  uint64_t busy, used, capacity, last, full;
  void (*begin)();
  uint64_t pause;
  unsigned char bytes[1];
};

Log* the_log() {
  static Log* const found = reinterpret_cast<Log*>(strtoull(getenv("VARIABLE"), nullptr, 16));
  return found;
}

bool goes_on(const Record& last, const Record& now, const unsigned char* told, const unsigned char* bytes) {
  const bool same = last.kernel == now.kernel && last.image == now.image && last.good == now.good &&
                    last.shared_bytes == now.shared_bytes && memcmp(last.grid, now.grid, sizeof now.grid) == 0 &&
                    memcmp(last.block, now.block, sizeof now.block) == 0;
  return same && last.first + last.count == now.first && memcmp(told, bytes, now.nbytes) == 0;
}

void write(Log* log, const Record& now, const unsigned char* bytes) {
  if (log->used == 0 && log->begin != nullptr) log->begin();
  Record* last = reinterpret_cast<Record*>(log->bytes + log->last);
  if (log->used != 0 && goes_on(*last, now, log->bytes + log->last + sizeof now, bytes)) {
    ++last->count;
    return;
  }
  const uint64_t size = (sizeof now + now.nbytes + 7) / 8 * 8;
  if (log->used + size > log->capacity) {
    log->full = 1;
    return;
  }
  memcpy(log->bytes + log->used, &now, sizeof now);
  memcpy(log->bytes + log->used + sizeof now, bytes, now.nbytes);
  log->last = log->used;
  log->used += size;
}

void tell(uint32_t kernel, const unsigned char* bytes, uint32_t nbytes, const trunnion_block_t* block) {
  constexpr uint32_t image = IMAGE;
  const uint32_t *index = block->index, *grid = block->grid;
  bool good = index[0] < grid[0] && index[1] < grid[1] && index[2] < grid[2];
  good &= (block->shared == nullptr) == (block->shared_bytes == 0);
  good &= reinterpret_cast<uintptr_t>(block->shared) % 64 == 0;
  if (block->shared != nullptr) memset(block->shared, 0x5A, block->shared_bytes);
  const uint64_t first = (static_cast<uint64_t>(index[2]) * grid[1] + index[1]) * grid[0] + index[0];
  const uint32_t* threads = block->block;
  const Record now = {kernel, nbytes, {grid[0], grid[1], grid[2]}, {threads[0], threads[1], threads[2]},
                      block->shared_bytes, first, 1, good, image};
  Log* log = the_log();
  while (__atomic_exchange_n(&log->busy, 1, __ATOMIC_ACQUIRE) != 0) {
  }
  write(log, now, bytes);
  __atomic_store_n(&log->busy, 0, __ATOMIC_RELEASE);
  if (first == 0 && log->pause != 0) {
    const timespec pause = {static_cast<time_t>(log->pause / 1000000000), static_cast<long>(log->pause % 1000000000)};
    nanosleep(&pause, nullptr);
  }
}
}  // namespace
""".replace("VARIABLE", _VARIABLE)


def recorder_source(layouts: Sequence[Layout]) -> DeviceCode:
    """Return the C++ of kernels, ``kernel_symbol(0)`` and so on, that tell what they are given.

    Parameters
    ----------
    layouts
        What each takes.
    """
    kernels = "".join(_kernel(index, layout) for index, layout in enumerate(layouts))
    image = ("IMAGE", f"{image_number(layouts)}u")
    return DeviceCode("c++", _SOURCE + kernels, name="recorder.cc", defines=(image,))


def image_number(layouts: Sequence[Layout]) -> int:
    """Return what tells the image of such kernels from that of others."""
    return zlib.crc32(repr(layouts).encode())


def _kernel(index: int, layout: Layout) -> str:
    given = [f"Bytes<{size}, {alignment}> p{ordinal}" for ordinal, (size, alignment) in enumerate(layout)]
    starts = [0, *itertools.accumulate(size for size, _ in layout)]
    copies = "".join(f" memcpy(all + {start}, &p{i}, sizeof p{i});" for i, start in enumerate(starts[:-1]))
    return (
        f'extern "C" void {kernel_symbol(index)}({", ".join([*given, "const trunnion_block_t* block"])}) {{'
        f" unsigned char all[{starts[-1] + 1}];{copies} tell({index}, all, {starts[-1]}, block); }}\n"
    )


# The log ------------------------------------------------------------------------------------------------------------


class _Head(ctypes.Structure):
    _fields_ = (
        ("busy", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("capacity", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("full", ctypes.c_uint64),
        ("begin", ctypes.c_void_p),
        ("pause", ctypes.c_uint64),
    )


class Log:
    """What the kernels of this process told; one of a process is enough: see `process_log`."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(ctypes.sizeof(_Head) + _CAPACITY)
        self._head = _Head.from_buffer(self._memory)
        self._head.capacity = _CAPACITY
        self._begins: Callable[[], object] | None = None
        self._begin = ctypes.CFUNCTYPE(None)(self._call_begins)
        os.environ[_VARIABLE] = f"{ctypes.addressof(self._memory):x}"

    def _call_begins(self) -> None:
        if self._begins is not None:
            self._begins()

    @property
    def begins(self) -> Callable[[], object] | None:
        """Called in the first block of the first launch since `clear`; None: no block calls Python."""
        return self._begins

    @begins.setter
    def begins(self, begins: Callable[[], object] | None) -> None:
        self._begins = begins
        self._head.begin = None if begins is None else ctypes.cast(self._begin, ctypes.c_void_p).value

    @property
    def pause(self) -> float:
        """How long the first block of each launch goes on, in seconds, once it has told."""
        return int(self._head.pause) / 1e9

    @pause.setter
    def pause(self, seconds: float) -> None:
        self._head.pause = round(seconds * 1e9)

    def clear(self) -> None:
        """Forget what was told."""
        self._head.used = self._head.last = self._head.full = 0

    @property
    def data(self) -> bytes:
        """What was told since `clear`.

        Raises
        ------
        AssertionError
            If there was no room for all of it.
        """
        if self._head.full:
            raise AssertionError(f"kernels told more than {_CAPACITY} bytes of what they were given")
        start = ctypes.addressof(self._memory) + ctypes.sizeof(_Head)
        return ctypes.string_at(start, self._head.used)


@functools.cache
def process_log() -> Log:
    """Return the log that every recording kernel of this process writes to."""
    return Log()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """Blocks of a launch that came one after the other, and were told the same."""

    image: int
    """The image's `image_number`."""

    kernel: int
    """The kernel's place in the image."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    scratch: int
    """Bytes of scratch."""

    first: int
    """Which block was the first: x fastest, then y, then z."""

    count: int
    """How many blocks there were."""

    good: bool
    """Whether each block lay in the grid, and had scratch if bytes of it were said, aligned to 64 bytes."""

    parameters: bytes
    """All parameters, one behind the other."""

    @property
    def said(self) -> tuple[object, ...]:
        """What all blocks of a launch are told alike."""
        return (self.image, self.kernel, self.grid, self.block, self.scratch, self.good, self.parameters)


def read_records(data: bytes) -> tuple[HostRecord, ...]:
    """Return the records of a log, in order."""
    records, at = [], 0
    while at < len(data):
        kernel, nbytes, *numbers = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        records.append(
            HostRecord(
                image=numbers[10],
                kernel=kernel,
                grid=(numbers[0], numbers[1], numbers[2]),
                block=(numbers[3], numbers[4], numbers[5]),
                scratch=numbers[6],
                first=numbers[7],
                count=numbers[8],
                good=bool(numbers[9]),
                parameters=data[at : at + nbytes],
            )
        )
        at += -(-nbytes // 8) * 8
    return tuple(records)


def launches_of(
    records: Sequence[HostRecord], sizes: Callable[[int, int], Sequence[int]]
) -> tuple[Launched, ...]:
    """Return the launches that records tell of, as a driver would have seen them.

    Parameters
    ----------
    records
        In order; those of one launch in any order, as several threads leave them, and perhaps between those of
        another thread's launch.
    sizes
        Returns the sizes of the parameters of a kernel: of an image, and its place in it.

    Raises
    ------
    AssertionError
        If the blocks of a launch are not those of its grid, or were told different things.
    """
    launches, left = [], list(records)
    while left:
        first = left[0]
        alike = [one for one in left if one.said == first.said]
        own = _first_blocks(alike)
        if sum(one.count for one in own) < math.prod(first.grid):
            own = _first_blocks(left)  # some were told something else
        _check_blocks(own)
        taken = {id(one) for one in own}
        left = [one for one in left if id(one) not in taken]
        launches.append(_launched(first, sizes(first.image, first.kernel)))
    return tuple(launches)


def _first_blocks(records: Sequence[HostRecord]) -> list[HostRecord]:
    """Return as many records, from the first on, as the grid of the first has blocks, if there are."""
    own, seen = [], 0
    for one in records:
        if seen >= math.prod(records[0].grid):
            break
        own.append(one)
        seen += one.count
    return own


def _check_blocks(own: Sequence[HostRecord]) -> None:
    first = own[0]
    odd = next((one for one in own if one.said != first.said or not one.good), None)
    if odd is not None:
        raise AssertionError(f"blocks of kernel {odd.kernel} were told {odd}, others {first}")
    following = 0
    for one in sorted(own, key=lambda one: one.first):
        if one.first != following:
            break
        following += one.count
    if following != math.prod(first.grid):
        places = [(one.first, one.count) for one in own]
        raise AssertionError(
            f"kernel {first.kernel} was called for the blocks {places} of the grid {first.grid}"
        )


def _launched(one: HostRecord, sizes: Sequence[int]) -> Launched:
    starts = [0, *itertools.accumulate(sizes)]
    if starts[-1] != len(one.parameters):
        raise AssertionError(
            f"kernel {one.kernel} took {len(one.parameters)} bytes, its image says {starts[-1]}"
        )
    return Launched(
        kernel=kernel_symbol(one.kernel),
        library=0,
        device=0,
        stream=0,
        grid=one.grid,
        block=one.block,
        cluster=None,
        dynamic_smem_bytes=one.scratch,
        parameters=tuple(one.parameters[start:end] for start, end in itertools.pairwise(starts)),
        attributes=LaunchAttributes(),
    )
