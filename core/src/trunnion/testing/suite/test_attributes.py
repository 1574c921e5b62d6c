"""Laws of launch attributes: one for each row of `trunnion.model.launch_attributes`, and what clusters demand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol, ge
from trunnion.model.launch import KernelLaunch
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.sim.abi import FunctionAttribute
from trunnion.sim.trace import AttributeSet
from trunnion.testing.comparison import check_call, symbols_of
from trunnion.testing.laws import ONE_WAY, law
from trunnion.testing.reference import attributes_of, kernel_of
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.limits import Series
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.suite.test_launches import delivers, delivers_each, needing

if TYPE_CHECKING:
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_ONE, _SEVEN = Const(1), Const(7)
_PORTABLE = 8
_CLUSTERS = ("cluster", "preferred_cluster")


@law("L5", tier="driver", given=needing(Capability.CLUSTER), requires=frozenset({Capability.CLUSTER}))
def clusters(harness: Harness, scenario: Scenario) -> None:
    """A launch has the cluster that the program names, a single block included, and no other launch has one."""
    delivers(harness, scenario)
    if harness.machine.tier == "sim":
        harness.once(_check_all_at_once, each_way=False)


_ALL: dict[str, Any] = {
    "cluster": (2, 1, 1),
    "cooperative": True,
    "pdl": True,
    "priority": -1,
    "carveout": 50,
    "preferred_cluster": (4, 1, 1),
    "scheduling_policy": "spread",
    "mem_sync_domain": "remote",
}
"""A value of every attribute; each other one is good beside it, but a cooperative launch cannot prefer a cluster."""


def _check_all_at_once(harness: Harness) -> None:
    """Require that a launch has all attributes that the backend declares at once, a window too."""
    fields = {
        row.field: _ALL[row.field] for row in LAUNCH_ATTRIBUTES if row.capability in harness.capabilities
    }
    if "preferred_cluster" in fields:
        fields.pop("cooperative", None)
    tensor = TensorParam("a", dtype("float32"), (Const(64),))
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities:
        fields["window"] = tensor.window()
    launch = KernelLaunch("k", (tensor,), (Const(4), _ONE, _ONE), (_ONE, _ONE, _ONE), **fields)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    spec = TensorSpec(dtype="float32", shape=(64,), strides=(1,))
    delivers(harness, Scenario(program, CallSpec(args=(spec,))))


@law("L6", tier="driver", given=needing(Capability.COOPERATIVE), requires=frozenset({Capability.COOPERATIVE}))
def cooperative_launches(harness: Harness, scenario: Scenario) -> None:
    """A launch is cooperative exactly if the program says so."""
    delivers(harness, scenario)


@law("L7", tier="driver", given=needing(Capability.PDL), requires=frozenset({Capability.PDL}))
def dependent_launches(harness: Harness, scenario: Scenario) -> None:
    """A launch carries the programmatic attribute exactly if the program says so, on the consumer."""
    delivers(harness, scenario)


@law("L9", tier="driver", given=needing(Capability.PRIORITY), requires=frozenset({Capability.PRIORITY}))
def priorities(harness: Harness, scenario: Scenario) -> None:
    """A launch has the priority that the program names, 0 included, and no other launch has one of its own."""
    delivers(harness, scenario)


@law("L10", tier="driver", given=needing(Capability.CARVEOUT), requires=frozenset({Capability.CARVEOUT}))
def carveouts(harness: Harness, scenario: Scenario) -> None:
    """A launch asks for the share of shared memory that the program names, 0 included, and no other asks."""
    delivers(harness, scenario)


@law(
    "L11",
    tier="driver",
    given=needing(Capability.CLUSTER, Capability.PREFERRED_CLUSTER),
    requires=frozenset({Capability.CLUSTER, Capability.PREFERRED_CLUSTER}),
)
def preferred_clusters(harness: Harness, scenario: Scenario) -> None:
    """A launch prefers the cluster that the program names beside its own, and no other launch prefers one."""
    delivers(harness, scenario)


@law(
    "L12",
    tier="driver",
    given=needing(Capability.CLUSTER_SCHEDULING),
    requires=frozenset({Capability.CLUSTER_SCHEDULING}),
)
def scheduling_policies(harness: Harness, scenario: Scenario) -> None:
    """A launch has the scheduling policy that the program names, the default one included, and no other has one."""
    delivers(harness, scenario)


@law(
    "L13",
    tier="driver",
    given=needing(Capability.MEM_SYNC_DOMAIN),
    requires=frozenset({Capability.MEM_SYNC_DOMAIN}),
)
def memory_domains(harness: Harness, scenario: Scenario) -> None:
    """A launch is in the memory domain that the program names, the default one included, and no other names one."""
    delivers(harness, scenario)


@st.composite
def _wide(draw: st.DrawFn, *, preferred: bool) -> Scenario:
    """Draw two kernels with constant clusters, or preferred ones, of which at most one is portable."""
    shapes = ((16, 1, 1), (4, 4, 1), (3, 3, 1), (2, 2, 4), (8, 1, 1), (2, 2, 2), (1, 1, 1))
    first, second = draw(st.sampled_from(shapes[:4])), draw(st.sampled_from(shapes))
    wide, other = (
        KernelLaunch(
            kernel, (Const(7),), (Const(2 * x), Const(y), Const(z)), (_ONE, _ONE, _ONE), cluster=(x, y, z)
        )
        for kernel, (x, y, z) in (("wide", first), ("other", second))
    )
    if preferred and draw(st.booleans()):
        wide = replace(wide, cluster=(1, 1, first[2]), preferred_cluster=first)
    launches = (wide, other)
    chosen = launches if draw(st.booleans()) else launches[:1]
    return Scenario(KernelProgram("p", Signature(), (CODE,), chosen), CallSpec(args=(), device=0))


@law(
    "L14",
    given=lambda harness: _wide(preferred=Capability.PREFERRED_CLUSTER in harness.capabilities),
    requires=frozenset({Capability.CLUSTER, Capability.MULTI_LAUNCH}),
)
def wide_clusters(harness: Harness, scenario: Scenario) -> None:
    """A kernel that is launched in clusters of more than eight blocks is allowed to be, once, and no other is."""
    harness.machine.clear_trace()
    with harness.loaded(scenario.program) as loaded:
        loaded.preload(0)
        allowed = _allowed(harness)
        check_call(harness, scenario, loaded)
    symbols = symbols_of(scenario.program)
    wanted = {
        symbols[kernel_of(scenario.program, launch)]
        for launch in scenario.program.launches
        if max(math.prod(extents) for name, extents in attributes_of(launch) if name in _CLUSTERS) > _PORTABLE
    }
    harness.require(sorted(allowed) == sorted(wanted), f"allowed {allowed}, expected {sorted(wanted)}")


@dataclass(frozen=True, slots=True)
class Decided:
    """A program whose clusters, and which of whose launches start early, are left to its calls."""

    program: KernelProgram
    """The program."""

    calls: tuple[tuple[int, ...], ...]
    """The arguments of calls: blocks of the grid, of the cluster along x and y, and a switch."""


@st.composite
def _decided(draw: st.DrawFn, harness: Harness) -> Decided:
    """Draw launches over the numbers of a call, and calls of which some ask for no cluster that there is."""
    blocks, x, y, early = symbols = [Symbol(name, min=0) for name in ("blocks", "x", "y", "early")]
    params = tuple(ScalarParam(symbol.name, dtype("int32"), symbol) for symbol in symbols)
    fields: dict[str, Any] = {}
    if Capability.CLUSTER in harness.capabilities:
        fields["cluster"] = draw(st.sampled_from(((x, y), (y, x), (1, x, y), (x + 0, 1, y))))
    if Capability.PDL in harness.capabilities:
        fields["pdl"] = draw(st.sampled_from((early, ge(early, 2), early % 2, 1 - early)))
    grid = (blocks * x * y, Const(32), x * y)
    launch = KernelLaunch("k", (blocks,), grid, (_ONE, _ONE, _ONE), **fields)
    constant: dict[str, Any] = {name: (2, 1) if name == "cluster" else True for name in fields}
    others = (
        KernelLaunch("k", (blocks,), (Const(4), Const(1), Const(1)), (_ONE, _ONE, _ONE)),
        KernelLaunch("other", (blocks,), (Const(4), Const(1), Const(1)), (_ONE, _ONE, _ONE), **constant),
    )
    several = Capability.MULTI_LAUNCH in harness.capabilities
    launches = (launch, *others)[: draw(st.integers(1, 3))] if several else (launch,)
    widths = st.sampled_from(
        ((1, 1), (2, 1), (1, 2), (2, 1), (4, 4), (2, 8), (1, 16), (2, 16), (3, 1), (0, 1), (17, 1))
    )
    calls = draw(
        st.lists(st.tuples(st.sampled_from((1, 1, 1, 0)), widths, st.integers(0, 3)), min_size=2, max_size=5)
    )
    given = tuple((count, *width, switch) for count, width, switch in calls)
    return Decided(KernelProgram("p", Signature(params), (CODE,), launches), given)


@law(
    "L17",
    tier="driver",
    given=_decided,
    requires=frozenset({Capability.COMPUTED_ATTRIBUTES, Capability.DYNAMIC_SHAPES}),
)
def decided_attributes(harness: Harness, decided: Decided) -> None:
    """A launch has the cluster of its own call and starts early as that says; what is none is an ArgumentError."""
    with harness.loaded(decided.program) as loaded:
        for index, args in enumerate(decided.calls):
            scenario = Scenario(decided.program, CallSpec(args=args, device=0))
            check_call(harness, scenario, loaded, first=index == 0)
    if Capability.CLUSTER in harness.capabilities:
        harness.once(_check_constant_grid)
    if Capability.PDL in harness.capabilities:
        harness.once(_check_early_by_a_number)


def _check_early_by_a_number(harness: Harness) -> None:
    """Require that a number of the call, which says nothing else, says whether a launch starts early."""
    number = Symbol("number")
    tensor, scalar = (
        TensorParam("a", dtype("float32"), (_ONE,)),
        ScalarParam("number", dtype("int32"), number),
    )
    launch = KernelLaunch("k", (tensor,), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE), pdl=ge(number, 2))
    program = KernelProgram("p", Signature((tensor, scalar)), (CODE,), (launch,))
    spec = TensorSpec(dtype="float32", shape=(1,), strides=(1,))
    delivers_each(harness, Series(program, tuple(CallSpec(args=(spec, value)) for value in (2, 1, 3, 1))))


def _check_constant_grid(harness: Harness) -> None:
    """Require that clusters that a call decides divide a grid that the program says."""
    x, y, z = symbols = tuple(Symbol(name, min=1) for name in "xyz")
    params = tuple(ScalarParam(symbol.name, dtype("int32"), symbol) for symbol in symbols)
    launch = KernelLaunch("k", (), (Const(4), Const(6), Const(4)), (_ONE, _ONE, _ONE), cluster=(x, y, z))
    program = KernelProgram("p", Signature(params), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        for widths in ((2, 2, 2), (3, 1, 1), (1, 4, 1), (1, 1, 3), (4, 2, 1)):
            check_call(harness, Scenario(program, CallSpec(args=widths, device=0)), loaded)
    x, y = Symbol("x", min=1, max=4), Symbol("y", min=1, max=8)  # each is good alone
    params = tuple(ScalarParam(symbol.name, dtype("int32"), symbol) for symbol in (x, y))
    launch = KernelLaunch("k", (), (x, y, _ONE), (_ONE, _ONE, _ONE), cluster=(x, y, _ONE))
    program = KernelProgram("p", Signature(params), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        for pair in ((4, 8), (2, 8), (4, 5), (1, 1)):
            check_call(harness, Scenario(program, CallSpec(args=pair, device=0)), loaded)


@st.composite
def _growing(draw: st.DrawFn) -> Decided:
    """Draw two kernels of which calls decide the clusters, and calls with and without one that is not portable."""
    first, second = symbols = [Symbol(name, min=1, max=16) for name in ("first", "second")]
    params = tuple(ScalarParam(symbol.name, dtype("int32"), symbol) for symbol in symbols)
    launches = tuple(
        KernelLaunch(kernel, (_SEVEN,), (width, _ONE, _ONE), (_ONE, _ONE, _ONE), cluster=(width, _ONE, _ONE))
        for kernel, width in (("wide", first), ("other", second))
    )
    count = st.sampled_from((1, 2, 8, 9, 16))
    calls = draw(st.lists(st.tuples(count, count), min_size=1, max_size=4))
    return Decided(KernelProgram("p", Signature(params), (CODE,), launches), tuple(calls))


@law(
    "L18",
    given=lambda _: _growing(),
    requires=frozenset(
        {
            Capability.CLUSTER,
            Capability.COMPUTED_ATTRIBUTES,
            Capability.DYNAMIC_SHAPES,
            Capability.MULTI_LAUNCH,
        }
    ),
    ways=ONE_WAY,
)
def growing_clusters(harness: Harness, decided: Decided) -> None:
    """A kernel is allowed clusters of more than eight blocks once, by the first call that asks for such a one."""
    program, before = decided.program, set[str]()
    kernels = [symbols_of(program)[kernel_of(program, launch)] for launch in program.launches]
    with harness.loaded(program) as loaded:
        for index, args in enumerate(decided.calls):
            harness.machine.clear_trace()
            check_call(harness, Scenario(program, CallSpec(args=args, device=0)), loaded, first=index == 0)
            asking = {kernel for kernel, width in zip(kernels, args, strict=True) if width > _PORTABLE}
            allowed, expected = sorted(_allowed(harness)), sorted(asking - before)
            harness.require(allowed == expected, f"call {index}: allowed {allowed}, expected {expected}")
            before |= asking


def _allowed(harness: Harness) -> list[str]:
    """Return the kernels that were allowed clusters that are not portable, each as often as it was."""
    wide = FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    return [
        event.kernel
        for event in harness.sabotage.trace(harness.machine.trace)
        if isinstance(event, AttributeSet) and event.attribute == wide and event.value and not event.device
    ]


@st.composite
def _uneven(draw: st.DrawFn, harness: Harness) -> Scenario:
    """Draw a grid that a call decides, in clusters that it may be no multiple of, or in larger ones if possible."""
    cluster = draw(st.sampled_from(((2, 1, 1), (1, 3, 1), (4, 1, 2), (1, 1, 1))))
    x, y, z = symbols = [Symbol(name, min=0) for name in "xyz"]
    params = tuple(ScalarParam(symbol.name, dtype("int32"), symbol) for symbol in symbols)
    larger = Capability.PREFERRED_CLUSTER in harness.capabilities and draw(st.booleans())
    preferred = (2 * cluster[0], *cluster[1:]) if larger else None
    launch = KernelLaunch(
        "k", (x, y, z), (x, y, z), (_ONE, _ONE, _ONE), cluster=cluster, preferred_cluster=preferred
    )
    grid = [draw(st.integers(0, 3)) * width + draw(st.sampled_from((0, 0, 0, 1))) for width in cluster]
    return Scenario(
        KernelProgram("p", Signature(params), (CODE,), (launch,)), CallSpec(args=tuple(grid), device=0)
    )


@law(
    "A4",
    tier="driver",
    given=_uneven,
    requires=frozenset({Capability.CLUSTER, Capability.DYNAMIC_SHAPES}),
)
def whole_clusters(harness: Harness, scenario: Scenario) -> None:
    """A grid that is no multiple of its clusters along each axis is an ArgumentError before the driver sees it."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        _, observed = harness.call(loaded, scenario.call)
        harness.require(
            observed.error is None or isinstance(observed.error, ArgumentError), f"raised {observed.error!r}"
        )
