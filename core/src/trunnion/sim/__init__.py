"""The simulated driver: a ``libcuda.so.1`` with no device behind it, for the whole way with no GPU.

>>> from trunnion import sim
>>> simulator = sim.start()                                            # doctest: +SKIP
>>> with simulator.torch_mode():                                       # doctest: +SKIP
...     x = torch.ones(4, device="cuda")

One process has one ``libcuda``, so simulation is a property of a process: start it before anything that uses
CUDA.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

from trunnion.errors import LifecycleError
from trunnion.sim.process import Process, running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.sim.bodies import KernelBody, KernelBodyWarning, KernelCall
    from trunnion.sim.simulator import Simulator

__all__ = ["KernelBody", "KernelBodyWarning", "KernelCall", "Simulator", "active", "start"]


def start(
    devices: int | None = None,
    arch: str | Sequence[str] | None = None,
    driver_version: int = 13000,
    *,
    compute_capability: tuple[int, int] | None = None,
    mode: str = "whole",
    attributes: Mapping[int, int] | Sequence[Mapping[int, int] | None] | None = None,
) -> Simulator:
    """Load the simulated driver into this process.

    Parameters
    ----------
    devices
        How many devices there are; at least 1. None: as many as ``arch`` names, which may be one.
    arch
        The architecture of every device, with its suffix, or of each: ``("sm_90a", "sm_80")`` are two devices that
        differ. None: ``"sm_90a"``, or what ``compute_capability`` says.
    driver_version
        What ``cuDriverGetVersion`` returns: 1000 x major + 10 x minor.
    compute_capability
        Another way to say ``arch``, for example ``(9, 0)``.
    mode
        ``"whole"``; ``"mig"`` for a slice of a device or ``"mps"`` for a shared one, where no L2 cache is set aside.
    attributes
        What ``cuDeviceGetAttribute`` answers in place of the architecture's own values, by number; or that for each
        device, with None for one that has its architecture's own.

    Returns
    -------
    Simulator
        It stays until the process ends.

    Raises
    ------
    LifecycleError
        If a simulator runs already, another ``libcuda`` is mapped, or this is not Linux.
    DeviceRequirementError
        If there is no C compiler, no folder to build in, or the architecture cannot be simulated.
    CompileError
        If the C compiler fails, or builds nothing that can be loaded.
    ArgumentTypeError, ArgumentValueError
        If an argument is of another type, is out of its range, or contradicts another.
    """
    from trunnion.sim import devices as known  # noqa: PLC0415 - only who starts a simulator pays
    from trunnion.sim.shim import load_shim  # noqa: PLC0415 - as above
    from trunnion.sim.simulator import Simulator  # noqa: PLC0415 - as above

    if Process.simulator is not None:
        raise LifecycleError("a simulator runs in this process already: trunnion.sim.active() returns it")
    known.check_version(driver_version)
    rows = known.machine(devices, known.chosen(arch, compute_capability), mode, attributes)
    Process.simulator = started = Simulator(load_shim(), rows, driver_version)
    tensors = sys.modules.get("trunnion.sim.tensor")
    if tensors is not None:  # else it finds the simulator when it is imported
        tensors.SimTensor._exchange.connect(started)  # noqa: SLF001 - this package's own class
    return started


def active() -> Simulator | None:
    """Return the simulator of this process, or None."""
    return cast("Simulator | None", running())  # none but `start` makes one


def __getattr__(name: str) -> object:
    if name == "Simulator":
        from trunnion.sim.simulator import Simulator  # noqa: PLC0415 - as above

        return Simulator
    if name in ("KernelBody", "KernelBodyWarning", "KernelCall"):
        from trunnion.sim import bodies  # noqa: PLC0415 - as above

        return getattr(bodies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
