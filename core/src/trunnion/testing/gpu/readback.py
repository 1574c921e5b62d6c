"""What a captured call really is, read back from its graph by the driver.

Sources: CUDA Driver API, "Graph Management" (``cuGraphGetEdges``, ``cuGraphKernelNodeGetParams``,
``cuGraphKernelNodeGetAttribute``, ``cuGraphMemsetNodeGetParams``) and "Library Management" (``cuKernelGetName``,
``cuKernelGetParamInfo``).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from cuda.bindings import driver as cu

if TYPE_CHECKING:
    from collections.abc import Callable

Node = cu.CUgraphNodeType
Id = cu.CUlaunchAttributeID

SERIAL = int(cu.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
PROGRAMMATIC = int(cu.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
_MOST = 64


@dataclass(frozen=True)
class Window:
    """An access-policy window."""

    address: int
    """Of its first byte."""

    nbytes: int
    """How long it is."""

    hit_ratio: float
    """The share of accesses that are hits."""

    hit_property: int
    """``CUaccessProperty`` of hits."""

    miss_property: int
    """``CUaccessProperty`` of misses."""


@dataclass(frozen=True)
class ReadLaunch:
    """One kernel node."""

    symbol: str
    """The kernel's exact name."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    dynamic_smem_bytes: int
    """Of each block."""

    offsets: tuple[int, ...]
    """Where each parameter lies among them, in bytes."""

    parameters: tuple[bytes, ...]
    """The bytes of each parameter."""

    cluster: tuple[int, int, int]
    """(0, 0, 0) without clusters."""

    cooperative: bool
    """Whether all blocks are resident at once."""

    priority: int
    """Lower numbers come first."""

    carveout: int
    """The preferred share of shared memory, in per cent."""

    scheduling_policy: int
    """``CUclusterSchedulingPolicy``."""

    mem_sync_domain: int
    """``CUlaunchMemSyncDomain``."""

    window: Window | None
    """None where the node has none: no bytes."""


@dataclass(frozen=True)
class ReadMemset:
    """One memset node; ``width`` counts elements of a row."""

    address: int
    """Of its first byte."""

    value: int
    """Of an element."""

    element_bytes: int
    """The size of an element."""

    width: int
    """Elements of a row."""

    height: int
    """How many rows."""

    pitch: int
    """Bytes from one row to the next."""

    @property
    def nbytes(self) -> int:
        """How many bytes it writes."""
        return self.element_bytes * self.width * self.height


@dataclass(frozen=True)
class ReadCopy:
    """One node that copies within a device."""

    target: int
    """The first byte that it writes."""

    source: int
    """The first byte that it reads."""

    nbytes: int
    """How many bytes."""


@dataclass(frozen=True)
class Capture:
    """A captured call."""

    nodes: tuple[ReadLaunch | ReadMemset | ReadCopy, ...]
    """Its nodes, each behind those that it waits for."""

    edges: frozenset[tuple[int, int, int]]
    """From which node to which, and of which type: `SERIAL` or `PROGRAMMATIC`."""

    graph: torch.cuda.CUDAGraph
    """Instantiated."""

    result: Any
    """What the call returned; nothing has run yet."""

    @property
    def launches(self) -> list[ReadLaunch]:
        """The kernel nodes."""
        return [node for node in self.nodes if isinstance(node, ReadLaunch)]

    @property
    def memsets(self) -> list[ReadMemset]:
        """The memset nodes."""
        return [node for node in self.nodes if isinstance(node, ReadMemset)]

    @property
    def copies(self) -> list[ReadCopy]:
        """The nodes that copy."""
        return [node for node in self.nodes if isinstance(node, ReadCopy)]

    def replay(self) -> Any:
        """Run the graph and return the result."""
        self.graph.replay()
        torch.cuda.synchronize()
        return self.result


def ok(result: tuple[Any, ...]) -> Any:
    """Return what a driver call returned.

    Raises
    ------
    AssertionError
        If it failed.
    """
    status, *values = result
    _require(status == cu.CUresult.CUDA_SUCCESS, status)
    return values[0] if len(values) == 1 else values


def _require(condition: object, what: object) -> None:
    if not condition:
        raise AssertionError(what)


def captured(call: Callable[[], Any]) -> Capture:
    """Capture a call on a stream of torch's choice, and read the graph."""
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        result = call()
    nodes, edges = read_graph(graph)
    graph.instantiate()
    return Capture(nodes, edges, graph, result)


def read_graph(
    graph: torch.cuda.CUDAGraph,
) -> tuple[tuple[ReadLaunch | ReadMemset | ReadCopy, ...], frozenset[tuple[int, int, int]]]:
    """Return the nodes of a graph, each behind those that it waits for, and its edges as `Capture` has them.

    Parameters
    ----------
    graph
        Captured with ``keep_graph=True``, and not instantiated.

    Raises
    ------
    AssertionError
        If it holds anything but kernels, memsets and copies.
    """
    raw = cu.CUgraph(graph.raw_cuda_graph())
    listed, count = ok(cu.cuGraphGetNodes(raw, _MOST))
    handles = [int(node) for node in listed[:count]]
    sources, targets, data, edge_count = ok(cu.cuGraphGetEdges(raw, _MOST))
    found = [(int(sources[i]), int(targets[i]), int(data[i].type)) for i in range(edge_count)]
    order = _in_order(handles, [(a, b) for a, b, _ in found])
    at = {handle: index for index, handle in enumerate(order)}
    nodes = tuple(_read(cu.CUgraphNode(handle)) for handle in order)
    return nodes, frozenset((at[a], at[b], kind) for a, b, kind in found)


def _in_order(handles: list[int], edges: list[tuple[int, int]]) -> list[int]:
    order: list[int] = []
    while len(order) < len(handles):
        ready = [
            one
            for one in handles
            if one not in order and all(before in order for before, after in edges if after == one)
        ]
        _require(ready, "the graph has a cycle")
        order.append(ready[0])
    return order


def _read(node: Any) -> ReadLaunch | ReadMemset | ReadCopy:
    kind = ok(cu.cuGraphNodeGetType(node))
    if kind == Node.CU_GRAPH_NODE_TYPE_KERNEL:
        return _launch(node)
    if kind == Node.CU_GRAPH_NODE_TYPE_MEMCPY:
        return _copy(node)
    _require(kind == Node.CU_GRAPH_NODE_TYPE_MEMSET, kind)
    params = ok(cu.cuGraphMemsetNodeGetParams(node))
    return ReadMemset(
        address=int(params.dst),
        value=params.value,
        element_bytes=params.elementSize,
        width=params.width,
        height=params.height,
        pitch=params.pitch,
    )


def _copy(node: Any) -> ReadCopy:
    params = ok(cu.cuGraphMemcpyNodeGetParams(node))
    _require((params.Height, params.Depth) == (1, 1), "a copy of more than one row")
    return ReadCopy(int(params.dstDevice), int(params.srcDevice), params.WidthInBytes)


def _launch(node: Any) -> ReadLaunch:
    params = ok(cu.cuGraphKernelNodeGetParams(node))
    kernel = cu.CUkernel(int(params.kern))
    offsets, values = [], []
    addresses = ctypes.cast(int(params.kernelParams), ctypes.POINTER(ctypes.c_void_p))
    for ordinal in range(_MOST):
        status, offset, size = cu.cuKernelGetParamInfo(kernel, ordinal)
        if status != cu.CUresult.CUDA_SUCCESS:
            break
        offsets.append(int(offset))
        values.append(ctypes.string_at(addresses[ordinal], int(size)))

    def attribute(name: str) -> Any:
        return ok(cu.cuGraphKernelNodeGetAttribute(node, getattr(Id, f"CU_LAUNCH_ATTRIBUTE_{name}")))

    return ReadLaunch(
        symbol=ok(cu.cuKernelGetName(kernel)).decode(),
        grid=(params.gridDimX, params.gridDimY, params.gridDimZ),
        block=(params.blockDimX, params.blockDimY, params.blockDimZ),
        dynamic_smem_bytes=params.sharedMemBytes,
        offsets=tuple(offsets),
        parameters=tuple(values),
        cluster=_extents(attribute("CLUSTER_DIMENSION").clusterDim),
        cooperative=bool(attribute("COOPERATIVE").cooperative),
        priority=attribute("PRIORITY").priority,
        carveout=attribute("PREFERRED_SHARED_MEMORY_CARVEOUT").sharedMemCarveout,
        scheduling_policy=int(
            attribute("CLUSTER_SCHEDULING_POLICY_PREFERENCE").clusterSchedulingPolicyPreference
        ),
        mem_sync_domain=int(attribute("MEM_SYNC_DOMAIN").memSyncDomain),
        window=_window(attribute("ACCESS_POLICY_WINDOW").accessPolicyWindow),
    )


def _extents(dims: Any) -> tuple[int, int, int]:
    return (dims.x, dims.y, dims.z)


def _window(window: Any) -> Window | None:
    if not window.num_bytes:
        return None
    return Window(
        int(window.base_ptr), window.num_bytes, window.hitRatio, int(window.hitProp), int(window.missProp)
    )
