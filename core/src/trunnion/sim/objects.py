"""What handles of the simulated driver stand for: contexts, streams, events, libraries, kernels."""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trunnion.image.target import can_assemble, can_run, virtual_arch
from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.graph import Edge, GraphNode, NodeKind
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from trunnion.image import CubinInfo, KernelInfo
    from trunnion.sim.devices import Device
    from trunnion.sim.graph import Graph, Work
    from trunnion.sim.launch_attributes import WindowAttribute

__all__ = [
    "LEGACY_STREAM",
    "PER_THREAD_STREAM",
    "Capture",
    "CaptureMode",
    "CaptureStatus",
    "Context",
    "DeviceVariable",
    "Event",
    "Function",
    "Kernel",
    "Library",
    "Stream",
]

LEGACY_STREAM: Final = 1
"""``CU_STREAM_LEGACY``."""

PER_THREAD_STREAM: Final = 2
"""``CU_STREAM_PER_THREAD``."""


@dataclass(slots=True, eq=False)
class Context:
    """A context: a device's primary one, a green one of it, or one that ``cuCtxCreate`` made."""

    handle: int
    """``CUcontext``."""

    device: Device
    """The device that it belongs to."""

    number: int
    """What ``cuCtxGetId`` returns: no other context of the process has or had it."""

    references: int = 0
    """How often it is retained; at 0 it is destroyed. One that was made has one reference until it is destroyed."""

    primary: Context | None = None
    """The primary context that a green one is of; None for any other."""

    limits: dict[int, int] = field(default_factory=dict)
    """What ``cuCtxSetLimit`` set, by ``CUlimit``."""

    defaults: dict[int, Stream] = field(default_factory=dict, repr=False)
    """The default streams: the legacy one under 0, each thread's own under the thread's number."""

    @property
    def home(self) -> Context:
        """Whose limits and module variables hold here: a green context has those of its primary one.

        Measured on an H100, driver 580.
        """
        return self.primary or self


@dataclass(slots=True, eq=False)
class Stream:
    """A stream; the default streams are streams of their own in each context."""

    handle: int
    """``CUstream``; `LEGACY_STREAM` and `PER_THREAD_STREAM` for the default streams."""

    context: Context
    """The context that it belongs to."""

    number: int
    """What ``cuStreamGetId`` returns: no other stream of the process has or had it."""

    flags: int = 0
    """1 for a stream that does not wait for the legacy stream (``CU_STREAM_NON_BLOCKING``)."""

    priority: int = 0
    """Its priority; a lower number is more urgent."""

    window: WindowAttribute | None = None
    """The access-policy window of its launches that have none of their own."""

    attributes: dict[int, int] = field(default_factory=dict)
    """The other attributes that were set, by ``CUstreamAttrID``."""

    capture: Capture | None = field(default=None, repr=False)
    """The capture that it takes part in."""

    @property
    def device(self) -> Device:
        """The device that it belongs to."""
        return self.context.device

    @property
    def is_legacy(self) -> bool:
        """Whether this is the legacy default stream, which waits for every blocking stream."""
        return self.handle == LEGACY_STREAM

    @property
    def is_blocking(self) -> bool:
        """Whether the legacy default stream waits for this one."""
        return self.flags == 0


@dataclass(slots=True, eq=False)
class Event:
    """An event."""

    handle: int
    """``CUevent``."""

    context: Context
    """The context that it was created in."""

    flags: int
    """``CUevent_flags``."""

    recorded: bool = False
    """Whether it was ever recorded."""

    capture: Capture | None = field(default=None, repr=False)
    """The capture that it was last recorded in; None if that was outside of one."""

    frontier: frozenset[GraphNode] = field(default_factory=frozenset, repr=False)
    """The nodes that a stream waits for which waits for this event, if it was recorded in a capture."""


class CaptureMode(enum.IntEnum):
    """``CUstreamCaptureMode``."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


class CaptureStatus(enum.IntEnum):
    """``CUstreamCaptureStatus``."""

    NONE = 0
    ACTIVE = 1
    INVALIDATED = 2


@dataclass(slots=True, eq=False)
class Capture:
    """One capture sequence, from its begin to its end."""

    number: int
    """What ``cuStreamGetCaptureInfo`` returns: no other capture of the process has or had it."""

    origin: Stream
    """The stream that it was begun on."""

    mode: CaptureMode
    """What it forbids to whom."""

    thread: int
    """The thread that began it."""

    graph: Graph
    """What was captured so far."""

    frontiers: dict[Stream, frozenset[GraphNode]] = field(default_factory=dict)
    """For each stream that takes part, the nodes that its next work waits for."""

    kept: list[object] = field(default_factory=list)
    """Arrays that the last query returned pointers to."""

    problem: str = ""
    """Why the capture is invalidated; empty while it is active."""

    @property
    def status(self) -> CaptureStatus:
        """Active or invalidated."""
        return CaptureStatus.INVALIDATED if self.problem else CaptureStatus.ACTIVE

    def add(self, handle: int, stream: Stream, work: Work) -> GraphNode:
        """Append a node behind all that a stream waits for, and let the stream wait for it."""
        edges = tuple(
            Edge(source, programmatic=work.programmatic and source.kind is NodeKind.KERNEL)
            for source in self.graph.nodes
            if source in self.frontiers[stream]
        )
        node = GraphNode(handle, work, edges)
        self.graph.nodes.append(node)
        self.frontiers[stream] = frozenset((node,))
        return node

    def join(self, stream: Stream, frontier: frozenset[GraphNode]) -> None:
        """Let a stream wait for nodes, and take part from now on."""
        self.frontiers[stream] = self.frontiers.get(stream, frozenset()) | frontier
        stream.capture = self

    def unjoined(self) -> list[Stream]:
        """Return the streams whose last work the origin stream does not wait for."""
        reached: set[GraphNode] = set()
        for node in self.frontiers[self.origin]:
            reached |= {node} | node.ancestors()
        return [stream for stream, frontier in self.frontiers.items() if not frontier <= reached]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceVariable:
    """A module variable of a library, as it is in one context of a device."""

    name: str
    """The exact symbol name."""

    device: int
    """The device's ordinal."""

    address: int
    """The first byte."""

    nbytes: int
    """How many bytes."""

    buffer: memoryview = field(repr=False)
    """What owns the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """A loaded image."""

    handle: int
    """``CUlibrary``."""

    sha256: str
    """Of the image's bytes, hexadecimal."""

    info: CubinInfo
    """What the image says about itself."""

    target: str | None = None
    """The least architecture that PTX needs; None for a cubin."""

    kernels: dict[str, Kernel] = field(default_factory=dict, repr=False)
    """Its kernels by exact symbol name."""

    variables: dict[tuple[str, int], DeviceVariable] = field(default_factory=dict, repr=False)
    """Its variables, by exact symbol name and the handle of the context whose they are."""

    def runs_on(self, device: Device) -> bool:
        """Whether a device can run it."""
        capability, target = device.compute_capability, self.target
        return can_run(self.info.arch, capability) if target is None else can_assemble(target, capability)

    def check_runs_on(self, *devices: Device) -> None:
        """Require that some of the devices can run it.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_NO_BINARY_FOR_GPU``, if none can.
        """
        if any(map(self.runs_on, devices)):
            return
        have = " and ".join(dict.fromkeys(device.arch.name for device in devices))
        raise Refusal(
            Status.NO_BINARY_FOR_GPU,
            f"the image is for {virtual_arch(self.target) if self.target else self.info.arch}, the device is {have}",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel of a library; it serves every device."""

    handle: int
    """``CUkernel``."""

    library: Library
    """The library that it belongs to."""

    info: KernelInfo
    """What the image says about it."""

    attributes: dict[tuple[int, int], int] = field(default_factory=dict)
    """What ``cuKernelSetAttribute`` set, by (device, attribute)."""

    functions: dict[int, Function] = field(default_factory=dict, repr=False)
    """The kernel's function in each device's context."""

    names: list[ctypes.Array[ctypes.c_char]] = field(default_factory=list, repr=False)
    """The name as a C string, once somebody asked for it."""

    def c_name(self) -> int:
        """Return the address of the name as a C string, which lives as long as the kernel."""
        if not self.names:
            self.names.append(ctypes.create_string_buffer(self.info.name.encode("utf-8", "surrogateescape")))
        return ctypes.addressof(self.names[0])

    def attribute(self, device: Device, attribute: FunctionAttribute) -> int:
        """Return what was set, or what holds from the start."""
        function = self.functions.get(device.ordinal)
        # cuFuncSetAttribute goes before cuKernelSetAttribute, whichever came first
        value = None if function is None else function.attributes.get(attribute)
        if value is None:
            value = self.attributes.get((device.ordinal, attribute))
        return self.initial(device, attribute) if value is None else value

    def initial(self, device: Device, attribute: FunctionAttribute) -> int:
        """Return the value of a settable attribute that nobody set."""
        if attribute is FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            static, portable = self.info.static_smem_bytes, DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK
            if static > device.attribute(portable):  # measured: an H100, driver 580
                portable = DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
            return device.attribute(portable) - static
        return -1 if attribute is FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT else 0


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A kernel in one device's context."""

    handle: int
    """``CUfunction``."""

    kernel: Kernel
    """The kernel."""

    device: Device
    """The device whose context it belongs to."""

    attributes: dict[int, int] = field(default_factory=dict)
    """What ``cuFuncSetAttribute`` set, by attribute."""
