"""Calls of a recording function, held against the oracle, which reads the signature and the call by itself."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
import torch
import tvm_ffi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trunnion import errors
from trunnion.model.capability import Capability
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.plan.planning import plan_signature
from trunnion.model.plan.steps import Phase, Return, Step
from trunnion.testing.delivery import is_number
from trunnion.testing.expected import Refused, TensorFacts
from trunnion.testing.harness import Harness, facts_of
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.reference import expect
from trunnion.testing.reference_numbers import encode_number
from trunnion.testing.strategies import calls, mistakes_of_each_kind, programs
from trunnion.testing.strategies.calls import TensorSpec
from trunnion.testing.strategies.programs import CODE
from trunnion_tvm_ffi import from_module
from trunnion_tvm_ffi.foreign.dlpack import read_capsule
from trunnion_tvm_ffi.foreign.interface import emit_preparation

pytestmark = pytest.mark.tvm_ffi_abi

_ONE = Const(1)
_LAUNCH = KernelLaunch("k", (), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
_OF_SIGNATURES = (
    Capability.DYNAMIC_SHAPES,
    Capability.STRIDED_TENSORS,
    Capability.NULLABLE_TENSORS,
    Capability.POINTER_PARAMS,
    Capability.STRUCT_PARAMS,
    Capability.OUTPUT_FILL,
)


def examples(count):
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


class Recorder:
    """A function of TVM-FFI that notes what it is given."""

    def __init__(self):
        self.given = None
        self.function = tvm_ffi.convert(self.note)

    def note(self, *args):
        self.given = [_seen(value) for value in args]


def _seen(value):
    """Return an argument as a function sees it; a tensor as its facts."""
    if isinstance(value, (tvm_ffi.Tensor, torch.Tensor)):
        capsule = (
            tvm_ffi.from_dlpack(value).__dlpack__() if isinstance(value, torch.Tensor) else value.__dlpack__()
        )
        return read_capsule(capsule)
    return value


@st.composite
def subjects(draw):
    """Draw a program with nothing but a signature, a good call of it, and the places of its outputs."""
    drawn = draw(programs(_OF_SIGNATURES))
    program = replace(drawn, code=(CODE,), launches=(_LAUNCH,))
    count = len(program.signature.params) + len(program.signature.outputs)
    places = draw(st.permutations(range(count)))[: len(program.signature.outputs)]
    return program, draw(calls(program)), places


class Subject:
    """A recording function under a program's signature."""

    def __init__(self, simulator, program, places):
        self.harness = Harness(spec=None, machine=SimulatedMachine(simulator))
        self.program = program
        self.recorder = Recorder()
        self.foreign = from_module(
            self.recorder.function, "recorder", program.signature, result_idx=list(places)
        )

    def call(self, call):
        """Make a call; return what the oracle expects, the arguments, the destinations, the result and the error."""
        args = self.harness.arguments(call.args)
        out = None if call.out is None else self.harness.arguments(call.out)
        expected = expect(self.program, self.harness.facts(args, out=out, device=call.device))
        self.recorder.given = result = error = None
        try:
            result = self.foreign(*args, out=out, device=call.device)
        except errors.TrunnionError as raised:
            error = raised
        if isinstance(expected, Refused):
            assert error is not None, (call, expected)
            assert expected.explains(error), (error, expected)
            assert self.recorder.given is None
        else:
            assert error is None, error
        return expected, args, out, result


def is_short(value):
    return isinstance(value, TensorSpec) and value.short


def mistakes(program):
    """Draw calls with a mistake of each kind, but for two that a foreign function may well take.

    These are tensors of the host, and a call with neither a tensor nor a device.
    """

    def on_devices(call):
        tensors = [value for value in (*call.args, *(call.out or ())) if isinstance(value, TensorSpec)]
        placed = bool(tensors) or call.device is not None
        return placed and all(tensor.device is not None for tensor in tensors)

    return mistakes_of_each_kind(program).map(
        lambda drawn: [broken.call for broken in drawn if on_devices(broken.call)]
    )


@pytest.mark.parametrize("phase", [Phase.TENSORS, Phase.VALUES])
def test_no_step_is_passed_over(phase):
    plan = plan_signature("f", Signature((TensorParam("x", "float32", (8,)),), ()))
    plan.__dict__["steps"] = (*plan.steps, Step(phase, Return(())))
    with pytest.raises(TypeError, match="a step Return"):
        emit_preparation(plan, ())


@examples(100)
@given(subject=subjects())
def test_a_function_is_given_what_the_signature_says(simulator, subject):
    program, call, places = subject
    tried = Subject(simulator, program, places)
    expected, args, out, result = tried.call(call)
    if isinstance(expected, Refused):
        return
    outputs = result if isinstance(result, tuple) else () if result is None else (result,)
    check_outputs(tried.harness, expected, outputs, out)
    at = dict(zip(places, zip(program.signature.outputs, outputs, strict=True), strict=True))
    rest = iter(zip(program.signature.params, args, strict=True))
    assert len(tried.recorder.given) == len(args) + len(outputs)
    for place, seen in enumerate(tried.recorder.given):
        param, value = at[place] if place in at else next(rest)
        check_argument(param, value, seen)


def check_outputs(harness, expected, outputs, out):
    assert len(outputs) == len(expected.outputs)
    for want, got in zip(expected.outputs, outputs, strict=True):
        have = facts_of(got)
        assert (have.dtype, have.shape, have.device) == (want.dtype, want.shape, expected.device)
        assert got.is_contiguous()
        if want.fill is not None:
            held, size = harness.contents(got), got.element_size()
            assert len(held) == size * got.numel()
            assert all(is_number(want.fill, held[at : at + size]) for at in range(0, len(held), size))
    if out is not None:
        assert all(got is destination for got, destination in zip(outputs, out, strict=True))


def check_argument(param, value, seen):
    """Compare what a function saw of an argument with what was passed."""
    match param:
        case TensorParam():
            if value is None:
                assert seen is None
                return
            facts = facts_of(value)
            assert (seen.dtype, seen.shape, seen.device) == (
                param.dtype.dlpack,
                facts.shape,
                (2, facts.device),
            )
            if 0 not in facts.shape:
                assert seen.address == facts.address
                live = [axis for axis, extent in enumerate(facts.shape) if extent > 1]
                assert [seen.strides[axis] for axis in live] == [facts.strides[axis] for axis in live]
        case ScalarParam():
            check_number(param.dtype, value, seen)
        case PointerParam():
            address = 0 if seen is None else seen.value or 0
            assert address == (0 if value is None else value.__index__())
        case StructParam():
            assert bytes(seen) == bytes(memoryview(value))


def check_number(dtype, value, seen):
    """What travels is rounded by whoever takes it, once: to the bits that a launcher would pass."""
    if dtype.kind == "complex":
        seen = complex(*struct.unpack("<2d", bytes(seen)))
    elif dtype.name == "uint64":
        seen &= 2**64 - 1
    assert isinstance(
        seen, {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}[dtype.kind]
    )
    wanted = complex(value) if dtype.kind == "complex" else value
    assert str(encode_number(dtype.name, seen)) == str(encode_number(dtype.name, wanted))


@examples(40)
@given(data=st.data())
def test_a_call_with_a_mistake_is_refused_and_the_mistake_named(simulator, data):
    program, _, places = data.draw(subjects())
    tried = Subject(simulator, program, places)
    for broken in data.draw(mistakes(program)):
        tried.call(broken)


@examples(40)
@given(subject=subjects(), data=st.data())
def test_what_was_recalled_changes_nothing(simulator, subject, data):
    """Calls of one program in a row, alike and not, come out as each would alone."""
    program, call, places = subject
    tried = Subject(simulator, program, places)
    # How long a storage is may be asked where the address is new.
    others = [
        one for one in data.draw(mistakes(program)) if not any(map(is_short, (*one.args, *(one.out or ()))))
    ]
    for each in (call, call, call, *others[:6], call, data.draw(calls(program)), call):
        expected, args, _, _ = tried.call(each)
        if not isinstance(expected, Refused):
            wanted = [facts_of(value) for value in args]
            shapes = [value.shape for value in wanted if isinstance(value, TensorFacts)]
            shapes += [output.shape for output in expected.outputs]
            seen = [value.shape for value in tried.recorder.given if hasattr(value, "address")]
            assert sorted(seen) == sorted(shapes)


def test_tensors_are_drawn():
    """The comparisons above would hold of nothing if there were none."""
    found = []

    @settings(max_examples=50)
    @given(subjects())
    def look(subject):
        found.extend(value for value in subject[1].args if isinstance(value, TensorSpec))

    look()
    assert len(found) > 20
