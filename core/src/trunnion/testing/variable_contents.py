"""What module variables hold when kernels are launched, noted by the kernels' bodies."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from trunnion.testing.machine import IMAGED
from trunnion.testing.reference_variables import variable_bytes
from trunnion.testing.symbols import kernel_symbol, variable_symbol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall
    from trunnion.testing.harness import Harness

__all__ = ["check_first_contents", "first_contents", "noting_contents"]


@contextmanager
def noting_contents(harness: Harness, program: KernelProgram) -> Iterator[list[dict[str, bytes]]]:
    """Note what each variable of a program holds, by its symbol, at each launch until the block ends.

    Parameters
    ----------
    harness
        The backend.
    program
        What is called in the block.
    """
    seen: list[dict[str, bytes]] = []
    simulator = harness.simulator
    with ExitStack() as registered:
        for index in range(len(program.launches) if program.variables else 0):
            simulator.register_body(kernel_symbol(index), partial(_note, program, seen))
            registered.callback(simulator.unregister_body, kernel_symbol(index))
        yield seen


def _note(program: KernelProgram, seen: list[dict[str, bytes]], call: KernelCall) -> None:
    seen.append(
        {
            symbol: bytes(call.variable(symbol, "uint8", (variable_bytes(one),)).tolist())
            for symbol, one in ((variable_symbol(index), one) for index, one in enumerate(program.variables))
        }
    )


def first_contents(program: KernelProgram) -> Iterator[tuple[str, bytes]]:
    """Yield what each variable holds before the first call on a device: what the image says, or the program."""
    for index, one in enumerate(program.variables):
        yield variable_symbol(index), IMAGED * variable_bytes(one) if one.init is None else one.init


def check_first_contents(harness: Harness, program: KernelProgram, seen: Sequence[dict[str, bytes]]) -> None:
    """Require that at each launch the variables that nothing is copied to held what they hold first.

    Raises
    ------
    LawViolation
        If one did not.
    """
    copied = {variable_symbol(program.variables.index(one.variable)) for one in program.copies}
    wanted = {symbol: data for symbol, data in first_contents(program) if symbol not in copied}
    for held in seen:
        found = {symbol: data for symbol, data in held.items() if symbol in wanted}
        harness.require(found == wanted, f"variables held {found} at a launch, expected {wanted}")
