"""The facts of a device that a plan is over: by value slots, behind those of its symbols."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AttributeFact", "OccupancyFact", "PlannedFact"]


@dataclass(frozen=True, slots=True)
class AttributeFact:
    """An attribute of the device (``cuDeviceGetAttribute``)."""

    name: str
    """The fact's text, for messages: ``"device.multiprocessor_count"``."""

    attribute: int
    """``CUdevice_attribute``."""

    least: int
    """The least value allowed."""


@dataclass(frozen=True, slots=True)
class OccupancyFact:
    """The most blocks of a kernel that one multiprocessor holds (``cuOccupancyMaxActiveBlocksPerMultiprocessor``)."""

    name: str
    """The fact's text, for messages: ``"occupancy(\\"k\\", 256, 0)"``."""

    kernel: int
    """The kernel's place in the plan."""

    threads: int
    """Threads of a block."""

    dynamic_smem_bytes: int
    """Dynamic shared memory of a block, in bytes, which the kernel is allowed before."""


PlannedFact = AttributeFact | OccupancyFact
"""What a device is asked for, once for a program."""
