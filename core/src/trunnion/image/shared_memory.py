"""How much shared memory the devices of an architecture give a block."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.image.target import real_number

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BLOCK_SMEM", "most_block_smem"]

BLOCK_SMEM: Final[Mapping[int, int]] = MappingProxyType(
    {
        number: kib << 10
        for number, kib in (
            *((75, 64), (80, 163), (86, 99), (87, 163), (89, 99), (90, 227)),
            *((100, 227), (103, 227), (110, 227), (120, 99), (121, 99)),
        )
    }
)
"""The most that a block can be allowed, in bytes, by the number of an architecture: static and dynamic together (CUDA
C++ Programming Guide, Technical Specifications per Compute Capability)."""


def most_block_smem(arch: str) -> int | None:
    """Return the most shared memory that a block can be allowed, in bytes; None: nothing is known.

    Parameters
    ----------
    arch
        A real architecture, whose code runs on its own devices. A virtual one has later devices too, and no limit.
    """
    number = real_number(arch)
    return None if number is None else BLOCK_SMEM.get(number)
