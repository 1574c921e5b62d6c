"""Launches.

Source: CUDA Driver API, Execution Control; the statuses of broken rules are those of an H200 under driver
580.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute, FunctionAttribute, LaunchAttributeStruct, LaunchConfigStruct
from trunnion.sim.bodies import KernelCall
from trunnion.sim.host import HostReader
from trunnion.sim.launch_attributes import LaunchAttributes, decode_attributes
from trunnion.sim.state import Function, Kernel
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Launched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.devices import Device

__all__ = ["HANDLERS"]

_AXES: Final = "XYZ"
_PORTABLE_CLUSTER: Final = 8
_LARGEST_CLUSTER: Final = 16
_MAX_ATTRIBUTES: Final = 1024
_REGISTERS_TOGETHER: Final = 8  # of one thread, so 256 of a warp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A launch, whichever entry point it came by."""

    function: int | None
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int
    stream: int
    parameters: int | None
    extra: int | None


def _launch(  # noqa: PLR0913, PLR0917 - the driver's own parameters
    call: Call,
    function: int | None,
    grid_x: int,
    grid_y: int,
    grid_z: int,
    block_x: int,
    block_y: int,
    block_z: int,
    smem: int,
    stream: int | None,
    parameters: int | None,
    extra: int | None,
) -> None:
    request = _Request(
        function=function,
        grid=(grid_x, grid_y, grid_z),
        block=(block_x, block_y, block_z),
        smem=smem,
        stream=call.stream(stream),
        parameters=parameters,
        extra=extra,
    )
    _start(call, request, ())


def _launch_ex(
    call: Call, config: int | None, function: int | None, parameters: int | None, extra: int | None
) -> None:
    with HostReader() as reader:
        raw = LaunchConfigStruct.from_buffer_copy(
            reader.read(config, ctypes.sizeof(LaunchConfigStruct), "config")
        )
        if raw.numAttrs > _MAX_ATTRIBUTES:
            raise Refusal(Status.INVALID_VALUE, f"numAttrs is {raw.numAttrs}")
        nbytes = ctypes.sizeof(LaunchAttributeStruct) * raw.numAttrs
        attributes = (LaunchAttributeStruct * raw.numAttrs).from_buffer_copy(
            reader.read(raw.attrs, nbytes, "config.attrs")
        )
    request = _Request(
        function=function,
        grid=(raw.gridDimX, raw.gridDimY, raw.gridDimZ),
        block=(raw.blockDimX, raw.blockDimY, raw.blockDimZ),
        smem=raw.sharedMemBytes,
        stream=call.stream(raw.hStream),
        parameters=parameters,
        extra=extra,
    )
    _start(call, request, tuple(attributes))


def _start(call: Call, request: _Request, raw: tuple[LaunchAttributeStruct, ...]) -> None:
    kernel, device = _resolve(call, request)
    attributes = decode_attributes(raw, device)
    _check_block(request, kernel, device)
    _check_registers(request, kernel, device)
    _check_grid(request, device)
    _check_shared_memory(request, kernel, device)
    cluster = _cluster(request, kernel, device, attributes)
    if attributes.cooperative:
        _check_cooperative(request, device)
    event = Launched(
        kernel=kernel.info.name,
        library=kernel.library.handle,
        device=device.ordinal,
        stream=request.stream,
        grid=request.grid,
        block=request.block,
        cluster=cluster,
        dynamic_smem_bytes=request.smem,
        parameters=_parameters(request, kernel),
        attributes=attributes,
    )
    call.state.trace.add(event)
    body = call.state.bodies.get(event.kernel)
    if body is not None:
        body(
            KernelCall(
                kernel=event.kernel,
                device=event.device,
                grid=event.grid,
                block=event.block,
                cluster=event.cluster,
                dynamic_smem_bytes=event.dynamic_smem_bytes,
                parameters=event.parameters,
                memory=call.state.memory.on(event.device),
            )
        )


def _resolve(call: Call, request: _Request) -> tuple[Kernel, Device]:
    """Return the kernel and the device: the stream's, or for a default stream the current context's."""
    found = call.state.handled.get(request.function or 0)
    if not isinstance(found, (Kernel, Function)):
        raise Refusal(Status.INVALID_HANDLE, f"{request.function or 0:#x} is no live kernel or function")
    device = call.state.stream_device(request.stream)
    if isinstance(found, Kernel):
        return found, device
    if found.device != device:
        raise Refusal(
            Status.INVALID_HANDLE,
            f"a function of device {found.device.ordinal} on a stream of device {device.ordinal}",
        )
    return found.kernel, device


def _check_block(request: _Request, kernel: Kernel, device: Device) -> None:
    for axis, threads in enumerate(request.block):
        limit = device.attribute(DeviceAttribute.MAX_BLOCK_DIM_X + axis)
        if not 1 <= threads <= limit:
            raise Refusal(
                Status.INVALID_VALUE, f"blockDim{_AXES[axis]} is {threads}, from 1 to {limit} is allowed"
            )
    total = math.prod(request.block)
    most = device.attribute(DeviceAttribute.MAX_THREADS_PER_BLOCK)
    if kernel.info.max_threads is not None:
        most = min(most, math.prod(kernel.info.max_threads))
    if total > most:
        raise Refusal(Status.INVALID_VALUE, f"a block of {total} threads, {kernel.info.name!a} takes {most}")
    required = kernel.info.required_threads
    if required is not None and request.block != required:
        raise Refusal(
            Status.INVALID_VALUE, f"a block of {request.block}, {kernel.info.name!a} needs {required}"
        )


def _check_registers(request: _Request, kernel: Kernel, device: Device) -> None:
    """Refuse a block that needs more registers than there are; each warp gets whole units of them."""
    if kernel.info.registers is None:
        return
    width = device.attribute(DeviceAttribute.WARP_SIZE)
    warps = -(-math.prod(request.block) // width)
    each = -(-kernel.info.registers // _REGISTERS_TOGETHER) * _REGISTERS_TOGETHER
    limit = device.attribute(DeviceAttribute.MAX_REGISTERS_PER_BLOCK)
    if warps * width * each > limit:
        raise Refusal(
            Status.LAUNCH_OUT_OF_RESOURCES,
            f"a block of {warps} warps with {each} registers for each thread, {limit} registers are there",
        )


def _check_grid(request: _Request, device: Device) -> None:
    for axis, blocks in enumerate(request.grid):
        limit = device.attribute(DeviceAttribute.MAX_GRID_DIM_X + axis)
        if not 1 <= blocks <= limit:
            raise Refusal(
                Status.INVALID_VALUE, f"gridDim{_AXES[axis]} is {blocks}, from 1 to {limit} is allowed"
            )


def _check_shared_memory(request: _Request, kernel: Kernel, device: Device) -> None:
    limit = kernel.attribute(device, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
    if request.smem > limit:
        raise Refusal(
            Status.INVALID_VALUE,
            f"{request.smem} bytes of dynamic shared memory, {limit} are allowed; "
            "cuKernelSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES) raises it for one kernel and device",
        )


def _cluster(
    request: _Request, kernel: Kernel, device: Device, attributes: LaunchAttributes
) -> tuple[int, int, int] | None:
    """Return the cluster that the launch runs with, from the launch or from the kernel."""
    own = kernel.info.cluster
    asked = attributes.cluster
    if asked is not None and own is not None and asked != own:
        raise Refusal(Status.INVALID_CLUSTER_SIZE, f"a cluster of {asked}, {kernel.info.name!a} needs {own}")
    cluster = asked or own
    if cluster is None:
        return None
    blocks = math.prod(cluster)
    free = kernel.attribute(device, FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
    limit = _LARGEST_CLUSTER if free else _PORTABLE_CLUSTER
    if not device.attribute(DeviceAttribute.CLUSTER_LAUNCH):
        raise Refusal(Status.INVALID_CLUSTER_SIZE, "the device has no clusters")
    if not 1 <= blocks <= limit:
        raise Refusal(
            Status.INVALID_CLUSTER_SIZE,
            f"a cluster of {blocks} blocks, from 1 to {limit} is allowed "
            f"(NON_PORTABLE_CLUSTER_SIZE_ALLOWED raises {_PORTABLE_CLUSTER} to {_LARGEST_CLUSTER})",
        )
    if any(extent % width for extent, width in zip(request.grid, cluster, strict=True)):
        raise Refusal(Status.INVALID_CLUSTER_SIZE, f"a grid of {request.grid} is no multiple of {cluster}")
    return cluster


def _check_cooperative(request: _Request, device: Device) -> None:
    """Refuse a grid that cannot be resident at once by its threads, its shared memory or its number of blocks."""
    threads = device.attribute(DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR) // math.prod(request.block)
    blocks = device.attribute(DeviceAttribute.MAX_BLOCKS_PER_MULTIPROCESSOR)
    reserved = device.attribute(DeviceAttribute.RESERVED_SHARED_MEMORY_PER_BLOCK)
    shared = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
    each = min(threads, blocks, shared // (request.smem + reserved))
    limit = each * device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
    if math.prod(request.grid) > limit:
        raise Refusal(
            Status.COOPERATIVE_LAUNCH_TOO_LARGE,
            f"a cooperative grid of {math.prod(request.grid)} blocks, {limit} can be resident",
        )


def _parameters(request: _Request, kernel: Kernel) -> tuple[bytes, ...]:
    """Return each parameter's bytes: as many as the image's table says, from where the launch points."""
    table = kernel.info.parameters
    if request.extra is not None:
        status = Status.INVALID_VALUE if request.parameters is not None else Status.NOT_SUPPORTED
        raise Refusal(
            status, "parameters through extra are not simulated, and never allowed beside kernelParams"
        )
    with HostReader() as reader:
        pointers = reader.array(ctypes.c_void_p, request.parameters, len(table), "kernelParams")
        return tuple(
            reader.read(pointer, parameter.size, f"kernelParams[{parameter.ordinal}]")
            for pointer, parameter in zip(pointers, table, strict=True)
        )


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {"cuLaunchKernel": _launch, "cuLaunchKernelEx": _launch_ex}
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
