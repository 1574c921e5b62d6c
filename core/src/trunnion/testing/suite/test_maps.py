"""Laws of tensor maps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import TensorMapError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol, as_expr
from trunnion.model.launch import Argument, KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Struct
from trunnion.model.workspace import Workspace
from trunnion.testing.comparison import check_call, check_given, check_moving, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.laws import law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.repeatable import bind_call
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, scenarios
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.strategies.limits import Series
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.suite.test_launches import delivers, delivers_each, needing

if TYPE_CHECKING:
    from trunnion.testing.harness import Harness
    from trunnion.testing.ways import Arguments

__all__: list[str] = []

_ONE = Const(1)
_TILED = frozenset({Capability.TMA_TILED})


def _mapped(harness: Harness) -> st.SearchStrategy[Any]:
    return scenarios(harness.capabilities, _TILED)


@law("T1", tier="driver", given=_mapped, requires=_TILED)
def maps_arrive(harness: Harness, scenario: Scenario) -> None:
    """A launch receives, for each tensor map, the encoding of exactly the request that the program describes."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
    harness.once(_check_told_apart)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_outermost)


def _check_outermost(harness: Harness) -> None:
    """Require that maps over the same memory which differ in their outermost extent alone are two."""
    tensor = TensorParam("a", dtype("float16"), (Symbol("n", min=1), Const(2), Const(64)))
    launch = KernelLaunch("k", (tensor.tiled((1, 1, 16)),), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    spec = TensorSpec(dtype="float16", shape=(4, 2, 64), strides=(128, 64, 1))
    given = harness.given(CallSpec(args=(spec,)))
    (memory,) = given.args
    with harness.loaded(program) as loaded:
        for count in (4, 4, 2, 4, 3):
            check_given(harness, program, replace(given, args=[memory[:count]]), loaded, first=False)


_UNLIKE: tuple[dict[str, Any], ...] = (
    {},
    {"box_dim": (1, 2, 16)},
    {"shape": (Const(2), Const(4), Const(32))},
    {"strides": (Const(256), Const(128), _ONE)},
    {"element_offset": 64},
    {"element_strides": (1, 2, 1)},
    {"interleave": "16B"},
    {"swizzle": "128B"},
    {"l2_promotion": "L2_128B"},
    {"oob_fill": "NAN_REQUEST_ZERO_FMA"},
    {"dtype": "uint16"},
)
"""What is different of maps over one tensor, which are alike in all else."""


def _check_told_apart(harness: Harness) -> None:
    """Require that maps which differ in one thing alone are two, whichever comes first."""
    tensor = TensorParam("a", dtype("float16"), (Const(8), Const(8), Const(64)))
    same: dict[str, Any] = {
        "box_dim": (1, 1, 16),
        "shape": (Const(2), Const(4), Const(64)),
        "strides": (Const(512), Const(64), _ONE),
        "element_offset": 0,
    }
    maps = tuple(tensor.tiled(**same | other) for other in _UNLIKE)
    launch = KernelLaunch("k", (*maps, *reversed(maps)), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    spec = TensorSpec(dtype="float16", shape=(8, 8, 64), strides=(512, 64, 1))
    with harness.loaded(program) as loaded:
        check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded)


@law("T2", tier="driver", given=_mapped, requires=_TILED)
def encoded_once(harness: Harness, scenario: Scenario) -> None:
    """In the first call each distinct map is encoded once, before its first reader; later calls add none twice."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        assume(not isinstance(expected, Refused))
        count = 0 if isinstance(expected, Refused) else len(expected.maps)
        harness.require(len(observed.encodes) <= count, f"encoded {len(observed.encodes)} maps of {count}")
    harness.once(_check_kept)
    if harness.machine.tier == "sim":
        harness.once(_check_each_of_many, each_way=False)


_MORE = 400
"""Tensors of which each has a map: more than a launcher's table may have room for."""

_MANY = 150
"""How many calls a launcher has between a bound call and the launch of it: more maps than one would keep."""


def _of_a_few_rows(harness: Harness) -> KernelProgram:
    """Return a program with a map of its tensor, and another in a struct if there are such: of 9 rows, or of any."""
    dynamic = Capability.DYNAMIC_SHAPES in harness.capabilities
    tensor = TensorParam("a", dtype("float16"), (Symbol("n", min=1) if dynamic else Const(9), Const(64)))
    args: list[Argument] = [tensor.tiled((1, 8))]
    if Capability.BUILT_STRUCTS in harness.capabilities:
        args.append(Struct((("map", tensor.tiled((1, 16))),)))
    launch = KernelLaunch("k", tuple(args), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    return KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))


def _check_each_of_many(harness: Harness) -> None:
    """Require that each of many tensors has its own map, and still has it when all others were passed."""
    program = _of_a_few_rows(harness)
    given = harness.given(
        CallSpec(args=(TensorSpec(dtype="float16", shape=(_MORE + 9, 64), strides=(64, 1)),))
    )
    (memory,) = given.args
    with harness.loaded(program) as loaded:
        for start in (*range(_MORE), *range(_MORE)):
            again = replace(given, args=[memory[start : start + 9]])
            check_given(harness, program, again, loaded, first=False)


def _check_kept(harness: Harness) -> None:
    """Require that the maps of a bound call are there as long as it is, whatever maps other calls have."""
    dynamic = Capability.DYNAMIC_SHAPES in harness.capabilities
    program = _of_a_few_rows(harness)
    held: list[Any] = []

    def given(rows: int) -> Arguments:
        spec = TensorSpec(dtype="float16", shape=(rows, 64), strides=(64, 1))
        return harness.given(CallSpec(args=(spec,)))

    with harness.loaded(program) as loaded:
        bound = bind_call(harness, program, loaded, given(9))
        assert bound is not None, "no reason to refuse it"
        for turn in range(_MANY):
            other = given(
                1 + turn // 2 % 40 if dynamic and turn % 2 else 9
            )  # many of one layout, and many layouts
            held.append(other.args[:])
            observe(harness, partial(other.launch, loaded))
        held += [bytearray(b"\xee" * nbytes) for nbytes in (120, 128, 136, 144, 160, 192) for _ in range(400)]
        bound.check(harness, program)


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
    tier="driver",
    given=lambda harness: _broken_maps(dynamic=Capability.DYNAMIC_SHAPES in harness.capabilities),
    requires=_TILED,
)
def broken_rules(harness: Harness, scenario: Scenario) -> None:
    """A map that breaks a rule in this call is refused by the library, by name, before anything is launched."""
    if harness.capabilities >= {Capability.DYNAMIC_SHAPES, Capability.STRIDED_TENSORS}:
        harness.once(_check_broken_later)
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        harness.require(isinstance(expected, Refused), "the example is none")
        if isinstance(expected, Refused):
            check_refused(harness, expected, observed)
        error = observed.error
        harness.require(isinstance(error, TensorMapError), f"raised {type(error).__name__}")
        harness.require(getattr(error, "broken", ()), "the error names no rule")


_IM2COL = frozenset({Capability.TMA_IM2COL})


def _check_broken_later(harness: Harness) -> None:
    """Require that a map which was good once is refused where its elements lie apart, in the same memory."""
    step = Symbol("step")
    tensor = TensorParam("a", dtype("float32"), (Const(4), Const(16)), strides=(Const(64), step))
    launch = KernelLaunch("k", (tensor.tiled((1, 16)),), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(256,), strides=(1,)),)))
    (memory,) = given.args
    with harness.loaded(program) as loaded:
        for index, apart in enumerate((1, 2, 1)):
            again = replace(given, args=[memory.as_strided((4, 16), (64, apart))])
            check_given(harness, program, again, loaded, first=not index)


@law("T4", tier="driver", given=needing(Capability.TMA_IM2COL), requires=_IM2COL)
def im2col_maps_arrive(harness: Harness, scenario: Scenario) -> None:
    """A launch receives, for each im2col map, every field in the driver's order, unequal corners included."""
    delivers(harness, scenario)
    harness.once(_check_columns_told_apart)


def _check_columns_told_apart(harness: Harness) -> None:
    """Require that im2col maps which differ in one thing alone are two."""
    tensor = TensorParam("a", dtype("float16"), (Const(2), Const(8), Const(64)))
    same: dict[str, Any] = {
        "pixel_box_lower_corner": (0,),
        "pixel_box_upper_corner": (0,),
        "channels_per_pixel": 16,
        "pixels_per_column": 2,
    }
    unlike: tuple[dict[str, Any], ...] = (
        {},
        {"pixel_box_lower_corner": (-1,)},
        {"pixel_box_upper_corner": (-1,)},
        {"channels_per_pixel": 8},
        {"pixels_per_column": 4},
    )
    maps = tuple(tensor.im2col(**same | other) for other in unlike)
    launch = KernelLaunch("k", (*maps, *reversed(maps)), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    spec = TensorSpec(dtype="float16", shape=(2, 8, 64), strides=(512, 64, 1))
    with harness.loaded(program) as loaded:
        check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded)


@st.composite
def _columns(draw: st.DrawFn) -> Scenario:
    """Draw an im2col map whose box of pixels may be empty in this call, or whose extents may be 0."""
    symbols = [Symbol(name, min=0) for name in ("n", "d", "h", "w")]
    rank = draw(st.integers(3, 5))
    extents: list[Symbol] = [symbols[0], *symbols[5 - rank + 1 :]]
    tensor = TensorParam("a", dtype("float16"), (*extents, Const(16)))
    lower = tuple(draw(st.integers(-4, 2)) for _ in extents[1:])
    upper = tuple(draw(st.integers(-4, 3)) for _ in extents[1:])
    tensor_map = tensor.im2col(
        pixel_box_lower_corner=lower,
        pixel_box_upper_corner=upper,
        channels_per_pixel=draw(st.sampled_from((8, 16))),
        pixels_per_column=draw(st.sampled_from((1, 32, 1024))),
        interleave=draw(st.sampled_from(("NONE", "16B"))),  # with one, other dimensions are spatial
    )
    launch = KernelLaunch("k", (tensor_map,), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    shape = (*(draw(st.integers(0, 6)) if draw(st.integers(0, 2)) == 0 else 6 for _ in extents), 16)
    spec = TensorSpec(dtype="float16", shape=shape, strides=row_major(shape))
    return Scenario(KernelProgram("p", Signature((tensor,)), (CODE,), (launch,)), CallSpec(args=(spec,)))


@law("T5", tier="driver", given=lambda _: _columns(), requires=_IM2COL | {Capability.DYNAMIC_SHAPES})
def broken_im2col_rules(harness: Harness, scenario: Scenario) -> None:
    """An im2col map that breaks a rule in this call, such as an empty box of pixels, is refused by the library."""
    delivers(harness, scenario)


@st.composite
def _beyond(draw: st.DrawFn, *, dynamic: bool) -> Scenario:
    """Draw a map of a shape, strides or offset of its own, that mostly just fits its tensor."""
    rows = Symbol("rows", min=1) if dynamic else as_expr(4)
    have = draw(st.integers(1, 6)) if dynamic else 4
    tensor = TensorParam("a", dtype("float16"), (rows, Const(64)))
    more = draw(st.sampled_from((0, 0, 1, -1)))
    shape, strides, offset = draw(
        st.sampled_from(
            (
                ((rows + more, Const(64)), (Const(64), _ONE), Const(0)),
                ((rows, Const(32)), (Const(64), _ONE), Const(32 + 8 * more)),
                ((rows * 2 + more, Const(32)), (Const(32), _ONE), Const(0)),
                ((rows, Const(8)), (Const(64), _ONE), rows * 8 * more),
            )
        )
    )
    tensor_map = tensor.tiled((1, 8), shape=shape, strides=strides, element_offset=offset)
    launch = KernelLaunch("k", (tensor_map,), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    spec = TensorSpec(dtype="float16", shape=(have, 64), strides=(64, 1))
    return Scenario(KernelProgram("p", Signature((tensor,)), (CODE,), (launch,)), CallSpec(args=(spec,)))


@law(
    "T6",
    tier="driver",
    given=lambda harness: _beyond(dynamic=Capability.DYNAMIC_SHAPES in harness.capabilities),
    requires=_TILED,
)
def maps_within_memory(harness: Harness, scenario: Scenario) -> None:
    """A map with a shape, strides or an offset of its own is refused where it would reach beyond its tensor."""
    delivers(harness, scenario)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_begun_by_a_number)


def _check_begun_by_a_number(harness: Harness) -> None:
    """Require that a number of the call says where a map begins, all else of which the program says."""
    start = Symbol("start", min=0)
    tensor, number = (
        TensorParam("a", dtype("float16"), (Const(512),)),
        ScalarParam("start", dtype("int32"), start),
    )
    mapped = tensor.tiled(
        (1, 8), shape=(Const(4), Const(64)), strides=(Const(64), _ONE), element_offset=start * 64
    )
    launch = KernelLaunch("k", (mapped,), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature((tensor, number)), (CODE,), (launch,))
    spec = TensorSpec(dtype="float16", shape=(512,), strides=(1,))
    delivers_each(harness, Series(program, tuple(CallSpec(args=(spec, value)) for value in (0, 1, 4, 5, 0))))


@st.composite
def _over_workspace(draw: st.DrawFn) -> Scenario:
    space = Workspace(
        "w",
        dtype("float32"),
        (Const(draw(st.integers(1, 9))), Const(64)),
        alignment=draw(st.sampled_from((1, 256, 4096))),
    )
    step = draw(st.sampled_from((0, 16, 32)))
    one = space.tiled(
        (1, 16), shape=(space.shape[0], Const(16)), strides=(Const(64), _ONE), element_offset=step
    )
    other = space.tiled((1, 32), swizzle="128B", dtype=draw(st.sampled_from((None, "TFLOAT32", "int32"))))
    given: list[Argument] = [one, other, space]
    args = draw(st.permutations(given))[: draw(st.integers(1, 3))]
    launch = KernelLaunch("k", tuple(args), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    device = draw(st.sampled_from((0, 1)))
    if draw(st.booleans()):  # by the same tensors a launcher may know the call
        beside = TensorParam("a", dtype("float16"), (Const(64),))
        program = KernelProgram("p", Signature((beside,)), (CODE,), (launch,))
        spec = TensorSpec(dtype="float16", shape=(64,), strides=(1,), device=device)
        return Scenario(program, CallSpec(args=(spec,)))
    return Scenario(KernelProgram("p", Signature(), (CODE,), (launch,)), CallSpec(args=(), device=device))


@law("T7", tier="driver", given=lambda _: _over_workspace(), requires=_TILED | {Capability.WORKSPACE})
def maps_over_workspaces(harness: Harness, scenario: Scenario) -> None:
    """A map over a workspace points into this call's memory, in every call, within a struct too."""
    check_moving(harness, scenario)
    if Capability.BUILT_STRUCTS in harness.capabilities:
        (launch,) = scenario.program.launches
        fields = tuple((f"f{index}", one) for index, one in enumerate(launch.args))
        built = replace(launch, args=(Struct(fields),))
        check_moving(harness, replace(scenario, program=replace(scenario.program, launches=(built,))))
