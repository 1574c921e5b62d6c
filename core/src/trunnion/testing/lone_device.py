"""What a backend does where there is one device: in a process of its own, since a driver's devices do not change.

A launcher has no other device to tell that one from. So it may look for no context before it launches, and threads that
have none are what it must get right.

The process also is another one than built: it takes up an artifact that was saved, of which its own memory knows
nothing. It is run as by ``python -O``, where what must be refused still is. And it ends with a program open, as
processes of people do.
"""

from __future__ import annotations

import atexit
import faulthandler
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.registry import default_registry
from trunnion.testing.machine import ARCHITECTURES, SimulatedMachine
from trunnion.testing.own_process import broken_laws, told_by_a_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.sim import Simulator
    from trunnion.testing.harness import Harness

__all__ = ["saved_program", "told_by_a_lone_device"]

_LAWS: Final = ("L1", "F1", "M1")
_EXAMPLES: Final = 3
_END: Final = 30.0  # seconds for a process to end, once it has told all: far more than any takes


def told_by_a_lone_device(backend: str, saved: Path) -> str:
    """Return what is wrong with a backend where there is one device; empty if nothing is.

    Parameters
    ----------
    backend
        The name of an installed backend.
    saved
        The folder in which another process saved its artifact of `saved_program`.
    """
    return told_by_a_process(__name__, backend, str(saved), str(_END), optimized=True)


def saved_program() -> KernelProgram:
    """Return what one process builds and another one takes up: a program that needs no capability."""
    from trunnion.testing.strategies.programs import CODE  # noqa: PLC0415 - needs hypothesis

    one = (Const(1),) * 3
    x = TensorParam("x", dtype("float32"), (Const(8),), alignment=16)
    n = ScalarParam("n", dtype("int32"))
    launch = KernelLaunch("k", (x, n), (Const(3), Const(1), Const(1)), one)
    return KernelProgram("saved", Signature((x, n)), (CODE,), (launch,))


def _taken_up(harness: Harness, saved: Path, left: list[Any]) -> Iterator[str]:
    """Yield what is wrong with an artifact that another process saved; closed once, then left open in the list."""
    from trunnion.testing.comparison import check_call  # noqa: PLC0415 - needs hypothesis
    from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec  # noqa: PLC0415 - likewise
    from trunnion.testing.ways import taken_up  # noqa: PLC0415 - imports torch

    good = TensorSpec(dtype="float32", shape=(8,), strides=(1,))
    refused = (
        *((replace(good, dtype="int32"), 5), (replace(good, offset=1), 5), (replace(good, shape=(9,)), 5)),
        *((replace(good, device=None), 5), (good, 1 << 31), (good, 5.0), (good,)),
    )
    program = saved_program()
    try:
        for calls in ((good, 5), *refused, (good, -6)), ((good, 7),):
            if left:
                left.pop().close()
            left.append(taken_up(harness, saved))
            for args in calls:
                check_call(harness, Scenario(program, CallSpec(args=args)), left[0])
    except Exception as error:  # noqa: BLE001 - one that knows too little may raise anything
        yield f"by python -O, with what another process built and saved: {type(error).__name__}: {error}"


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


def main(backend: str, saved: str, seconds: str) -> int:
    """Print what is wrong with a backend where there is one device, and have the process end in so many seconds."""
    from trunnion import sim  # noqa: PLC0415 - starts a driver
    from trunnion.testing.harness import Harness  # noqa: PLC0415 - imports torch
    from trunnion.testing.kept_launchers import launcher_folder  # noqa: PLC0415 - likewise
    from trunnion.testing.laws import ONE_WAY, catalogue  # noqa: PLC0415 - likewise

    machine = _Machine(sim.start(arch=ARCHITECTURES[:1]))
    harness = Harness(spec=default_registry().backend(backend), machine=machine, kept=launcher_folder())
    laws = (replace(catalogue()[law_id], ways=ONE_WAY) for law_id in _LAWS)
    left: list[Any] = []
    atexit.register(left.clear)  # which keeps it until the process has ended what was registered later
    told = tuple(_taken_up(harness.under("Z4"), Path(saved), left)) or broken_laws(harness, laws, _EXAMPLES)
    print("; ".join(told), flush=True)  # noqa: T201 - what the process is for
    # Shown only if the process ends badly; where it does not end, its threads' stacks come next, and status 1.
    sys.stderr.write(
        f"a program was left open, and the process has to end within {seconds} s with status 0\n"
    )
    faulthandler.dump_traceback_later(float(seconds), exit=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
