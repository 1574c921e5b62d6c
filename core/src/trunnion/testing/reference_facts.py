"""The oracle's word on facts of a device: which attribute each is, and how many blocks a multiprocessor holds.

Its own table and its own count, after the rules of CUDA's occupancy calculator (``cuda_occupancy.h`` of the toolkit;
CUDA C++ Programming Guide, Occupancy Calculator), as far as devices of compute capability 8.0 and later have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion.model.facts import DeviceFact, Occupancy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.model.facts import Fact

__all__ = ["FACT_NUMBERS", "USUAL_ATTRIBUTES", "blocks_held", "fact_value"]

FACT_NUMBERS: Final[Mapping[str, int]] = {
    "compute_capability_major": 75,
    "compute_capability_minor": 76,
    "l2_cache_size": 38,
    "max_blocks_per_multiprocessor": 106,
    "max_persisting_l2_cache_size": 108,
    "max_registers_per_block": 12,
    "max_registers_per_multiprocessor": 82,
    "max_shared_memory_per_block": 8,
    "max_shared_memory_per_block_optin": 97,
    "max_shared_memory_per_multiprocessor": 81,
    "max_threads_per_block": 1,
    "max_threads_per_multiprocessor": 39,
    "multiprocessor_count": 16,
    "reserved_shared_memory_per_block": 111,
    "warp_size": 10,
}
"""``CUdevice_attribute`` of each fact, from ``cuda.h``."""

USUAL_ATTRIBUTES: Final[Mapping[int, int]] = {
    1: 1024, 8: 49152, 10: 32, 12: 65536, 16: 132, 38: 62914560, 39: 2048, 75: 9, 76: 0, 81: 233472, 82: 65536,
    97: 232448, 106: 32, 108: 39321600, 111: 1024,
}  # fmt: skip
"""Those of the device of a call that is imagined: an H200's."""

_USUAL_RESOURCES: Final = (32, 0)  # of a synthetic kernel that says nothing else
_PARTITIONS: Final = 4  # of a multiprocessor, each of which holds whole warps
_REGISTERS_OF_A_WARP: Final = 256  # are given out together
_SHARED_UNIT: Final = 128  # bytes that are


def fact_value(
    fact: Fact, attributes: Mapping[int, int], resources: Mapping[str, tuple[int | None, int]]
) -> int:
    """Return the value of a fact.

    Parameters
    ----------
    fact
        The fact.
    attributes
        The device's, by ``CUdevice_attribute``.
    resources
        Of kernels, by name, the registers of a thread, if they are known, and the static shared memory in bytes.
    """
    if isinstance(fact, DeviceFact):
        return attributes[FACT_NUMBERS[fact.name]]
    if not isinstance(fact, Occupancy):
        raise TypeError(f"{type(fact).__name__} is no fact that the oracle knows")
    used = resources.get(fact.kernel, _USUAL_RESOURCES)
    return blocks_held(attributes, used, fact.threads, fact.dynamic_smem_bytes)


def blocks_held(
    attributes: Mapping[int, int], resources: tuple[int | None, int], threads: int, dynamic_smem_bytes: int
) -> int:
    """Return how many blocks of a kernel one multiprocessor holds at once.

    Parameters
    ----------
    attributes, resources
        As `fact_value` has them, of the one kernel.
    threads
        Threads of a block.
    dynamic_smem_bytes
        Dynamic shared memory of a block, in bytes, which the kernel is allowed if the device can.
    """
    told = {name: attributes[number] for name, number in FACT_NUMBERS.items()}
    registers, static = resources
    shared = static + dynamic_smem_bytes
    if threads > told["max_threads_per_block"] or shared > told["max_shared_memory_per_block_optin"]:
        return 0
    warps = (threads + told["warp_size"] - 1) // told["warp_size"]
    held = [
        told["max_blocks_per_multiprocessor"],
        told["max_threads_per_multiprocessor"] // told["warp_size"] // warps,
    ]
    taken = shared + told["reserved_shared_memory_per_block"]
    if taken:
        taken += -taken % _SHARED_UNIT
        held.append(told["max_shared_memory_per_multiprocessor"] // taken)
    if registers:
        of_warp = registers * told["warp_size"]
        of_warp += -of_warp % _REGISTERS_OF_A_WARP
        there = told["max_registers_per_multiprocessor"] // _PARTITIONS // of_warp
        held.append(there * _PARTITIONS // warps)
    return min(held)
