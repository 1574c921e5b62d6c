"""Run something in a forked child, and hear what came of it: the child never goes on as its parent would."""

from __future__ import annotations

import os
import select
import signal
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CAN_FORK", "told_by_a_child"]

CAN_FORK = hasattr(os, "fork")
"""Whether processes can fork on this system."""

_PATIENCE = 60.0  # seconds: far more than any machine is busy, and less than a law has


def told_by_a_child(body: Callable[[], str]) -> str:
    """Return the text that a function returns in a forked child, or what it raised there.

    Parameters
    ----------
    body
        What the child does. Its text is short: it has to fit into a pipe.

    Raises
    ------
    TimeoutError
        If the child said nothing; it is ended.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: that there may be threads
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, _told(body).encode("utf-8", "replace")[:4000])
        finally:
            os._exit(0)  # no finalizer and no test runner may run twice
    os.close(writing)
    try:
        if not select.select([reading], [], [], _PATIENCE)[0]:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError(f"a forked child said nothing for {_PATIENCE:g} seconds")
        return os.read(reading, 4000).decode()
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def _told(body: Callable[[], str]) -> str:
    try:
        return body()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent has to hear of it
        return f"{type(error).__name__}: {error}"
