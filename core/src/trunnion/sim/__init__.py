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
    from collections.abc import Mapping

    from trunnion.sim.bodies import KernelBody, KernelCall
    from trunnion.sim.simulator import Simulator

__all__ = ["KernelBody", "KernelCall", "Simulator", "active", "start"]


class _Process:
    """The one simulator of this process, because a process has one libcuda, which cannot be unloaded."""

    simulator: Simulator | None = None


def start(
    devices: int = 1,
    arch: str | None = None,
    driver_version: int = 13000,
    *,
    compute_capability: tuple[int, int] | None = None,
    mode: str = "whole",
    attributes: Mapping[int, int] | None = None,
) -> Simulator:
    """Load the simulated driver into this process.

    Parameters
    ----------
    devices
        How many devices there are; at least 1.
    arch
        The architecture of every device, with its suffix; None: ``"sm_90a"``, or what ``compute_capability`` says.
    driver_version
        What ``cuDriverGetVersion`` returns: 1000 x major + 10 x minor.
    compute_capability
        Another way to say ``arch``, for example ``(9, 0)``.
    mode
        ``"whole"``, ``"mig"`` for a slice of a device or ``"mps"`` for one that a server shares: in neither of
        the last two can a program set L2 cache aside.
    attributes
        What ``cuDeviceGetAttribute`` answers in place of the architecture's own values, by number.

    Returns
    -------
    Simulator
        The simulator. It stays until the process ends.

    Raises
    ------
    LifecycleError
        If a simulator runs already, another ``libcuda`` is mapped, or this is not Linux.
    DeviceRequirementError
        If there is no C compiler, no folder to build in, or the architecture cannot be simulated.
    CompileError
        If the C compiler fails, or builds nothing that can be loaded.
    ArgumentTypeError
        If an argument is of another type.
    ArgumentValueError
        If ``devices`` is less than 1, both ``arch`` and ``compute_capability`` are given, or there is no such mode,
        attribute, value of an attribute or driver's version.
    """
    from trunnion.sim.devices import (  # noqa: PLC0415 - only who starts a simulator pays
        architecture,
        architecture_of,
        check_integer,
        check_version,
        variant,
    )
    from trunnion.sim.shim import load_shim  # noqa: PLC0415 - as above
    from trunnion.sim.simulator import Simulator  # noqa: PLC0415 - as above

    if _Process.simulator is not None:
        raise LifecycleError("a simulator runs in this process already: trunnion.sim.active() returns it")
    check_integer("devices", devices, 1)
    check_version(driver_version)
    if arch is not None and compute_capability is not None:
        raise ArgumentValueError(
            "compute_capability", f"{compute_capability} beside {arch!r}", "one of the two"
        )
    row = (
        architecture("sm_90a" if arch is None else arch)
        if compute_capability is None
        else architecture_of(compute_capability)
    )
    row = variant(row, mode, attributes)
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
