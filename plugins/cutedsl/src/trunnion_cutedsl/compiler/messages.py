"""What the two processes say to each other: JSON and bytes, each with its length in front.

Never pickle: the answer comes from a process in which the author's text ran.
"""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

__all__ = ["MOST_BYTES", "JobError", "receive", "send"]

MOST_BYTES = 1 << 30
"""The longest message that is read."""

_LENGTHS = struct.Struct("<QQ")
_CHUNK = 1 << 20
_LEAST_SECONDS = 0.001  # 0 would mean: do not wait at all


class JobError(Exception):
    """A job that cannot be compiled as it is put; the text says why.

    Parameters
    ----------
    message
        What was got and what is allowed.
    field
        The part of the request that is wrong.
    """

    def __init__(self, message: str, field: str = "code") -> None:
        super().__init__(message)
        self.field = field


def send(
    connection: socket.socket, head: dict[str, Any], data: bytes = b"", deadline: float | None = None
) -> None:
    """Send a JSON object and bytes.

    Parameters
    ----------
    connection
        Where they go.
    head
        The object.
    data
        The bytes.
    deadline
        When the other side must have taken all of it, on the clock of `time.monotonic`, in seconds; None: whenever.

    Raises
    ------
    TimeoutError
        If it has not.
    OSError
        If the other side is gone.
    """
    text = json.dumps(head).encode()
    _wait_until(connection, deadline)
    connection.sendall(_LENGTHS.pack(len(text), len(data)) + text + data)


def receive(connection: socket.socket, deadline: float | None = None) -> tuple[dict[str, Any], bytes]:
    """Receive what `send` sent.

    Parameters
    ----------
    connection
        Where it comes from.
    deadline
        When all of it must be there, on the clock of `time.monotonic`, in seconds; None: whenever.

    Raises
    ------
    EOFError
        If the other side closed before all of it came.
    TimeoutError
        If it is not.
    ValueError, TypeError
        If it is no such message.
    """
    lengths = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size, deadline))
    if max(lengths) > MOST_BYTES:
        raise ValueError(f"a message of {max(lengths)} bytes")
    text = _exactly(connection, lengths[0], deadline)
    try:
        head = json.loads(text)
    except RecursionError as error:
        raise ValueError("a message of too many levels") from error
    if not isinstance(head, dict):
        raise TypeError(f"a message that is a {type(head).__name__}")
    return head, _exactly(connection, lengths[1], deadline)


def _exactly(connection: socket.socket, count: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        _wait_until(connection, deadline)
        part = connection.recv(min(count - len(parts), _CHUNK))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _wait_until(connection: socket.socket, deadline: float | None) -> None:
    if deadline is not None:
        connection.settimeout(max(deadline - time.monotonic(), _LEAST_SECONDS))
