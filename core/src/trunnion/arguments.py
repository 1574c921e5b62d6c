"""What callers pass to the library's own functions: checks, and errors that several parts raise."""

from __future__ import annotations

import re
from os import PathLike, fsencode
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trunnion.current_device import current_device
from trunnion.errors import ArgumentTypeError, ArgumentValueError, ArtifactError, shorten
from trunnion.messages import describe, spelled, type_name
from trunnion.plain import ForeignError, asked, index_of, is_a, is_exactly, path_text, sequence, text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "device_ordinal",
    "expect",
    "expect_ordinal",
    "expect_text",
    "file_path",
    "output_list",
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
    try:
        # An abstract class, such as PathLike, may know it too.
        known = asked(lambda: issubclass(type(value), kinds))
    except ForeignError:  # a metaclass, of which an abstract class asks its hash
        known = False
    if known:
        return value
    raise ArgumentTypeError(name, type_name(value), words)


def expect_text(value: str, name: str, words: str) -> str:
    """Return a text as a plain ``str``, of which nothing that it says of itself is asked.

    Parameters and errors are those of `expect`.
    """
    plain = text(value)
    if plain is None:
        raise ArgumentTypeError(name, type_name(value), words)
    return plain


def output_list(out: Any) -> Sequence[Any] | None:
    """Return what a caller passes for ``out=`` as a list or tuple of Python's own; None if it is none."""
    plain: Sequence[Any] = out
    if is_exactly(out, tuple, list):
        return plain
    return sequence(out, 0) if is_a(out, (tuple, list)) else None


def file_path(given: str | PathLike[str]) -> Path:
    """Return a path that an operating system could know.

    Raises
    ------
    ArtifactError
        If it is empty, or holds what no path can.
    """
    plain = path_text(given)
    if not plain or "\0" in plain or not _encodable(plain):
        got = describe(given if plain is None else plain)
        raise ArtifactError(f"got {got}, expected the path of a file or folder")
    return Path(plain)


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
    expected = "None, an int, or an object whose __cuda_stream__() gives (0, handle)"
    try:
        handle = stream if type(stream) is int else asked(lambda: _handle_of(stream))
    except ForeignError as error:
        got = f"{type_name(stream)}, which raises {type_name(error.__cause__)}"
        raise ArgumentTypeError("stream", got, expected) from error.__cause__
    if type(handle) is not int:
        raise ArgumentTypeError("stream", type_name(stream), expected)
    if not 0 <= handle < _ADDRESSES:
        raise ArgumentValueError("stream", shorten(hex(handle)), "a handle of the driver: 0 to 2**64 - 1")
    return handle


def _handle_of(stream: Any) -> Any:
    """Return what an object says of the stream that it is; None if it is none."""
    if is_a(stream, type):
        return None
    if hasattr(stream, "__cuda_stream__"):
        answer = stream.__cuda_stream__
        answer = answer() if callable(answer) else None
        if type(answer) is not tuple or len(answer) != _STREAM_ANSWER:
            return None
        version, handle = answer
        # Of another version than 0 nobody knows what stands behind it (cuda.core, "CUDA stream protocol").
        return handle if type(version) is int and version == 0 else None
    return getattr(stream, "cuda_stream", None)


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
        An ordinal, a number of NumPy's too, or an object or text that names a device: ``"cuda:1"``; ``"cuda"``, the
        thread's current one, as torch understands it; ``"cpu"``, of which there is one.
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
    text = None if type(device) is int else spelled(device, "torch.device")
    number = _index(device) if text is None else None
    if number is not None:
        if -_MOST_ORDINAL - 1 <= number <= _MOST_ORDINAL:
            return number
        raise ArgumentValueError("device", describe(number), f"an integer, 0 to {_MOST_ORDINAL}")
    named, _, index = (text or "").partition(":")
    if text == kind:
        return 0 if kind == "cpu" else current_device()
    if text is None or named != kind or not re.fullmatch("0|[1-9][0-9]{0,8}", index):
        example = "'cpu'" if kind == "cpu" else f"'{kind}' or '{kind}:0'"
        got = describe(device) if text is None else shorten(text)
        raise ArgumentTypeError("device", got, f"{words}, or a device such as {example}")
    return int(index)


def _index(device: Any) -> int | None:
    if type(device) is int:  # as nearly all are
        return device
    try:
        return asked(lambda: index_of(device))
    except ForeignError as error:
        got = f"{type_name(device)}, which raises {type_name(error.__cause__)}"
        raise ArgumentTypeError("device", got, "an ordinal") from error.__cause__
