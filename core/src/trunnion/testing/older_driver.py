"""What a backend does on a driver that is older: in a process of its own, since a process has one driver.

The simulated driver of an older version has no entry points, no attributes of devices and of kernels, and no launch
attributes that are newer: who asks for them is told so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import DeviceRequirementError, TrunnionError
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.params import Signature
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.testing.harness import Harness
    from trunnion.testing.laws import Law

__all__ = ["broken_laws", "problems", "told_by_a_process", "told_by_an_older_driver"]

_PATIENCE: Final = 300.0
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


def told_by_a_process(module: str, *words: str) -> str:
    """Return what a module prints that is run in a process of its own, and how it ended if that was by an error.

    Parameters
    ----------
    module
        Its name.
    *words
        What it is given.
    """
    # The child finds what this process finds; what lies in the working folder is not what is installed.
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", module, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
        env=found,
    )
    return done.stdout.strip() + (done.stderr.strip()[-1000:] if done.returncode else "")


def problems(harness: Harness) -> Iterator[str]:
    """Yield what is wrong with a backend on the driver of this process.

    Parameters
    ----------
    harness
        The backend.
    """
    from trunnion.testing.laws import catalogue  # noqa: PLC0415 - needs hypothesis

    yield from broken_laws(harness, map(catalogue().laws.__getitem__, _LAWS))
    for row in LAUNCH_ATTRIBUTES:
        if row.capability in harness.capabilities:
            yield from _attribute(harness, row.field, row.cuda_version)


def broken_laws(harness: Harness, laws: Iterable[Law], examples: int = _EXAMPLES) -> Iterator[str]:
    """Yield how a backend breaks some laws, each checked on a few examples.

    Parameters
    ----------
    harness
        The backend.
    laws
        The laws.
    examples
        How many.
    """
    from trunnion.testing.laws import LawViolation  # noqa: PLC0415 - needs hypothesis

    for law in laws:
        try:
            law.check(harness.under(law.id), examples=examples, shrink=False)
        except LawViolation as violation:
            yield str(violation)


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
    print("; ".join(problems(harness_of(backend))))  # noqa: T201 - what the process is for
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
