"""Laws of what a launch receives: the oracle's word against the driver's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.contract.spec import Capability
from trunnion.testing.comparison import check_call, symbols_of
from trunnion.testing.expected import Refused
from trunnion.testing.laws import law
from trunnion.testing.reference import expect
from trunnion.testing.strategies import Scenario, scenarios

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from trunnion.testing.harness import Harness

__all__: list[str] = []


def _needing(*required: Capability) -> Callable[[Harness], SearchStrategy[Any]]:
    """Return strategies of programs that need all of ``required`` and may need what else is declared."""
    return lambda harness: scenarios(harness.capabilities, required)


def _delivers(harness: Harness, scenario: Scenario) -> None:
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)


@law("L1", given=lambda _: scenarios(()))
def basic_launch(harness: Harness, scenario: Scenario) -> None:
    """A launch of contiguous tensors of static shape, scalars and integers receives exactly what the program says."""
    _delivers(harness, scenario)


@law("L2", given=_needing(Capability.DYNAMIC_SHAPES), requires=frozenset({Capability.DYNAMIC_SHAPES}))
def dynamic_shapes(harness: Harness, scenario: Scenario) -> None:
    """Symbols take their values from the call's arguments alone, and every expression over them is exact."""
    _delivers(harness, scenario)


@law("L3", given=_needing(Capability.STRIDED_TENSORS), requires=frozenset({Capability.STRIDED_TENSORS}))
def strided_tensors(harness: Harness, scenario: Scenario) -> None:
    """A tensor with named strides is taken as it lies in memory, and refused if it lies otherwise."""
    _delivers(harness, scenario)


@law("L4", given=_needing(Capability.MULTI_LAUNCH), requires=frozenset({Capability.MULTI_LAUNCH}))
def several_launches(harness: Harness, scenario: Scenario) -> None:
    """Launches happen in the program's order, each with its own parameters, the same kernel twice included."""
    _delivers(harness, scenario)


@law("L5", given=_needing(Capability.CLUSTER), requires=frozenset({Capability.CLUSTER}))
def clusters(harness: Harness, scenario: Scenario) -> None:
    """A launch has the cluster that the program names, a single block included, and no other launch has one."""
    _delivers(harness, scenario)


@law("L6", given=_needing(Capability.COOPERATIVE), requires=frozenset({Capability.COOPERATIVE}))
def cooperative_launches(harness: Harness, scenario: Scenario) -> None:
    """A launch is cooperative exactly if the program says so."""
    _delivers(harness, scenario)


@law("L7", given=_needing(Capability.PDL), requires=frozenset({Capability.PDL}))
def dependent_launches(harness: Harness, scenario: Scenario) -> None:
    """A launch carries the programmatic attribute exactly if the program says so, on the consumer."""
    _delivers(harness, scenario)


@law("L8", given=lambda harness: scenarios(harness.capabilities))
def second_call(harness: Harness, scenario: Scenario) -> None:
    """A second call with other tensors receives its own parameters, and nothing of the first call's."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused):
            harness.require(observed.error is not None, "the second of two wrong calls went through")
            return
        harness.require(observed.error is None, f"the second call was refused: {observed.error!r}")
        check_call(harness, scenario, loaded, first=False)


@law("E1", given=lambda harness: scenarios(harness.capabilities))
def empty_grids(harness: Harness, scenario: Scenario) -> None:
    """A launch with an empty grid does not happen, nor is a tensor map encoded that only such launches read."""
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused):
            return
        symbols = symbols_of(scenario.program)
        want = [symbols[launch.kernel] for launch in expected.launches]
        got = [launch.kernel for launch in observed.launches]
        harness.require(got == want, f"launched {got}, expected {want}")
        harness.require(len(observed.encodes) == len(expected.maps), f"encoded {len(observed.encodes)} maps")
