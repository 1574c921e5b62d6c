"""What a backend does on a driver that is older: in a process of its own, since a process has one driver.

The simulated driver of an older version has no entry points, no attributes of devices and of kernels, and no launch
attributes that are newer: who asks for them is told so.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import DeviceRequirementError, TrunnionError
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.params import Signature
from trunnion.model.program import KernelProgram
from trunnion.testing.own_process import broken_laws, told_by_a_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.testing.harness import Harness

__all__ = ["problems", "told_by_an_older_driver"]

_EXAMPLES: Final = 2
_LAWS: Final = ("L1", "Y1")
_ONE: Final = (Const(1),) * 3
_VALUES: Final[dict[str, Any]] = {
    "cluster": (2, 1, 1),
    "cooperative": True,
    "pdl": True,
    "priority": -1,
    "carveout": 50,
    "preferred_cluster": (2, 1, 1),
    "scheduling_policy": "spread",
    "mem_sync_domain": "remote",
}
"""A value of each launch attribute."""


def told_by_an_older_driver(backend: str, version: int) -> str:
    """Return what is wrong with a backend on a driver of that version; empty if nothing is.

    Parameters
    ----------
    backend
        The name of an installed backend.
    version
        The driver's CUDA version: 1000 x major + 10 x minor.
    """
    return told_by_a_process(__name__, backend, str(version))


def problems(harness: Harness) -> Iterator[str]:
    """Yield what is wrong with a backend on the driver of this process.

    Parameters
    ----------
    harness
        The backend.
    """
    from trunnion.testing.laws import catalogue  # noqa: PLC0415 - needs hypothesis

    yield from broken_laws(harness, map(catalogue().laws.__getitem__, _LAWS), _EXAMPLES)
    for row in LAUNCH_ATTRIBUTES:
        if row.capability in harness.capabilities:
            yield from _attribute(harness, row.field, row.cuda_version)


def _attribute(harness: Harness, field: str, since: int) -> Iterator[str]:
    """Yield what is wrong with launches that have an attribute."""
    from trunnion.testing.strategies.programs import CODE  # noqa: PLC0415 - needs hypothesis

    said: dict[str, Any] = {field: _VALUES[field]}
    if field == "preferred_cluster":
        said["cluster"] = (1, 1, 1)
    launch = KernelLaunch("k", (), (Const(4), *_ONE[1:]), _ONE, **said)
    program = KernelProgram("p", Signature(), (CODE,), (launch,))
    error: TrunnionError | None = None
    harness.simulator.clear_trace()
    with harness.loaded(program) as loaded:
        try:
            harness.simulator.call(loaded.call, (), device=0)
        except TrunnionError as raised:
            error = raised
    launched = bool(harness.observed_launches())
    if since > harness.simulator.driver_version:
        if launched or not isinstance(error, DeviceRequirementError):
            yield f"{field}, which came with CUDA {since}, ended with {error!r}"
    elif error is not None or not launched:
        yield f"{field}, which came with CUDA {since}, was refused: {error!r}"


def main(backend: str, version: str) -> int:
    """Print what is wrong with a backend on a driver of that version."""
    from trunnion import sim  # noqa: PLC0415 - starts a driver
    from trunnion.testing.machine import ARCHITECTURES  # noqa: PLC0415 - likewise
    from trunnion.testing.runner import harness_of  # noqa: PLC0415 - likewise

    sim.start(arch=ARCHITECTURES, driver_version=int(version))
    print("; ".join(problems(harness_of(backend))), flush=True)  # noqa: T201 - what the process is for
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
