"""The simulated driver: a ``libcuda.so.1`` with no device behind it, for the whole way with no GPU.

>>> from trunnion import sim
>>> simulator = sim.start()                                            # doctest: +SKIP
>>> with simulator.torch_mode():                                       # doctest: +SKIP
...     x = torch.ones(4, device="cuda")

One process has one ``libcuda``, so simulation is a property of a process: start it before anything that uses
CUDA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError, LifecycleError

if TYPE_CHECKING:
    from trunnion.sim.bodies import KernelBody, KernelCall
    from trunnion.sim.simulator import Simulator

__all__ = ["KernelBody", "KernelCall", "Simulator", "active", "start"]


class _Process:
    """The one simulator of this process, because a process has one libcuda, which cannot be unloaded."""

    simulator: Simulator | None = None


def start(devices: int = 1, arch: str = "sm_90a", driver_version: int = 13000) -> Simulator:
    """Load the simulated driver into this process.

    Parameters
    ----------
    devices
        How many devices there are; at least 1.
    arch
        The architecture of every device, with its suffix.
    driver_version
        What ``cuDriverGetVersion`` returns: 1000 x major + 10 x minor.

    Returns
    -------
    Simulator
        The simulator. It stays until the process ends.

    Raises
    ------
    LifecycleError
        If a simulator runs already, another ``libcuda`` is mapped, or this is not Linux.
    DeviceRequirementError
        If there is no C compiler, or ``arch`` cannot be simulated.
    CompileError
        If the C compiler fails.
    ArgumentValueError
        If ``devices`` is less than 1.
    """
    from trunnion.sim.devices import architecture  # noqa: PLC0415 - only who starts a simulator pays
    from trunnion.sim.shim import load_shim  # noqa: PLC0415 - as above
    from trunnion.sim.simulator import Simulator  # noqa: PLC0415 - as above

    if _Process.simulator is not None:
        raise LifecycleError("a simulator runs in this process already: trunnion.sim.active() returns it")
    if devices < 1:
        raise ArgumentValueError("devices", f"{devices}", "at least 1")
    row = architecture(arch)
    _Process.simulator = Simulator(load_shim(), row, devices, driver_version)
    return _Process.simulator


def active() -> Simulator | None:
    """Return the simulator of this process, or None."""
    return _Process.simulator


def __getattr__(name: str) -> object:
    if name == "Simulator":
        from trunnion.sim.simulator import Simulator  # noqa: PLC0415 - as above

        return Simulator
    if name in ("KernelBody", "KernelCall"):
        from trunnion.sim import bodies  # noqa: PLC0415 - as above

        return getattr(bodies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
