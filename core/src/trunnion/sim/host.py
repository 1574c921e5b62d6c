"""Reading and writing the caller's memory: what a C driver does by dereferencing, with no way to crash."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Self

from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["HostReader", "put", "text"]


class HostReader:
    """Reads this process's memory; an address where nothing is mapped is a refusal, not a segmentation fault.

    Opened for each call and not once: after a fork, an old descriptor would go on to read the parent.
    """

    def __enter__(self) -> Self:
        self._descriptor = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def read(self, address: int | None, nbytes: int, what: str) -> bytes:
        """Return bytes of this process's memory.

        Parameters
        ----------
        address
            The first byte; None for a null pointer.
        nbytes
            How many bytes.
        what
            What they are, for the refusal's text.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_INVALID_VALUE``, if the pointer is null or not all of the memory is mapped.
        """
        if nbytes == 0:
            return b""
        if not address:
            raise Refusal(Status.INVALID_VALUE, f"{what} is a null pointer")
        try:
            data = os.pread(self._descriptor, nbytes, address)
        except (OSError, OverflowError) as error:
            raise Refusal(Status.INVALID_VALUE, f"{what} points at {address:#x}, where nothing is") from error
        if len(data) != nbytes:
            raise Refusal(
                Status.INVALID_VALUE, f"{what} at {address:#x} ends after {len(data)} of {nbytes} bytes"
            )
        return data

    def array(self, kind: Any, address: int | None, count: int, what: str) -> tuple[int, ...]:
        """Return an array of integers.

        Parameters
        ----------
        kind
            The ctypes type of one element.
        address
            The first element; None for a null pointer.
        count
            How many elements.
        what
            What they are, for the refusal's text.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_INVALID_VALUE``, if the pointer is null or not all of the memory is mapped.
        """
        data = self.read(address, ctypes.sizeof(kind) * count, what)
        return tuple(value or 0 for value in (kind * count).from_buffer_copy(data)) if count else ()


def put(kind: Any, address: int | None, value: int | None, what: str) -> None:
    """Write an integer through a caller's pointer.

    Parameters
    ----------
    kind
        The ctypes type of the integer.
    address
        Where; None for a null pointer.
    value
        What; None for a null handle.
    what
        The parameter's name, for the refusal's text.

    Raises
    ------
    Refusal
        ``CUDA_ERROR_INVALID_VALUE``, if the pointer is null.
    """
    if not address:
        raise Refusal(Status.INVALID_VALUE, f"{what} is a null pointer")
    kind.from_address(address).value = value


def text(address: int | None, what: str) -> str:
    """Return a caller's C string.

    Raises
    ------
    Refusal
        ``CUDA_ERROR_INVALID_VALUE``, if the pointer is null.
    """
    if not address:
        raise Refusal(Status.INVALID_VALUE, f"{what} is a null pointer")
    return ctypes.string_at(address).decode("utf-8", "surrogateescape")
