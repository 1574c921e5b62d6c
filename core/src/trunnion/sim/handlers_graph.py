"""Graphs: what a capture recorded, read back, instantiated and launched.

Source: CUDA Driver API, Graph Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.sim.abi import LaunchAttributeValue
from trunnion.sim.abi_graph import EdgeDataStruct, KernelNodeParamsStruct, MemsetNodeParamsStruct
from trunnion.sim.graph import Edge, Graph, GraphExec, GraphNode
from trunnion.sim.host import HostReader, put
from trunnion.sim.launch_attributes import encode_attribute
from trunnion.sim.objects import Function
from trunnion.sim.status import Refusal, Status
from trunnion.sim.submission import graph_work, submit
from trunnion.sim.trace import GraphInstantiated, Launched, MemorySet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS", "instantiate"]

_VERSION_1_BYTES: Final = KernelNodeParamsStruct.kern.offset
_INSTANTIATE_FLAGS: Final = (0, 1, 2, 8)  # auto-free, upload and node priorities; 4 is for device launches
_PROGRAMMATIC_PORT, _PROGRAMMATIC_TYPE = 1, 1


def _answer(handles: Sequence[int], outputs: Sequence[int | None], count: int | None) -> int:
    """Return how many entries the caller has room for, after writing how many there are."""
    with HostReader() as reader:
        (room,) = reader.array(ctypes.c_size_t, count, 1, "the number of entries")
    wanted = any(output is not None for output in outputs)
    put(ctypes.c_size_t, count, min(room, len(handles)) if wanted else len(handles), "the number of entries")
    return int(room)


def _fill(target: int | None, handles: Sequence[int], room: int) -> None:
    if target is not None:
        padded = [*handles, *[0] * room][:room]
        array = (ctypes.c_void_p * room)(*padded)
        ctypes.memmove(target, array, ctypes.sizeof(array))


def _get_nodes(call: Call, handle: int | None, nodes: int | None, count: int | None) -> None:
    found = [node.handle for node in call.state.get(Graph, handle).nodes]
    _fill(nodes, found, _answer(found, (nodes,), count))


def _get_root_nodes(call: Call, handle: int | None, nodes: int | None, count: int | None) -> None:
    found = [node.handle for node in call.state.get(Graph, handle).nodes if not node.edges]
    _fill(nodes, found, _answer(found, (nodes,), count))


def _edges(
    edges: Sequence[tuple[Edge, GraphNode]], outputs: tuple[int | None, ...], count: int | None
) -> None:
    """Answer a query of edges; the outputs are for sources, targets and data."""
    sources, targets, data = outputs
    if data is None and any(edge.programmatic for edge, _ in edges) and sources is not None:
        raise Refusal(Status.LOSSY_QUERY, "an edge is programmatic, and there is no room for edgeData")
    if data is not None and sources is None:
        raise Refusal(Status.INVALID_VALUE, "edgeData needs the nodes")
    handles = [edge.source.handle for edge, _ in edges]
    room = _answer(handles, (sources, targets), count)
    _fill(sources, handles, room)
    _fill(targets, [node.handle for _, node in edges], room)
    if data is not None:
        array = (EdgeDataStruct * room)()
        for row, (edge, _) in zip(array, edges, strict=False):
            if edge.programmatic:
                row.from_port, row.type = _PROGRAMMATIC_PORT, _PROGRAMMATIC_TYPE
        ctypes.memmove(data, array, ctypes.sizeof(array))


def _get_edges(
    call: Call, handle: int | None, sources: int | None, targets: int | None, count: int | None
) -> None:
    _get_edges_v2(call, handle, sources, targets, None, count)


def _get_edges_v2(
    call: Call,
    handle: int | None,
    sources: int | None,
    targets: int | None,
    data: int | None,
    count: int | None,
) -> None:
    graph = call.state.get(Graph, handle)
    if (sources is None) is not (targets is None):
        raise Refusal(Status.INVALID_VALUE, "from and to must both be null, or neither")
    edges = [(edge, node) for node in graph.nodes for edge in node.edges]
    _edges(edges, (sources, targets, data), count)


def _get_dependencies(call: Call, handle: int | None, sources: int | None, count: int | None) -> None:
    _get_dependencies_v2(call, handle, sources, None, count)


def _get_dependencies_v2(
    call: Call, handle: int | None, sources: int | None, data: int | None, count: int | None
) -> None:
    node = call.state.get(GraphNode, handle)
    _edges([(edge, node) for edge in node.edges], (sources, None, data), count)


def _node_type(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_int32, result, call.state.get(GraphNode, handle).kind, "type")


def _event(call: Call, handle: int | None, kind: Any) -> tuple[GraphNode, Any]:
    node = call.state.get(GraphNode, handle)
    if not isinstance(node.event, kind):
        raise Refusal(Status.INVALID_VALUE, f"the node is of kind {node.kind.name}")
    return node, node.event


def _kernel_params(call: Call, handle: int | None) -> KernelNodeParamsStruct:
    node, event = _event(call, handle, Launched)
    buffers = [ctypes.create_string_buffer(data, len(data)) for data in event.parameters]
    pointers = (ctypes.c_void_p * max(1, len(buffers)))(*(ctypes.addressof(buffer) for buffer in buffers))
    node.kept.extend((buffers, pointers))
    found = call.state.handled.get(node.work.handle)
    by_function = isinstance(found, Function)
    return KernelNodeParamsStruct(
        node.work.handle if by_function else None,
        *event.grid,
        *event.block,
        event.dynamic_smem_bytes,
        ctypes.addressof(pointers),
        None,
        None if by_function else node.work.handle,
        call.state.contexts[event.device].handle,
    )


def _write(result: int | None, structure: ctypes.Structure | ctypes.Union, nbytes: int) -> None:
    if not result:
        raise Refusal(Status.INVALID_VALUE, "the output is a null pointer")
    ctypes.memmove(result, ctypes.byref(structure), nbytes)


def _kernel_params_v1(call: Call, handle: int | None, result: int | None) -> None:
    params = _kernel_params(call, handle)
    if not params.func:
        raise Refusal(
            Status.INVALID_VALUE, "the node launches a CUkernel, which version 2 of the call returns"
        )
    _write(result, params, _VERSION_1_BYTES)


def _kernel_params_v2(call: Call, handle: int | None, result: int | None) -> None:
    _write(result, _kernel_params(call, handle), ctypes.sizeof(KernelNodeParamsStruct))


def _kernel_attribute(call: Call, handle: int | None, attribute: int, result: int | None) -> None:
    _, event = _event(call, handle, Launched)
    held = event.in_force()
    _write(result, encode_attribute(held, attribute), ctypes.sizeof(LaunchAttributeValue))


def _memset_params(call: Call, handle: int | None, result: int | None) -> None:
    _, event = _event(call, handle, MemorySet)
    params = MemsetNodeParamsStruct(
        event.address, event.pitch, event.value, event.itemsize, event.count, event.rows
    )
    _write(result, params, ctypes.sizeof(params))


def instantiate(call: Call, result: int | None, handle: int | None, flags: int) -> None:
    """Handle ``cuGraphInstantiateWithFlags``."""
    graph = call.state.get(Graph, handle)
    if flags & ~sum(_INSTANTIATE_FLAGS):
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, 1, 2 and 8 are simulated")
    executable = GraphExec(call.state.new_handle(), graph.handle, tuple(graph.nodes))
    put(ctypes.c_void_p, result, executable.handle, "phGraphExec")
    call.state.add(executable)
    call.state.trace.add(GraphInstantiated(graph.handle, executable.handle))


def _upload(call: Call, handle: int | None, stream: int | None) -> None:
    call.state.get(GraphExec, handle)
    with call.state.lock:
        call.state.captures.check_waitable(call.state.stream(call.stream(stream)), "cuGraphUpload")


def _launch(call: Call, handle: int | None, stream: int | None) -> None:
    executable = call.state.get(GraphExec, handle)
    target = call.state.stream(call.stream(stream))
    submit(call.state, target, graph_work(call.state, executable, target.device.ordinal, call.stream(stream)))


def _exec_destroy(call: Call, handle: int | None) -> None:
    del call.state.handled[call.state.get(GraphExec, handle).handle]


def _destroy(call: Call, handle: int | None) -> None:
    call.state.forget_graph(call.state.get(Graph, handle))


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuGraphGetNodes": _get_nodes,
        "cuGraphGetRootNodes": _get_root_nodes,
        "cuGraphGetEdges": _get_edges,
        "cuGraphGetEdges_v2": _get_edges_v2,
        "cuGraphNodeGetDependencies": _get_dependencies,
        "cuGraphNodeGetDependencies_v2": _get_dependencies_v2,
        "cuGraphNodeGetType": _node_type,
        "cuGraphKernelNodeGetParams": _kernel_params_v1,
        "cuGraphKernelNodeGetParams_v2": _kernel_params_v2,
        "cuGraphKernelNodeGetAttribute": _kernel_attribute,
        "cuGraphMemsetNodeGetParams": _memset_params,
        "cuGraphInstantiateWithFlags": instantiate,
        "cuGraphUpload": _upload,
        "cuGraphLaunch": _launch,
        "cuGraphExecDestroy": _exec_destroy,
        "cuGraphDestroy": _destroy,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
