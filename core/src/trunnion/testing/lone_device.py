"""What a backend does where there is one device: in a process of its own, since a driver's devices do not change.

A launcher has no other device to tell that one from. So it may look for no context before it launches, and threads that
have none are what it must get right.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trunnion.registry import default_registry
from trunnion.testing.machine import ARCHITECTURES, SimulatedMachine
from trunnion.testing.own_process import broken_laws, told_by_a_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.sim import Simulator

__all__ = ["told_by_a_lone_device"]

_LAWS: Final = ("L1", "F1")
_EXAMPLES: Final = 3


def told_by_a_lone_device(backend: str) -> str:
    """Return what is wrong with a backend where there is one device; empty if nothing is.

    Parameters
    ----------
    backend
        The name of an installed backend.
    """
    return told_by_a_process(__name__, backend)


class _Machine(SimulatedMachine):
    """The simulated machine with one device, on which calls come from a thread that has no context."""

    alike = (0,)

    def __init__(self, simulator: Simulator) -> None:
        super().__init__(simulator)
        self.call = self._without_context

    def _without_context(self, function: Callable[[], Any]) -> Any:
        stack = self.simulator.state.stack()
        contexts = tuple(stack)
        stack.clear()
        try:
            return self.simulator.call(function)
        finally:
            stack[:0] = contexts


def main(backend: str) -> int:
    """Print what is wrong with a backend where there is one device."""
    from trunnion import sim  # noqa: PLC0415 - starts a driver
    from trunnion.testing.harness import Harness  # noqa: PLC0415 - imports torch
    from trunnion.testing.kept_launchers import launcher_folder  # noqa: PLC0415 - likewise
    from trunnion.testing.laws import ONE_WAY, catalogue  # noqa: PLC0415 - likewise

    machine = _Machine(sim.start(arch=ARCHITECTURES[:1]))
    harness = Harness(spec=default_registry().backend(backend), machine=machine, kept=launcher_folder())
    laws = (replace(catalogue()[law_id], ways=ONE_WAY) for law_id in _LAWS)
    print("; ".join(broken_laws(harness, laws, _EXAMPLES)))  # noqa: T201 - what the process is for
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
