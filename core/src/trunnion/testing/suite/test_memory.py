"""Laws of memory that a call provides: filled outputs, and workspaces."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace
from trunnion.sim.trace import Allocated
from trunnion.testing.comparison import check_call, check_expected, check_given
from trunnion.testing.delivery import is_number
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.laws import law
from trunnion.testing.machine import untouched
from trunnion.testing.provision import places_set
from trunnion.testing.reference import expect
from trunnion.testing.rounding import SIZES
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_launches import delivers, needing
from trunnion.testing.ways import Arguments

if TYPE_CHECKING:
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_ONE = Const(1)
_ONES = (_ONE, _ONE, _ONE)
_FILL = frozenset({Capability.OUTPUT_FILL})
_WORKSPACE = frozenset({Capability.WORKSPACE})


@st.composite
def _each_width(draw: st.DrawFn) -> Scenario:
    """Draw outputs of each size of an element and of an odd number of them, which no wider write fills."""
    count = 2 * draw(st.integers(0, 4)) + 1
    outputs = tuple(
        TensorParam(kind, dtype(kind), (Const(count),), access="write", fill=draw(st.sampled_from((1, 0, 3))))
        for kind in ("uint8", "int16", "float16", "int32", "float64", "complex128")
    )
    program = KernelProgram("p", Signature((), outputs), (CODE,), (KernelLaunch("k", outputs, _ONES, _ONES),))
    return Scenario(program, CallSpec(args=(), device=0))


def _filled(harness: Harness) -> st.SearchStrategy[Scenario]:
    return st.one_of(needing(Capability.OUTPUT_FILL)(harness), _each_width())


@law("O3", tier="launch", given=_filled, requires=_FILL)
def filled_outputs(harness: Harness, scenario: Scenario) -> None:
    """Every element of an output with a fill is that number before the first launch, under ``out=`` too."""
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_nothing_filled)
    harness.once(_check_parts)
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        facts, observed = harness.call(loaded, CallSpec(args=scenario.call.args, device=scenario.call.device))
        expected = expect(scenario.program, facts)
        assume(isinstance(expected, Expected))
        if isinstance(expected, Refused):
            return
        _check_filled(harness, expected, observed.outputs)
        facts, observed = harness.call(loaded, harness.with_destinations(scenario.call, expected))
        told = expect(scenario.program, facts)
        if isinstance(
            told, Expected
        ):  # a map over an output may need an address that the caller's tensor lacks
            check_expected(harness, scenario.program, facts, (told, observed), first=False)
            _check_filled(harness, told, observed.outputs)


def _check_parts(harness: Harness) -> None:
    """Require that a complex fill is of both of its parts, whichever of them is zero."""
    outputs = tuple(
        TensorParam(f"o{index}", dtype(kind), (Const(3),), access="write", fill=fill)
        for index, (kind, fill) in enumerate(itertools.product(("complex64", "complex128"), _PARTS))
    )
    program = KernelProgram("p", Signature((), outputs), (CODE,), (KernelLaunch("k", outputs, _ONES, _ONES),))
    with harness.loaded(program) as loaded:
        facts, observed = harness.call(loaded, CallSpec(args=(), device=0))
        expected = expect(program, facts)
        assert isinstance(expected, Expected), expected
        check_expected(harness, program, facts, (expected, observed))
        _check_filled(harness, expected, observed.outputs)


_PARTS = (2j, 2 + 0j, 2 + 2j, -2j)


def _check_nothing_filled(harness: Harness) -> None:
    """Require that nothing is written to where an output has no element in this call."""
    count = Symbol("n", min=0)
    outputs = tuple(
        TensorParam(kind, dtype(kind), (count,), access="write", fill=fill)
        for kind, fill in (("float64", 1.5), ("int32", 7), ("uint8", 1))
    )
    number = ScalarParam("n", dtype("int32"), count)
    launch = KernelLaunch("k", outputs, _ONES, _ONES)
    program = KernelProgram("p", Signature((number,), outputs), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        for value in (0, 3, 0):
            _, observed = harness.call(loaded, CallSpec(args=(value,), device=0))
            harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
            sets = places_set(observed.events)
            harness.require(bool(sets) == bool(value), f"with {value} elements there were {len(sets)} fills")


def _check_filled(harness: Harness, expected: Expected, outputs: tuple[Any, ...]) -> None:
    """Require that nothing but the fill is in an output, since no kernel of the suite writes."""
    for want, got in zip(expected.outputs, outputs, strict=True):
        data, size = harness.contents(got), SIZES[want.dtype]
        if want.fill is not None and data:
            good = is_number(want.fill, data[:size]) and data == data[:size] * (len(data) // size)
            harness.require(good, f"output {want.name!a} holds {data[:64].hex()}, expected {want.fill!r}")


@st.composite
def _two_outputs(draw: st.DrawFn) -> Scenario:
    """Draw destinations that overlap, or just do not."""
    kinds = draw(st.lists(st.sampled_from(("float32", "uint8", "float64")), min_size=2, max_size=2))
    counts = [draw(st.integers(0, 4)) for _ in kinds]
    outputs = tuple(
        TensorParam(f"o{index}", dtype(kind), (Const(count),), access="write")
        for index, (kind, count) in enumerate(zip(kinds, counts, strict=True))
    )
    sizes = [SIZES[kind] for kind in kinds]
    behind = draw(st.integers(0, 1))  # which of them begins later
    ahead = 1 - behind
    after = -(-counts[ahead] * sizes[ahead] // sizes[behind])  # the first place behind the other one
    starts = [0, 0]
    starts[behind] = max(after - draw(st.sampled_from((0, 0, 1, 2))), 0)
    out = tuple(
        TensorSpec(dtype=kind, shape=(count,), strides=row_major((count,)), offset=start, shared=True)
        for kind, count, start in zip(kinds, counts, starts, strict=True)
    )
    if draw(st.booleans()):  # one that lies elsewhere, and is named between them
        outputs = (outputs[0], TensorParam("apart", dtype("uint8"), (_ONE,), access="write"), outputs[1])
        out = (out[0], TensorSpec(dtype="uint8", shape=(1,), strides=(1,)), out[1])
    program = taking(outputs=outputs)
    return Scenario(program, CallSpec(args=(), out=out, device=0))


@law("O4", tier="launch", given=lambda _: _two_outputs())
def shared_destinations(harness: Harness, scenario: Scenario) -> None:
    """Two destinations that share memory are refused, and two that only touch are not."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
    harness.once(_check_neighbours)
    if harness.machine.tier == "sim":
        harness.once(_check_large_neighbours, each_way=False)


def _check_neighbours(harness: Harness) -> None:
    """Require that of three destinations each two are compared, in whatever order they lie."""
    outputs = tuple(TensorParam(name, dtype("float32"), (Const(4),), access="write") for name in "abc")
    program = taking(outputs=outputs)
    with harness.loaded(program) as loaded:
        for starts in (*itertools.permutations((0, 8, 10)), *itertools.permutations((0, 8, 12))):
            out = tuple(
                TensorSpec(dtype="float32", shape=(4,), strides=(1,), offset=start, shared=True)
                for start in starts
            )
            check_call(harness, Scenario(program, CallSpec(args=(), out=out, device=0)), loaded, first=False)


_LARGE = (1 << 32) + 64


def _check_large_neighbours(harness: Harness) -> None:
    """Require the same of destinations so long that 32 bits do not hold their bytes."""
    outputs = tuple(TensorParam(name, dtype("uint8"), (Const(_LARGE),), access="write") for name in "ab")
    program = taking(outputs=outputs)
    memory = untouched(harness.simulator, _LARGE + 256)
    out = [memory[start : start + _LARGE] for start in (0, 256)]
    with harness.loaded(program) as loaded:
        check_given(harness, program, Arguments(args=[], out=out, device=0), loaded)


@law("W1", tier="launch", given=needing(Capability.WORKSPACE), requires=_WORKSPACE)
def workspaces(harness: Harness, scenario: Scenario) -> None:
    """A workspace is large enough, aligned, on the launch's device, and shares memory with nothing else of the call."""
    delivers(harness, scenario)


@st.composite
def _conditional(draw: st.DrawFn, *, dynamic: bool, several: bool) -> Scenario:
    """Draw workspaces of two sizes whose readers a call may skip."""
    symbols: list[Expr] = [Symbol(name, min=-4) for name in "mn"] if dynamic else [Const(3), Const(1)]
    spaces = [
        Workspace(
            f"w{index}",
            dtype(draw(st.sampled_from(("uint8", "float32", "complex128")))),
            (
                symbols[1 - index] * draw(st.sampled_from((1, 5, 100))),
                Const(draw(st.sampled_from((1, 3, 0)))),
            ),
            alignment=draw(st.sampled_from((1, 256, 512, 8192))),
            zeroed=draw(st.integers(0, 2)) > 0,
        )
        for index in range(2)
    ]
    grids = [symbol * symbol if dynamic else symbol for symbol in symbols]
    launches = [KernelLaunch("k", (spaces[0], spaces[0]), (grids[0], _ONE, _ONE), _ONES)]
    if several:
        launches.append(KernelLaunch("l", (spaces[1], spaces[0]), (grids[1], _ONE, _ONE), _ONES))
    params = (
        tuple(ScalarParam(name, dtype("int32"), Symbol(name, min=-4)) for name in "mn") if dynamic else ()
    )
    args = tuple(draw(st.sampled_from((2, 1, 0, 3, -1))) for _ in params)
    program = KernelProgram("p", Signature(params), (CODE,), tuple(launches))
    return Scenario(program, CallSpec(args=args, device=0))


def _conditionals(harness: Harness) -> st.SearchStrategy[Scenario]:
    return _conditional(
        dynamic=Capability.DYNAMIC_SHAPES in harness.capabilities,
        several=Capability.MULTI_LAUNCH in harness.capabilities,
    )


@law("W2", tier="launch", given=_conditionals, requires=_WORKSPACE)
def zeroed_workspaces(harness: Harness, scenario: Scenario) -> None:
    """A zeroed workspace holds zeros when the first launch starts, in every call anew, and no other is written to."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        check_call(harness, scenario, loaded, first=False)


@law("W3", tier="launch", given=_conditionals, requires=_WORKSPACE)
def unread_workspaces(harness: Harness, scenario: Scenario) -> None:
    """A workspace that only skipped launches read is neither allocated nor zeroed; of a read one all extents count."""
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused):
            harness.require(
                isinstance(observed.error, (ArgumentError, *_errors(expected))), repr(observed.error)
            )
            harness.require(not observed.allocations, "a refused call allocated")
            return
        wanted = sum(1 for one in expected.workspaces if one.nbytes)
        zeroed = sum(1 for one in expected.workspaces if one.nbytes and one.zeroed)
        real = [event for event in observed.events if isinstance(event, Allocated) and event.nbytes]
        sets = places_set(observed.events)
        harness.require(observed.error is None, f"raised {observed.error!r}")
        harness.require(
            bool(real) == bool(wanted) and len(real) <= wanted,
            f"{len(real)} allocations for {wanted} workspaces",
        )
        harness.require(
            bool(sets) == bool(zeroed) and len(sets) <= zeroed,
            f"{len(sets)} fills for {zeroed} zeroed workspaces",
        )


def _errors(refused: Refused) -> tuple[type[Exception], ...]:
    return tuple(kind for problem in refused.problems for kind in problem.errors)
