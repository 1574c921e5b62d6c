"""Graphs: what a capture recorded, and how it is run again."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.sim.stream_events import GraphLaunched
    from trunnion.sim.work_events import Launched, MemoryCopied, MemorySet

__all__ = ["Edge", "Graph", "GraphExec", "GraphNode", "NodeKind", "Work"]


class NodeKind(enum.IntEnum):
    """``CUgraphNodeType``, as far as captures make them."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    GRAPH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Something that a stream does: it runs at once, or becomes a node of the graph that the stream captures."""

    kind: NodeKind
    """What the node is."""

    event: Launched | MemorySet | MemoryCopied | GraphLaunched
    """What the trace shows when it runs."""

    run: Callable[[], None] = field(repr=False)
    """Does it."""

    handle: int = 0
    """``CUkernel`` or ``CUfunction`` of a launch."""

    programmatic: bool = False
    """Whether it waits for the kernel ahead of it by programmatic means (programmatic dependent launch)."""

    def on(self, stream: int) -> Work:
        """Return the same work, as the trace shows it on another stream."""
        return replace(self, event=replace(self.event, stream=stream))


@dataclass(frozen=True, slots=True)
class Edge:
    """What a node waits for."""

    source: GraphNode
    """The node ahead."""

    programmatic: bool = False
    """Whether it waits for the source's trigger (``CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC``), not for its end."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphNode:
    """One node of a graph."""

    handle: int
    """``CUgraphNode``."""

    work: Work
    """What it does."""

    edges: tuple[Edge, ...]
    """What it waits for."""

    kept: list[Any] = field(default_factory=list, repr=False)
    """Buffers that queries returned pointers to; they live as long as the node."""

    @property
    def kind(self) -> NodeKind:
        """What the node is."""
        return self.work.kind

    @property
    def event(self) -> Launched | MemorySet | MemoryCopied | GraphLaunched:
        """What it does, as the trace would show it."""
        return self.work.event

    @property
    def dependencies(self) -> tuple[GraphNode, ...]:
        """The nodes that it waits for."""
        return tuple(edge.source for edge in self.edges)

    def ancestors(self) -> set[GraphNode]:
        """Return every node that ends, or triggers, before this one runs."""
        found: set[GraphNode] = set()
        waiting = list(self.dependencies)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting.extend(node.dependencies)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A captured graph."""

    handle: int
    """``CUgraph``."""

    nodes: list[GraphNode] = field(default_factory=list)
    """The nodes; each comes behind all that it waits for."""

    memory: list[object] = field(default_factory=list)
    """Tensors that were allocated for its nodes: they live as long, as in a tensor library's pool for captures."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphExec:
    """An instantiated graph: the nodes that its graph had then."""

    handle: int
    """``CUgraphExec``."""

    graph: int
    """The handle of the graph."""

    nodes: tuple[GraphNode, ...]
    """The nodes, in an order in which they can run."""
