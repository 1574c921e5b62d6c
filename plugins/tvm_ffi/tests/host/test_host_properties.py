"""Random programs on the CPU: what each kernel is given is what the oracle says, block by block."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import trunnion
from trunnion.arguments import spanned_bytes
from trunnion.contract.spec import Capability
from trunnion.errors import TrunnionError
from trunnion.testing.delivery import compare_launches, is_number, locate_workspaces
from trunnion.testing.expected import Address, CallFacts, Expected, Refused
from trunnion.testing.harness import Harness
from trunnion.testing.host_calls import host_arguments, host_facts
from trunnion.testing.host_recorder import HOST_CAPABILITIES, read_launches, recorded_names, recording_program
from trunnion.testing.provision import input_addresses
from trunnion.testing.reference import expect
from trunnion.testing.strategies import Scenario, scenarios

MOST_BLOCKS = 3000
SPEC = trunnion.default_registry().backend("tvm_ffi")
HARNESS = Harness(spec=SPEC, simulator=None)  # nothing is simulated here
# Each example compiles twice, so a failing one is not made smaller.
TOOLCHAIN = settings(
    max_examples=8,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def blocks_of(expected: Expected) -> int:
    return sum(x * y * z for x, y, z in (launch.grid for launch in expected.launches))


def contents(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a contiguous tensor, or of everything that another one's elements lie among."""
    spanned = spanned_bytes(tensor)
    return ctypes.string_at(tensor.data_ptr(), spanned) if spanned else b""


def check(scenario: Scenario, *, threads: int = 1, bound: bool = False) -> None:
    """Run a program, and compare what its kernels were given with the oracle's word."""
    call = scenario.call
    args = host_arguments(call.args)
    out = None if call.out is None else host_arguments(call.out)
    device = None if call.device is None else 0
    facts = host_facts(args, out, device)
    expected = expect(scenario.program, facts)
    assume(isinstance(expected, Refused) or blocks_of(expected) <= MOST_BLOCKS)
    before = [contents(value) for value in args if isinstance(value, torch.Tensor)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "records")
        program = recording_program(scenario.program, file)
        options = {"tvm_ffi": {"O": 0, "threads": threads}}
        with trunnion.compile(program, "tvm_ffi", options=options) as compiled:
            outcome: Any = None
            problem = None
            try:
                make = compiled.bind if bound else compiled
                outcome = make(*args, out=out, device=device)
                outcome = outcome() if bound else outcome
            except TrunnionError as error:
                problem = error
        if problem is not None or isinstance(expected, Refused):
            assert isinstance(expected, Refused), f"{type(problem).__name__}: {problem}"
            assert problem is not None, expected.problems
            assert expected.explains(problem), (type(problem), problem, expected.problems)
            assert not file.exists()
            return
        data = file.read_bytes() if file.exists() else b""
        launches = read_launches(scenario.program, data, ordered=threads == 1)
    compare(scenario, facts, expected, (launches, outcome))
    assert before == [contents(value) for value in args if isinstance(value, torch.Tensor)]


def compare(scenario: Scenario, facts: CallFacts, expected: Expected, got: tuple[Any, Any]) -> None:
    launches, outcome = got
    results = () if outcome is None else outcome if isinstance(outcome, tuple) else (outcome,)
    assert [
        (one.name, tuple(result.shape)) for one, result in zip(expected.outputs, results, strict=True)
    ] == [(one.name, one.shape) for one in expected.outputs]
    where = {
        **locate_workspaces(expected.launches, launches),
        **input_addresses(scenario.program, facts),
        **{
            Address(one.name): result.data_ptr()
            for one, result in zip(expected.outputs, results, strict=True)
        },
    }
    compare_launches(HARNESS, expected.launches, launches, where, recorded_names(scenario.program))
    for output, result in zip(expected.outputs, results, strict=True):
        assert result.device.type == "cpu"
        data, size = contents(result), result.element_size()
        if output.fill is not None:
            assert all(is_number(output.fill, data[at : at + size]) for at in range(0, len(data), size))
    for space in expected.workspaces:
        address = where.get(Address(space.name, 0, workspace=True), 0)
        assert address % space.alignment == 0
        assert address or not space.nbytes


@TOOLCHAIN
@given(scenarios(HOST_CAPABILITIES))
def test_any_program_delivers_what_the_oracle_says(scenario):
    check(scenario)


@TOOLCHAIN
@given(scenarios(HOST_CAPABILITIES, {Capability.MULTI_LAUNCH}), st.integers(0, 4))
def test_so_it_does_on_several_threads(scenario, threads):
    check(scenario, threads=threads)


@TOOLCHAIN
@given(scenarios(HOST_CAPABILITIES, {Capability.OUTPUT_FILL, Capability.WORKSPACE}))
def test_so_it_does_when_it_is_bound(scenario):
    check(scenario, bound=True)


@pytest.mark.parametrize("capability", sorted(HOST_CAPABILITIES))
def test_so_it_does_with_each_feature(capability):
    @settings(TOOLCHAIN, max_examples=2)
    @given(scenarios(HOST_CAPABILITIES, {capability}))
    def delivers(scenario):
        check(scenario)

    delivers()


def test_what_a_program_for_the_cpu_may_require_is_what_the_backend_declares():
    assert SPEC.targets["cpu"] == HOST_CAPABILITIES | {Capability.AOT}
