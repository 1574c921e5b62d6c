"""How many blocks and clusters of a kernel a device can hold at once.

Source: CUDA C++ Programming Guide, Occupancy Calculator and Thread Block Clusters; the CUDA Driver API, Occupancy,
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__OCCUPANCY.html, and cuda_occupancy.h, which say nothing of
``__launch_bounds__``: the largest block that a kernel was compiled for is asked of a launch alone, as an H100's driver
580 does. The units in which registers and shared memory are given out are those of compute capability 9.0. How many
multiprocessors each processing cluster has differs from one H200 to the next; here it is a fixed, even layout.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute, FunctionAttribute

if TYPE_CHECKING:
    from trunnion.sim.devices import Device
    from trunnion.sim.objects import Kernel

__all__ = [
    "LARGEST_CLUSTER",
    "PORTABLE_CLUSTER",
    "active_blocks",
    "active_clusters",
    "available_shared_memory",
    "block_registers",
    "bounded_threads",
    "largest_block",
    "largest_cluster",
]

PORTABLE_CLUSTER: Final = 8
"""Blocks of a cluster that every device with clusters takes."""

LARGEST_CLUSTER: Final = 16
"""Blocks of a cluster that a kernel takes which allows non-portable sizes."""

_REGISTERS_TOGETHER: Final = 8  # of one thread, so 256 of a warp
_SHARED_TOGETHER: Final = 128  # bytes
_WARPS_TOGETHER: Final = 4  # a multiprocessor has four partitions, and each holds whole warps
_MOST_CLUSTERED: Final = (
    8  # blocks in clusters of one multiprocessor, however small (measured: an H100, driver 580)
)
_MULTIPROCESSORS_TOGETHER: Final = 16  # of one processing cluster


def _warps(threads: int, device: Device) -> int:
    return -(-threads // device.attribute(DeviceAttribute.WARP_SIZE))


def _thread_registers(kernel: Kernel) -> int:
    return -(-(kernel.info.registers or 0) // _REGISTERS_TOGETHER) * _REGISTERS_TOGETHER


def block_registers(kernel: Kernel, threads: int, device: Device) -> int:
    """Return the registers that a block of so many threads takes; each warp gets whole units of them."""
    return _warps(threads, device) * device.attribute(DeviceAttribute.WARP_SIZE) * _thread_registers(kernel)


def bounded_threads(kernel: Kernel, device: Device) -> int:
    """Return the most threads of a block that the device and the kernel's own bounds allow."""
    most = device.attribute(DeviceAttribute.MAX_THREADS_PER_BLOCK)
    bound = kernel.info.max_threads  # of a kernel with only one block a driver says what the device takes
    return most if bound is None else min(most, math.prod(bound))


def largest_block(kernel: Kernel, device: Device) -> int:
    """Return the most threads of a block for which there are registers too."""
    most = bounded_threads(kernel, device)
    each = block_registers(kernel, 1, device)
    if each == 0:
        return most
    warps = device.attribute(DeviceAttribute.MAX_REGISTERS_PER_BLOCK) // each
    return min(most, warps * device.attribute(DeviceAttribute.WARP_SIZE))


def _by_registers(kernel: Kernel, threads: int, device: Device) -> int | None:
    each = _thread_registers(kernel) * device.attribute(DeviceAttribute.WARP_SIZE)
    if each == 0:
        return None
    partition = device.attribute(DeviceAttribute.MAX_REGISTERS_PER_MULTIPROCESSOR) // _WARPS_TOGETHER
    return _WARPS_TOGETHER * (partition // each) // _warps(threads, device)


def active_blocks(kernel: Kernel, threads: int, dynamic_smem_bytes: int, device: Device) -> int:
    """Return how many blocks one multiprocessor holds at once; none, if the device takes no block of so many threads.

    Parameters
    ----------
    kernel
        The kernel.
    threads
        Threads of a block.
    dynamic_smem_bytes
        Dynamic shared memory of a block, in bytes.
    device
        The device.
    """
    if threads > device.attribute(DeviceAttribute.MAX_THREADS_PER_BLOCK):
        return 0
    reserved = device.attribute(DeviceAttribute.RESERVED_SHARED_MEMORY_PER_BLOCK)
    shared = kernel.info.static_smem_bytes + dynamic_smem_bytes + reserved
    shared = -(-shared // _SHARED_TOGETHER) * _SHARED_TOGETHER
    if shared - reserved > device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN):
        return 0
    width = device.attribute(DeviceAttribute.WARP_SIZE)
    resident = device.attribute(DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR) // width
    limits = [
        resident // _warps(threads, device),
        device.attribute(DeviceAttribute.MAX_BLOCKS_PER_MULTIPROCESSOR),
        _by_registers(kernel, threads, device),
    ]
    if shared:
        limits.append(device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) // shared)
    return min(limit for limit in limits if limit is not None)


def available_shared_memory(kernel: Kernel, threads: int, blocks: int, device: Device) -> int | None:
    """Return the most dynamic shared memory, in bytes, with which a multiprocessor holds so many blocks.

    No more than the kernel is allowed; what the driver reserves for each block is not taken off (cuda_occupancy.h,
    cudaOccAvailableDynamicSMemPerBlock). None, if there is no room for so many blocks without any.
    """
    if active_blocks(kernel, threads, 0, device) < blocks:
        return None
    each = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) // blocks
    each = each // _SHARED_TOGETHER * _SHARED_TOGETHER
    allowed = kernel.attribute(device, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return max(0, min(each - kernel.info.static_smem_bytes, allowed))


def largest_cluster(kernel: Kernel, device: Device) -> int:
    """Return how many blocks a cluster of a kernel may have."""
    free = kernel.attribute(device, FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
    limit = LARGEST_CLUSTER if free else PORTABLE_CLUSTER
    own = kernel.info.max_cluster_blocks
    return limit if own is None else min(limit, own)


def active_clusters(blocks_each: int, cluster: tuple[int, int, int], device: Device) -> int:
    """Return how many clusters a device holds at once; a cluster lies within one processing cluster.

    Parameters
    ----------
    blocks_each
        Blocks that one multiprocessor holds.
    cluster
        Blocks of a cluster along x, y, z.
    device
        The device.
    """
    count = device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
    groups = max(1, count // _MULTIPROCESSORS_TOGETHER)
    share, rest = divmod(count, groups)
    sizes = [share + (index < rest) for index in range(groups)]
    held = min(blocks_each, _MOST_CLUSTERED)
    return sum(size * held // math.prod(cluster) for size in sizes)
