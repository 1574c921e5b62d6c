"""Torch's factories and moves, where the device is a simulated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from trunnion.sim.memory import compute
from trunnion.sim.tensor import EMPTY, SimTensor, move, place, poison, target_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.sim.simulated_driver import SimulatedDriver

__all__ = ["SimMode"]


class SimMode(TorchFunctionMode):
    """Makes ``device="cuda:N"`` mean a simulated device, for everything that torch calls inside.

    Parameters
    ----------
    simulator
        Whose devices.
    """

    def __init__(self, simulator: SimulatedDriver) -> None:
        super().__init__()
        self._simulator = simulator

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a function; what it makes for a CUDA device is made on the host and moved."""
        named = dict(kwargs or {})
        if any(issubclass(kind, SimTensor) for kind in types):
            return func(*args, **named)  # SimTensor's own __torch_function__ sees to it
        if func in (torch.Tensor.to, torch.Tensor.cuda):
            return move(self._simulator, func, args, named)
        given = named.get("device")
        if given is None:
            return func(*args, **named)
        target = target_device(self._simulator, given)
        if target.type != "cuda":
            return func(*args, **named)
        self._simulator.device(target.index)
        named["device"] = "cpu"
        placed = place(self._simulator, compute(func, args, named), target.index)
        return poison(placed) if func in EMPTY else placed
