"""What streams were given to do: the trace's events about launches and memory, which captures take up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trunnion.sim.parameters import Delivered, brief

if TYPE_CHECKING:
    from trunnion.sim.launch_attributes import LaunchAttributes, WindowAttribute

__all__ = ["Launched", "MemoryCopied", "MemorySet"]


@dataclass(frozen=True, slots=True)
class MemorySet:
    """``cuMemsetD8Async`` or one of its kin filled memory."""

    address: int
    """The first byte."""

    value: int
    """The value of one element."""

    itemsize: int
    """Bytes of one element: 1, 2 or 4."""

    count: int
    """How many elements."""

    device: int
    """The device whose stream it ran on."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""

    rows: int = 1
    """How many rows of `count` elements."""

    pitch: int = 0
    """Bytes from one row to the next; 0 where there is one row."""


@dataclass(frozen=True, slots=True)
class MemoryCopied:
    """``cuMemcpyAsync`` or one of its kin copied memory."""

    source: int
    """The first byte that was read."""

    target: int
    """The first byte that was written."""

    nbytes: int
    """How many bytes."""

    direction: str
    """``"HtoD"``, ``"DtoH"``, ``"DtoD"`` or ``"HtoH"``."""

    device: int
    """The device whose stream it ran on."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Launched(Delivered):
    """``cuLaunchKernelEx`` or ``cuLaunchKernel`` started a kernel."""

    library: int
    """The handle of the library that it came from."""

    device: int
    """The device that it ran on."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    cluster: tuple[int, int, int] | None
    """Blocks of one cluster along x, y, z, from the launch or from the kernel itself; None without one."""

    dynamic_smem_bytes: int
    """Dynamic shared memory of each block, in bytes."""

    attributes: LaunchAttributes
    """The launch attributes, decoded."""

    window: WindowAttribute | None = None
    """The access-policy window in force: the launch's, or else the stream's."""

    priority: int = 0
    """The priority in force: the launch's, or else the stream's."""

    __repr__ = brief

    def in_force(self) -> LaunchAttributes:
        """Return the attributes with what came from the kernel and from the stream."""
        return replace(self.attributes, cluster=self.cluster, window=self.window, priority=self.priority)
