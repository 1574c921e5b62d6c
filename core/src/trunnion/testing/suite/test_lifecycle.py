"""Laws of loading and closing."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import count, product
from typing import TYPE_CHECKING, Any, Final

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.errors import ArgumentError, LifecycleError, TrunnionError
from trunnion.model.capability import Capability
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.sim.abi import FunctionAttribute
from trunnion.sim.trace import AttributeSet, LibraryLoaded, LibraryUnloaded, Synchronized
from trunnion.testing.comparison import check_call, check_expected, check_refused, symbols_of
from trunnion.testing.expected import Expected, Refused, TensorFacts
from trunnion.testing.forked import CAN_FORK, told_by_a_child
from trunnion.testing.laws import EVERY_WAY, law
from trunnion.testing.observed import going_on, observe
from trunnion.testing.reference import expect, kernel_of
from trunnion.testing.repeatable import bind_call
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, scenarios
from trunnion.testing.strategies.numbers import RaiserSpec
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_faults import referring_to_none, unloading_all
from trunnion.testing.symbols import kernel_symbol, variable_symbol
from trunnion.testing.variable_contents import noting_contents
from trunnion.testing.ways import CALLS, LOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told

__all__: list[str] = []


def _any(harness: Harness) -> st.SearchStrategy[Any]:
    return scenarios(harness.capabilities)


@law("C1", given=_any)
def closed_programs(harness: Harness, scenario: Scenario) -> None:
    """Closing unloads the image once, closing again does nothing, and every later call is a LifecycleError.

    So is one that was bound before, though nobody holds the program any more.
    """
    harness.simulator.clear_trace()
    loaded = harness.open(scenario.program)
    images = _images(harness)
    harness.call(loaded, scenario.call)
    images |= _images(harness)  # what is loaded by the first call alone
    bound = bind_call(harness, scenario.program, loaded, harness.given(scenario.call))
    harness.simulator.clear_trace()
    loaded.close()
    loaded.close()
    gone = [event.library for event in harness.simulator.trace if isinstance(event, LibraryUnloaded)]
    harness.require(set(gone) == images and len(gone) == len(images), f"unloaded {gone}, of {images}")
    if bound is None:
        return
    _, observed = harness.call(loaded, scenario.call)
    harness.require(isinstance(observed.error, LifecycleError), f"a closed program raised {observed.error!r}")
    harness.require(not observed.launches, "a closed program launched")
    told = "; ".join(going_on({"preload": partial(loaded.preload, 0)}))
    harness.require(not told, f"of a closed program {told}")
    del loaded
    gc.collect()
    told = "; ".join(going_on({"a bound call of a closed program": bound.launch}))
    harness.require(not told and not harness.observed_launches(), told)
    harness.once(_check_taken_before)
    harness.once(_check_handles_again)
    harness.once(_check_asked_again, each_way=False)
    harness.once(_check_closed_at_once, each_way=False)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_closed_first)


def _check_taken_before(harness: Harness) -> None:
    """Require that an entry of a program that is closed is refused, though it was taken, and called, before."""
    with harness.loaded(taking(ScalarParam("n", dtype("int64")))) as loaded:
        entry = loaded.entry
        harness.machine.call(partial(entry, 1, device=0))
        loaded.close()
        told = "; ".join(going_on({"an entry that was taken before": partial(entry, 1, device=0)}))
        harness.require(not told, f"of a closed program {told}")


def _check_handles_again(harness: Harness) -> None:
    """Require that nothing of a closed program is taken for another's to which the driver gives the same handles."""
    tensor, number = TensorParam("a", dtype("float32"), (Const(4),)), ScalarParam("n", dtype("int32"))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    cases = ((taking(tensor), (spec,)), (taking(tensor, number), (spec, 7)), (taking(number), (7,)))
    with harness.simulator.reusing_handles():
        for program, args in cases:
            _call_twice(harness, Scenario(program, CallSpec(args=args, device=0)))


def _check_asked_again(harness: Harness) -> None:
    """Require the same of what the driver is asked, and told, by such a handle: once of each program."""
    tensor, number = TensorParam("a", dtype("float32"), (Const(4),)), ScalarParam("n", dtype("int32"))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    cases: tuple[tuple[KernelProgram, object], ...] = (
        (_asking_for_more(harness, taking(tensor), 4), spec),
        (_asking_for_more(harness, taking(number), 1000), 7),
    )
    held: list[Any] = []
    with harness.simulator.reusing_handles():
        for program, given in cases:
            _call_twice(harness, Scenario(program, CallSpec(args=(given,), device=0)))
            held += [
                harness.machine.empty(16, 0) for _ in range(4)
            ]  # no variable lies where a former one lay


def _call_twice(harness: Harness, scenario: Scenario) -> None:
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        check_call(harness, scenario, loaded, first=False)


_MUCH = 100_000
"""Bytes of dynamic shared memory that a kernel must be allowed to have."""


def _asking_for_more(harness: Harness, program: KernelProgram, count: int) -> KernelProgram:
    """Return a program with what a launcher must ask of each library and kernel anew: a variable, much shared memory.

    Parameters
    ----------
    harness
        The backend, of which not all have variables.
    program
        A program of one launch.
    count
        The variable's elements.
    """
    (launch,) = program.launches
    launch = replace(launch, dynamic_smem_bytes=Const(_MUCH))
    if Capability.MODULE_VARIABLES not in harness.capabilities:
        return replace(program, launches=(launch,))
    variable = ModuleVariable("v", dtype("float32"), (count,))
    launch = replace(launch, args=(*launch.args, variable))
    return replace(program, launches=(launch,), variables=(variable,))


def _check_closed_first(harness: Harness) -> None:
    """Require that a closed program says so, whatever else is wrong with a call of it."""
    n = Symbol("n")
    signature = Signature((ScalarParam("n", dtype("int64"), n),))
    launch = KernelLaunch("k", (n * n,), (Const(1),) * 3, (Const(1),) * 3)
    with harness.loaded(KernelProgram("p", signature, (CODE,), (launch,))) as loaded:
        loaded.close()
        wrong = ((1 << 40,), ("no number",), (), (1, 2))
        calls = {repr(args): partial(loaded.call, args, device=0) for args in wrong}
        told = "; ".join(going_on(calls))
        harness.require(not told, f"a closed program, called with {told}")


def _check_closed_at_once(harness: Harness) -> None:
    """Require that a program unloads once that is closed while it closes: by a handler, or by another thread."""
    program = taking(TensorParam("a", dtype("float32"), (Const(4),)))
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
    artifact = harness.built(program)
    for name, behind, elsewhere in product(("cuCtxSynchronize", "cuLibraryUnload"), *((False, True),) * 2):
        with closing(harness.reopen(program, artifact)) as loaded, ThreadPoolExecutor(1) as thread:
            harness.call(loaded, call)
            other = _ClosingAgain(loaded, thread if elsewhere else None, behind=behind)
            with harness.simulator.intercept(name, other):
                closed = observe(harness, loaded.close)
                others = [one.exception() for one in other.closed]
            events = harness.sabotage.trace(harness.machine.trace)
        count_of = sum(isinstance(event, LibraryUnloaded) for event in events)
        there = "in another thread" if elsewhere else "in the same thread"
        where = f"{'behind' if behind else 'before'} {name}, {there}"
        errors = [one for one in (closed.error, *others) if one is not None]
        told = f"unloaded {count_of} times, expected once; raised {errors}, expected nothing"
        harness.require(count_of == 1 and not errors, f"closed {where}, while it was closed: {told}")


class _ClosingAgain:
    """A close that begins once in the midst of another one: in its thread, or in another, which gets a moment."""

    def __init__(self, loaded: LoadedProgram, thread: ThreadPoolExecutor | None, *, behind: bool) -> None:
        self._loaded, self._thread, self._behind = loaded, thread, behind
        self._tried = count()
        self.closed: list[Future[None]] = []

    def __call__(self, proceed: Callable[..., None], *arguments: Any) -> None:
        """Stand between closing and the driver."""
        if self._behind:
            proceed(*arguments)
        if not next(self._tried):
            self._close()
        if not self._behind:
            proceed(*arguments)

    def _close(self) -> None:
        if self._thread is not None:
            self.closed.append(self._thread.submit(self._loaded.close))
            wait(self.closed, timeout=_MOMENT)
            return
        with suppress(LifecycleError):
            self._loaded.close()


_MOMENT: Final = 0.05
"""Seconds in which another thread, if it does not wait, has closed a program."""


def _images(harness: Harness) -> set[int]:
    return {event.library for event in harness.simulator.trace if isinstance(event, LibraryLoaded)}


def _unaided(harness: Harness) -> st.SearchStrategy[Any]:
    """Draw no windows: the cache that is set aside for them outlives a program that nobody closes."""
    return scenarios(harness.capabilities - {Capability.ACCESS_POLICY_WINDOW})


@law("C2", given=_unaided, cost="toolchain", ways=LOADS)
def nothing_else_unloads(harness: Harness, scenario: Scenario) -> None:
    """Only closing unloads: a program that is dropped stays loaded, since a captured graph may still launch it.

    So may a bound call of it.
    """
    held = [harness.open(scenario.program)]
    harness.call(held[0], scenario.call)
    bound = bind_call(harness, scenario.program, held.pop(), harness.given(scenario.call))
    harness.simulator.clear_trace()
    gc.collect()
    gone = [event for event in harness.simulator.trace if isinstance(event, LibraryUnloaded)]
    harness.require(not gone, f"a finalizer unloaded {gone}")
    if bound is not None:
        bound.check(harness, scenario.program)


@law("C3", given=_any, ways=CALLS)
def independent_programs(harness: Harness, scenario: Scenario) -> None:
    """Two loaded programs of one artifact are independent, and keep one reference to a primary context at the most.

    Closing one leaves the other as it was. A reference may be kept for each device and process; none for each program.
    """
    # First: what a process keeps of a device it takes once.
    harness.once(_check_other_devices, each_way=False)
    for device in harness.machine.alike:
        harness.machine.empty(1, device)  # the tensor library takes a reference at its first use of a device
    artifact = harness.build(scenario.program)
    with (
        referring_to_none(harness),
        closing(harness.load(artifact)) as first,
        closing(harness.load(artifact)) as second,
    ):
        check_call(harness, scenario, first)
        _close_within(harness, scenario, first, second)
        check_call(harness, scenario, second, first=False)
    if Capability.MODULE_VARIABLES in harness.capabilities:
        harness.once(_check_own_variables, each_way=False)
    harness.once(_check_of_one_name, each_way=False)
    harness.once(_check_runtimes, each_way=False)


def _check_own_variables(harness: Harness) -> None:
    """Require that what stands in one program's variables stays there when another one of the same image begins."""
    variable = ModuleVariable("v", dtype("int32"), (2,), bytes(8))
    launch = KernelLaunch("k", (), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature(()), (CODE,), (launch,), variables=(variable,))
    call, symbol, written = CallSpec(args=(), device=0), variable_symbol(0), b"\x11" * 8
    with (
        harness.loaded(program) as one,
        harness.loaded(program) as other,
        noting_contents(harness, program) as seen,
    ):
        _, observed = harness.call(one, call)
        for launched in observed.launches:
            place = harness.machine.variable(launched, symbol)
            harness.simulator.memory.on(0).write(place, written)
        harness.call(other, call)
        seen.clear()
        harness.call(one, call)
    harness.require(
        seen and all(held == {symbol: written} for held in seen),
        f"another program of the same image began, and the variables of the first hold {seen}",
    )


def _check_of_one_name(harness: Harness) -> None:
    """Require that two programs of one name are two while both are loaded, and when the first is loaded no more."""
    tensor, number = TensorParam("a", dtype("float32"), (Const(4),)), ScalarParam("n", dtype("int32"))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    first, second = taking(tensor), taking(number, tensor)
    (launch,) = second.launches
    second = replace(second, launches=(replace(launch, grid=(Const(3), Const(1), Const(1))),))
    scenarios_of = [
        Scenario(program, CallSpec(args=args)) for program, args in ((first, (spec,)), (second, (7, spec)))
    ]
    with harness.loaded(second) as other:
        with harness.loaded(first) as one:
            for _ in range(2):
                for scenario, loaded in zip(scenarios_of, (one, other), strict=True):
                    check_call(harness, scenario, loaded, first=False)
        check_call(harness, scenarios_of[1], other, first=False)
        with harness.loaded(first) as again:
            for scenario, loaded in zip(scenarios_of, (again, other), strict=True):
                check_call(harness, scenario, loaded, first=False)


def _check_other_devices(harness: Harness) -> None:
    """Require that a program on one device neither refers to another one's primary context nor waits for it."""
    program = taking(TensorParam("a", dtype("float32"), (Const(4),)))
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))
    artifact = harness.built(program)
    loaded: list[LoadedProgram] = []
    with referring_to_none(harness, of=(0,)):
        steps = (
            observe(harness, lambda: loaded.append(harness.load(artifact))),
            observe(harness, lambda: given.launch(loaded[0])),
            observe(harness, loaded[0].close),
        )
    errors = [one.error for one in steps if one.error is not None]
    harness.require(not errors, f"a good program raised {errors}")
    waits = {event.device for one in steps for event in one.events if isinstance(event, Synchronized)}
    harness.require(waits <= {0}, f"a program that launched on device 0 waited for devices {sorted(waits)}")


class _Asked:
    """A tensor library that notes whether it was asked for anything."""

    def __init__(self, true: Any) -> None:
        self._true = true
        self.asked: set[str] = set()

    def instead(self, _: object) -> Any:
        """Return this one, whatever was to be handed in."""
        return self

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self._true, name)


def _check_runtimes(harness: Harness) -> None:
    """Require that each of two programs asks the `Runtime` that it was loaded with."""
    tensor, output = (
        TensorParam(name, dtype("float32"), (Const(4),), access=access)
        for name, access in (("a", "read"), ("b", "write"))
    )
    program = taking(tensor, outputs=(output,))
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
    with ExitStack() as opened:
        for place in ("first", "second"):
            library = _Asked(harness.sabotage.runtime(harness.machine.runtime))
            asking = replace(harness, sabotage=replace(harness.sabotage, runtime=library.instead))
            check_call(asking, Scenario(program, call), opened.enter_context(asking.loaded(program)))
            harness.require(
                library.asked,
                f"the {place} of two programs asked nothing of the Runtime that it was loaded with",
            )


def _close_within(harness: Harness, scenario: Scenario, first: LoadedProgram, second: LoadedProgram) -> None:
    """Close a program in the midst of a launch of another one, of the same artifact."""
    closed: list[TrunnionError | None] = []

    def close(_: Any) -> None:
        if not closed:
            closed.append(observe(harness, first.close).error)

    symbols = symbols_of(scenario.program).values()
    with ExitStack() as until:
        for symbol in symbols:
            harness.simulator.register_body(symbol, close)
            until.callback(harness.simulator.unregister_body, symbol)
        harness.call(second, scenario.call)
    harness.require(not any(closed), f"closing a program in a launch of another one raised {closed}")
    first.close()


@law("C4", given=lambda harness: st.tuples(_any(harness), st.booleans()))
def preloading(harness: Harness, example: tuple[Scenario, bool]) -> None:
    """Preloading a device leaves nothing of it to the first call, launches nothing and sets only what launches need.

    One below 0, or beyond the last, is an ArgumentError, of a call that names it too; the next call works.
    """
    harness.once(_check_ordinals)
    scenario, elsewhere = example
    harness.simulator.clear_trace()
    with harness.loaded(scenario.program) as loaded:
        for device in (0, 1):
            with harness.simulator.current(1 - device) if elsewhere else nullcontext():
                loaded.preload(device)
        seen = harness.observed_launches()
        harness.require(not seen, f"preloading launched {seen}")
        prepared = harness.sabotage.trace(harness.simulator.trace)
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused):
            check_refused(harness, expected, observed)
            return
        check_expected(harness, scenario.program, facts, (expected, observed))
        waiting = set(_left_to_calls(scenario.program))
        late = [event for event in observed.events if _prepares(event, waiting)]
        harness.require(not late, f"left to the first call: {late}")
        _check_attributes(harness, scenario.program, (*prepared, *observed.events))


def _check_ordinals(harness: Harness) -> None:
    """Require that a device that there is not is refused by the name of the argument, before anything happens."""
    with harness.loaded(taking(ScalarParam("n", dtype("int64")))) as loaded:
        for device in (-1, harness.simulator.devices, -harness.simulator.devices, 2**31 - 1):
            ways: Mapping[str, Callable[[], Any]] = {
                "preload": partial(loaded.preload, device),
                "call": partial(loaded.call, (1,), device=device),
                "bind": partial(loaded.bind, (1,), device=device),
                "entry": partial(loaded.entry, 1, device=device),
            }
            for way, ask in ways.items():
                observed = observe(harness, ask)
                error = observed.error
                named = isinstance(error, ArgumentError) and error.argument == "device"
                harness.require(named, f"{way}, of device {device}, raised {error!r}")
                harness.require(not observed.launches, f"{way}, of device {device}, launched")
            observed = observe(harness, partial(loaded.call, (1,), device=0))
            harness.require(observed.error is None and observed.launches, f"raised {observed.error!r}")


def _check_attributes(harness: Harness, program: KernelProgram, events: tuple[Told, ...]) -> None:
    """Require that no attribute of a kernel was set that no launch asks for."""
    asked = {
        FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES,
        FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    }
    if any(launch.carveout is not None for launch in program.launches):
        asked.add(FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT)
    stray = [event for event in events if isinstance(event, AttributeSet) and event.attribute not in asked]
    harness.require(not stray, f"no launch asks for what was set: {stray}")


def _left_to_calls(program: KernelProgram) -> Iterator[tuple[str, int]]:
    """Yield kernels, by exact name, and attributes of theirs that a call sets, since it alone knows what is needed."""
    for launch in program.launches:
        conditional = _is_decided(launch.when)
        kernel = symbols_of(program)[kernel_of(program, launch)]
        if conditional or _is_decided(launch.dynamic_smem_bytes):
            yield kernel, int(FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
        if conditional or any(map(_is_decided, launch.cluster or ())):
            yield kernel, int(FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED)


def _is_decided(value: object) -> bool:
    return isinstance(value, Expr) and not isinstance(value, Const)


def _prepares(event: object, waiting: set[tuple[str, int]]) -> bool:
    """Whether an event of a call prepares what was known before it."""
    if isinstance(event, AttributeSet):
        return (event.kernel, int(event.attribute)) not in waiting
    return isinstance(event, LibraryLoaded)


@law("C5", given=_any, ways=LOADS)
def bound_calls(harness: Harness, scenario: Scenario) -> None:
    """A bound call launches nothing by itself, then as a plain call does each time; a wrong one is refused at once."""
    with harness.loaded(scenario.program) as loaded:
        bound = bind_call(harness, scenario.program, loaded, harness.given(scenario.call))
        if bound is None:
            return
        said, known = (bound.launch.name, bound.launch.device), (scenario.program.name, bound.expected.device)
        true = said[0] in ("", known[0]) and said[1] in (None, known[1])
        harness.require(true, f"says that it is of {said}, expected {known}")
        for _ in range(2):
            bound.check(harness, scenario.program)


@law("C6", given=lambda harness: st.tuples(_any(harness), st.booleans()), cost="toolchain", ways=LOADS)
def forked_children(harness: Harness, example: tuple[Scenario, bool]) -> None:
    """In a forked child every way to call is a LifecycleError and asks the driver nothing; the parent goes on.

    So it is where only the launcher, or a bound call, is left of a program.
    """
    scenario, called = example
    with harness.loaded(scenario.program) as loaded:
        if called:
            check_call(harness, scenario, loaded)
        given = scenario.call
        args = harness.arguments(given.args)
        out = None if given.out is None else harness.arguments(given.out)
        facts = harness.facts(args, out=out, device=given.device)
        expected = expect(scenario.program, facts)
        assume(CAN_FORK and isinstance(expected, Expected))
        on = expected.device if isinstance(expected, Expected) else 0
        stream = harness.simulator.new_stream(on)
        bound = harness.simulator.call(loaded.bind, args, out=out, device=given.device)
        ways: Mapping[str, Callable[[], Any]] = {
            "call": lambda: loaded.call(args, out=out, device=given.device),
            "call on a stream": lambda: loaded.call(args, out=out, stream=stream, device=given.device),
            "bind": lambda: loaded.bind(args, out=out, device=given.device),
            "preload": lambda: loaded.preload(on),
            "a bound call": bound,
        }
        if any(isinstance(one, TensorFacts) for one in facts.args):  # it takes no device=
            ways = {**ways, "entry": lambda: loaded.entry(*args)}
        harness.simulator.clear_trace()
        told = told_by_a_child(lambda: "; ".join(_went_on(harness, ways, loaded)))
        harness.require(not told, f"in a forked child: {told}")
        check_call(harness, scenario, loaded, first=False)
    # Of a window nobody would give the cache back.
    if Capability.ACCESS_POLICY_WINDOW not in scenario.program.plan().requires:
        _check_what_is_left(harness, scenario)


def _check_what_is_left(harness: Harness, scenario: Scenario) -> None:
    """Require the same of what is left of a program that nobody closed, nor holds any more."""
    held = [harness.open(scenario.program)]
    given = harness.given(scenario.call)
    bound, entry = harness.simulator.call(given.bind, held[0]), held.pop().entry
    gc.collect()
    ways: dict[str, Callable[[], Any]] = {"a bound call": bound}
    if given.device is None:  # it takes no device=
        ways["entry"] = lambda: entry(*given.args)
    harness.simulator.clear_trace()
    told = told_by_a_child(lambda: "; ".join(going_on(ways)) or str(harness.simulator.trace or ""))
    harness.require(not told, f"in a forked child, of what is left of a program: {told}")


def _went_on(harness: Harness, ways: Mapping[str, Callable[[], Any]], loaded: LoadedProgram) -> Iterator[str]:
    """Yield which ways to call did not raise a LifecycleError, and what the driver was asked, by closing too."""
    yield from going_on(ways)
    loaded.close()
    if harness.simulator.trace:
        yield f"the driver saw {harness.simulator.trace}"


@law("C7", given=_any, ways=LOADS)
def closed_while_loaded(harness: Harness, scenario: Scenario) -> None:
    """A call in which a handler closes the program while its image is loaded is a LifecycleError, and leaves no image.

    Or closing is one, and the call goes on.
    """
    harness.once(_check_closed_within)
    artifact, tried = harness.built(scenario.program), count()
    closed: list[bool] = []

    def close(proceed: Callable[..., None], *arguments: Any) -> None:
        if not next(tried):
            with suppress(LifecycleError):
                loaded.close()
                closed.append(True)
        proceed(*arguments)

    with unloading_all(harness), closing(harness.reopen(scenario.program, artifact)) as loaded:
        with harness.simulator.intercept("cuLibraryLoadData", close):
            facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused):
            return
        if not closed:
            check_expected(harness, scenario.program, facts, (expected, observed), first=False)
            return
        harness.require(isinstance(observed.error, LifecycleError), f"raised {observed.error!r}")
        harness.require(not observed.launches, "a closed program launched")
        images = _images(harness)
        gone = {event.library for event in harness.simulator.trace if isinstance(event, LibraryUnloaded)}
        harness.require(
            images <= gone, f"the program is closed, and libraries of it are loaded: {images - gone}"
        )


def _check_closed_within(harness: Harness) -> None:
    """Require that a close within the program's own launch, plain or bound, is refused, and one after it is none."""
    program = taking()
    told: list[str] = []
    with unloading_all(harness), harness.loaded(program) as loaded:
        close = {"closing": loaded.close}
        harness.simulator.register_body(kernel_symbol(0), lambda _: told.extend(going_on(close)))
        try:
            bound = harness.simulator.call(loaded.bind, (), device=0)
            for launch in (partial(loaded.call, (), device=0), bound, bound):
                observed = observe(harness, launch)
                whole = observed.error is None and len(observed.launches) == 1
                harness.require(whole, f"raised {observed.error!r}")
        finally:
            harness.simulator.unregister_body(kernel_symbol(0))
        harness.require(not told, f"within the program's own launch {told}")


@law("C8", given=_any, ways=tuple(way for way in EVERY_WAY if way != "capture"))
def memory_of_calls(harness: Harness, scenario: Scenario) -> None:
    """What a call allocated is free again once its caller lets go of what it returned, or of the bound call.

    So is what it was given: a program that was called takes as much memory as one that was only preloaded. All that
    without Python's garbage collector; of a refused call, once its error is gone.
    """
    harness.once(_check_refused_calls, each_way=False)
    artifact = harness.built(scenario.program)
    used = {calls: _bytes_in_use(harness, scenario, artifact, calls) for calls in (0, 1, 4)}
    harness.require(used[0] == used[1] == used[4], f"bytes in use on each device, by number of calls: {used}")
    with closing(harness.reopen(scenario.program, artifact)) as loaded:
        _check_refused(harness, loaded, scenario.call)


def _check_refused_calls(harness: Harness) -> None:
    """Require that calls with one thing wrong keep nothing, whatever it is."""
    tensor, output = (TensorParam(name, dtype("float32"), (Const(4),)) for name in "ab")
    byte, real = ScalarParam("c", dtype("int8")), ScalarParam("d", dtype("float32"))
    program = taking(tensor, byte, real, outputs=(replace(output, access="write"),))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    out = (replace(spec, shape=(4,), shared=True),)
    with harness.loaded(program) as loaded:
        for args in product(
            (spec, replace(spec, dtype="int32"), replace(spec, shape=(5,))),
            (3, 1000, 1.5, RaiserSpec()),
            (1.5, 1e60, RaiserSpec()),
        ):
            for destinations in (None, out, (*out, *out), (replace(spec, shape=(3,)),)):
                _check_refused(harness, loaded, CallSpec(args=args, out=destinations))


def _check_refused(harness: Harness, loaded: LoadedProgram, call: CallSpec) -> None:
    """Require that a call leaves nothing, if it is refused and its error is gone: Python's collector is not needed."""
    ways: tuple[Callable[[Any], object], ...] = (
        lambda given: given.launch(loaded),
        lambda given: given.bind(loaded),
    )
    for way in ways:
        with _collecting_nothing():
            before = _used(harness)
            refused = _is_refused(harness, partial(way, harness.given(call)))
            after = _used(harness)
        told = f"bytes in use on each device, and after a refused call whose error is gone: {before}, {after}"
        harness.require(not refused or before == after, told)


def _is_refused(harness: Harness, launch: Callable[[], object]) -> bool:
    """Whether a call is refused; nobody keeps its error."""
    try:
        harness.simulator.call(launch)
    except TrunnionError:
        return True
    return False


def _used(harness: Harness) -> list[int]:
    """Return the bytes in use on each device."""
    return [harness.simulator.memory.used(device) for device in range(harness.simulator.devices)]


def _bytes_in_use(harness: Harness, scenario: Scenario, artifact: Artifact, calls: int) -> list[int]:
    """Return the bytes in use on each device when a program was called so often, and prepared for every device.

    What a good call took is free at once: Python's garbage collector comes when there are many objects, not many bytes.
    """
    gc.collect()
    refused = False
    with closing(harness.reopen(scenario.program, artifact)) as loaded, _collecting_nothing():
        for _ in range(calls):
            _, observed = harness.call(loaded, scenario.call)
            refused |= observed.error is not None
            del observed
        for device in harness.machine.alike:
            loaded.preload(device)
        if refused:  # an error may hold others, and they the frames from which they came
            gc.collect()
        return [harness.simulator.memory.used(device) for device in range(harness.simulator.devices)]


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Let what refers to itself stay where it is until the block ends."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
