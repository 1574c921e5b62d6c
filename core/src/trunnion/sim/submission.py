"""How work reaches a stream: it runs at once, or becomes a node of the graph that the stream captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.messages import quoted
from trunnion.sim.graph import NodeKind, Work
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Captured, GraphLaunched, Launched

if TYPE_CHECKING:
    from trunnion.sim.graph import GraphExec
    from trunnion.sim.objects import Stream
    from trunnion.sim.state import DriverState

__all__ = ["graph_work", "submit"]


def submit(state: DriverState, stream: Stream, work: Work) -> None:
    """Give work to a stream.

    Parameters
    ----------
    state
        What the driver remembers.
    stream
        The stream. What it does runs to its end before this returns, unless it captures.
    work
        Checked already: nothing but the capture refuses it here.

    Raises
    ------
    Refusal
        If a capture forbids it; see `trunnion.sim.capture.Captures.of`.
    """
    with state.lock:
        capture = state.captures.of(stream)
        if capture is not None:
            node = capture.add(state.new_handle(), stream, work)
            state.add(node)
            state.trace.add(Captured(work.event, node.handle))
            return
    state.trace.add(work.event)
    work.run()


def graph_work(state: DriverState, executable: GraphExec, device: int, stream: int) -> Work:
    """Return the work of running an executable graph on a stream."""

    def run() -> None:
        for node in executable.nodes:
            work = node.work.on(stream)
            if isinstance(work.event, Launched) and work.event.library not in state.handled:
                raise Refusal(
                    Status.INVALID_HANDLE,
                    f"the library of the graph's kernel {quoted(work.event.kernel)} was unloaded",
                )
            state.trace.add(work.event)
            work.run()

    event = GraphLaunched(executable.handle, len(executable.nodes), device, stream)
    return Work(NodeKind.GRAPH, event, run)
