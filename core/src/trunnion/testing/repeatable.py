"""Calls that were bound or captured, and can be launched again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trunnion.testing.comparison import check_expected, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import BoundLaunch, LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import CallSignature, Expected
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed
    from trunnion.testing.ways import Arguments

__all__ = ["BoundCall", "Repeatable", "bind_call"]


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A call that was bound or captured, and can be launched again."""

    launch: Callable[[], object]
    """What launches."""

    facts: CallSignature
    """The call's."""

    first: Observed
    """What came of the binding, or of the capture, without what runs at every launch."""

    expected: Expected
    """The oracle's word."""

    stream: int | None = None
    """The stream that it must use; None: any, since a graph has its own."""

    def check(self, harness: Harness, program: KernelProgram) -> Observed:
        """Launch, compare what arrived with the oracle's word on what it was made of, and return all that came of it.

        Parameters
        ----------
        harness
            The backend.
        program
            What was called.

        Raises
        ------
        LawViolation
            If anything differs.
        """
        observed = observe(harness, self.launch)
        whole = replace(self.first, error=observed.error, events=(*self.first.events, *observed.events))
        if self.first.result is None:
            whole = replace(whole, result=observed.result)
        check_expected(harness, program, self.facts, (self.expected, whole), first=False)
        return whole


@dataclass(frozen=True, slots=True)
class BoundCall(Repeatable):
    """A bound call; nothing of the program that it is of is held here."""

    launch: BoundLaunch
    """What launches."""


def bind_call(
    harness: Harness, program: KernelProgram, loaded: LoadedProgram, given: Arguments
) -> BoundCall | None:
    """Bind a call; None if it is refused, as it must be.

    Parameters
    ----------
    harness
        The backend.
    program
        What is called.
    loaded
        It, loaded.
    given
        What it is called with.

    Raises
    ------
    LawViolation
        If binding launches, or refuses or takes what it must not.
    """
    held: list[BoundLaunch] = []
    facts = harness.facts(given.args, out=given.out, device=given.device)
    expected = expect(program, facts)
    first = observe(harness, lambda: held.append(given.bind(loaded)), given_out=given.out)
    harness.require(not first.launches, "binding launched")
    if isinstance(expected, Refused):
        check_refused(harness, expected, first)
        return None
    harness.require(first.error is None, f"a good call was refused: {first.error!r}")
    return BoundCall(held[0], facts, first, expected)
