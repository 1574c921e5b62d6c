"""Ctrl-C that waits for a moment: between making something and being able to remove it, and while it is removed."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Self

__all__ = ["Interruptible", "Uninterrupted"]


class Uninterrupted:
    """A block in which ``SIGINT`` waits until the block is left, or `interruptible` entered. It ought to be short.

    ::

        with Uninterrupted() as held:
            made = make()
            try:
                with held.interruptible():
                    use(made)
            finally:
                remove(made)

    Python handles signals in the main thread alone; in others nothing has to be done. A handler that is not Python's,
    or none, stays as it is. It is no generator: one that is dropped half-way would change the handler at any time.
    """

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], Any] | None = None
        self._waiting: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Self:
        self.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def interruptible(self) -> Interruptible:
        """Return a block in which interrupts come as ever."""
        return Interruptible(self)

    def hold(self) -> None:
        """Let interrupts wait."""
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler) and threading.current_thread() is threading.main_thread():
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        """Let interrupts come, and the one that waits, if there is one, at once."""
        handler, self._handler = self._handler, None
        if handler is None or threading.current_thread() is not threading.main_thread():
            return
        signal.signal(signal.SIGINT, handler)
        if self._waiting:
            waiting = self._waiting[0]
            self._waiting.clear()
            handler(*waiting)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting.append((number, frame))


class Interruptible:
    """The part of an `Uninterrupted` block that may last, in which interrupts come as ever.

    Parameters
    ----------
    held
        The block around it.
    """

    def __init__(self, held: Uninterrupted) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._held.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.hold()
