"""Captures from Python: what a block of code would have done on a stream, as a graph to look at and to launch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError, DriverError
from trunnion.messages import describe
from trunnion.sim.graph import GraphExec
from trunnion.sim.objects import PER_THREAD_STREAM, CaptureMode
from trunnion.sim.status import Refusal
from trunnion.sim.submission import graph_work, submit
from trunnion.sim.trace import CaptureBegan, CaptureEnded, GraphInstantiated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.sim.graph import Graph, GraphNode
    from trunnion.sim.objects import Stream
    from trunnion.sim.state import DriverState

__all__ = ["RecordedGraph", "record"]


class RecordedGraph:
    """A graph that `Simulator.capture` recorded; it has its nodes once the block has ended.

    Parameters
    ----------
    state
        What the driver remembers.
    stream
        The handle of the stream that was captured.
    """

    def __init__(self, state: DriverState, stream: int) -> None:
        self._state = state
        self._graph: Graph | None = None
        self._executable: GraphExec | None = None
        self._origin: Stream | None = None
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
            If the graph is not there (yet), or the driver refuses.
        """
        with _driver_errors("cuGraphLaunch"):
            handle = self.stream if stream is None else stream
            origin = self._origin if stream is None and self.stream == PER_THREAD_STREAM else None
            target = origin or self._state.stream(handle)
            executable = self._instantiated()
            work = graph_work(self._state, executable, target.device.ordinal, handle)
            submit(self._state, target, work)

    def _instantiated(self) -> GraphExec:
        if self._executable is None:
            if self._graph is None:
                raise ArgumentValueError("graph", "a capture that has not ended", "the graph of one that has")
            self._executable = GraphExec(self._state.new_handle(), self._graph.handle, self.nodes)
            self._state.add(self._executable)
            self._state.trace.add(GraphInstantiated(self._graph.handle, self._executable.handle))
        return self._executable

    def finish(self, graph: Graph, origin: Stream) -> None:
        """Take over the graph of the capture, and the stream that its handle meant where it was begun."""
        self._graph, self._origin = graph, origin


@contextmanager
def record(state: DriverState, stream: int, mode: str) -> Iterator[RecordedGraph]:
    """Capture a stream for the length of a block.

    Parameters
    ----------
    state
        What the driver remembers.
    stream
        The handle of the stream.
    mode
        ``"global"``, ``"thread_local"`` or ``"relaxed"``.

    Raises
    ------
    ArgumentValueError
        If there is no such mode.
    DriverError
        If the driver refuses to begin or to end the capture.
    """
    modes = {row.name.lower(): row for row in CaptureMode}
    if mode not in modes:
        raise ArgumentValueError("mode", f"{describe(mode)}", f"one of {', '.join(modes)}")
    recorded = RecordedGraph(state, stream)
    with _driver_errors("cuStreamBeginCapture"), state.lock:
        origin = state.stream(stream)
        state.add(state.captures.begin(origin, modes[mode], state.thread()).graph)
    state.trace.add(CaptureBegan(stream, modes[mode]))
    try:
        yield recorded
    except BaseException:
        with state.lock:
            state.captures.abandon(origin)
        raise
    with _driver_errors("cuStreamEndCapture"), state.lock:
        graph = state.captures.end(origin, state.thread())
    recorded.finish(graph, origin)
    state.trace.add(CaptureEnded(stream, graph.handle))


@contextmanager
def _driver_errors(call: str) -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        raise DriverError(call, refusal.status, refusal.status.symbol, refusal.reason) from refusal
