"""Stream capture: which streams capture into which graph, and what that forbids.

Source: CUDA Driver API, ``cuStreamBeginCapture``, ``cuThreadExchangeStreamCaptureMode``, ``cuStreamEndCapture``
and ``cuStreamIsCapturing``; CUDA C++ Programming Guide, Creating a Graph Using Stream Capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.sim.graph import Graph
from trunnion.sim.objects import Capture, CaptureMode
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trunnion.sim.objects import Context, Event, Stream

__all__ = ["Captures"]


class Captures:
    """Every capture that has begun and not ended, and each thread's mode.

    Parameters
    ----------
    new_handle
        Returns a handle that was never used.
    forget
        Makes the graph of a capture that came to nothing unreachable.
    """

    def __init__(self, new_handle: Callable[[], int], forget: Callable[[Graph], None]) -> None:
        self._new_handle = new_handle
        self._forget = forget
        self._active: list[Capture] = []
        self._modes: dict[int, CaptureMode] = {}
        self._last = 0

    @property
    def standing(self) -> dict[str, str]:
        """What has begun and not ended: the streams that capture, and the threads whose mode is not the first one."""
        other = {thread: mode for thread, mode in self._modes.items() if mode is not CaptureMode.GLOBAL}
        modes = {f"thread {thread}": mode.name for thread, mode in other.items()}
        return {f"{capture.origin.handle:#x}": capture.mode.name for capture in self._active} | modes

    def exchange_mode(self, thread: int, mode: CaptureMode) -> CaptureMode:
        """Set a thread's mode, and return the one before."""
        before = self.mode_of(thread)
        self._modes[thread] = mode
        return before

    def end_thread(self, thread: int) -> None:
        """Forget a thread's mode: the thread ends."""
        self._modes.pop(thread, None)

    def mode_of(self, thread: int) -> CaptureMode:
        """Return a thread's mode."""
        return self._modes.get(thread, CaptureMode.GLOBAL)

    def begin(self, stream: Stream, mode: CaptureMode, thread: int) -> Capture:
        """Begin a capture on a stream.

        Raises
        ------
        Refusal
            If the stream is the legacy one, or captures already.
        """
        if stream.is_legacy:
            raise Refusal(Status.STREAM_CAPTURE_UNSUPPORTED, "the legacy default stream cannot be captured")
        if stream.capture is not None:
            raise Refusal(Status.ILLEGAL_STATE, "the stream is capturing already")
        self._last += 1
        capture = Capture(self._last, stream, mode, thread, Graph(self._new_handle()))
        capture.join(stream, frozenset())
        self._active.append(capture)
        return capture

    def end(self, stream: Stream, thread: int) -> Graph:
        """End a capture, and return its graph.

        Raises
        ------
        Refusal
            If the stream does not capture, another stream or thread began it, it was invalidated, or a stream
            that takes part was not joined with its origin. The last two end the capture all the same.
        """
        capture = stream.capture
        if capture is None:
            raise Refusal(Status.ILLEGAL_STATE, "the stream is not capturing")
        if capture.origin is not stream:
            raise Refusal(Status.STREAM_CAPTURE_UNMATCHED, "the capture was begun on another stream")
        if capture.mode is not CaptureMode.RELAXED and capture.thread != thread:
            raise Refusal(Status.STREAM_CAPTURE_WRONG_THREAD, "the capture was begun by another thread")
        unjoined = capture.unjoined()
        if capture.problem or unjoined:
            self.abandon(stream)
        if capture.problem:
            raise Refusal(
                Status.STREAM_CAPTURE_INVALIDATED, f"the capture was invalidated: {capture.problem}"
            )
        if unjoined:
            handles = ", ".join(f"{member.handle:#x}" for member in unjoined)
            raise Refusal(
                Status.STREAM_CAPTURE_UNJOINED, f"the origin stream does not wait for the work on {handles}"
            )
        self._leave(capture)
        return capture.graph

    def abandon(self, stream: Stream) -> None:
        """End the capture of a stream, whatever its state; its graph is for nobody, and forgotten."""
        capture = stream.capture
        if capture is not None:
            self._leave(capture)
            self._forget(capture.graph)

    def _leave(self, capture: Capture) -> None:
        for member in capture.frontiers:
            member.capture = None
        self._active.remove(capture)

    def of(self, stream: Stream) -> Capture | None:
        """Return the capture into which work on a stream goes, or None.

        Raises
        ------
        Refusal
            If the capture was invalidated, or the stream is the legacy one and would have to wait for a stream
            that captures, which invalidates the capture.
        """
        self.check_implicit(stream, invalidates=True)
        capture = stream.capture
        if capture is not None and capture.problem:
            raise Refusal(
                Status.STREAM_CAPTURE_INVALIDATED, f"the stream's capture was invalidated: {capture.problem}"
            )
        return capture

    def check_implicit(self, stream: Stream, *, invalidates: bool) -> None:
        """Refuse the legacy stream while a blocking stream of its context captures.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_STREAM_CAPTURE_IMPLICIT``.
        """
        if not stream.is_legacy:
            return
        held = [
            capture
            for capture in self._active
            if any(member.is_blocking and member.context is stream.context for member in capture.frontiers)
        ]
        if held:
            reason = "the legacy default stream waits for every blocking stream, and one is capturing"
            if invalidates:
                self._invalidate(held, reason)
            raise Refusal(Status.STREAM_CAPTURE_IMPLICIT, reason)

    def check_waitable(self, stream: Stream, what: str) -> None:
        """Refuse to wait on the host for a stream that captures; that invalidates the capture.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED``, or as `of`.
        """
        capture = self.of(stream)
        if capture is not None:
            reason = f"{what} on a stream that is capturing"
            self._invalidate((capture,), reason)
            raise Refusal(Status.STREAM_CAPTURE_UNSUPPORTED, reason)

    def check_event(self, event: Event, what: str) -> None:
        """Refuse to look from the host at an event of a capture; that invalidates the capture.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_CAPTURED_EVENT``.
        """
        if event.capture is not None and event.capture in self._active:
            reason = f"{what} on an event that was last recorded in a capture"
            self._invalidate((event.capture,), reason)
            raise Refusal(Status.CAPTURED_EVENT, reason)

    def check_context(self, context: Context, what: str) -> None:
        """Refuse to wait for a context in which, or in a green one of it, a stream captures; that invalidates captures.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED``.
        """
        held = [
            c for c in self._active if any(context in (one.context, one.context.home) for one in c.frontiers)
        ]
        if held:
            reason = f"{what} while a stream of the context is capturing"
            self._invalidate(held, reason)
            raise Refusal(Status.STREAM_CAPTURE_UNSUPPORTED, reason)

    def check_unsafe(self, thread: int, what: str) -> None:
        """Refuse what is no work of a stream, where the modes of the thread and of the captures forbid it.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED``; the captures that forbid it are invalidated.
        """
        mode = self.mode_of(thread)
        if mode is CaptureMode.RELAXED:
            return
        held = [
            capture
            for capture in self._active
            if (capture.thread == thread and capture.mode is not CaptureMode.RELAXED)
            or (mode is CaptureMode.GLOBAL and capture.mode is CaptureMode.GLOBAL)
        ]
        if held:
            reason = f"{what} while a stream is capturing"
            self._invalidate(held, reason)
            raise Refusal(Status.STREAM_CAPTURE_UNSUPPORTED, reason)

    def record(self, event: Event, stream: Stream) -> None:
        """Record an event on a stream, inside of its capture if it captures."""
        capture = self.of(stream)
        event.recorded = True
        event.capture = capture
        event.frontier = frozenset() if capture is None else capture.frontiers[stream]

    def wait(self, stream: Stream, event: Event) -> None:
        """Let a stream wait for an event; waiting for an event of a capture joins the capture.

        Raises
        ------
        Refusal
            If that would make a dependency that crosses the border of a capture, or merge two.
        """
        theirs = event.capture if event.capture in self._active else None
        ours = stream.capture if theirs is not None and stream.is_legacy else self.of(stream)
        if theirs is ours:
            if ours is not None:
                ours.join(stream, event.frontier)
            return
        if theirs is None:
            if event.recorded and ours is not None:
                reason = "a stream that is capturing waits for an event from outside of the capture"
                self._invalidate((ours,), reason)
                raise Refusal(Status.STREAM_CAPTURE_ISOLATION, reason)
            return
        if theirs.problem:
            raise Refusal(Status.STREAM_CAPTURE_INVALIDATED, f"the event's capture: {theirs.problem}")
        if ours is not None:
            reason = "an event would join two captures"
            self._invalidate((ours, theirs), reason)
            raise Refusal(Status.STREAM_CAPTURE_MERGE, reason)
        if stream.is_legacy:
            reason = "the legacy default stream would join a capture"
            self._invalidate((theirs,), reason)
            raise Refusal(Status.STREAM_CAPTURE_IMPLICIT, reason)
        theirs.join(stream, event.frontier)

    def _invalidate(self, captures: Iterable[Capture], reason: str) -> None:
        for capture in captures:
            capture.problem = capture.problem or reason
