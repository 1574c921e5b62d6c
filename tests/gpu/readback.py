"""What a captured launch really is, read back from its graph node by the driver.

Sources: CUDA Driver API, "Graph Management" (``cuGraphKernelNodeGetParams``) and "Library Management"
(``cuKernelGetName``, ``cuKernelGetParamInfo``).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from cuda.bindings import driver as cu

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class ReadLaunch:
    """One kernel node."""

    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    offsets: tuple[int, ...]
    parameters: tuple[bytes, ...]


def ok(result: tuple[Any, ...]) -> Any:
    """Return what a driver call returned, or fail."""
    status, *values = result
    assert status == cu.CUresult.CUDA_SUCCESS, status
    return values[0] if len(values) == 1 else values


def captured(call: Callable[[], Any]) -> tuple[list[ReadLaunch], torch.cuda.CUDAGraph, Any]:
    """Capture a call; return its kernel nodes, the instantiated graph, and what the call returned."""
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        result = call()
    raw = cu.CUgraph(graph.raw_cuda_graph())
    nodes = ok(cu.cuGraphGetNodes(raw, 64))
    kernels = [node for node in nodes[0][: nodes[1]] if ok(cu.cuGraphNodeGetType(node)) == 0]
    graph.instantiate()
    return [_read(node) for node in kernels], graph, result


def _read(node: Any) -> ReadLaunch:
    params = ok(cu.cuGraphKernelNodeGetParams(node))
    kernel = cu.CUkernel(int(params.kern))
    offsets, values = [], []
    addresses = ctypes.cast(int(params.kernelParams), ctypes.POINTER(ctypes.c_void_p))
    for ordinal in range(64):
        status, offset, size = cu.cuKernelGetParamInfo(kernel, ordinal)
        if status != cu.CUresult.CUDA_SUCCESS:
            break
        offsets.append(int(offset))
        values.append(ctypes.string_at(addresses[ordinal], int(size)))
    return ReadLaunch(
        symbol=ok(cu.cuKernelGetName(kernel)).decode(),
        grid=(params.gridDimX, params.gridDimY, params.gridDimZ),
        block=(params.blockDimX, params.blockDimY, params.blockDimZ),
        dynamic_smem_bytes=params.sharedMemBytes,
        offsets=tuple(offsets),
        parameters=tuple(values),
    )
