"""The address of an element of memory that is not the first one, as an argument of a launch."""

from __future__ import annotations

import json

import pytest

from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Symbol
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import TensorParam
from trunnion.model.plan import KernelParameter, LaunchPlan, MovedArgument
from trunnion.model.plan.steps import ComputeArguments, Phase
from trunnion.model.program import KernelProgram
from trunnion.testing.arithmetic import evaluate

M, N = Symbol("m"), Symbol("n", min=1)


def _tensor(shape: tuple[object, ...], **fields: object) -> TensorParam:
    return TensorParam("a", "float32", shape, **fields)  # type: ignore[arg-type]  # reads spellings


def _program(shape: tuple[object, ...], offset: object, **fields: object) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("shown", "int8", (M, N))
    a = p.input("a", "float32", shape, **fields)
    p.launch("k", (a.at(offset),), 1, 1)
    return p.build()


def _moved(plan: LaunchPlan) -> MovedArgument:
    argument = plan.launches[0].args[0]
    assert isinstance(argument, MovedArgument)
    return argument


@pytest.mark.parametrize(
    ("shape", "strides", "span"),
    [
        ((), None, 1),
        ((4, 8), None, 32),
        ((4, 0), None, 0),
        ((4, 8), (16, 1), 56),
        ((4, 8), (0, 2), 15),
    ],
)
def test_memory_spans_what_lies_between_its_first_element_and_its_end(shape, strides, span):
    assert _tensor(shape, strides=strides).span() == Const(span)


@pytest.mark.parametrize(("m", "n", "span"), [(4, 8, 60), (4, 1, 46), (0, 8, 0), (1, 1, 1)])
def test_what_only_a_call_decides_is_an_expression_of_elements(m, n, span):
    found = _tensor((M, N), strides=(15, 2)).span()
    assert evaluate(found, {"m": m, "n": n}) == span


def test_a_moved_address_is_a_pointer_to_a_kernel():
    plan = _program((M, 8), N).plan()
    assert plan.kernels[0].parameters == (KernelParameter(8, 8, "a pointer to float32 (8 bytes)"),)
    assert _moved(plan).numbers == (_moved(plan).offset, _moved(plan).limit)
    assert plan.requires >= {"constants_and_offsets"}


def test_an_offset_that_lies_within_in_every_call_is_not_judged():
    for shape, offset in (((4, 8), 32), ((N, 8), 1), ((N,), 0), ((M,), 0)):
        plan = _program(shape, offset).plan()
        assert _moved(plan).is_proven, (shape, offset)
        assert _moved(plan).numbers == (Const(offset),)
    for shape, offset in (((M,), 1), ((N, 8), 9), ((4, 8), M)):
        assert not _moved(_program(shape, offset).plan()).is_proven


@pytest.mark.parametrize(
    ("shape", "offset"), [((4, 8), 33), ((4, 8), -1), ((0,), 1), ((M,), -1), ((4,), M + 5), ((4,), -M - 1)]
)
def test_an_offset_that_no_call_allows_is_refused_as_it_is_written(shape, offset):
    with pytest.raises(ProgramError, match="in every call, expected 0 to") as caught:
        _tensor(shape).at(offset)
    assert caught.value.field == "at.offset"
    assert "'a'" in str(caught.value)


def test_the_end_is_a_place():
    assert _tensor((4, 8)).at(32).offset == Const(32)


@pytest.mark.parametrize("offset", [0.5, None, "n", True])
def test_an_offset_is_an_integer_expression(offset):
    with pytest.raises(ProgramError) as caught:
        _tensor((4,)).at(offset)
    assert caught.value.field.startswith("at.offset")


def test_a_moved_address_is_of_memory():
    with pytest.raises(ProgramError, match="memory"):
        MovedAddress(3, Const(0))  # type: ignore[arg-type]  # which is refused


def test_an_address_is_moved_once():
    with pytest.raises(ExprError, match=r"add to its offset: x\.at\(offset \+ n\)"):
        _tensor((4,)).at(1) + 1


def test_a_program_with_moved_addresses_goes_through_json():
    program = _program((M, N), M + 1)
    assert KernelProgram.from_json(program.to_json()) == program
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("shown", "int8", (M,))
    scratch, out = p.workspace("scratch", "float32", (M,)), p.output("out", "int8", (M,))
    p.launch("k", (scratch.at(M), out.at(0)), 1, 1)
    program = p.build()
    assert KernelProgram.from_json(program.to_json()) == program
    assert program.workspaces == (scratch,)
    assert program.plan().workspaces[0].readers == (0,)


@pytest.mark.parametrize(
    "said",
    [
        {"memory": {"param": 0}},
        {"offset": "1"},
        {"memory": {"param": 0}, "offset": 1},
        {"memory": {"param": 0}, "offset": "100"},
        {"memory": {"param": 9}, "offset": "1"},
        {"memory": {"param": 0}, "offset": "1", "more": 1},
    ],
)
def test_json_of_no_moved_address_is_refused(said):
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.launch("k", (p.input("a", "float32", (4,)).at(1),), 1, 1)
    tree = json.loads(p.build().to_json())
    tree["launches"][0]["args"] = [{"at": said}]
    with pytest.raises(ProgramError) as caught:
        KernelProgram.from_json(json.dumps(tree))
    assert caught.value.field.startswith("launches[0].args[0].at")


def test_symbols_and_memory_of_another_program_are_refused():
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    a = p.input("a", "float32", (4,))
    p.launch("k", (a.at(Symbol("elsewhere")),), 1, 1)
    with pytest.raises(ProgramError, match="elsewhere"):
        p.build()
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.launch("k", (_tensor((4,)).at(1),), 1, 1)
    with pytest.raises(ProgramError, match="'a' is not a parameter"):
        p.build()


def test_what_the_tensors_decide_is_computed_with_them():
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    k = Symbol("k")
    p.scalar("k", "int64", k)
    a = p.input("a", "float32", (M,))
    p.launch("k", (a.at(M), a.at(k)), 1, 1)
    plan = p.build().plan()
    found = [
        (step.phase, step.action.ordinals) for step in plan.steps if isinstance(step.action, ComputeArguments)
    ]
    assert found == [(Phase.TENSORS, (0,)), (Phase.VALUES, (1,))]
