"""Laws of tensor maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import TensorMapError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol, as_expr
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.testing.comparison import check_call, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.laws import law
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, scenarios
from trunnion.testing.strategies.programs import CODE

if TYPE_CHECKING:
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_ONE = Const(1)
_TILED = frozenset({Capability.TMA_TILED})


def _mapped(harness: Harness) -> st.SearchStrategy[Any]:
    return scenarios(harness.capabilities, _TILED)


@law("T1", given=_mapped, requires=_TILED)
def maps_arrive(harness: Harness, scenario: Scenario) -> None:
    """A launch receives, for each tensor map, the encoding of exactly the request that the program describes."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)


@law("T2", given=_mapped, requires=_TILED)
def encoded_once(harness: Harness, scenario: Scenario) -> None:
    """In the first call each distinct map is encoded once, before its first reader; later calls add none twice."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        assume(not isinstance(expected, Refused))
        count = 0 if isinstance(expected, Refused) else len(expected.maps)
        harness.require(len(observed.encodes) <= count, f"encoded {len(observed.encodes)} maps of {count}")


@st.composite
def _broken_maps(draw: st.DrawFn, *, dynamic: bool) -> Scenario:
    """Draw a map that only a call can show to be wrong: its rows or its address are no multiples of 16 bytes."""
    rows = draw(st.integers(2, 9))
    columns = draw(st.integers(16, 40)) if dynamic else draw(st.sampled_from((16, 24, 64)))
    width = as_expr(columns) if not dynamic else Symbol("width")
    tensor = TensorParam("a", dtype("float16"), (as_expr(rows), width))
    launch = KernelLaunch("k", (tensor.tiled((1, 8)),), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    spec = TensorSpec(
        dtype="float16", shape=(rows, columns), strides=(columns, 1), offset=draw(st.integers(1, 7))
    )
    return Scenario(program, CallSpec(args=(spec,)))


@law(
    "T3",
    given=lambda harness: _broken_maps(dynamic=Capability.DYNAMIC_SHAPES in harness.capabilities),
    requires=_TILED,
)
def broken_rules(harness: Harness, scenario: Scenario) -> None:
    """A map that breaks a rule in this call is refused by the library, by name, before anything is launched."""
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        harness.require(isinstance(expected, Refused), "the example is none")
        if isinstance(expected, Refused):
            check_refused(harness, expected, observed)
        error = observed.error
        harness.require(isinstance(error, TensorMapError), f"raised {type(error).__name__}")
        harness.require(getattr(error, "broken", ()), "the error names no rule")
