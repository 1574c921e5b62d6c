"""Captures from Python: what a block of code would have done on a stream, as a graph to look at and to launch."""

from __future__ import annotations

import weakref
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from trunnion.arguments import expect_text
from trunnion.errors import ArgumentValueError, DriverError, LifecycleError
from trunnion.messages import describe
from trunnion.sim.graph import Graph, GraphExec
from trunnion.sim.objects import PER_THREAD_STREAM, CaptureMode, Stream
from trunnion.sim.status import Refusal
from trunnion.sim.submission import graph_work, submit
from trunnion.sim.trace import CaptureBegan, CaptureEnded, GraphInstantiated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.sim.graph import GraphNode
    from trunnion.sim.state import DriverState

__all__ = ["RecordedGraph", "record"]


class RecordedGraph:
    """A graph that `Simulator.capture` recorded; it has its nodes once the block has ended.

    What it holds is given back when it is closed, or collected: the graph, the memory that was allocated for its
    nodes, and the stream, if the capture made it.

    Parameters
    ----------
    state
        What the driver remembers.
    stream
        The handle of the stream that was captured.
    owned
        The stream, if it ends with the graph.
    """

    def __init__(self, state: DriverState, stream: int, owned: Stream | None = None) -> None:
        self._state = state
        self._graph: Graph | None = None
        self._executable: GraphExec | None = None
        self._origin: Stream | None = None
        self._held: list[Graph | GraphExec | Stream] = [] if owned is None else [owned]
        self._give_back = weakref.finalize(self, _give_back, state, self._held)
        self._give_back.atexit = False
        self.stream = stream

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes, each behind all that it waits for; none while the block runs."""
        return () if self._graph is None else tuple(self._graph.nodes)

    @property
    def edges(self) -> tuple[tuple[int, int, bool], ...]:
        """For each edge, the index of the node ahead, that of the node behind, and whether it is programmatic."""
        at = {node: index for index, node in enumerate(self.nodes)}
        return tuple(
            (at[edge.source], at[node], edge.programmatic) for node in self.nodes for edge in node.edges
        )

    def launch(self, stream: int | None = None) -> None:
        """Run the graph, as ``cuGraphLaunch`` does.

        Parameters
        ----------
        stream
            The handle of the stream; None: the one that was captured.

        Raises
        ------
        DriverError
            If the driver refuses.
        ArgumentValueError
            If the capture has not ended, or failed.
        LifecycleError
            If the graph was closed.
        """
        with _driver_errors("cuGraphLaunch"):
            executable = self._instantiated()
            handle = self.stream if stream is None else stream
            origin = self._origin if stream is None and self.stream == PER_THREAD_STREAM else None
            target = origin or self._state.stream(handle)
            work = graph_work(self._state, executable, target.device.ordinal, handle)
            submit(self._state, target, work)

    def _instantiated(self) -> GraphExec:
        if self._graph is None:
            raise ArgumentValueError("graph", "a capture that has not ended", "the graph of one that has")
        if not self._give_back.alive:
            raise LifecycleError("the graph was closed; capture it again")
        if self._executable is None:
            self._executable = GraphExec(self._state.new_handle(), self._graph.handle, self.nodes)
            self._held.append(self._executable)
            self._state.add(self._executable)
            self._state.trace.add(GraphInstantiated(self._graph.handle, self._executable.handle))
        return self._executable

    def finish(self, graph: Graph, origin: Stream) -> None:
        """Take over the graph of the capture, and the stream that its handle meant where it was begun."""
        self._graph, self._origin = graph, origin
        self._held.append(graph)

    def close(self) -> None:
        """Give back what it holds; it cannot be launched any more. Closing again does nothing."""
        self._give_back()


def _give_back(state: DriverState, held: list[Graph | GraphExec | Stream]) -> None:
    """Make things unreachable; each in one step, without a lock: a finalizer comes in the middle of anything."""
    for thing in held:
        if isinstance(thing, Graph):
            state.forget_graph(thing)
        elif state.handled.get(thing.handle) is thing:  # the handle may stand for another one by now
            del state.handled[thing.handle]


@contextmanager
def record(state: DriverState, stream: int, mode: str, *, owned: bool) -> Iterator[RecordedGraph]:
    """Capture a stream for the length of a block.

    Parameters
    ----------
    state
        What the driver remembers.
    stream
        The handle of the stream.
    mode
        ``"global"``, ``"thread_local"`` or ``"relaxed"``.
    owned
        Whether the stream ends with the graph.

    Raises
    ------
    ArgumentTypeError
        If the mode is no text.
    ArgumentValueError
        If there is no such mode.
    DriverError
        If the driver refuses to begin or to end the capture.
    """
    recorded = RecordedGraph(state, stream, state.get(Stream, stream) if owned else None)
    with ExitStack() as failing:
        failing.callback(recorded.close)
        chosen = _mode(mode)
        with _driver_errors("cuStreamBeginCapture"), state.lock:
            origin = state.stream(stream)
            capture = state.captures.begin(origin, chosen, state.thread())
            state.add(capture.graph)
        state.trace.add(CaptureBegan(stream, chosen))
        try:
            yield recorded
            with _driver_errors("cuStreamEndCapture"), state.lock:
                recorded.finish(state.captures.end(origin, state.thread()), origin)
        except BaseException:  # whatever ended the block, nobody gets the graph, and the stream is free again
            with state.lock:
                if origin.capture is capture:
                    state.captures.abandon(origin)
            raise
        state.trace.add(CaptureEnded(stream, capture.graph.handle))
        failing.pop_all()


def _mode(mode: str) -> CaptureMode:
    modes = {row.name.lower(): row for row in CaptureMode}
    expected = f"one of {', '.join(modes)}"
    name = expect_text(mode, "mode", expected)
    if name not in modes:
        raise ArgumentValueError("mode", describe(name), expected)
    return modes[name]


@contextmanager
def _driver_errors(call: str) -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        raise DriverError(call, refusal.status, refusal.status.symbol, refusal.reason) from refusal
