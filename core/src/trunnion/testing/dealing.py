"""Capabilities dealt round to the examples of a law, so that each run meets each of them, in no more examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from hypothesis.strategies import SearchStrategy

    from trunnion.model.capability import Capability
    from trunnion.testing.harness import Harness

__all__ = ["Deal", "due"]

_MOST = 3
"""Capabilities that one example shall need: a program with many is too large to read."""


@dataclass(frozen=True, slots=True)
class Deal:
    """What is dealt to a law's examples.

    Left to chance, the fifteen examples of a law that is about any program miss a feature of programs now and then:
    some are drawn for one program in six, and Hypothesis changes an example that it has rather than draw another.
    """

    capabilities: Callable[[Harness], frozenset[Capability]]
    """Returns what is dealt: what the backend declares that can matter to the law."""

    needing: Callable[[Harness, Sequence[Capability]], SearchStrategy[Any]]
    """Returns the strategy of examples whose programs need some capabilities at least, which may be none."""

    met: Callable[[Any], AbstractSet[Capability]]
    """Returns what an example's program needs."""

    def given(self, harness: Harness) -> SearchStrategy[Any]:
        """Return the strategy of examples that need one capability, whichever it is: for `Law.given`."""
        from hypothesis import strategies as st  # noqa: PLC0415 - only a run of the suite needs it

        dealt = sorted(self.capabilities(harness))
        if not dealt:
            return self.needing(harness, ())
        return st.sampled_from(dealt).flatmap(lambda one: self.needing(harness, (one,)))


def due(dealt: Sequence[Capability], met: AbstractSet[Capability], left: int) -> tuple[Capability, ...]:
    """Return what the next example shall need.

    Parameters
    ----------
    dealt
        What is dealt, in order.
    met
        What the examples before needed, dealt to them or by chance.
    left
        How many examples are left, 1 or more.
    """
    missing = [one for one in dealt if one not in met]
    return tuple(missing[: min(-(-len(missing) // left), _MOST)])
