"""`CallHelper`: compiled code for the slowest parts of a Python launcher's call, from a distribution of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CALL_HELPER_VERSION", "CallHelper"]

CALL_HELPER_VERSION: Final = 1
"""The version of `CallHelper` that core asks for; a helper of another one is not used."""


class CallHelper(Protocol):
    """What a launcher can do faster in compiled code. A module that has these names is one.

    It is never required, and changes nothing of what a call checks, launches or raises: only how long it takes.

    Attributes
    ----------
    contract_version
        `CALL_HELPER_VERSION` of the core that it was written for: a literal.
    """

    contract_version: int

    def tensor_reader(
        self,
        exchange: int,
        tensor_type: type,
        tensors: tuple[Any, ...],
        questions: tuple[tuple[Callable[[Any], object], ...], ...],
        /,
    ) -> Callable[..., tuple[int, ...] | None]:
        """Return a function that reads the addresses of tensors like the given ones.

        Parameters
        ----------
        exchange
            The address of a ``DLPackExchangeAPI`` (dlpack.h) that lives as long as the process.
        tensor_type
            The class whose API it is; no subclass of it is read.
        tensors
            The models: devices, element types, extents and strides are noted, and the tensors are not kept.
        questions
            For each tensor what is asked about it in every call; False is the one answer that lets it pass.

        Returns
        -------
        Callable[..., tuple[int, ...] or None]
            Called with as many tensors, returns the address of each one's first element. None: one is not like its
            model in type, device, element type, extents and strides, is at no address though it has elements, cannot be
            read, or a question was answered otherwise. It lets no `Exception` pass but `MemoryError`.

        Raises
        ------
        TypeError, ValueError
            If an argument is not what is said above, or the library does not show where a model lies.
        """

    def caller(
        self, function: int, addresses: tuple[int, int, int, int], kept: object, /
    ) -> Callable[[], int]:
        """Return a function that calls a C function with fixed arguments, without the interpreter's lock.

        Parameters
        ----------
        function
            The address of an ``int f(void*, void*, void*, void*)``.
        addresses
            What it is called with; 0 is a null pointer.
        kept
            What has to live as long as the function that is returned.

        Returns
        -------
        Callable[[], int]
            Calls it, and returns what it returned. Several threads may call it at once.

        Raises
        ------
        TypeError, ValueError
            If an argument is not what is said above.
        """
