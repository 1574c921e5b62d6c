"""The oracle against bytes that were worked out by hand."""

from __future__ import annotations

import pytest

from trunnion.errors import ArgumentTypeError, ArgumentValueError, ExprError, TensorMapError
from trunnion.examples import load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, symbols
from trunnion.testing.expected import (
    Address,
    CallSignature,
    Expected,
    ExpectedLaunch,
    ExpectedMap,
    ExpectedNan,
    ExpectedOutput,
    Refused,
    TensorFacts,
)
from trunnion.testing.reference import expect, parameter_layouts

CODE = DeviceCode("cuda", "")


def tensor(shape, dtype="float32", strides=None, address=0x10000, device=0):
    if strides is None:
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
    return TensorFacts(
        dtype=dtype, shape=tuple(shape), strides=tuple(strides), address=address, device=device
    )


def test_vector_add():
    program = load("vector_add").program
    call = CallSignature(args=(tensor((1000,)), tensor((1000,), address=0x20000)))
    assert expect(program, call) == Expected(
        launches=(
            ExpectedLaunch(
                kernel=("vector_add", 0),
                grid=(4, 1, 1),
                block=(256, 1, 1),
                dynamic_smem_bytes=0,
                parameters=(Address("a"), Address("b"), Address("c"), bytes([0xE8, 0x03, 0, 0])),
            ),
        ),
        outputs=(ExpectedOutput("c", "float32", (1000,)),),
        device=0,
    )
    assert parameter_layouts(program) == {("vector_add", 0): ((8, 8), (8, 8), (8, 8), (4, 4))}


def test_an_empty_vector_launches_nothing():
    call = CallSignature(args=(tensor((0,), address=0), tensor((0,), address=0)))
    told = expect(load("vector_add").program, call)
    assert isinstance(told, Expected)
    assert (told.launches, told.skipped) == ((), 1)


def test_gemm():
    program = load("hopper_gemm").program
    m, n, k = 256, 384, 128
    call = CallSignature(args=(tensor((m, k), "float16"), tensor((n, k), "float16", address=0x90000)))
    told = expect(program, call)
    assert isinstance(told, Expected)
    (launch,) = told.launches
    (source,) = program.launches
    maps = [argument for argument in source.args if hasattr(argument, "box_dim")]
    assert launch.maps[0] == ExpectedMap(
        address=Address("a"),
        element_type="float16",
        dtype=6,
        dims=(k, m),
        strides=(2 * k,),
        box=tuple(reversed(maps[0].box_dim)),
        element_strides=(1, 1),
        interleave=0,
        swizzle=3,
        l2_promotion=maps[0].l2_promotion.code,
        oob_fill=0,
    )
    assert launch.maps[1].dims == (k, n)
    assert told.outputs[0].shape == (m, n)


def scaled():
    p = ProgramBuilder("p", CODE)
    m, n = symbols("m n")
    x = p.input("x", "bfloat16", (m, n), strides=(n * 2, 1))
    f, h, t = p.scalar("f", "float16"), p.scalar("h", "bfloat16"), p.scalar("t", "bool")
    s = Symbol("s", min=1, max=100, multiple_of=4)
    q = p.scalar("q", "uint16", s)
    p.check(n - m + 100, "n close to m")
    p.launch(
        "k",
        (x, f, h, t, q, (s * m).cast("int16"), m // n),
        grid=(m, 1),
        block=(s, 2),
        dynamic_smem_bytes=s * 8,
    )
    return p.build()


def test_scalars_and_expressions():
    x = tensor((3, 5), "bfloat16", (10, 1))
    told = expect(scaled(), CallSignature(args=(x, 1.5, float("nan"), True, 8)))
    assert isinstance(told, Expected)
    (launch,) = told.launches
    assert launch.parameters == (
        Address("x"),
        b"\x00\x3e",
        ExpectedNan("bfloat16"),
        b"\x01",
        b"\x08\x00",
        b"\x18\x00",
        bytes(8),
    )
    assert (launch.grid, launch.block, launch.dynamic_smem_bytes) == ((3, 1, 1), (8, 2, 1), 64)


GOOD = (tensor((3, 5), "bfloat16", (10, 1)), 1.5, 2.0, True, 8)


@pytest.mark.parametrize(
    ("place", "wrong", "error", "argument"),
    [
        (0, 7, ArgumentTypeError, "x"),
        (0, tensor((3, 5), "float16", (10, 1)), ArgumentTypeError, "x"),
        (0, tensor((3, 5, 1), "bfloat16"), ArgumentValueError, "x"),
        (0, tensor((3, 5), "bfloat16", (11, 1)), ArgumentValueError, "x"),
        (0, tensor((3, 5), "bfloat16", (10, 1), address=0x10001), ArgumentValueError, "x"),
        (0, tensor((3, 5), "bfloat16", (10, 1), device=None), ArgumentValueError, "x"),
        (0, tensor((105, 5), "bfloat16", (10, 1)), ArgumentValueError, ""),
        (1, "1.5", ArgumentTypeError, "f"),
        (1, 65520.0, ArgumentValueError, "f"),
        (1, True, ArgumentTypeError, "f"),
        (3, 1, ArgumentTypeError, "t"),
        (4, True, ArgumentTypeError, "q"),
        (4, 8.0, ArgumentTypeError, "q"),
        (4, 65536, ArgumentValueError, "q"),
        (4, 6, ArgumentValueError, "q"),
        (4, 104, ArgumentValueError, "q"),
    ],
)
def test_what_is_refused(place, wrong, error, argument):
    assert isinstance(expect(scaled(), CallSignature(args=GOOD)), Expected)
    told = expect(scaled(), CallSignature(args=(*GOOD[:place], wrong, *GOOD[place + 1 :])))
    assert isinstance(told, Refused)
    assert told.explains(error(argument, "got", "expected"))
    assert not told.explains(error("another", "got", "expected"))


def test_an_overflow_in_a_skipped_launch_is_not_computed():
    p = ProgramBuilder("p", CODE)
    n, g = Symbol("n"), Symbol("g")
    p.scalar("n", "int64", n)
    p.scalar("g", "int32", g)
    p.launch("k", (n * n,), grid=g, block=1)
    program = p.build()
    assert isinstance(expect(program, CallSignature(args=(2**40, 0), device=0)), Expected)
    told = expect(program, CallSignature(args=(2**40, 1), device=0))
    assert isinstance(told, Refused)
    assert told.explains(ExprError("does not fit"))


@pytest.mark.parametrize(("author", "told"), [(0, "it is 0"), (1, "it is 1")])
def test_of_an_authors_check_and_a_launchs_rule_either_may_be_told(author, told):
    p = ProgramBuilder("p", CODE)
    n, x = symbols("n x")
    p.input("a", "bool", (n,))
    p.scalar("x", "int32", x)
    p.check(x - 1 if told == "it is 1" else 6 % x, told)
    p.launch("k", (), grid=n, block=1, cluster=(4, 1, 1))
    program = p.build()
    refused = expect(program, CallSignature(args=(tensor((5,), "bool"), author)))
    assert isinstance(refused, Refused)
    assert refused.explains(ArgumentValueError("", "a grid of 5", "a multiple of 4"))
    assert any(problem.reason.startswith("a grid of") for problem in refused.problems)
    own = ExprError("division by zero") if author == 0 else ArgumentValueError("", "1", told)
    assert refused.explains(own)
    alone = expect(program, CallSignature(args=(tensor((4,), "bool"), author)))
    assert isinstance(alone, Refused)
    assert not alone.explains(TensorMapError(["another"]))


def test_a_map_over_short_rows_is_refused():
    p = ProgramBuilder("p", CODE)
    n = Symbol("n")
    x = p.input("x", "float16", (4, n))
    p.launch("k", (x.tiled((2, 8)),), grid=1, block=32)
    program = p.build()
    assert isinstance(expect(program, CallSignature(args=(tensor((4, 16), "float16"),))), Expected)
    short, misplaced = tensor((4, 12), "float16"), tensor((4, 16), "float16", address=0x10008)
    both = tensor((4, 12), "float16", address=0x10008)
    for wrong, broken in (
        (short, ("stride",)),
        (misplaced, ("address",)),
        (both, ("stride", "address")),
    ):
        told = expect(program, CallSignature(args=(wrong,)))
        assert isinstance(told, Refused)
        assert told.explains(TensorMapError([f"each {word} is good" for word in broken]))
        assert not told.explains(TensorMapError([f"each {word} is good" for word in broken[1:]]))


@pytest.mark.parametrize(("device", "elsewhere"), [(0, 0), (None, 0), (1, 0)])
def test_where_tensors_and_destinations_lie_apart_either_may_be_told(device, elsewhere):
    inputs = tensor((4,), device=1), tensor((4,), address=0x20000, device=1)
    out = (tensor((4,), address=0x30000, device=elsewhere),)
    told = expect(load("vector_add").program, CallSignature(args=inputs, out=out, device=device))
    assert isinstance(told, Refused)
    assert any("c" in (problem.arguments or ()) for problem in told.problems)
    apart = CallSignature(args=(inputs[0], tensor((4,), address=0x20000, device=0)), out=out)
    told = expect(load("vector_add").program, apart)
    assert isinstance(told, Refused)
    assert {name for problem in told.problems for name in problem.arguments or ()} == {"b", "c"}


def test_the_first_tensor_that_lies_elsewhere_than_the_first_is_to_blame():
    p = ProgramBuilder("p", CODE)
    names = [p.input(name, "float16", (4,)).name for name in "abcd"]
    p.launch("k", (), grid=1, block=32)
    program = p.build()
    for places, blamed in (((0, 1, 0, 1), "b"), ((1, 0, 0, 0), "b"), ((0, 0, 0, 1), "d")):
        told = expect(program, CallSignature(args=tuple(tensor((4,), "float16", device=at) for at in places)))
        assert isinstance(told, Refused)
        for name in names:
            assert told.explains(ArgumentValueError(name, "a tensor", "another")) == (name == blamed)
