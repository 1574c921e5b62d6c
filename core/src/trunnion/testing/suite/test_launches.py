"""Laws of what a launch receives: the oracle's word against the driver's."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ExprError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol, binary, eq, select
from trunnion.model.launch import KernelLaunch
from trunnion.model.op import Op
from trunnion.model.params import Check, ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.testing.comparison import check_call, symbols_of
from trunnion.testing.expected import Refused
from trunnion.testing.laws import law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import (
    Breakage,
    CallSpec,
    Scenario,
    TensorSpec,
    calls,
    mistakes_of_each_kind,
    programs,
    scenarios,
)
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.strategies.programs import CODE, PARTS, taking

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from trunnion.testing.harness import Harness
    from trunnion.testing.strategies.limits import Series

__all__ = ["delivers", "delivers_each", "needing"]

_ONE = Const(1)


def needing(*required: Capability) -> Callable[[Harness], SearchStrategy[Any]]:
    """Return strategies of programs that need all of ``required`` and may need what else is declared.

    Parameters
    ----------
    *required
        The capabilities.
    """
    return lambda harness: scenarios(harness.capabilities, required)


def delivers(harness: Harness, scenario: Scenario) -> None:
    """Require that a first call does what the oracle says.

    Raises
    ------
    LawViolation
        If anything differs.
    """
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)


def delivers_each(harness: Harness, series: Series) -> None:
    """Require that each of some calls does what the oracle says.

    Raises
    ------
    LawViolation
        If anything differs.
    """
    with harness.loaded(series.program) as loaded:
        for index, call in enumerate(series.calls):
            check_call(harness, Scenario(series.program, call), loaded, first=index == 0)


@law("L1", tier="launch", given=lambda _: scenarios(()))
def basic_launch(harness: Harness, scenario: Scenario) -> None:
    """A launch of contiguous tensors of static shape, scalars and integers receives exactly what the program says."""
    delivers(harness, scenario)
    harness.once(_check_dimensions, each_way=False)
    harness.once(_check_constants, each_way=False)


_NUMBERS = tuple(Const(value).cast("int32") for value in (7, -7, 2, -2))
"""Constants that stay what is to be computed: a cast is no constant to whoever folds them."""


def _check_constants(harness: Harness) -> None:
    """Require the same of integers that are computed of constants: each operation, and what has no value."""
    sums: list[Expr] = []
    for op, left, right in product(Op, _NUMBERS, _NUMBERS):
        with suppress(ExprError):  # a shift by less than nothing is none
            sums.append(binary(op, left, right))
    nothing, seven = _NUMBERS[0] ^ 7, _NUMBERS[2] ^ 5  # of which is known no more than that they are 0 to 7
    chosen = select(nothing, _ONE // nothing, _NUMBERS[2])
    wrong = (
        *(binary(op, _ONE, nothing) for op in (Op.FLOORDIV, Op.MOD, Op.CEILDIV)),
        *(binary(op, _ONE, count) for op in (Op.SHL, Op.SHR) for count in (nothing - 1, seven + 57)),
        seven + (2**63 - 7),
        (nothing - 2**62) * 2 - 1,
        (nothing - 1).cast("uint8"),
        (seven + 121).cast("int8"),
    )
    for args, checks in (
        ((*sums, chosen), (Check(chosen, "c"),)),
        ((_ONE,), (Check(nothing, "c"),)),
        *(((one,), ()) for one in wrong),
    ):
        launch = KernelLaunch("k", args, (_ONE,) * 3, (_ONE,) * 3)
        program = KernelProgram("p", Signature((), (), checks), (CODE,), (launch,))
        delivers(harness, Scenario(program, CallSpec(args=(), device=0)))


_DIMENSIONS = 12


def _check_dimensions(harness: Harness) -> None:
    """Require the same of a tensor of more dimensions than a launcher may have foreseen, be it given or returned."""
    shape = (*(1,) * (_DIMENSIONS - 3), 2, 3, 2)
    tensor, output = (
        TensorParam(name, dtype("float32"), tuple(map(Const, shape)), access=access)
        for name, access in (("a", "read"), ("b", "write"))
    )
    spec = TensorSpec(dtype="float32", shape=shape, strides=row_major(shape))
    program = taking(tensor, outputs=(output,))
    with harness.loaded(program) as loaded:
        for out in (None, (spec,)):
            check_call(harness, Scenario(program, CallSpec(args=(spec,), out=out)), loaded, first=False)


@law(
    "L2",
    tier="launch",
    given=needing(Capability.DYNAMIC_SHAPES),
    requires=frozenset({Capability.DYNAMIC_SHAPES}),
)
def dynamic_shapes(harness: Harness, scenario: Scenario) -> None:
    """Symbols take their values from the call's arguments alone, and every expression over them is exact."""
    delivers(harness, scenario)
    harness.once(_check_many_shapes, each_way=False)


_SHAPES, _AT_ONCE = 300, 50  # of these many calls every machine tells together


def _check_many_shapes(harness: Harness) -> None:
    """Require the same of more shapes than a launcher may keep, and once more when the first are long gone."""
    n = Symbol("n", min=1)
    tensor = TensorParam("a", dtype("uint8"), (n,))
    launch = KernelLaunch("k", (tensor, n), (_ONE,) * 3, (_ONE,) * 3)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    (memory,) = harness.arguments((TensorSpec(dtype="uint8", shape=(_SHAPES,), strides=(1,)),))
    with harness.loaded(program) as loaded:
        for start in (*range(1, _SHAPES, _AT_ONCE), *range(1, _SHAPES, _AT_ONCE)):
            extents = list(range(start, start + _AT_ONCE))
            views = [memory[:extent] for extent in extents]
            observed = observe(harness, partial(list, map(loaded.entry, views)))
            harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
            got = [int.from_bytes(one.parameters[1], "little") for one in observed.launches]
            harness.require(got == extents, f"calls of the extents {extents} launched with {got}")


_STRIDED = frozenset({Capability.STRIDED_TENSORS})


def _misplaced(harness: Harness) -> SearchStrategy[Any]:
    """Return programs with a good call each, and calls with tensors that lie otherwise."""
    return programs(harness.capabilities, _STRIDED).flatmap(
        lambda program: st.tuples(
            st.builds(Scenario, st.just(program), calls(program)), mistakes_of_each_kind(program)
        )
    )


@st.composite
def _empty(draw: st.DrawFn) -> tuple[Scenario, tuple[Breakage, ...]]:
    """Draw a tensor without elements, whose strides mean nothing."""
    shape = draw(st.sampled_from(((0, 3), (3, 0), (2, 0, 3))))
    strides = tuple(draw(st.sampled_from((1, 3, 64))) for _ in shape)
    param = TensorParam(
        "a", dtype("int32"), tuple(map(Const, shape)), strides=tuple(map(Const, row_major(shape)))
    )
    launch = KernelLaunch("k", (param,), *((_ONE,) * 3,) * 2)
    spec = TensorSpec(dtype="int32", shape=shape, strides=strides)
    program = KernelProgram("p", Signature((param,)), (CODE,), (launch,))
    return Scenario(program, CallSpec(args=(spec,))), ()


@law("L3", tier="launch", given=lambda harness: st.one_of(_misplaced(harness), _empty()), requires=_STRIDED)
def strided_tensors(harness: Harness, example: tuple[Scenario, tuple[Breakage, ...]]) -> None:
    """A tensor with named strides is taken as it lies in memory, and refused if it lies otherwise."""
    scenario, mistakes = example
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        for broken in mistakes:
            if broken.kind == "stride":
                check_call(harness, Scenario(scenario.program, broken.call), loaded, first=False)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_named_twice)


def _check_named_twice(harness: Harness) -> None:
    """Require that a stride which two tensors name is that of the one that has it: one row has any."""
    step, rows = Symbol("step"), (Symbol("m"), Symbol("n"))
    tensors = tuple(
        TensorParam(name, dtype("float32"), (extent, Const(3)), strides=(step, Const(1)))
        for name, extent in zip("ab", rows, strict=True)
    )
    launch = KernelLaunch("k", (*tensors, step), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature(tensors), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        for counts in ((1, 4), (4, 1), (1, 1), (4, 4)):
            specs = tuple(
                TensorSpec(dtype="float32", shape=(count, 3), strides=(64 if count == 1 else 7, 1))
                for count in counts
            )
            check_call(harness, Scenario(program, CallSpec(args=specs)), loaded)


@law(
    "L4", tier="launch", given=needing(Capability.MULTI_LAUNCH), requires=frozenset({Capability.MULTI_LAUNCH})
)
def several_launches(harness: Harness, scenario: Scenario) -> None:
    """Launches happen in the program's order, each with its own parameters, the same kernel twice included."""
    delivers(harness, scenario)
    if harness.machine.tier == "sim":
        harness.once(_check_many_launches, each_way=False)


_LAUNCHES = 40


def _check_many_launches(harness: Harness) -> None:
    """Require the same of more launches than a launcher may have foreseen."""
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    blocks = (1, 2, 3)
    launches = tuple(
        KernelLaunch("k", (tensor,), (Const(blocks[index % 3]), _ONE, _ONE), (_ONE, _ONE, _ONE))
        for index in range(_LAUNCHES)
    )
    program = KernelProgram("p", Signature((tensor,)), (CODE,), launches)
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    delivers(harness, Scenario(program, CallSpec(args=(spec,))))


@st.composite
def _namesakes(draw: st.DrawFn) -> Scenario:
    """Draw launches of kernels that two or three parts of the code call the same; most take the same parameters."""
    code = draw(st.permutations(PARTS))[: draw(st.integers(2, 3))]
    kernels = [(draw(st.sampled_from("kl")), None), *((draw(st.sampled_from("kkl")), part) for part in code)]
    args = {kernel: (Const(7),) * draw(st.sampled_from((1, 1, 1, 2))) for kernel in kernels}
    args[kernels[0][0], code[0]] = args[kernels[0]]  # to name no part is to name the first
    chosen = [*draw(st.permutations(kernels)), *draw(st.lists(st.sampled_from(kernels), max_size=2))]
    launches = [KernelLaunch(k, args[k, at], (_ONE,) * 3, (_ONE,) * 3, code=at) for k, at in chosen]
    return Scenario(
        KernelProgram("p", Signature(), tuple(code), tuple(launches)), CallSpec(args=(), device=0)
    )


@law(
    "L15",
    tier="launch",
    given=lambda _: _namesakes(),
    requires=frozenset({Capability.MULTI_LAUNCH}),
    cost="toolchain",
)
def namesakes(harness: Harness, scenario: Scenario) -> None:
    """A launch launches the kernel of the part of the code that it names, whatever other parts call the same."""
    delivers(harness, scenario)


@law("L8", tier="launch", given=lambda harness: scenarios(harness.capabilities))
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


@law("E1", tier="launch", given=lambda harness: scenarios(harness.capabilities))
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


@law(
    "E2",
    tier="launch",
    given=needing(Capability.CONDITIONAL_LAUNCH),
    requires=frozenset({Capability.CONDITIONAL_LAUNCH}),
)
def conditional_launches(harness: Harness, scenario: Scenario) -> None:
    """A launch happens exactly if its condition is not 0; otherwise nothing of it is computed, checked or provided."""
    delivers(harness, scenario)


@st.composite
def _skipped(draw: st.DrawFn) -> Scenario:
    """Draw a launch whose numbers have no value in some calls, under a condition that may forbid it."""
    m, n = (Symbol(name, min=-(2**63)) for name in "mn")
    broken = draw(
        st.sampled_from((n // m, (n * 2**32).cast("int8"), n * n * n * n, (n - n).cast("uint8") // m))
    )
    where = draw(st.sampled_from(("args", "grid", "block", "smem")))
    launch = KernelLaunch(
        "k",
        (broken,) if where == "args" else (),
        (broken if where == "grid" else _ONE, _ONE, _ONE),
        (broken if where == "block" else _ONE, _ONE, _ONE),
        dynamic_smem_bytes=broken if where == "smem" else Const(0),
        when=draw(st.sampled_from((m, eq(m, 1), n % 2))),
    )
    params = tuple(ScalarParam(name, dtype("int64"), Symbol(name, min=-(2**63))) for name in "mn")
    args = (draw(st.sampled_from((0, 1, 2))), draw(st.sampled_from((0, 1, 2, 10**6, 2**40, -3))))
    return Scenario(KernelProgram("p", Signature(params), (CODE,), (launch,)), CallSpec(args=args, device=0))


@law(
    "E3",
    tier="launch",
    given=lambda _: _skipped(),
    requires=frozenset({Capability.CONDITIONAL_LAUNCH, Capability.DYNAMIC_SHAPES}),
)
def skipped_numbers(harness: Harness, scenario: Scenario) -> None:
    """A number that has no value is an error only if its launch is not skipped."""
    delivers(harness, scenario)
