"""What callers pass to the library's own functions: checks, and errors that several parts raise."""

from __future__ import annotations

from typing import Any, TypeVar

from trunnion.errors import ArgumentTypeError, ArgumentValueError

__all__ = ["expect", "spanned_bytes", "unallocatable"]

_T = TypeVar("_T")


def expect(value: _T, kinds: type | tuple[type, ...], name: str, words: str) -> _T:
    """Return ``value`` if it is of one of ``kinds``.

    Parameters
    ----------
    value
        What was passed.
    kinds
        The types that are allowed.
    name
        The argument's name.
    words
        What is allowed, for the message.

    Raises
    ------
    ArgumentTypeError
        If it is of another type.
    """
    if isinstance(value, kinds):
        return value
    raise ArgumentTypeError(name, type(value).__name__, words)


def spanned_bytes(tensor: Any) -> int:
    """Return the bytes from a tensor's first element to behind its last one; 0 if it has none."""
    elements: int = tensor.numel()
    if elements and not tensor.is_contiguous():
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        elements = 1 + sum((extent - 1) * stride for extent, stride in steps)
    return elements * int(tensor.element_size())


def unallocatable(shape: tuple[int, ...]) -> ArgumentValueError:
    """Return the error of a call that asks for an output which is too large for any memory."""
    return ArgumentValueError(
        "", f"arguments that ask for an output of shape {shape}", "an output below 2**63 bytes"
    )
