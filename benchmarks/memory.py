"""Memory from the 100,000th launch to the 1,000,000th: the host's may grow by 256 KiB, the device's by nothing.

Needs a GPU; without one it says so and ends with status 77. ``--simulate`` runs fewer launches on the simulated driver,
to see that the benchmark itself works. The status is 1 if memory grew.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import trunnion
from launching.case import Case
from launching.findings import conclude, options_of
from launching.options import positive
from launching.stage import Device, Stage, enter_device
from launching.timing import MOST_UNSYNCHRONISED

if TYPE_CHECKING:
    from collections.abc import Callable

NO_GPU = 77
"""The status of a program that cannot do here what it is for."""

MOST_GROWTH = 256 * 1024
"""The budget: bytes of resident memory between the two readings."""

_CASES = (Case(3), Case(3, 3))
_SETS = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory at one moment, in bytes."""

    resident: int
    """Of this process."""

    device: int
    """In tensors."""

    reserved: int
    """Held by torch's allocator."""

    @classmethod
    def now(cls, device: Device) -> Reading:
        """Return what is in use, after a collection."""
        device.synchronize()
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE")
        if device.simulator is not None:
            return cls(resident, 0, 0)
        return cls(resident, torch.cuda.memory_allocated(0), torch.cuda.memory_reserved(0))


@dataclass(frozen=True, slots=True)
class Growth:
    """What one way to launch left behind."""

    subject: str
    """The backend, the way in and the case."""

    launches: tuple[int, int]
    """After how many launches memory was read."""

    first: Reading
    """Then."""

    last: Reading
    """And at the end."""

    @property
    def resident(self) -> int:
        """Bytes by which the process grew."""
        return self.last.resident - self.first.resident

    @property
    def ok(self) -> bool:
        """Whether the budget is kept."""
        same = (self.first.device, self.first.reserved) == (self.last.device, self.last.reserved)
        return same and self.resident <= MOST_GROWTH

    def line(self) -> str:
        """Return the finding for people."""
        first, last = self.launches
        device = f"device {self.first.device} -> {self.last.device} bytes"
        verdict = "ok" if self.ok else "GREW"
        return f"{self.subject}: launch {first} to {last}: host {self.resident:+d} bytes, {device}: {verdict}"


def watch(subject: str, call: Callable[[], Any], launches: tuple[int, int], device: Device) -> Growth:
    """Launch, and read the memory twice."""
    readings = []
    done = 0
    for until in launches:
        while done < until:
            for _ in range(min(MOST_UNSYNCHRONISED, until - done)):
                call()
            done = min(until, done + MOST_UNSYNCHRONISED)
            device.synchronize()
        readings.append(Reading.now(device))
    return Growth(subject, launches, *readings)


def _launcher(launch: Callable[..., Any], case: Case, device: Device) -> Callable[[], Any]:
    """Return a call that launches with other inputs each time."""
    # More sets of inputs than maps are kept, so that maps are made and forgotten all the time.
    sets = itertools.cycle([Stage(case, device).tensors[:-1] for _ in range(_SETS)])
    return lambda: launch(*next(sets), 0)


def watch_all(launches: tuple[int, int], device: Device) -> list[Growth]:
    """Watch every way in of every installed backend: outputs allocated, and maps at addresses that change."""
    found = []
    for spec, case in itertools.product(trunnion.default_registry().backends(), _CASES):
        program = trunnion.compile(case.program(allocating=True), spec.name)
        for way, launch in (("entry", program.entry), ("__call__", program)):
            growth = watch(
                f"{spec.name} {way}, {case.label}", _launcher(launch, case, device), launches, device
            )
            print(growth.line(), flush=True)
            found.append(growth)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Watch, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument(
        "--launches",
        type=positive,
        nargs=2,
        metavar=("FIRST", "LAST"),
        help="when memory is read",
    )
    parser.add_argument("--simulate", action="store_true", help="run on the simulated driver")
    options = parser.parse_args(arguments)
    if options.launches and options.launches[0] >= options.launches[1]:
        parser.error(f"argument --launches: got {options.launches}, expected two ascending numbers")
    first, last = options.launches or ((200, 400) if options.simulate else (100_000, 1_000_000))
    with enter_device(simulate=options.simulate) as device:
        if device is None:
            print("no GPU that torch can use: nothing can be launched here; see --simulate", file=sys.stderr)
            return NO_GPU
        found = watch_all((first, last), device)
    facts = {"benchmark": "memory", "limit": MOST_GROWTH}
    status = conclude(options.json, facts, found, "found")
    return 0 if options.simulate else status


if __name__ == "__main__":
    sys.exit(main())
