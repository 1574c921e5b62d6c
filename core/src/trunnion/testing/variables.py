"""How what launchers do with module variables compares with the oracle's word: addresses, and copies in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.sim.trace import Launched, MemoryCopied, Synchronized
from trunnion.testing.observed import is_work
from trunnion.testing.reference_variables import address_of_variable
from trunnion.testing.symbols import variable_symbol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import Address, Expected
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told
    from trunnion.testing.observed import Observed

__all__ = ["check_written_before", "compare_copies", "variable_addresses"]


def variable_addresses(harness: Harness, program: KernelProgram, observed: Observed) -> dict[Address, int]:
    """Return where each module variable lies for the library from which a call launched.

    Parameters
    ----------
    harness
        The backend.
    program
        What was called.
    observed
        What came of it.
    """
    launched = observed.launches[:1]
    return {
        address_of_variable(program, variable): harness.machine.variable(launched[0], variable_symbol(index))
        for index, variable in enumerate(program.variables if launched else ())
    }


def compare_copies(
    harness: Harness, expected: Expected, observed: Observed, where: Mapping[Address, int]
) -> None:
    """Require that tensors were copied to module variables just where the program says it, on the launches' stream.

    Of a call that launches nothing nobody can say where a variable lies, so only where it is copied from is compared.

    Parameters
    ----------
    harness
        The backend.
    expected
        The oracle's word.
    observed
        What came of the call.
    where
        The address of each tensor and variable.

    Raises
    ------
    LawViolation
        If a copy is missing, or is another one, in another place, on another stream or on another device.
    """
    count, got, streams = 0, [], set()
    for event in observed.events:
        if isinstance(event, Launched):
            count += 1
            streams.add(event.stream)
        elif is_work(event) and isinstance(event, MemoryCopied):
            known = event.target if observed.launches else None
            got.append((event.source, known, event.nbytes, count))
            streams.add(event.stream)
            harness.require(
                event.device == expected.device,
                f"a copy on device {event.device}, expected {expected.device}",
            )
    wanted = [
        (where[one.source], where.get(one.variable), one.nbytes, one.launched) for one in expected.copies
    ]
    harness.require(
        got == wanted, f"copied {got}, expected {wanted}: source, target, bytes, launches before it"
    )
    harness.require(
        not got or len(streams) == 1, f"copies and launches are on the streams {sorted(map(hex, streams))}"
    )


def check_written_before(harness: Harness, events: Sequence[Told]) -> None:
    """Require that what was written to variables from the host was there before anything was launched on the device.

    Parameters
    ----------
    harness
        The backend.
    events
        What came to devices.

    Raises
    ------
    LawViolation
        If something was launched before it, or while it was on its way.
    """
    pending, launched = set(), set()
    for event in events:
        if isinstance(event, MemoryCopied) and event.direction == "HtoD":
            harness.require(event.device not in launched, "launched before variables were written")
            pending.add(event.stream)
        elif isinstance(event, Synchronized):
            pending = set() if event.stream is None else pending - {event.stream}
        elif isinstance(event, Launched):
            launched.add(event.device)
            harness.require(not pending, f"launched while variables were written on the streams {pending}")
