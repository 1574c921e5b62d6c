"""Launches.

Source: CUDA Driver API, Execution Control.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.callers import warn
from trunnion.errors import UnknownVariableError
from trunnion.messages import listed, nearest, quoted, shorten
from trunnion.sim.abi import LaunchAttributeStruct, LaunchConfigStruct
from trunnion.sim.bodies import KernelBodyWarning, KernelCall
from trunnion.sim.graph import NodeKind, Work
from trunnion.sim.host import HostReader
from trunnion.sim.launch_attributes import decode_attributes
from trunnion.sim.launch_checks import Shape, check_launch
from trunnion.sim.objects import Function, Kernel, Library, Stream
from trunnion.sim.status import Refusal, Status
from trunnion.sim.submission import submit
from trunnion.sim.trace import Launched
from trunnion.sim.variables import variable_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.objects import Context, DeviceVariable
    from trunnion.sim.state import DriverState

__all__ = ["HANDLERS", "read_config", "resolve"]

_MAX_ATTRIBUTES: Final = 1024
_END, _BUFFER_POINTER, _BUFFER_SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_*


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A launch, whichever entry point it came by."""

    function: int | None
    """``CUfunction``, or a ``CUkernel`` in its place."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    smem: int
    """Dynamic shared memory of each block, in bytes."""

    stream: int
    """The stream's handle."""

    attributes: tuple[LaunchAttributeStruct, ...] = ()
    """The launch attributes."""

    parameters: int | None = None
    """``kernelParams``."""

    extra: int | None = None
    """``extra``."""


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
    request = Request(
        function=function,
        grid=(grid_x, grid_y, grid_z),
        block=(block_x, block_y, block_z),
        smem=smem,
        stream=call.stream(stream),
        parameters=parameters,
        extra=extra,
    )
    _start(call, request)


def _launch_ex(
    call: Call, config: int | None, function: int | None, parameters: int | None, extra: int | None
) -> None:
    _start(call, read_config(call, config, function, parameters, extra))


def read_config(
    call: Call,
    config: int | None,
    function: int | None,
    parameters: int | None = None,
    extra: int | None = None,
) -> Request:
    """Return what a ``CUlaunchConfig`` asks for.

    Raises
    ------
    Refusal
        If it cannot be read.
    """
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
    return Request(
        function=function,
        grid=(raw.gridDimX, raw.gridDimY, raw.gridDimZ),
        block=(raw.blockDimX, raw.blockDimY, raw.blockDimZ),
        smem=raw.sharedMemBytes,
        stream=call.stream(raw.hStream),
        attributes=tuple(attributes),
        parameters=parameters,
        extra=extra,
    )


def resolve(call: Call, function: int | None, stream: int) -> tuple[Kernel, Stream]:
    """Return the kernel and the stream: for a default stream, that of the current context.

    Raises
    ------
    Refusal
        If a handle is none, the function belongs to another device than the stream, or that cannot run the kernel.
    """
    found = call.state.handled.get(function or 0)
    if not isinstance(found, (Kernel, Function)):
        raise Refusal(Status.INVALID_HANDLE, f"{function or 0:#x} is no live kernel or function")
    target = call.state.stream(stream)
    if isinstance(found, Kernel):
        found.library.check_runs_on(target.device)
        return found, target
    if found.device is not target.device:
        raise Refusal(
            Status.INVALID_HANDLE,
            f"a function of device {found.device.ordinal} on a stream of device {target.device.ordinal}",
        )
    return found.kernel, target


def _start(call: Call, request: Request) -> None:
    kernel, stream = resolve(call, request.function, request.stream)
    attributes = decode_attributes(request.attributes, stream.device, call.state.driver_version)
    shape = Shape(
        kernel=kernel,
        device=stream.device,
        grid=request.grid,
        block=request.block,
        smem=request.smem,
        attributes=attributes,
    )
    window = attributes.window or stream.window
    event = Launched(
        kernel=kernel.info.name,
        library=kernel.library.handle,
        device=stream.device.ordinal,
        stream=request.stream,
        grid=request.grid,
        block=request.block,
        cluster=check_launch(shape),
        dynamic_smem_bytes=request.smem,
        parameters=_parameters(request, kernel),
        attributes=attributes,
        # a window of no bytes is how a stream's window is taken away
        window=window if window is not None and window.nbytes else None,
        priority=stream.priority if attributes.priority is None else attributes.priority,
    )
    work = Work(
        NodeKind.KERNEL,
        event,
        lambda: _run(call.state, event, stream.context),
        handle=request.function or 0,
        programmatic=bool(attributes.programmatic_stream_serialization),
    )
    submit(call.state, stream, work)


def _run(state: DriverState, event: Launched, context: Context) -> None:
    body = state.bodies.get(event.kernel)
    if body is None:
        _warn_of_no_body(state, event.kernel)
        return
    state.run_bodies.add(event.kernel)
    body(
        KernelCall(
            kernel=event.kernel,
            device=event.device,
            grid=event.grid,
            block=event.block,
            cluster=event.cluster,
            dynamic_smem_bytes=event.dynamic_smem_bytes,
            parameters=event.parameters,
            memory=state.memory.on(event.device),
            attributes=event.attributes,
            window=event.window,
            priority=event.priority,
            find_variable=functools.partial(_variable, state, event, context),
        )
    )


def _variable(state: DriverState, event: Launched, context: Context, name: str) -> DeviceVariable:
    """Return a module variable of a kernel's library, in the context where it runs."""
    library = state.get(Library, event.library)
    if library.info.variable(name) is None:
        raise UnknownVariableError(name, (one.name for one in library.info.variables))
    return variable_in(state, library, name, context)


def _warn_of_no_body(state: DriverState, kernel: str) -> None:
    """Say, once for each kernel, that nothing was computed, if a body waits under a name that no kernel has."""
    waiting: Iterable[str] = state.bodies.keys() - state.run_bodies
    if not waiting or kernel in state.bodiless:
        return
    images = [one.info for one in state.handled.copy().values() if isinstance(one, Library)]
    waiting = sorted(set(waiting) - {known.name for image in images for known in image.kernels})
    if not waiting:
        return
    state.bodiless.add(kernel)
    meant = nearest(kernel, waiting) or next((name for name in waiting if name in kernel), "")
    warn(
        f"kernel {quoted(kernel)} was launched on the simulated driver and has no body, so it computed nothing; there "
        f"is a body for {listed(waiting)}, which no image has"
        + (f"; did you mean {quoted(kernel)} by {shorten(meant)}?" if meant else "")
        + "; register_body takes a kernel's exact symbol",
        KernelBodyWarning,
    )


def _parameters(request: Request, kernel: Kernel) -> tuple[bytes, ...]:
    """Return each parameter's bytes: as many as the image's table says, from where the launch points."""
    table = kernel.info.parameters
    if request.extra is not None:
        if request.parameters is not None:
            raise Refusal(Status.INVALID_VALUE, "kernelParams and extra exclude each other")
        return _packed_parameters(request.extra, kernel)
    with HostReader() as reader:
        pointers = reader.array(ctypes.c_void_p, request.parameters, len(table), "kernelParams")
        return tuple(
            reader.read(pointer, parameter.size, f"kernelParams[{parameter.ordinal}]")
            for pointer, parameter in zip(pointers, table, strict=True)
        )


def _packed_parameters(extra: int, kernel: Kernel) -> tuple[bytes, ...]:
    """Return each parameter's bytes from the one buffer that ``extra`` names."""
    needed = kernel.info.parameter_bytes
    with HostReader() as reader:
        named: dict[int, int] = {}
        at = extra
        while (key := reader.array(ctypes.c_void_p, at, 1, "extra")[0]) != _END:
            if key not in (_BUFFER_POINTER, _BUFFER_SIZE):
                raise Refusal(Status.INVALID_VALUE, f"extra holds {key:#x}, no CU_LAUNCH_PARAM")
            named[key] = reader.array(ctypes.c_void_p, at + 8, 1, "extra")[0]
            at += 16
        if set(named) != {_BUFFER_POINTER, _BUFFER_SIZE}:
            raise Refusal(
                Status.INVALID_VALUE,
                "extra needs CU_LAUNCH_PARAM_BUFFER_POINTER and CU_LAUNCH_PARAM_BUFFER_SIZE",
            )
        (size,) = reader.array(ctypes.c_size_t, named[_BUFFER_SIZE], 1, "the buffer's size")
        if size < needed:
            raise Refusal(
                Status.INVALID_VALUE,
                f"a parameter buffer of {size} bytes, {quoted(kernel.info.name)} takes {needed}",
            )
        data = reader.read(named[_BUFFER_POINTER], needed, "the parameter buffer")
    return tuple(data[p.offset : p.offset + p.size] for p in kernel.info.parameters)


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {"cuLaunchKernel": _launch, "cuLaunchKernelEx": _launch_ex}
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
