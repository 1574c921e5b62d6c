"""Saboteurs of facts of a device: each asks for something near what it should, or asks another device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.model.facts import ATTRIBUTES
from trunnion.model.plan.facts import AttributeFact, OccupancyFact
from trunnion.sim.trace import Launched
from trunnion.testing.saboteur import Saboteur, in_trace, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.plan import LaunchPlan

__all__ = ["FACT_SABOTEURS"]

_NEIGHBOURS = {
    "multiprocessor_count": "max_blocks_per_multiprocessor",
    "max_shared_memory_per_block": "max_shared_memory_per_block_optin",
    "max_shared_memory_per_block_optin": "max_shared_memory_per_multiprocessor",
    "max_shared_memory_per_multiprocessor": "max_shared_memory_per_block_optin",
    "max_threads_per_block": "max_threads_per_multiprocessor",
    "compute_capability_major": "compute_capability_minor",
}
_NUMBERS = {ATTRIBUTES[name].number: ATTRIBUTES[other].number for name, other in _NEIGHBOURS.items()}


def _neighbour(fact: AttributeFact) -> AttributeFact:
    return replace(fact, attribute=_NUMBERS.get(fact.attribute, fact.attribute), least=0)


def _attributes(plan: LaunchPlan) -> LaunchPlan:
    facts = tuple(_neighbour(fact) if isinstance(fact, AttributeFact) else fact for fact in plan.facts)
    return replace(plan, facts=facts)


def _occupancies(change: Callable[[OccupancyFact], OccupancyFact]) -> Callable[[LaunchPlan], LaunchPlan]:
    def changed(plan: LaunchPlan) -> LaunchPlan:
        facts = tuple(change(fact) if isinstance(fact, OccupancyFact) else fact for fact in plan.facts)
        return replace(plan, facts=facts)

    return changed


def _of_the_first(fact: OccupancyFact) -> OccupancyFact:
    return replace(fact, kernel=0)


def _without_memory(fact: OccupancyFact) -> OccupancyFact:
    return replace(fact, dynamic_smem_bytes=0)


def _of_warps(fact: OccupancyFact) -> OccupancyFact:
    """Count the threads of one warp."""
    return replace(fact, threads=min(fact.threads, 32))


class _FirstDevice:
    """A trace in which each kernel has the grid that it had on the first device, as if that were asked alone."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, tuple[int, int, int]]] = {}

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Forget them."""
        self._seen.clear()
        return program

    def __call__(self, event: Launched) -> Launched:
        ordinal, grid = self._seen.setdefault(event.kernel, (event.device, event.grid))
        return event if event.device == ordinal else replace(event, grid=grid)


_FIRST_DEVICE = _FirstDevice()

FACT_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "neighbouring-attribute", "Asks for the next attribute.", "Z6", stage="emitter", emitted=_attributes
    ),
    saboteur(
        "sized-by-the-first",
        "Sizes launches by the first device.",
        "Z6",
        stage="driver",
        loaded=_FIRST_DEVICE.loaded,
        trace=in_trace(_FIRST_DEVICE, Launched),
    ),
    saboteur(
        "occupancy-of-the-first",
        "Asks for the occupancy of the first kernel.",
        "Z7",
        stage="emitter",
        emitted=_occupancies(_of_the_first),
    ),
    saboteur(
        "occupancy-without-memory",
        "Asks for the occupancy of a kernel without dynamic shared memory.",
        "Z7",
        stage="plan",
        plan=_occupancies(_without_memory),
    ),
    saboteur(
        "occupancy-of-warps",
        "Asks for the occupancy of blocks of a warp.",
        "Z7",
        stage="emitter",
        emitted=_occupancies(_of_warps),
    ),
)
"""The saboteurs."""
