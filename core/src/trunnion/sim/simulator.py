"""The simulator, as its users hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.sim.simulated_driver import SimulatedDriver
from trunnion.turns import kept_property

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from trunnion.contract.call_helper import CallHelper
    from trunnion.sim.runtime import SimRuntime
    from trunnion.sim.tensor import SimTensor

__all__ = ["Simulator"]


class Simulator(SimulatedDriver):
    """The simulated driver of this process, with torch over it; `trunnion.sim.start` makes it.

    Parameters
    ----------
    shim
        The loaded shim.
    archs
        The architecture of each device.
    driver_version
        The driver's CUDA version: 1000 x major + 10 x minor.
    """

    @kept_property
    def runtime(self) -> SimRuntime:
        """What a launcher asks of the tensor library, answered for simulated tensors."""
        from trunnion.sim.runtime import SimRuntime  # noqa: PLC0415 - imports torch

        return SimRuntime(self)

    def runtime_with(self, find_helper: Callable[[], CallHelper | None]) -> SimRuntime:
        """Return another `runtime`, whose launchers use the call helper that this returns, or none."""
        from trunnion.sim.runtime import SimRuntime  # noqa: PLC0415 - imports torch

        return SimRuntime(self, find_helper)

    def tensor(self, host: Any, device: int = 0) -> SimTensor:
        """Return a copy of a host tensor in a device's memory.

        Parameters
        ----------
        host
            A `torch.Tensor`.
        device
            The ordinal of the device.

        Raises
        ------
        ArgumentTypeError
            If it is no tensor.
        ArgumentValueError
            If there is no such device.
        """
        from trunnion.sim.tensor import place  # noqa: PLC0415 - imports torch

        return place(self, host, device)

    def torch_mode(self) -> AbstractContextManager[Any]:
        """Return a context in which torch's factories and ``.to()`` understand ``device="cuda:N"``."""
        from trunnion.sim.torch_mode import SimMode  # noqa: PLC0415 - imports torch

        return SimMode(self)
