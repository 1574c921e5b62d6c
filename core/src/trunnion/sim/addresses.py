"""Where simulated memory lies: a matter of what was allocated and freed before, not of the process or the machine."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from typing import Final

__all__ = ["ALIGNMENT", "Addresses"]

ALIGNMENT: Final = 256
"""What every address is a multiple of, and of nothing larger: the least that a driver promises.

Whoever takes memory for better aligned than that is always found out, not only where the system happens to put it.
"""

_APART: Final = 1 << 16
"""Every address is `ALIGNMENT` more than a multiple of this: for whoever aligns to less, all memory is alike."""

_FIRST: Final = 1 << 45
"""Far from where a process has its program, stack and libraries, and where sanitizers have their own memory."""

_LIMIT: Final = 1 << 46
_MOST: Final = 1 << 45
_FIXED_NOREPLACE: Final = 0x100000  # linux/mman.h: exactly there, unless somebody is there already
_NO_RESERVE: Final = 0x4000  # linux/mman.h: a device has more memory than the host would promise
_ANYWHERE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
_READ_WRITE: Final = mmap.PROT_READ | mmap.PROT_WRITE
_FAILED: Final = ctypes.c_void_p(-1).value
_BYTES: Final = ctypes.c_ubyte * _MOST  # one type for memory of every size: ctypes makes types slowly


class Addresses:
    """Gives out pieces of memory: of what was freed, the piece of the same size that was freed last; else the next one.

    So the addresses of a run follow from what it allocates and frees. Where a process cannot have the place that is
    next, since its addresses are too short or its system is too old to be asked for one, the system chooses.
    """

    def __init__(self) -> None:
        self._next = _FIRST
        self._free: dict[int, list[int]] = {}
        libc = ctypes.CDLL(None, use_errno=True)
        self._mmap, self._munmap = libc.mmap, libc.munmap
        self._mmap.restype = ctypes.c_void_p
        self._mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
        self._munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

    def take(self, nbytes: int) -> tuple[int, memoryview]:
        """Return the address of fresh memory, and the memory; whoever takes it gives it back.

        Parameters
        ----------
        nbytes
            How many bytes; at least 1.

        Raises
        ------
        OSError
            If the host has no so large piece.
        """
        length = _length(nbytes)
        if length > _MOST:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        free = self._free.get(length)
        start = self._at(free.pop(), length) if free else None
        start = start or self._at_next(length) or self._anywhere(length)
        memory = memoryview(_BYTES.from_address(start)).cast("B")
        return start + ALIGNMENT, memory[ALIGNMENT : ALIGNMENT + nbytes]

    def give(self, address: int, nbytes: int) -> None:
        """Give memory back: from now on nothing is there.

        Parameters
        ----------
        address
            What `take` returned.
        nbytes
            What it was asked for.
        """
        start, length = address - ALIGNMENT, _length(nbytes)
        self._munmap(start, length)
        self._free.setdefault(length, []).append(start)

    def _at_next(self, length: int) -> int | None:
        """Return the next place, behind those that somebody else has; None if this process can have none there."""
        while self._next + length <= _LIMIT:
            start = self._at(self._next, length)
            if start:
                self._next += length
                return start
            if ctypes.get_errno() != errno.EEXIST:
                return None
            self._next += _APART
        return None

    def _at(self, start: int, length: int) -> int | None:
        """Return a place once it is mapped; None with the reason in ctypes' ``errno`` if it is not."""
        ctypes.set_errno(0)
        got = int(self._mmap(start, length, _READ_WRITE, _ANYWHERE | _FIXED_NOREPLACE, -1, 0))
        if got == start:
            return start
        if got != _FAILED:  # a system that does not know the flag takes it for a wish
            self._munmap(got, length)
        return None

    def _anywhere(self, length: int) -> int:
        """Return a place that the system chooses, with what is too much at both ends given back."""
        got = int(self._mmap(None, length + _APART, _READ_WRITE, _ANYWHERE, -1, 0))
        if got == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        start = got + -got % _APART
        if start > got:
            self._munmap(got, start - got)
        self._munmap(start + length, got + _APART - start)
        return start


def _length(nbytes: int) -> int:
    return -(-(ALIGNMENT + nbytes) // _APART) * _APART
