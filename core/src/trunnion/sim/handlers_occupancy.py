"""Occupancy.

Source: CUDA Driver API, Occupancy; cuda_occupancy.h of the CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.handlers_launch import read_config, resolve
from trunnion.sim.host import put
from trunnion.sim.launch_attributes import decode_attributes
from trunnion.sim.launch_checks import required_cluster
from trunnion.sim.objects import LEGACY_STREAM
from trunnion.sim.occupancy import active_blocks, active_clusters, available_shared_memory, largest_cluster
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

_FLAGS: Final = (0, 1)  # 1: CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE


def _blocks(call: Call, result: int | None, function: int | None, threads: int, smem: int) -> None:
    _blocks_with_flags(call, result, function, threads, smem, 0)


def _blocks_with_flags(
    call: Call, result: int | None, function: int | None, threads: int, smem: int, flags: int
) -> None:
    kernel, stream = resolve(call, function, LEGACY_STREAM)
    if flags not in _FLAGS:
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, 0 and 1 are allowed")
    _check_threads(threads)
    # cuda_occupancy.h, cudaOccMaxBlocksPerSMSmemLimit: a block that the kernel is not allowed is none
    allowed = kernel.attribute(stream.device, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
    count = active_blocks(kernel, threads, smem, stream.device) if smem <= allowed else 0
    put(ctypes.c_int32, result, count, "numBlocks")


def _check_threads(threads: int) -> None:
    if threads < 1:
        raise Refusal(Status.INVALID_VALUE, f"blockSize is {threads}, at least 1 is needed")


def _available(call: Call, result: int | None, function: int | None, blocks: int, threads: int) -> None:
    kernel, stream = resolve(call, function, LEGACY_STREAM)
    _check_threads(threads)
    if blocks < 1:
        raise Refusal(Status.INVALID_VALUE, f"numBlocks is {blocks}, at least 1 is needed")
    nbytes = available_shared_memory(kernel, threads, blocks, stream.device)
    if nbytes is None:
        raise Refusal(
            Status.INVALID_VALUE, f"a multiprocessor does not hold {blocks} blocks of {threads} threads"
        )
    put(ctypes.c_size_t, result, nbytes, "dynamicSmemSize")


def _clusters(call: Call, result: int | None, function: int | None, config: int | None) -> None:
    request = read_config(call, config, function)
    kernel, stream = resolve(call, function, request.stream or LEGACY_STREAM)
    attributes = decode_attributes(request.attributes, stream.device, call.state.driver_version)
    own = required_cluster(kernel, stream.device)
    cluster = attributes.cluster or own
    if cluster is None or (own is not None and cluster != own) or 0 in cluster:
        raise Refusal(Status.INVALID_VALUE, f"a cluster of {cluster}, the kernel's own is {own}")
    if math.prod(cluster) > largest_cluster(kernel, stream.device):
        raise Refusal(Status.INVALID_CLUSTER_SIZE, f"a cluster of {math.prod(cluster)} blocks")
    each = active_blocks(kernel, math.prod(request.block), request.smem, stream.device)
    put(ctypes.c_int32, result, active_clusters(each, cluster, stream.device), "numClusters")


def _potential(call: Call, result: int | None, function: int | None, config: int | None) -> None:
    request = replace(
        read_config(call, config, function), attributes=()
    )  # the documentation: clusters are ignored
    kernel, stream = resolve(call, function, request.stream or LEGACY_STREAM)
    own = required_cluster(kernel, stream.device)
    if not stream.device.attribute(DeviceAttribute.CLUSTER_LAUNCH):
        raise Refusal(Status.NOT_SUPPORTED, "the device has no clusters")
    each = active_blocks(kernel, math.prod(request.block), request.smem, stream.device)
    size = math.prod(own) if own is not None else largest_cluster(kernel, stream.device)
    while own is None and size > 1 and not active_clusters(each, (size, 1, 1), stream.device):
        size -= 1
    put(ctypes.c_int32, result, size if each else 0, "clusterSize")


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuOccupancyMaxActiveBlocksPerMultiprocessor": _blocks,
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": _blocks_with_flags,
        "cuOccupancyAvailableDynamicSMemPerBlock": _available,
        "cuOccupancyMaxActiveClusters": _clusters,
        "cuOccupancyMaxPotentialClusterSize": _potential,
    }
)
"""The handlers, by exported symbol."""
