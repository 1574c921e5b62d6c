"""What a launch must keep to: its block, registers, grid, shared memory, clusters and cooperation.

Source: CUDA Driver API, Execution Control; the statuses of broken rules are those of an H200 under driver 580,
where they were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.messages import quoted
from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.launch_attributes import ONE_BLOCK
from trunnion.sim.occupancy import (
    LARGEST_CLUSTER,
    PORTABLE_CLUSTER,
    active_blocks,
    active_clusters,
    block_registers,
    bounded_threads,
    largest_cluster,
)
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from trunnion.sim.devices import Device
    from trunnion.sim.launch_attributes import LaunchAttributes
    from trunnion.sim.objects import Kernel

__all__ = ["Shape", "check_launch", "required_cluster"]

_AXES: Final = "XYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a kernel is launched, but for its parameters."""

    kernel: Kernel
    """The kernel."""

    device: Device
    """The device that it runs on."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    smem: int
    """Dynamic shared memory of each block, in bytes."""

    attributes: LaunchAttributes
    """The launch attributes."""


def check_launch(shape: Shape) -> tuple[int, int, int] | None:
    """Check a launch, and return the cluster that it runs with.

    Raises
    ------
    Refusal
        If a rule is broken.
    """
    _check_block(shape)
    _check_registers(shape)
    _check_grid(shape)
    _check_shared_memory(shape)
    cluster = _check_cluster(shape)
    _check_preferred(shape, cluster)
    if shape.attributes.cooperative:
        _check_cooperative(shape, cluster)
    return cluster


def required_cluster(kernel: Kernel, device: Device) -> tuple[int, int, int] | None:
    """Return the only cluster that a kernel takes, from its image or its attributes; None if there is none."""
    if kernel.info.cluster is not None:
        return kernel.info.cluster
    width, height, depth = (
        kernel.attribute(device, attribute)
        for attribute in (
            FunctionAttribute.REQUIRED_CLUSTER_WIDTH,
            FunctionAttribute.REQUIRED_CLUSTER_HEIGHT,
            FunctionAttribute.REQUIRED_CLUSTER_DEPTH,
        )
    )
    return (width, height, depth) if width or height or depth else None


def _check_block(shape: Shape) -> None:
    info = shape.kernel.info
    for axis, threads in enumerate(shape.block):
        limit = shape.device.attribute(DeviceAttribute.MAX_BLOCK_DIM_X + axis)
        if not 1 <= threads <= limit:
            raise Refusal(
                Status.INVALID_VALUE, f"blockDim{_AXES[axis]} is {threads}, from 1 to {limit} is allowed"
            )
    total = math.prod(shape.block)
    most = bounded_threads(shape.kernel, shape.device)
    if total > most:
        raise Refusal(Status.INVALID_VALUE, f"a block of {total} threads, {quoted(info.name)} takes {most}")
    if info.required_threads is not None and shape.block != info.required_threads:
        raise Refusal(
            Status.INVALID_VALUE,
            f"a block of {shape.block}, {quoted(info.name)} needs {info.required_threads}",
        )


def _check_registers(shape: Shape) -> None:
    needed = block_registers(shape.kernel, math.prod(shape.block), shape.device)
    limit = shape.device.attribute(DeviceAttribute.MAX_REGISTERS_PER_BLOCK)
    if needed > limit:
        raise Refusal(
            Status.LAUNCH_OUT_OF_RESOURCES,
            f"a block of {math.prod(shape.block)} threads needs {needed} registers, {limit} are there",
        )


def _check_grid(shape: Shape) -> None:
    for axis, blocks in enumerate(shape.grid):
        limit = shape.device.attribute(DeviceAttribute.MAX_GRID_DIM_X + axis)
        if not 1 <= blocks <= limit:
            raise Refusal(
                Status.INVALID_VALUE, f"gridDim{_AXES[axis]} is {blocks}, from 1 to {limit} is allowed"
            )


def _check_shared_memory(shape: Shape) -> None:
    limit = shape.kernel.attribute(shape.device, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
    if shape.smem > limit:
        static = shape.kernel.info.static_smem_bytes
        raise Refusal(
            Status.INVALID_VALUE,
            f"{shape.smem} bytes of dynamic shared memory beside {static} of static, {limit} are allowed; "
            "cuKernelSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES) raises it for one kernel and device",
        )


def _check_cluster(shape: Shape) -> tuple[int, int, int] | None:
    """Return the cluster that the launch runs with, from the launch or from the kernel."""
    own = required_cluster(shape.kernel, shape.device)
    asked = shape.attributes.cluster
    name = shape.kernel.info.name
    if asked is not None and own is not None and asked != own:
        raise Refusal(Status.INVALID_CLUSTER_SIZE, f"a cluster of {asked}, {quoted(name)} needs {own}")
    cluster = asked or own
    if cluster is None:
        return None
    limit = largest_cluster(shape.kernel, shape.device)
    if cluster != ONE_BLOCK and not shape.device.attribute(DeviceAttribute.CLUSTER_LAUNCH):
        raise Refusal(Status.INVALID_CLUSTER_SIZE, "the device has no clusters")
    if not 1 <= math.prod(cluster) <= limit:
        raise Refusal(
            Status.INVALID_CLUSTER_SIZE,
            f"a cluster of {math.prod(cluster)} blocks, from 1 to {limit} is allowed "
            f"(NON_PORTABLE_CLUSTER_SIZE_ALLOWED raises {PORTABLE_CLUSTER} to {LARGEST_CLUSTER})",
        )
    # Where the grid counts clusters, any will do (measured: an H100, driver 580).
    counted = ONE_BLOCK if shape.kernel.info.grid_counts_clusters else cluster
    if any(extent % width for extent, width in zip(shape.grid, counted, strict=True)):
        raise Refusal(Status.INVALID_CLUSTER_SIZE, f"a grid of {shape.grid} is no multiple of {cluster}")
    return cluster


def _check_preferred(shape: Shape, cluster: tuple[int, int, int] | None) -> None:
    """Check the preferred cluster; an H200's driver 580 refuses it alone, and of a cooperative launch (measured)."""
    preferred = shape.attributes.preferred_cluster
    if preferred is None:
        return
    if cluster is None:
        raise Refusal(
            Status.INVALID_CLUSTER_SIZE, f"a preferred cluster of {preferred} without a regular one"
        )
    if shape.attributes.cooperative:
        raise Refusal(Status.NOT_SUPPORTED, "a cooperative launch cannot prefer a cluster")
    if (
        0 in preferred
        or any(wide % width for wide, width in zip(preferred, cluster, strict=True))
        or preferred[2] != cluster[2]
    ):
        raise Refusal(
            Status.INVALID_CLUSTER_SIZE,
            f"a preferred cluster of {preferred}, multiples of {cluster} along x and y are allowed",
        )
    if any(extent % width for extent, width in zip(shape.grid, preferred, strict=True)):
        raise Refusal(
            Status.INVALID_CLUSTER_SIZE, f"a grid of {shape.grid} is no multiple of the preferred {preferred}"
        )
    limit = shape.kernel.info.max_cluster_blocks or LARGEST_CLUSTER
    if math.prod(preferred) > limit:
        raise Refusal(
            Status.INVALID_CLUSTER_SIZE,
            f"a preferred cluster of {math.prod(preferred)} blocks, at most {limit} are allowed",
        )


def _check_cooperative(shape: Shape, cluster: tuple[int, int, int] | None) -> None:
    """Refuse a grid that cannot be resident at once."""
    if not shape.device.attribute(DeviceAttribute.COOPERATIVE_LAUNCH):
        raise Refusal(Status.NOT_SUPPORTED, "the device has no cooperative launches")
    each = active_blocks(shape.kernel, math.prod(shape.block), shape.smem, shape.device)
    if cluster is None:
        limit = each * shape.device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
    else:
        limit = active_clusters(each, cluster, shape.device) * math.prod(cluster)
    if math.prod(shape.grid) > limit:
        raise Refusal(
            Status.COOPERATIVE_LAUNCH_TOO_LARGE,
            f"a cooperative grid of {math.prod(shape.grid)} blocks, {limit} can be resident",
        )
