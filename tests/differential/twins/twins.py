"""Two backends on one simulated driver, and one oracle over both."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twins.outcome import Outcome, outcome_of

from trunnion.testing.comparison import check_expected, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.harness import Harness
    from trunnion.testing.strategies import CallSpec

__all__ = ["WAYS", "Pair", "Twins"]

WAYS = ("call", "entry", "bind")
"""The ways in: with all that a call can say; the fast one; and decided once, then launched."""


@dataclass(frozen=True)
class Twins:
    """The backends, by name."""

    harnesses: tuple[Harness, ...]

    @contextlib.contextmanager
    def loaded(self, program: KernelProgram) -> Iterator[Pair]:
        """Build a program with each, and close both at the end of the block."""
        with contextlib.ExitStack() as stack:
            programs = [stack.enter_context(harness.loaded(program)) for harness in self.harnesses]
            yield Pair(program, tuple(zip(self.harnesses, programs, strict=True)))


@dataclass
class Pair:
    """One program, loaded by each backend."""

    program: KernelProgram
    loaded: tuple[tuple[Harness, LoadedProgram], ...]
    refused: int = 0
    launched: int = 0

    def compare(self, call: CallSpec, way: str = "call") -> None:
        """Make a call, on the same tensors, through each; require that they and the oracle agree."""
        first = self.loaded[0][0]
        args = first.arguments(call.args)
        out = None if call.out is None else first.arguments(call.out)
        facts = first.facts(args, out=out, device=call.device)
        expected = expect(self.program, facts)
        found: dict[str, Outcome] = {}
        for harness, loaded in self.loaded:
            observed = observe(harness, _ways_in(loaded, way, args, out, call.device), given_out=out)
            if isinstance(expected, Refused):
                check_refused(harness, expected, observed)
            else:
                check_expected(harness, self.program, facts, (expected, observed), first=False)
            found[harness.name] = outcome_of(harness, self.program, facts, expected, observed)
        names = tuple(found)
        for name in names[1:]:
            differences = found[names[0]].differences(found[name])
            assert not differences, f"{names[0]} and {name}, {way}:\n" + "\n".join(differences)
        self.refused += isinstance(expected, Refused)
        self.launched += not isinstance(expected, Refused) and bool(expected.launches)


def _ways_in(
    loaded: LoadedProgram, way: str, args: Sequence[Any], out: Sequence[Any] | None, device: int | None
) -> Any:
    """Return what makes the call; what only `LoadedProgram.call` can say is said to that."""
    if way == "bind":
        return lambda: loaded.bind(args, out=out, device=device).entry()
    if way == "entry" and out is None and device is None:
        return functools.partial(loaded.entry, *args)
    return functools.partial(loaded.call, args, out=out, device=device)
