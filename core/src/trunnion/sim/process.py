"""The one simulator of this process, because a process has one libcuda, which cannot be unloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.sim.simulated_driver import SimulatedDriver

__all__ = ["Process", "running"]


class Process:
    """What a process has of simulation."""

    simulator: SimulatedDriver | None = None
    """The simulator, once one was started."""


def running() -> SimulatedDriver | None:
    """Return the simulator of this process, or None."""
    return Process.simulator
