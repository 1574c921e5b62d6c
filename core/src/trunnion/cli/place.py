"""Where programs run: on a GPU, on the simulated driver of this process, or on the CPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.cli.examination import examine
from trunnion.errors import DeviceRequirementError, ProgramError, shorten
from trunnion.messages import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.compiled import CompiledProgram
    from trunnion.contract.spec import Target
    from trunnion.sim import KernelBody, Simulator
    from trunnion.sim.trace import Event, Launched

__all__ = ["CPU", "SIMULATED", "Place", "choose_place", "gpu_name", "host_place"]

_CUDA_ARCH = re.compile(r"(?:sm|compute)_[0-9]{2,3}[af]?")

SIMULATED = "simulated"
"""What stands where a GPU's name would."""

CPU = "CPU"
"""What stands there for what runs on the CPU."""


@dataclass(frozen=True, slots=True)
class Place:
    """A device that programs can be launched on."""

    label: str
    """The GPU's name, `SIMULATED` or `CPU`."""

    simulator: Simulator | None
    """The simulated driver; None on a GPU and on the CPU."""

    device: str = "cuda:0"
    """The device, as torch spells it."""

    def events(self) -> tuple[Event, ...] | None:
        """Return everything that the simulated driver was asked so far; None elsewhere, where nobody keeps a list."""
        return None if self.simulator is None else tuple(self.simulator.trace)

    def launches(self) -> tuple[Launched, ...] | None:
        """Return every launch so far, as the simulated driver saw it; None elsewhere."""
        from trunnion.sim.trace import Launched

        events = self.events()
        return None if events is None else tuple(event for event in events if isinstance(event, Launched))

    def unused_bodies(self) -> list[str] | None:
        """Return the symbols of bodies that no launch ran, sorted; None elsewhere, where kernels have their own."""
        return None if self.simulator is None else sorted(self.simulator.unused_bodies)

    def check(self, target: Target) -> None:
        """Refuse a target of which a simulated device can run nothing. A real one says so itself.

        Parameters
        ----------
        target
            What a program was compiled for.

        Raises
        ------
        DeviceRequirementError
            If the simulated device is of another architecture.
        """
        if self.simulator is None or not _CUDA_ARCH.fullmatch(target.arch):
            return
        from trunnion.image.target import can_assemble, can_run
        from trunnion.sim.devices import ARCHITECTURES

        kind, _, version = target.arch.partition("_")
        device = self.simulator.device(0)
        if not (can_run if kind == "sm" else can_assemble)(f"sm_{version}", device.compute_capability):
            others = ", ".join(sorted(set(ARCHITECTURES) - {device.arch.name}))
            raise DeviceRequirementError(
                f"a device of {target.arch}",
                f"a simulated {device.arch.name}",
                f"compile for {device.arch.name}, or simulate another one in Python: "
                f"trunnion.sim.start(arch=...) takes {others}",
            )

    def register(self, program: CompiledProgram, bodies: Mapping[str, KernelBody]) -> None:
        """Give a program's kernels their Python bodies; elsewhere than in simulation they have their own.

        Parameters
        ----------
        program
            The program.
        bodies
            For each kernel, by the name that the program uses or by its symbol in the image, what it does.

        Raises
        ------
        ProgramError
            If the program has no kernel of that name.
        """
        kernels = program.artifact.manifest.kernels
        symbols = {name: kernel.symbol for kernel in kernels for name in (kernel.symbol, kernel.name)}
        for name, body in bodies.items():
            if name not in symbols:
                known = ", ".join(shorten(kernel.name) for kernel in kernels)
                meant = suggestion(name, symbols)
                raise ProgramError(
                    f"got a body for {shorten(name)}, expected one for a kernel ({known}){meant}"
                )
            if self.simulator is not None:
                self.simulator.register_body(symbols[name], body)


def gpu_name() -> str:
    """Return the name of the GPU that torch would use, or an empty text if it has none.

    To look for one, torch loads the driver, beside which none can be simulated. So it looks in a process of its own,
    unless this one has loaded the driver already.
    """
    import torch

    there = torch.cuda.is_available
    found = there() if _is_driver_loaded() else next(iter(examine({"torch": there})))[1]
    return str(torch.cuda.get_device_name(0)) if found is True else ""


def _is_driver_loaded() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def host_place() -> Place:
    """Return the CPU. What runs there truly runs, also beside a simulated GPU."""
    return Place(CPU, None, "cpu")


@contextlib.contextmanager
def choose_place(*, simulate: bool | None) -> Iterator[Place]:
    """Enter a place to run in.

    Parameters
    ----------
    simulate
        True: simulated; False: on a GPU; None: on a GPU if there is one. The simulated driver must be loaded
        before any real one: enter a place first of all.

    Raises
    ------
    DeviceRequirementError
        If a GPU is asked for and there is none.
    """
    name = "" if simulate else gpu_name()
    if name:
        yield Place(name, None)
        return
    if simulate is False:
        raise DeviceRequirementError(
            "a CUDA GPU", "none that torch can use", "add --simulate to run without one"
        )
    from trunnion import sim

    simulator = sim.active() or sim.start()
    with simulator.torch_mode():
        yield Place(SIMULATED, simulator)
