"""Memory of the CPU that is watched: what is allocated for a launcher, and what was written before a kernel began.

Native launchers allocate through DLPack's exchange API, of which torch has one table for the process. While it is
watched, the table's allocator is one that notes each tensor and when it ends; launchers in Python ask their runtime,
which notes it here. All new memory holds `USED` bytes, so whatever else is found there was written.
"""

from __future__ import annotations

import atexit
import ctypes
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trunnion.dlpack import ExchangeApi, Tensor, Versioned
from trunnion.sim.trace import Allocated
from trunnion.testing.machine import USED, MemorySeen
from trunnion.torch_runtime import HostRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

__all__ = ["WatchedMemory", "WatchedRuntime"]

_Allocator: Final = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(Tensor),
    ctypes.POINTER(ctypes.POINTER(Versioned)),
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_Deleter: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Buffer(bytearray):
    """Bytes that a tensor lies over; they can be referred to weakly."""


class _Native(NamedTuple):
    """A tensor that native code was given, until it deletes it."""

    memory: Allocated
    deleter: int


class WatchedMemory:
    """The memory that laws' tensors lie in on the CPU."""

    def __init__(self) -> None:
        self.allocated: list[Allocated] = []
        """What was allocated since `reset`."""
        self._buffers: weakref.WeakValueDictionary[int, _Buffer] = weakref.WeakValueDictionary()
        self._tensors: list[tuple[weakref.ref[Any], Allocated]] = []
        self._native: dict[int, _Native] = {}
        self._api = ExchangeApi.from_address(HostRuntime().exchange_api())
        self._true = _Allocator(self._api.allocate)
        self._callbacks = (_Allocator(self._allocate), _Deleter(self._delete))
        atexit.register(self._let_go)

    def empty(self, nbytes: int) -> torch.Tensor:
        """Return a tensor of so many bytes, one at least."""
        import torch  # noqa: PLC0415 - tensors are torch's

        buffer = _Buffer(bytes((USED,)) * nbytes)
        made = torch.frombuffer(buffer, dtype=torch.uint8)
        self._buffers[made.data_ptr()] = buffer
        return made

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what native code allocates until the block ends."""
        before = self._api.allocate
        self._api.allocate = ctypes.cast(self._callbacks[0], ctypes.c_void_p).value
        try:
            yield
        finally:
            self._api.allocate = before

    def reset(self) -> None:
        """Forget what was allocated, and have all memory that still is hold `USED` bytes again."""
        self.allocated.clear()
        for address, nbytes in self._live():
            ctypes.memset(address, USED, nbytes)

    def seen(self) -> tuple[MemorySeen, ...]:
        """Return what all memory holds."""
        return tuple(
            MemorySeen(address, ctypes.string_at(address, nbytes)) for address, nbytes in self._live()
        )

    def forget_dropped(self) -> None:
        """Forget what was allocated and is gone again, such as memory that was not aligned as it must be."""
        held = {id(one) for one in self._held()}
        self.allocated = [one for one in self.allocated if id(one) in held or not one.nbytes]

    def note(self, tensor: torch.Tensor) -> None:
        """Take up a tensor that a launcher's runtime allocated for it."""
        self._tensors = [one for one in self._tensors if one[0]() is not None]
        self._tensors.append((weakref.ref(tensor), self._take(tensor.data_ptr(), tensor.nbytes)))

    def _take(self, address: int, nbytes: int) -> Allocated:
        made = Allocated(address, nbytes, 0, 0)
        self.allocated.append(made)
        if nbytes:
            ctypes.memset(address, USED, nbytes)
        return made

    def _held(self) -> list[Allocated]:
        """Return what launchers allocated and still have."""
        tensors = [memory for tensor, memory in self._tensors if tensor() is not None]
        return [*tensors, *(one.memory for one in list(self._native.values()))]

    def _live(self) -> Iterator[tuple[int, int]]:
        yield from ((address, len(buffer)) for address, buffer in list(self._buffers.items()))
        yield from ((one.address, one.nbytes) for one in self._held() if one.nbytes)

    # What native code calls ---------------------------------------------------------------------------------------

    def _allocate(self, prototype: Any, out: Any, context: int, set_error: int) -> int:
        status = int(self._true(prototype, out, context, set_error))
        if status == 0:
            made = out.contents.contents
            tensor, count = made.tensor, 1
            for axis in range(tensor.ndim):
                count *= tensor.shape[axis]
            nbytes = (count * tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
            memory = self._take(tensor.data or 0, nbytes)
            self._native[ctypes.addressof(made)] = _Native(memory, made.deleter)
            made.deleter = ctypes.cast(self._callbacks[1], ctypes.c_void_p).value
        return status

    def _delete(self, managed: int) -> None:
        _Deleter(self._native.pop(managed).deleter)(managed)

    def _let_go(self) -> None:
        """Give all tensors their own end back, before this process can call nothing of it any more."""
        for managed, one in self._native.items():
            Versioned.from_address(managed).deleter = one.deleter


class WatchedRuntime(HostRuntime):
    """torch, on the host, where what it allocates for launchers is noted.

    Parameters
    ----------
    memory
        Where.
    """

    def __init__(self, memory: WatchedMemory) -> None:
        super().__init__()
        self._memory = memory

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        """Return an uninitialised tensor; see `Runtime.allocate`."""
        made = super().allocate(shape, dtype, device, stream)
        self._memory.note(made)
        return made

    def quick_allocator(self) -> None:
        """Return None: every tensor is to be noted."""
