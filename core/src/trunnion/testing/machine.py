"""The simulated machine that laws need: two devices that are alike, and two that differ from them and each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion import sim
from trunnion.errors import DeviceRequirementError
from trunnion.sim.abi import DeviceAttribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim import Simulator

__all__ = ["ALIKE", "ARCHITECTURES", "UNLIKE", "start_simulator"]

ARCHITECTURES: Final = ("sm_90a", "sm_90a", "sm_80", "sm_100a")
"""The architecture of each device."""

ALIKE: Final = (0, 1)
"""The devices on which laws launch, unless they are about others."""

UNLIKE: Final = (0, 2, 3)
"""One device of each architecture."""

_SMALL: Final[tuple[Mapping[int, int] | None, ...]] = (
    None,
    None,
    {DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE: 4096, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE: 2048},
    {
        DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE: 512,
        DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE: 0,
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 99 << 10,
    },
)
"""What some have less of than any product, so that tensors of a few bytes meet the limit."""


def start_simulator() -> Simulator:
    """Return the simulated driver of this process, which starts if need be.

    Raises
    ------
    DeviceRequirementError
        If it cannot be started, or runs with other devices.
    """
    simulator = sim.active() or sim.start(arch=ARCHITECTURES, attributes=_SMALL)
    if simulator.archs[: len(ARCHITECTURES)] != ARCHITECTURES:
        raise DeviceRequirementError(
            f"simulated devices of the architectures {', '.join(ARCHITECTURES)}",
            f"{', '.join(simulator.archs)} in this process",
            "let the laws start the simulated driver, or call trunnion.testing.machine.start_simulator() first",
        )
    return simulator
