"""The backend on the CPU beyond the laws, which `tests/conformance` checks: what it declares, and several threads."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import trunnion
from trunnion.contract.spec import Capability
from trunnion.testing.comparison import check_call
from trunnion.testing.harness import Harness
from trunnion.testing.host_machine import HostMachine
from trunnion.testing.strategies import scenarios

SPEC = trunnion.default_registry().backend("tvm_ffi")
NEEDS_NO_GPU = frozenset(
    {
        Capability.DYNAMIC_SHAPES,
        Capability.STRIDED_TENSORS,
        Capability.NULLABLE_TENSORS,
        Capability.POINTER_PARAMS,
        Capability.STRUCT_PARAMS,
        Capability.TENSOR_VIEWS,
        Capability.CONSTANTS_AND_OFFSETS,
        Capability.BUILT_STRUCTS,
        Capability.FLOAT_EXPRESSIONS,
        Capability.OUTPUT_FILL,
        Capability.WORKSPACE,
        Capability.MULTI_LAUNCH,
        Capability.CONDITIONAL_LAUNCH,
    }
)


def test_it_declares_all_that_needs_no_gpu():
    """Said here again, on purpose: what it no longer declared would no longer be tried either."""
    assert SPEC.targets["cpu"] == NEEDS_NO_GPU


@pytest.mark.parametrize("threads", [0, 2, 3])
def test_programs_deliver_on_several_threads_what_the_oracle_says(threads):
    harness = Harness(spec=SPEC, machine=HostMachine({"threads": threads}))

    # Each example compiles twice, so a failing one is not made smaller.
    @settings(
        max_examples=5,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(scenarios(NEEDS_NO_GPU, {Capability.MULTI_LAUNCH}))
    def delivers(scenario):
        with harness.loaded(scenario.program) as loaded:
            check_call(harness, scenario, loaded)

    delivers()
