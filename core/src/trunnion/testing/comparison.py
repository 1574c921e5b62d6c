"""Make a drawn call, and compare all that came of it with the oracle's word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.errors import TensorMapError
from trunnion.testing.delivery import compare_launches, compare_maps, locate_workspaces
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.provision import (
    compare_contents,
    compare_operations,
    compare_waits,
    compare_workspaces,
    input_addresses,
    output_addresses,
    places_set,
)
from trunnion.testing.reference import expect, parameter_layouts
from trunnion.testing.symbols import kernel_symbol
from trunnion.testing.variables import compare_copies, variable_addresses

if TYPE_CHECKING:
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import Address, CallSignature, Kernel
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed
    from trunnion.testing.strategies import Scenario
    from trunnion.testing.ways import Arguments

__all__ = ["check_call", "check_expected", "check_given", "check_moving", "check_refused", "symbols_of"]


def symbols_of(program: KernelProgram) -> dict[Kernel, str]:
    """Return each kernel's exact name in an image of a machine."""
    return {kernel: kernel_symbol(index) for index, kernel in enumerate(parameter_layouts(program))}


def check_call(harness: Harness, scenario: Scenario, loaded: LoadedProgram, *, first: bool = True) -> None:
    """Make a call, and compare it with the oracle's word.

    Parameters
    ----------
    harness
        The backend.
    scenario
        The program and the call.
    loaded
        The program, loaded.
    first
        Whether the program has never been called: later calls may find their tensor maps encoded.

    Raises
    ------
    LawViolation
        If anything differs.
    """
    check_given(harness, scenario.program, harness.given(scenario.call), loaded, first=first)


def check_given(
    harness: Harness, program: KernelProgram, given: Arguments, loaded: LoadedProgram, *, first: bool = True
) -> None:
    """Make a call on tensors that are there, and compare it with the oracle's word.

    Further parameters and errors are those of `check_call`.

    Parameters
    ----------
    program
        What is called.
    given
        What it is called with.
    """
    facts, observed = harness.call_with(loaded, given)
    expected = expect(program, facts)
    if isinstance(expected, Refused):
        check_refused(harness, expected, observed)
    else:
        check_expected(harness, program, facts, (expected, observed), first=first)
        compare_waits(harness, observed)
        compare_operations(harness, observed)


def check_moving(harness: Harness, scenario: Scenario) -> None:
    """Make a call several times on the same tensors, each time where other memory is free, and compare each.

    Parameters and errors are those of `check_call`.
    """
    kept, given = [], harness.given(scenario.call)
    with harness.loaded(scenario.program) as loaded:
        for turn in range(4):
            again = replace(given, args=list(given.args))
            check_given(harness, scenario.program, again, loaded, first=not turn)
            kept.append(harness.machine.empty(4096 << turn, again.on))


def check_refused(harness: Harness, expected: Refused, observed: Observed) -> None:
    """Require that a call was refused for one of the oracle's reasons, with no effect.

    Raises
    ------
    LawViolation
        If it was not.
    """
    reasons = "; ".join(problem.reason[:200] for problem in expected.problems)
    error = observed.error
    harness.require(error is not None, f"a call went through that must be refused: {reasons}")
    if error is not None and not expected.explains(error):
        named = getattr(error, "argument", None)
        harness.violation(
            f"raised {type(error).__name__} (argument {named!a}): {error}; the reasons are: {reasons}"
        )
    harness.require(not observed.launches, "a refused call launched")
    compare_operations(harness, observed)
    if not isinstance(error, TensorMapError):  # an output's address is known only once it is allocated
        harness.require(not observed.allocations, "a refused call allocated")
        harness.require(not places_set(observed.events), "a refused call set memory")


def check_expected(
    harness: Harness,
    program: KernelProgram,
    facts: CallSignature,
    outcome: tuple[Expected, Observed],
    *,
    first: bool = True,
) -> None:
    """Require that a call did what the oracle says.

    Parameters
    ----------
    harness
        The backend.
    program
        What was called.
    facts
        With what.
    outcome
        The oracle's word, and what came of the call.
    first
        Whether the program had never been called.

    Raises
    ------
    LawViolation
        If anything differs.
    """
    expected, observed = outcome
    if observed.error is not None:
        argument = getattr(observed.error, "argument", None)
        what = f"{type(observed.error).__name__} ({argument!a}): {observed.error}"
        harness.violation(f"a good call was refused: {what}; {'; '.join(observed.refusals)}")
    where: dict[Address, int] = {
        **locate_workspaces(expected.launches, observed.launches),
        **variable_addresses(harness, program, observed),
        **input_addresses(program, facts),
        **output_addresses(harness, expected, observed),
    }
    compare_launches(harness, expected.launches, observed.launches, where, symbols_of(program))
    wrong = [launch.device for launch in observed.launches if launch.device != expected.device]
    harness.require(not wrong, f"launches on the devices {wrong}, expected {expected.device}")
    compare_workspaces(harness, expected, facts, observed, where)
    compare_contents(harness, expected, observed, where)
    compare_copies(harness, expected, observed, where)
    if first:
        compare_maps(harness, expected, observed, where)
