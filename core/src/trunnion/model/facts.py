"""Facts of a device, as expressions: what a grid, a block's shared memory or a workspace is sized by, and no call says.

A fact has its value once the device of a call is known, where the call runs: it is read once for each device and
program. So it stands wherever an expression is computed after that, in a launch, in what a launch passes, in a
workspace and in a check; the shapes and strides of tensors, by which a caller goes, are known before.

Names are those of the driver's ``CUdevice_attribute``, in lower case (CUDA Driver API, "Data types used by CUDA
driver").
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from trunnion.errors import ExprError
from trunnion.messages import describe, suggestion
from trunnion.model.expr import Expr
from trunnion.model.fields import integer, members, text
from trunnion.model.interval import Interval
from trunnion.model.launch_limits import MAX_BLOCK, MAX_SMEM, MAX_THREADS
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ATTRIBUTES", "Attribute", "Device", "DeviceFact", "Fact", "Occupancy", "device", "occupancy"]

_MOST = 2**31 - 1
"""The driver gives every fact as an ``int``."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is known of a fact before any device."""

    number: int
    """``CUdevice_attribute``."""

    least: int
    """The least value that a device can have; one that answers less is refused."""


ATTRIBUTES: Final[Mapping[str, Attribute]] = MappingProxyType(
    {
        "multiprocessor_count": Attribute(16, 1),
        "warp_size": Attribute(10, 1),
        "max_threads_per_block": Attribute(1, 1),
        "max_threads_per_multiprocessor": Attribute(39, 1),
        "max_blocks_per_multiprocessor": Attribute(106, 1),
        "max_registers_per_block": Attribute(12, 1),
        "max_registers_per_multiprocessor": Attribute(82, 1),
        "max_shared_memory_per_block": Attribute(8, 0),
        "max_shared_memory_per_block_optin": Attribute(97, 0),
        "max_shared_memory_per_multiprocessor": Attribute(81, 0),
        "reserved_shared_memory_per_block": Attribute(111, 0),
        "l2_cache_size": Attribute(38, 0),
        "max_persisting_l2_cache_size": Attribute(108, 0),
        "compute_capability_major": Attribute(75, 1),
        "compute_capability_minor": Attribute(76, 0),
    }
)
"""The attributes that are facts, by name."""


@dataclass(frozen=True, slots=True)
class Fact(Expr):
    """A number that the device of a call decides."""

    @property
    def spelled(self) -> str:
        """Its text, in JSON and in messages."""
        raise NotImplementedError

    def _seal(self, least: int) -> None:
        for name, value in (("bounds", Interval(least, _MOST)), ("depth", 1), ("nodes", 1)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class DeviceFact(Fact):
    """An attribute of the device (``cuDeviceGetAttribute``); see `Device`."""

    name: str
    """Which, a key of `ATTRIBUTES`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "fact"))
        if self.name not in ATTRIBUTES:
            raise ExprError(_no_fact(self.name), field="fact")
        self._seal(ATTRIBUTES[self.name].least)

    @property
    def spelled(self) -> str:
        """Its text: ``device.multiprocessor_count``."""
        return f"device.{self.name}"


@dataclass(frozen=True, slots=True)
class Occupancy(Fact):
    """The most blocks of a kernel that one multiprocessor holds at once; see `occupancy`, which makes it."""

    kernel: str
    """The kernel, as the program's launches name it."""

    threads: int
    """Threads of a block."""

    dynamic_smem_bytes: int = 0
    """Dynamic shared memory of a block, in bytes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", text(self.kernel, "occupancy.kernel"))
        _constant(self.threads, "occupancy.block", (1, MAX_THREADS))
        _constant(self.dynamic_smem_bytes, "occupancy.dynamic_smem_bytes", (0, MAX_SMEM))
        self._seal(0)

    @property
    def spelled(self) -> str:
        """Its text: ``occupancy("k", 256, 0)``."""
        return f"occupancy({json.dumps(self.kernel)}, {self.threads}, {self.dynamic_smem_bytes})"


def _no_fact(name: str) -> str:
    return f"got {describe(name)}, expected one of {', '.join(ATTRIBUTES)}{suggestion(name, ATTRIBUTES)}"


def _constant(value: object, field: str, limits: tuple[int, int]) -> int:
    """Return a number that is the same in every call.

    Raises
    ------
    ExprError
        If it is an expression.
    ProgramError
        If it is no integer, or outside of the limits.
    """
    if is_a(value, Expr):
        raise ExprError(
            f"got the expression {value}, expected a number: occupancy is read once for each device, when nothing of a "
            "call is known; choose between some: select(eq(n, 0), occupancy(..., 128), occupancy(..., 256))",
            field=field,
        )
    return integer(value, field, *limits)


def occupancy(kernel: str, block: int | Sequence[int], dynamic_smem_bytes: int = 0) -> Occupancy:
    """Return the most blocks of a kernel that one multiprocessor of the device holds at once, as an expression.

    It is what ``cuOccupancyMaxActiveBlocksPerMultiprocessor`` answers where the program runs, for the kernel as it was
    compiled, and once it is allowed that much dynamic shared memory; 0 where the device cannot hold one. Clusters do
    not count, nor does a launch's ``carveout``.

    Parameters
    ----------
    kernel
        A kernel that the program launches, by the name under which it does.
    block
        Threads of a block: one number, or up to three, along x, y, z.
    dynamic_smem_bytes
        Dynamic shared memory of a block, in bytes.

    Raises
    ------
    ExprError
        If block or shared memory is an expression: a fact is read when nothing of a call is known.
    ProgramError
        If a number is not one that a launch may have.

    Examples
    --------
    >>> from trunnion import device, minimum, occupancy, symbols
    >>> (tiles,) = symbols("tiles")
    >>> grid = minimum(tiles, device.multiprocessor_count * occupancy("gemm", 256, 65536))
    """
    field = "occupancy.block"
    extents = (
        (block,) if is_a(block, (int, Expr)) else members(block, field, "an integer, or up to 3 of them")
    )
    if not 1 <= len(extents) <= len(MAX_BLOCK):
        raise ExprError(f"got {len(extents)} extents, expected 1 to 3", field=field)
    threads = 1
    for axis, extent in enumerate(extents):
        threads *= _constant(extent, f"{field}[{axis}]", (1, MAX_BLOCK[axis]))
    return Occupancy(kernel, threads, dynamic_smem_bytes)


class Device:
    """The facts of the device on which a call runs: `trunnion.device` is the one object of this class.

    Each is an expression, at most 2**31 - 1. Sizes of memory are in bytes.
    """

    __slots__ = ()

    multiprocessor_count: Final = DeviceFact("multiprocessor_count")
    """Multiprocessors; at least 1."""

    warp_size: Final = DeviceFact("warp_size")
    """Threads of a warp; at least 1."""

    max_threads_per_block: Final = DeviceFact("max_threads_per_block")
    """The most threads of a block; at least 1."""

    max_threads_per_multiprocessor: Final = DeviceFact("max_threads_per_multiprocessor")
    """The most threads that a multiprocessor holds at once; at least 1."""

    max_blocks_per_multiprocessor: Final = DeviceFact("max_blocks_per_multiprocessor")
    """The most blocks that a multiprocessor holds at once, however small; at least 1."""

    max_registers_per_block: Final = DeviceFact("max_registers_per_block")
    """The most 32-bit registers of a block; at least 1."""

    max_registers_per_multiprocessor: Final = DeviceFact("max_registers_per_multiprocessor")
    """The 32-bit registers of a multiprocessor; at least 1."""

    max_shared_memory_per_block: Final = DeviceFact("max_shared_memory_per_block")
    """The most shared memory of a block that is allowed no more, in bytes."""

    max_shared_memory_per_block_optin: Final = DeviceFact("max_shared_memory_per_block_optin")
    """The most shared memory of a block, static and dynamic, in bytes: what a launch may have."""

    max_shared_memory_per_multiprocessor: Final = DeviceFact("max_shared_memory_per_multiprocessor")
    """The shared memory of a multiprocessor, in bytes."""

    reserved_shared_memory_per_block: Final = DeviceFact("reserved_shared_memory_per_block")
    """The shared memory of a multiprocessor that the driver takes for each block, in bytes."""

    l2_cache_size: Final = DeviceFact("l2_cache_size")
    """The L2 cache, in bytes."""

    max_persisting_l2_cache_size: Final = DeviceFact("max_persisting_l2_cache_size")
    """The most of the L2 cache that can be set aside, in bytes."""

    compute_capability_major: Final = DeviceFact("compute_capability_major")
    """The major number of the compute capability; at least 1."""

    compute_capability_minor: Final = DeviceFact("compute_capability_minor")
    """The minor number of the compute capability."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse a name that is no fact's.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError(f"trunnion.device has no such fact: {_no_fact(name)}")

    def __repr__(self) -> str:
        return "trunnion.device"


device: Final = Device()
"""The facts of the device on which a call runs."""
