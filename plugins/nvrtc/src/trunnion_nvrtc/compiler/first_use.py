"""`FirstUse`: the first call of a library that ``cuda.bindings`` has to find."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from trunnion.errors import LifecycleError
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FirstUse"]


class FirstUse:
    """The first call of a library, within which ``cuda.bindings`` holds a lock of its own over a search in Python.

    Nobody else may come to that lock meanwhile: no signal's handler, no finalizer, and no child that was forked then,
    in which nobody opens it.

    Parameters
    ----------
    library
        What messages call the library.
    """

    def __init__(self, library: str) -> None:
        self._library = library
        self._turns = Turns(f"{library} is being looked for")
        self._under_way: list[int] = []

    def run(self, call: Callable[[], Any]) -> Any:
        """Make the call.

        Raises
        ------
        LifecycleError
            If the calling thread is in the middle of it, or its process was forked when some thread was.
        """
        with self._turns.turn():
            if any(process != os.getpid() for process in self._under_way):
                raise LifecycleError(
                    f"the process was forked while {self._library} was being looked for, so it cannot be used there; "
                    "start processes by spawn, or compile something before"
                )
            self._under_way.append(os.getpid())
            try:
                return call()
            finally:
                self._under_way.clear()
