"""Simulated device memory: host memory that knows which device it belongs to, and when it was freed."""

from __future__ import annotations

import ctypes
import weakref
from bisect import bisect_right, insort
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect
from trunnion.errors import ArgumentValueError, DriverError
from trunnion.model.dtypes import DType, dtype
from trunnion.sim.addresses import Addresses
from trunnion.sim.devices import check_integer
from trunnion.sim.status import Refusal, Status
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["POISON", "Allocation", "BoundMemory", "DeviceMemory", "allocation_error", "compute", "contiguous"]

POISON: Final = 0xFF
"""Every byte of fresh memory: NaN in every float type, -1 in the integers, so that nobody takes it for zeros."""

_HOST_ALLOCATOR: Final = "DefaultCPUAllocator"  # its failure has no type of its own

_BODY = "kernel body"
"""Who touches memory, unless it is said."""


@dataclass(frozen=True, slots=True, order=True)
class Allocation:
    """A live piece of device memory."""

    address: int
    """The first byte; a multiple of `trunnion.sim.addresses.ALIGNMENT`, and of nothing larger."""

    nbytes: int
    """How many bytes; at least 1."""

    device: int
    """The ordinal of the device that it belongs to."""

    of_image: bool = False
    """Whether it is a part of a loaded image, which nobody allocated and no allocator counts."""


class DeviceMemory:
    """All live allocations of all simulated devices."""

    def __init__(self) -> None:
        # A finalizer, or a signal's handler, can run in the middle of anything that this class does, in the same
        # thread. So what is listed in `_starts` is in `_live` at every step.
        self._taking = Turns("the simulated memory is being changed", nests=True)
        self._gone: deque[Allocation] = deque()
        """What was freed, and is still listed."""
        self._starts: list[int] = []
        self._live: dict[int, tuple[Allocation, weakref.ref[memoryview]]] = {}
        self._addresses = Addresses()
        self._room: dict[int, int] = {}

    def allocate(
        self, nbytes: int, device: int, *, of_image: bool = False, poisoned: bool = True
    ) -> tuple[Allocation, memoryview]:
        """Return fresh memory, every byte `POISON`, and the buffer that owns it.

        Parameters
        ----------
        nbytes
            How many bytes; at least 1.
        device
            The ordinal of the device.
        of_image
            `Allocation.of_image`.
        poisoned
            False: its bytes are zeros, and take no memory of the host before they are written to.

        Returns
        -------
        tuple of Allocation, memoryview
            The allocation lives exactly as long as the buffer.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_OUT_OF_MEMORY``, if the device's memory was limited and is used up, or the host has no
            so large piece.
        """
        room = self._room.get(device)
        if room is not None and self.used(device) + nbytes > room:
            used = self.used(device)
            raise Refusal(
                Status.OUT_OF_MEMORY, f"{nbytes} bytes on device {device}, which has {room} and uses {used}"
            )
        with self._taking.turn():
            self._settle()
            try:
                address, buffer = self._addresses.take(nbytes)
            except OSError as error:
                reason = f"{nbytes} bytes on device {device}, which are simulated in host memory: {error}"
                raise Refusal(Status.OUT_OF_MEMORY, reason) from error
            allocation = Allocation(address, nbytes, device, of_image)
            self._live[address] = (allocation, weakref.ref(buffer))
            insort(self._starts, address)
            # One step, without a turn: it comes in the middle of anything, and could not wait for another thread.
            weakref.finalize(buffer, self._gone.append, allocation).atexit = False
        if poisoned:
            ctypes.memset(address, POISON, nbytes)
        return allocation, buffer

    def _settle(self) -> None:
        """Give back what was freed since; in the thread's turn, before anything else in it."""
        while self._gone:
            with suppress(IndexError):  # a handler's, in the middle of this, was faster
                allocation = self._gone.popleft()
                self._starts.remove(allocation.address)
                del self._live[allocation.address]
                self._addresses.give(allocation.address, allocation.nbytes)

    def allocations(self) -> tuple[Allocation, ...]:
        """Return every live allocation, lowest address first."""
        with self._taking.turn():
            self._settle()
            return tuple(self._live[start][0] for start in self._starts.copy() if start in self._live)

    def used(self, device: int) -> int:
        """Return the bytes of a device's live allocations, without those of images."""
        with self._taking.turn():
            self._settle()
            live = [held for held, _ in list(self._live.values())]
            return sum(one.nbytes for one in live if one.device == device and not one.of_image)

    def limit(self, device: int, nbytes: int | None) -> int | None:
        """Let a device have so many bytes, None for as many as the host has; return what it had."""
        with self._taking.turn():
            before = self._room.pop(device, None)
            if nbytes is not None:
                self._room[device] = nbytes
            return before

    @property
    def limits(self) -> dict[int, int]:
        """The bytes of each device that `limit` limits."""
        with self._taking.turn():
            return dict(self._room)

    def find(self, address: int) -> Allocation | None:
        """Return the live allocation that holds the byte at ``address``, or None."""
        with self._taking.turn():
            self._settle()
            at = bisect_right(self._starts, address) - 1
            if at < 0:
                return None
            allocation, _ = self._live[self._starts[at]]
            return allocation if address < allocation.address + allocation.nbytes else None

    def shrink(self, address: int, nbytes: int) -> None:
        """Let the live allocation that begins at ``address`` have so few bytes, under all tensors that lie in it.

        As a storage that is resized under its tensors: those that reach further lie in no memory of theirs any more.
        """
        with self._taking.turn():
            allocation, owner = self._live[address]
            self._live[address] = (
                Allocation(address, min(nbytes, allocation.nbytes), allocation.device),
                owner,
            )

    def check(self, address: int, nbytes: int, device: int, user: str = _BODY) -> Allocation:
        """Return the live allocation of ``device`` that holds a range of bytes.

        Parameters
        ----------
        address, nbytes
            The range.
        device
            Whose memory it has to be.
        user
            Who touches it, for messages.

        Raises
        ------
        DriverError
            ``CUDA_ERROR_ILLEGAL_ADDRESS``, if there is none.
        """
        found = self.find(address)
        span = f"{nbytes} bytes at {address:#x}"
        if found is None:
            raise _illegal(f"{span} lie in no live allocation", user)
        if found.device != device:
            raise _illegal(f"{span} belong to device {found.device}, and device {device} touches them", user)
        if address + nbytes > found.address + found.nbytes:
            over = address + nbytes - found.address - found.nbytes
            raise _illegal(f"{span} end {over} bytes behind their allocation of {found.nbytes} bytes", user)
        return found

    def buffer(self, allocation: Allocation) -> memoryview:
        """Return the buffer that owns an allocation.

        Raises
        ------
        DriverError
            ``CUDA_ERROR_ILLEGAL_ADDRESS``, if it was freed.
        """
        with self._taking.turn():
            held = self._live.get(allocation.address)
        buffer = held[1]() if held is not None and held[0] is allocation else None
        if buffer is None:
            raise _illegal(f"{allocation.nbytes} bytes at {allocation.address:#x} were freed")
        return buffer

    def on(self, device: int, user: str = _BODY) -> BoundMemory:
        """Return the memory as whoever works on ``device`` sees it: another device's memory is out of bounds."""
        return BoundMemory(self, device, user)


@dataclass(frozen=True, slots=True)
class BoundMemory:
    """Device memory, as one device sees it."""

    memory: DeviceMemory
    """All memory."""

    device: int
    """The ordinal of the device."""

    user: str = _BODY
    """Who touches it, for messages."""

    def view(
        self,
        address: int,
        dtype_: DType | str | torch.dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
    ) -> torch.Tensor:
        """Return a host tensor over device memory; writes go through.

        Parameters
        ----------
        address
            The address of element (0, 0, ...).
        dtype_
            The element type.
        shape
            Elements along each dimension.
        strides
            Elements from one index to the next along each dimension; None: contiguous, row-major.

        Returns
        -------
        torch.Tensor
            A plain tensor. It keeps the memory alive.

        Raises
        ------
        ArgumentTypeError
            If the shape or the strides are no tuple.
        ArgumentValueError
            If an extent is negative, or there is not one stride for each dimension.
        DriverError
            ``CUDA_ERROR_ILLEGAL_ADDRESS`` if any element lies outside a live allocation of this device,
            ``CUDA_ERROR_MISALIGNED_ADDRESS`` if the address is not a multiple of the element's size.
        """
        import torch  # noqa: PLC0415 - only a process that runs kernel bodies pays for it

        row = dtype(dtype_)
        kind: Any = getattr(torch, row.name)
        _check_shape(shape, strides)
        steps = contiguous(shape) if strides is None else strides
        if 0 in shape:  # typed by a view: a factory warns about some of the types
            return torch.empty(0, dtype=torch.uint8).view(kind).as_strided(shape, steps)
        reach = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
        first = address + row.itemsize * sum(step for step in reach if step < 0)
        last = address + row.itemsize * (1 + sum(step for step in reach if step > 0))
        allocation = self.memory.check(first, last - first, self.device, self.user)
        if min(steps, default=0) < 0:
            raise _illegal("a view cannot have a negative stride")
        start = address - allocation.address
        if start % row.itemsize:
            raise DriverError(
                self.user,
                Status.MISALIGNED_ADDRESS,
                Status.MISALIGNED_ADDRESS.symbol,
                f"{address:#x} is not a multiple of the {row.itemsize} bytes of {row.name}",
            )
        flat = torch.frombuffer(
            self.memory.buffer(allocation), dtype=torch.uint8, offset=start, count=last - address
        )
        # Through a copy-free reinterpretation: frombuffer itself knows only some of the element types.
        return flat.view(kind).as_strided(shape, steps)

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of device memory.

        Raises
        ------
        ArgumentTypeError
            If their number is no integer.
        ArgumentValueError
            If it is negative.
        DriverError
            ``CUDA_ERROR_ILLEGAL_ADDRESS``, if they are not all in one live allocation of this device.
        """
        nbytes = check_integer("nbytes", nbytes, 0)
        self.memory.check(address, nbytes, self.device, self.user)
        return ctypes.string_at(address, nbytes)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes to device memory.

        Raises
        ------
        DriverError
            ``CUDA_ERROR_ILLEGAL_ADDRESS``, if they are not all in one live allocation of this device.
        """
        self.memory.check(address, len(data), self.device, self.user)
        ctypes.memmove(address, data, len(data))


def _check_shape(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
    expect(shape, (tuple, list), "shape", "a tuple of extents")
    if min(shape, default=0) < 0:
        raise ArgumentValueError("shape", f"{shape}", "extents from 0 on")
    if strides is not None and len(expect(strides, (tuple, list), "strides", "a tuple of steps")) != len(
        shape
    ):
        raise ArgumentValueError("strides", f"{strides}", f"{len(shape)} of them, one for each dimension")


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the row-major strides of a shape, in elements; an extent of 0 counts as 1, as in torch."""
    steps: list[int] = []
    step = 1
    for extent in reversed(shape):
        steps.append(step)
        step *= max(extent, 1)
    return tuple(reversed(steps))


def allocation_error(refusal: Refusal, call: str) -> torch.OutOfMemoryError | DriverError:
    """Return what is raised where an allocation fails: the tensor library's own error if memory is used up.

    Parameters
    ----------
    refusal
        What the simulated driver said.
    call
        What allocates, for any other status.
    """
    status = refusal.status
    if status is not Status.OUT_OF_MEMORY:
        return DriverError(call, status, status.symbol, refusal.reason)
    import torch  # noqa: PLC0415 - only a process that allocates tensors pays for it

    return torch.OutOfMemoryError(f"CUDA out of memory: {refusal.reason}")


def compute(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a function of the tensor library makes on the host, for a device.

    Raises
    ------
    torch.OutOfMemoryError
        If the host has too little memory for it: then the device has, too.
    """
    import torch  # noqa: PLC0415 - as above

    try:
        return func(*args, **kwargs)
    except RuntimeError as error:
        if _HOST_ALLOCATOR not in str(error):
            raise
        raise torch.OutOfMemoryError(f"CUDA out of memory: simulated in host memory: {error}") from error


def _illegal(explanation: str, user: str = _BODY) -> DriverError:
    status = Status.ILLEGAL_ADDRESS
    return DriverError(user, status, status.symbol, explanation)
