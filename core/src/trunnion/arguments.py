"""What callers pass to the library's own functions: checks, and errors that several parts raise."""

from __future__ import annotations

import re
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import Any, TypeVar

from trunnion.errors import ArgumentTypeError, ArgumentValueError, ArtifactError, shorten
from trunnion.wording import describe, spelled, type_name

__all__ = [
    "device_ordinal",
    "expect",
    "expect_ordinal",
    "file_path",
    "spanned_bytes",
    "stream_handle",
    "unallocatable",
]

_T = TypeVar("_T")
_ADDRESSES = 1 << 64
_MOST_ORDINAL = 2**31 - 1
_STREAM_ANSWER = 2  # version and handle


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
    if issubclass(type(value), kinds):  # what it says of its class proves nothing
        return value
    raise ArgumentTypeError(name, type_name(value), words)


def file_path(given: str | PathLike[str]) -> Path:
    """Return a path that an operating system could know.

    Raises
    ------
    ArtifactError
        If it is empty, or holds what no path can.
    """
    plain = spelled(given)
    known = plain is not None or issubclass(type(given), PathLike)
    text: object = fspath(given) if plain is None and known else plain
    if not isinstance(text, str) or not text or "\0" in text or not _encodable(text):
        raise ArtifactError(
            f"got {describe(text if known else given)}, expected the path of a file or folder"
        )
    return Path(text)


def _encodable(path: str) -> bool:
    try:
        fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


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


def stream_handle(stream: Any) -> int | None:
    """Return the driver's handle of what a caller passes for ``stream=``; None stays None.

    Parameters
    ----------
    stream
        None, an int, or an object with ``__cuda_stream__`` or ``cuda_stream``.

    Raises
    ------
    ArgumentTypeError
        If it is anything else.
    ArgumentValueError
        If it is no handle that a driver could have.
    """
    if stream is None:
        return None
    handle: Any = stream
    if hasattr(stream, "__cuda_stream__"):
        answer = None if isinstance(stream, type) else stream.__cuda_stream__
        answer = answer() if callable(answer) else None
        handle = answer[1] if isinstance(answer, tuple) and len(answer) == _STREAM_ANSWER else None
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    if type(handle) is not int:
        expected = "None, an int, or an object whose __cuda_stream__() gives (version, handle)"
        raise ArgumentTypeError("stream", type_name(stream), expected)
    if not 0 <= handle < _ADDRESSES:
        raise ArgumentValueError("stream", shorten(hex(handle)), "a handle of the driver: 0 to 2**64 - 1")
    return handle


def device_ordinal(device: Any, kind: str = "cuda") -> int | None:
    """Return the ordinal of the device that a caller passes for ``device=``; None stays None.

    Parameters and errors are those of `expect_ordinal`.
    """
    return None if device is None else expect_ordinal(device, kind, "None, an ordinal")


def expect_ordinal(device: Any, kind: str = "cuda", words: str = "an ordinal") -> int:
    """Return the ordinal of a device that a caller passes.

    Parameters
    ----------
    device
        An ordinal, or an object or text that names a device: ``"cuda:1"``; ``"cpu"``, of which there is one.
    kind
        The kind of device that it must be.
    words
        What is allowed, beside what names a device; for the message.

    Raises
    ------
    ArgumentTypeError
        If it is anything else.
    ArgumentValueError
        If it is an integer that is no ordinal of the driver's, a ``CUdevice``: beyond 32 signed bits.
    """
    if type(device) is int:
        if -_MOST_ORDINAL - 1 <= device <= _MOST_ORDINAL:
            return device
        raise ArgumentValueError("device", describe(device), f"an integer, 0 to {_MOST_ORDINAL}")
    text = spelled(device, "torch.device")
    named, _, index = (text or "").partition(":")
    if text == kind == "cpu":
        return 0
    if text is None or named != kind or not re.fullmatch("[0-9]{1,9}", index):
        # Not "cuda" alone: for torch that is the current device, which differs by thread.
        example = "cpu" if kind == "cpu" else f"{kind}:0"
        got = describe(device) if text is None else shorten(text)
        raise ArgumentTypeError("device", got, f"{words}, or a device such as {shorten(example)}")
    return int(index)
