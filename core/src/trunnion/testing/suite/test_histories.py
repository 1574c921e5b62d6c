"""Laws of calls after other calls: what a launcher keeps of one must not reach another."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.errors import LifecycleError, TrunnionError
from trunnion.model.capability import Capability
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.sim.status import Status
from trunnion.sim.trace import LibraryUnloaded, LimitSet, Synchronized
from trunnion.testing.acts import ACTS, Life
from trunnion.testing.changes import CHANGES, NUMBERS, changes_of
from trunnion.testing.comparison import check_call, check_given
from trunnion.testing.expected import Refused
from trunnion.testing.faults import PlantedFault, asked
from trunnion.testing.history import Bench, History, Step, in_a_thread
from trunnion.testing.interruption import (
    MOST_PLACES,
    InterruptedRuntime,
    interrupting,
    is_of_backend,
    some_places,
)
from trunnion.testing.laws import law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.histories import (
    history_programs,
    number_program,
    plain_program,
    sized_program,
)
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.symbols import kernel_symbol
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.sim.interception import Proceed
    from trunnion.sim.objects import Context
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told

__all__: list[str] = []

_DOORS: Final = ("call", "call", "entry", "entry", "bind", "capture")
_PICKS: Final = st.integers(0, 29)
_ALIKE: Final = (1, 0, 0, 2)
_OFTEN: Final = (False, True, True, True)  # the first is the simplest
_HALF: Final = _OFTEN[:2]
_SOME: Final = (False, *_HALF)


def _some(draw: st.DrawFn, names: tuple[str, ...], taken: tuple[bool, ...] = _OFTEN) -> list[str]:
    """Draw most of the names, in an order that begins anywhere: so none is rare."""
    start = draw(st.integers(0, len(names) - 1))
    return [name for name in (*names[start:], *names[:start]) if choose(draw, taken)]


@st.composite
def _differences(draw: st.DrawFn, harness: Harness) -> History:
    """Draw things that differ, each of another kind."""
    program = draw(history_programs(harness.capabilities))
    names = _some(draw, changes_of(program))
    steps = (Step(name, draw(_PICKS), choose(draw, _ALIKE), choose(draw, _DOORS[:-1])) for name in names)
    return History(program, tuple(steps))


@law("Y1", given=_differences, ways=LOADS)
def one_difference(harness: Harness, history: History) -> None:
    """A call that differs in one thing from the calls before receives that thing, and the call after it the old one."""
    _differ(harness, history)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_last_dimension)
        harness.once(_check_alike_shapes)
    harness.once(_check_named_memory)
    harness.once(_check_unhelped)
    harness.once(_check_equal_hashes, each_way=False)


_MODULUS: Final = (1 << 61) - 1
"""Numbers that differ by it have one hash in Python, as -1 and -2 have."""

_HASHED_ALIKE: Final[dict[str, tuple[tuple[int | float, int | float], ...]]] = {
    "int32": ((-1, -2),),
    "int64": ((-1, -2), (5, 5 + _MODULUS), (-7, -7 - _MODULUS)),
    "uint64": ((5, 5 + _MODULUS),),
    "float32": ((-1.0, -2.0), (1.0, 2.0**61)),
    "float64": ((-1.0, -2.0), (1.0, 2.0**61)),
}
"""Pairs of numbers whose hashes are equal, by type."""


def _check_equal_hashes(harness: Harness) -> None:
    """Require the same of numbers that differ, though their hashes do not."""
    params = tuple(ScalarParam(name, dtype(name)) for name in _HASHED_ALIKE)
    program = taking(*params)
    with harness.loaded(program) as loaded:
        for place, pairs in enumerate(_HASHED_ALIKE.values()):
            for one, other in pairs:
                for number in (one, other, one):
                    args: list[object] = [3] * len(params)
                    args[place] = number
                    call = CallSpec(args=tuple(args), device=0)
                    check_call(harness, Scenario(program, call), loaded, first=False)


def _check_named_memory(harness: Harness) -> None:
    """Require the same of a stream that is named where memory is to be had more quickly, under the current one."""
    program, alone = plain_program(harness.capabilities), harness.alone()
    with alone.loaded(program) as loaded:
        bench = Bench(alone, program, loaded)
        for form in range(5):
            bench.call("entry")
            bench.change(CHANGES["named stream"], form)
            bench.call("entry")
            bench.change_back()
            bench.call("entry")


class _Unhelped:
    """A tensor library beside which no call helper is installed: nothing reads several tensors at once.

    Parameters
    ----------
    true
        The library.
    """

    def __init__(self, true: Any) -> None:
        self._true = true

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    def reader(self, tensors: tuple[Any, ...]) -> None:
        """Return None: there is no reader."""

    def caller(self, *given: Any) -> None:
        """Return None: there is no caller."""


def _check_unhelped(harness: Harness) -> None:
    """Require the same where a launcher has to ask of each tensor where it lies, and by another door what it is."""
    program, library = plain_program(harness.capabilities), harness.sabotage.runtime(harness.machine.runtime)
    asking = replace(harness, sabotage=replace(harness.sabotage, runtime=lambda _: _Unhelped(library)))
    with asking.loaded(program) as loaded:
        bench = Bench(asking, program, loaded)
        for name in changes_of(program):
            for _ in range(3):
                bench.call("entry")
            bench.change(CHANGES[name], 0)
            bench.call("entry")
            bench.change_back()
            bench.call("entry")


def _check_last_dimension(harness: Harness) -> None:
    """Require the same of the last extent and stride of a tensor of many dimensions, over the same memory."""
    n = Symbol("n", min=1)
    tensor = TensorParam("a", dtype("float32"), (*(Const(1),) * 5, n))
    launch = KernelLaunch("k", (tensor, n), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(64,), strides=(1,)),)))
    (memory,) = given.args
    with harness.loaded(program) as loaded:
        for count, step in (*((3, 1),) * 4, (2, 1), (3, 1), (3, 2), (3, 1), (5, 1)):
            view = memory.as_strided((*(1,) * 5, count), (*(64,) * 5, step))
            check_given(harness, program, replace(given, args=[view]), loaded, first=False)


_ALIKE_SHAPES: Final = ((1, 23), (12, 3), (3, 12), (23, 1), (4, 9), (2, 18), (6, 6))
"""Shapes that a careless key takes for each other: by their digits, their extents in some order, or their product."""


def _check_alike_shapes(harness: Harness) -> None:
    """Require the same of two extents of a tensor that change together, over the same memory."""
    m, n = (Symbol(name, min=1) for name in "mn")
    tensor = TensorParam("a", dtype("float32"), (m, n))
    launch = KernelLaunch("k", (tensor, m, n), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(36,), strides=(1,)),)))
    (memory,) = given.args
    with harness.loaded(program) as loaded:
        for rows, columns in (*_ALIKE_SHAPES, *_ALIKE_SHAPES):
            view = memory[: rows * columns].view(rows, columns)
            check_given(harness, program, replace(given, args=[view]), loaded, first=False)


def _differ(harness: Harness, history: History) -> None:
    with harness.loaded(history.program) as loaded:
        bench = Bench(harness, history.program, loaded)
        for step in history.steps:
            for _ in range(step.alike):
                bench.call(step.door)
            bench.change(CHANGES[step.what], step.pick)
            bench.call(step.door)
            bench.change_back()
            bench.call(step.door)


@st.composite
def _numbers(draw: st.DrawFn, harness: Harness) -> History:
    """Draw numbers that differ, of every type, after calls that differ in nothing."""
    sized = (
        choose(draw, _SOME) and {Capability.DEVICE_FACTS, Capability.DYNAMIC_SHAPES} <= harness.capabilities
    )
    program = sized_program() if sized else number_program(harness.capabilities)
    steps = [
        Step(change.name, place + draw(st.integers(0, 5)) * len(places))
        for change in NUMBERS
        for places in (change.places(program),)
        for place in range(len(places))
        if choose(draw, _SOME)
    ]
    start, door = draw(st.integers(0, len(steps))), choose(draw, _DOORS[:-1])
    order = (*steps[start:], *steps[:start])
    return History(
        program, tuple(replace(step, alike=0 if at else 4, door=door) for at, step in enumerate(order))
    )


@law(
    "Y5",
    given=_numbers,
    requires=frozenset({Capability.MULTI_LAUNCH}),
    ways=LOADS,
)
def numbers_alone(harness: Harness, history: History) -> None:
    """A number of any type that is all that differs arrives, at a kernel too that is given nothing else."""
    _differ(harness, history)


@st.composite
def _interrupted(draw: st.DrawFn, harness: Harness) -> History:
    """Draw what differs in calls that are interrupted."""
    program = plain_program(harness.capabilities)
    # A stream of its own is asked for its device, where another context may be current already.
    name = choose(draw, ("other integer", "memory", "extents", "named stream"))
    return History(program, (Step(name, draw(_PICKS), 0, choose(draw, ("call", "entry"))),))


@law("Y6", given=_interrupted, ways=LOADS)
def interrupted_calls(harness: Harness, history: History) -> None:
    """A call that a signal's handler ends by an exception, wherever in Python, leaves nothing to the calls after it.

    The exception is the caller's, also where the tensor library was asked for something. A close waits for what such a
    call launched. One that is ended so, in its waiting or before, is done by the next one.
    """
    harness.once(_interrupt_library)
    harness.once(_interrupt_close)
    if harness.way.id == "call":  # what prepares a device is the same by every way
        harness.once(_interrupt_preload)
        harness.once(_interrupt_launch)
    with harness.loaded(history.program) as loaded:
        bench = Bench(harness, history.program, loaded)
        for step in history.steps:
            places = _interrupt(bench, step, 0)
            for place in some_places(places, places if harness.thorough else MOST_PLACES, step.pick):
                _interrupt(bench, step, place)


def _interrupt_library(harness: Harness) -> None:
    """Interrupt a call in what it asks the tensor library, and require that the interrupt comes through."""
    program = plain_program(harness.capabilities)
    library = InterruptedRuntime(harness.sabotage.runtime(harness.machine.runtime))
    asking = replace(harness, sabotage=replace(harness.sabotage, runtime=lambda _: library))
    with asking.loaded(program) as loaded:
        bench = Bench(asking, program, loaded)
        for name in InterruptedRuntime.NAMES:
            bench.call("call")
            bench.change(CHANGES["memory"], 0)
            given = bench.given()
            with library.interrupted(name) as struck, suppress(KeyboardInterrupt):
                harness.machine.call(partial(given.launch, loaded))
                harness.require(not struck, f"an interrupt got lost in {name} of the tensor library")
            bench.change_back()
            bench.call("call")


def _interrupt_preload(harness: Harness) -> None:
    """Interrupt what prepares a device, at each place, and require that no context stays current."""
    program = plain_program(harness.capabilities)
    artifact, stack = harness.built(program), harness.simulator.state.stack()
    contexts, places, place = tuple(stack), 1, 0
    while place <= places:
        with closing(harness.reopen(program, artifact)) as loaded:

            def prepare(loaded: LoadedProgram = loaded) -> None:
                loaded.preload(1)

            with suppress(KeyboardInterrupt), interrupting(is_of_backend, place) as interruption:
                harness.machine.call(prepare)
            left, stack[:] = tuple(stack), contexts
            harness.require(left == contexts, f"{len(left)} contexts are current, not {len(contexts)}")
        places = places if place else interruption.places
        place += 1


_BEHIND: Final = 6
"""At how many places behind its launch a call is interrupted."""


def _interrupt_launch(harness: Harness) -> None:
    """Interrupt a first call right behind its launch, and require that closing waits for that, which no call tells."""
    artifact = harness.built(taking(TensorParam("a", dtype("float32"), (Const(4),))))
    _, launched = (
        _launch_interrupted(harness, artifact, 0) for _ in range(2)
    )  # a process asks for some things once
    for place in range(launched + 1, launched + 1 + _BEHIND):
        _launch_interrupted(harness, artifact, place)


def _launch_interrupted(harness: Harness, artifact: Artifact, place: int) -> int:
    """Interrupt a first call at a place, close, and return at which place it launched."""
    seen = 0
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))
    with closing(harness.load(artifact)) as loaded, ExitStack() as noting:
        harness.machine.clear_trace()
        with suppress(KeyboardInterrupt), interrupting(is_of_backend, place) as interruption:

            def note(proceed: Proceed, *arguments: Any) -> None:
                nonlocal seen
                seen = interruption.places
                proceed(*arguments)

            for name in ("cuLaunchKernel", "cuLaunchKernelEx"):
                noting.enter_context(harness.simulator.intercept(name, note))
            harness.machine.call(partial(given.launch, loaded))
        used = launched_on(harness)
        harness.machine.clear_trace()
        check_waits(harness, observe(harness, loaded.close).events, used)
    return seen


_CLOSES: Final = 20
"""At how many places a close is interrupted, about."""


def _interrupt_close(harness: Harness) -> None:
    """Interrupt a close, and require that another one does what is left, and nothing twice.

    A signal that comes while the driver waits is handled when it has waited: at the next place. Of what is interrupted
    later nobody knows whether it was done.
    """
    program = plain_program(harness.capabilities)
    artifact, stack = harness.built(program), harness.simulator.state.stack()
    contexts = tuple(stack)
    places, waited = _close_interrupted(harness, program, artifact, 0)
    for place in sorted({1, waited, waited + 1, *some_places(places, _CLOSES, 0)}):
        _close_interrupted(harness, program, artifact, place, waited)
        left, stack[:] = tuple(stack), contexts
        harness.require(
            left == contexts,
            f"{len(left)} contexts are current, not {len(contexts)}, closed at place {place}",
        )


def _close_interrupted(
    harness: Harness, program: KernelProgram, artifact: Artifact, place: int, waited: int = 0
) -> tuple[int, int]:
    """Interrupt a close at a place, close again, and return how many places there are, and when it had waited."""
    seen = 0
    with closing(harness.reopen(program, artifact)) as loaded:
        Bench(harness, program, loaded).call("call")
        harness.machine.clear_trace()
        with suppress(KeyboardInterrupt), interrupting(is_of_backend, place) as interruption:

            def note(proceed: Proceed, *arguments: Any) -> None:
                nonlocal seen
                seen = interruption.places
                proceed(*arguments)

            with harness.simulator.intercept("cuCtxSynchronize", note):
                harness.machine.call(loaded.close)
        events = harness.sabotage.trace(harness.machine.trace)
        again = observe(harness, loaded.close)
        told = (*events, *again.events)
        count = sum(isinstance(event, LibraryUnloaded) for event in told)
        where = f"a close that was interrupted at place {place}, and the next one,"
        harness.require(again.error is None, f"{where} raised {again.error!r}")
        harness.require(count <= 1, f"{where} unloaded {count} times")
        left = not count or not any(isinstance(event, Synchronized) for event in told)
        harness.require(place > waited + 1 or not left, f"{where} left something: the events are {told}")
    return interruption.places, seen


def _interrupt(bench: Bench, step: Step, place: int) -> int:
    """Interrupt a call that differs from those before, and return how many places there are."""
    for _ in range(2):
        bench.call(step.door)
    bench.change(CHANGES[step.what], step.pick)
    stack = bench.harness.simulator.state.stack()
    contexts = tuple(stack)
    places = bench.interrupted(step.door, place)
    left, stack[:] = tuple(stack), contexts
    bench.harness.require(
        left == contexts, f"{len(left)} contexts are current, not {len(contexts)}, at place {place}"
    )
    bench.change_back()
    bench.call(step.door)
    return places


@st.composite
def _histories(draw: st.DrawFn, harness: Harness) -> History:
    """Draw acts and changes, in turns."""
    program = draw(history_programs(harness.capabilities))
    acts, changes = _some(draw, tuple(ACTS)), _some(draw, changes_of(program), _HALF)
    names = [name for pair in itertools.zip_longest(acts, changes) for name in pair if name is not None]
    steps = (Step(name, draw(_PICKS), 0, choose(draw, _DOORS)) for name in names[: 2 * len(acts)])
    return History(program, tuple(steps))


@law("Y2", given=_histories, ways=LOADS)
def histories(harness: Harness, history: History) -> None:
    """Whatever happens to a program between calls, each call, bound call and graph delivers what it was made of."""
    with closing(Life(harness, history.program)) as life:
        life.call()
        for step in history.steps:
            life.take(step)
        life.end()


_QUIET: Final = ("again", "bind", "launch bound", "capture", "launch graph")
_PLACES: Final = ("device", "named stream", "current stream", "thread")


@st.composite
def _launches_elsewhere(draw: st.DrawFn, harness: Harness) -> History:
    """Draw launches on devices and streams, by calls, bound calls and graphs."""
    program = draw(history_programs(harness.capabilities))
    names = [name for pair in zip(_some(draw, _PLACES), _some(draw, _QUIET), strict=False) for name in pair]
    return History(program, tuple(Step(name, draw(_PICKS), 0, choose(draw, _DOORS)) for name in names))


@law("Y3", given=_launches_elsewhere, ways=LOADS, cost="toolchain")
def waiting_closes(harness: Harness, history: History) -> None:
    """Closing waits for all that the program launched, on each stream and device, though a call failed half way."""
    with closing(Life(harness, history.program)) as life:
        used: set[tuple[int, int]] = set()
        for step in (Step("again"), *history.steps):
            life.take(step)
            used |= launched_on(harness)
        _check_waits(life, used, min(device for device, _ in used) if used else None)
        life.reopen()
        if _launch_half(life):
            _check_waits(life, launched_on(harness))
    harness.once(_check_contexts)
    harness.once(_check_streams_out_of_reach, each_way=False)


@contextmanager
def launching_in(harness: Harness) -> Iterator[list[Context]]:
    """Note the context that is current at each launch of the block."""
    contexts: list[Context] = []

    def note(name: str, proceed: Proceed, *arguments: Any) -> None:
        if name.startswith("cuLaunchKernel"):
            contexts.append(harness.simulator.state.current())
        proceed(*arguments)

    with harness.simulator.intercept_every(note):
        yield contexts


def _check_contexts(harness: Harness) -> None:
    """Require that work is waited for in the contexts that are no primary ones too, in which it is launched."""
    program = taking(TensorParam("a", dtype("float32"), (Const(4),)))
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
    state = harness.simulator.state
    primary, stack = state.contexts[0], state.stack()
    for green in (False, True):
        made = state.make_context(primary.device, primary if green else None)
        with harness.loaded(program) as loaded:
            check_call(harness, Scenario(program, call), loaded)
            stack.append(made)
            try:
                with launching_in(harness) as contexts:
                    check_call(harness, Scenario(program, call), loaded, first=False)
                harness.require(contexts == [made], "a context was current, and is not launched in")
                if green:
                    _check_stream_of(harness, Scenario(program, call), loaded, made)
                closing = observe(harness, loaded.close)
                harness.require(stack[-1:] == [made], "closing leaves another context current")
            finally:
                stack.remove(made)
                state.destroy(made)
        before = itertools.takewhile(lambda event: not isinstance(event, LibraryUnloaded), closing.events)
        waited = {event.context for event in before if isinstance(event, Synchronized)}
        missed = ({primary.handle} if green else {primary.handle, made.handle}) - waited
        harness.require(not missed, f"unloaded, and did not wait in the contexts {missed}")


def _check_stream_of(harness: Harness, scenario: Scenario, loaded: LoadedProgram, made: Context) -> None:
    """Require that a green context's stream is a good one of its device, whichever context is current."""
    state = harness.simulator.state
    stream = state.new_stream(made)
    _, observed = harness.call(loaded, scenario.call, stream=stream.handle)
    launched = [launch.stream for launch in observed.launches]
    state.remove(stream)
    harness.require(
        observed.error is None and launched == [stream.handle],
        f"called on a green context's stream, it launched on {launched}: {observed.error!r}",
    )


_PER_THREAD: Final = 2  # CU_STREAM_PER_THREAD


def _check_streams_out_of_reach(harness: Harness) -> None:
    """Require that work is waited for though no handle leads to its stream: destroyed, or another thread's own."""
    program = taking(TensorParam("a", dtype("float32"), (Const(4),)))
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
    simulator = harness.simulator
    for stream, destroyed in ((simulator.new_stream(0), True), (_PER_THREAD, False)):
        with harness.loaded(program) as loaded:
            given = harness.given(call, stream=stream)
            in_a_thread(partial(check_given, harness, program, given, loaded))
            if destroyed:
                simulator.state.remove(simulator.state.handled[stream])
            closed = observe(harness, loaded.close)
        before = itertools.takewhile(lambda event: not isinstance(event, LibraryUnloaded), closed.events)
        waits = {(event.device, event.stream) for event in before if isinstance(event, Synchronized)}
        what = "a stream that was destroyed since" if destroyed else "another thread's own stream"
        harness.require(closed.error is None, f"launched on {what}, and closing raised {closed.error!r}")
        told = f"closing waited for {sorted(waits, key=str)} (device, stream), expected all of device 0"
        harness.require((0, None) in waits, f"launched on {what}, and {told}")


def launched_on(harness: Harness) -> set[tuple[int, int]]:
    """Return each device and stream that was launched on since the trace was cleared."""
    return {(event.device, event.stream) for event in harness.observed_launches()}


def _launch_half(life: Life) -> bool:
    """Make a call whose last launch fails, if there is one; return whether it did."""
    given = life.given()
    told = expect(life.program, life.harness.facts(given.args, out=given.out, device=given.device))
    if isinstance(told, Refused) or not told.launches:
        return False
    fault = PlantedFault("cuLaunchKernelEx", len(told.launches), Status.UNKNOWN)
    with life.harness.simulator.intercept_every(fault):
        _, observed = life.harness.call_with(life.loaded, given)
    if fault.struck:
        life.harness.require(observed.error is not None, "a launch failed, and the call went through")
    return fault.struck


def _check_waits(life: Life, used: set[tuple[int, int]], current: int | None = None) -> None:
    """Close the program, and require that it waits first for all streams that were launched on."""
    with nullcontext() if current is None else life.harness.simulator.current(current):
        events = observe(life.harness, life.loaded.close).events
    check_waits(life.harness, events, used)


def check_waits(harness: Harness, events: Sequence[Told], used: set[tuple[int, int]]) -> None:
    """Require that what closing did is to unload, and to wait first for all streams that were launched on.

    Parameters
    ----------
    harness
        The backend.
    events
        What closing asked the driver.
    used
        A device and a stream of it each.

    Raises
    ------
    LawViolation
        If it is not.
    """
    before = tuple(itertools.takewhile(lambda event: not isinstance(event, LibraryUnloaded), events))
    harness.require(len(before) < len(events), "closing unloaded nothing")
    waits = {(event.device, event.stream) for event in before if isinstance(event, Synchronized)}
    missed = sorted(one for one in used if not {one, (one[0], None)} & waits)
    harness.require(not missed, f"unloaded, and did not wait for {missed} (device, stream)")
    last = max((place for place, event in enumerate(before) if isinstance(event, Synchronized)), default=0)
    early = [event for event in before[:last] if isinstance(event, LimitSet)]
    harness.require(not early, f"cache was given back before the launches were over: {early}")


_MOMENT: Final = (
    0.05  # seconds: a program that closes too early has them to do so; one that waits is never blamed
)


class _Closing:
    """A close that another thread begins in the middle of a launch."""

    def __init__(self, loaded: LoadedProgram) -> None:
        self._loaded = loaded
        self._unloaded = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._closed: Future[None] | None = None
        self.early = False

    def __call__(self, _: Any) -> None:
        """Begin, once, and leave the other thread a moment."""
        if self._closed is None:
            with suppress(TrunnionError):
                self._loaded.call(
                    (object(),) * 99
                )  # a wrong call within this one is over, and this one is not
            self._closed = self._thread.submit(self._loaded.close)
            self._closed.add_done_callback(lambda _: self._unloaded.set())
            self.early = self._unloaded.wait(_MOMENT)

    def unloads(self, proceed: Any, *arguments: Any) -> None:
        """Stand between the program and the driver where it unloads."""
        self._unloaded.set()
        proceed(*arguments)

    def end(self) -> BaseException | None:
        """Wait for the other thread, and return what closing raised."""
        self._thread.shutdown()
        return None if self._closed is None else self._closed.exception()


def _call_within(bench: Bench) -> None:
    """Make a call in the middle of another one: a launcher has room for both from then on."""
    simulator, inner = bench.harness.simulator, [bench.given()]

    def come(_: Any) -> None:
        if inner:
            inner.pop().launch(bench.loaded)

    simulator.register_body(kernel_symbol(0), come)
    try:
        simulator.call(bench.given().launch, bench.loaded)
    finally:
        simulator.unregister_body(kernel_symbol(0))


_PREPARING: Final = ("cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelSetAttribute", "cuCtxSetLimit")
"""What the driver is asked while a first call loads a program, and prepares a device for it."""

_LAST_PREPARED: Final = 4
"""The last answer of the driver to any of these behind which a program is closed."""


_LOADED_BEFORE: Final = ("call", "preload")
"""The ways in which no call loads."""


def _closed(harness: Harness) -> st.SearchStrategy[tuple[KernelProgram, int, str]]:
    places = st.integers(-1, _LAST_PREPARED)
    return st.tuples(history_programs(harness.capabilities), places, st.sampled_from(("call", "bind")))


@law("Y4", given=_closed, ways=LOADS, cost="toolchain")
def closes_during_calls(harness: Harness, example: tuple[KernelProgram, int, str]) -> None:
    """A program that is closed while another thread is in a call of it ends that call first, and is closed then.

    So is one whose first call prepares its device; where that call loads it, too, it may find it closed instead.
    """
    harness.once(_check_other_doors, each_way=False)
    (program, place, door), simulator, answers = example, harness.simulator, itertools.count()

    def behind(proceed: Callable[..., None], *arguments: Any) -> None:
        proceed(*arguments)
        if next(answers) == place:
            other(None)

    with harness.loaded(program) as loaded, ExitStack() as until:
        bench, other = Bench(harness, program, loaded), _Closing(loaded)
        if place < 0:
            _call_within(bench)
        simulator.register_body(kernel_symbol(0), other)
        until.callback(simulator.unregister_body, kernel_symbol(0))
        for call in _PREPARING:
            until.enter_context(simulator.intercept(call, behind))
        with simulator.intercept("cuLibraryUnload", other.unloads):
            if place < 0:
                bench.call(door)
            elif harness.way.id in _LOADED_BEFORE:
                bench.call("call")
            else:
                _, first = harness.call_with(loaded, bench.given())
                whole = first.error is None or (
                    isinstance(first.error, LifecycleError) and not first.launches
                )
                harness.require(whole, f"a call during which its program was closed raised {first.error!r}")
            error = other.end()
        harness.require(not other.early, "the program was closed in the middle of a call")
        harness.require(error is None, f"closing raised {error!r}")
        _, later = harness.call_with(loaded, bench.given())
        harness.require(isinstance(later.error, LifecycleError), f"a closed program raised {later.error!r}")


def _check_other_doors(harness: Harness) -> None:
    """Require the same of a program that another thread binds or preloads, behind the first answer and the last."""
    program = taking(TensorParam("a", dtype("float32"), (Const(4),)))
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))
    artifact = harness.built(program)
    doors: dict[str, Callable[[LoadedProgram], object]] = {
        "bind": given.bind,
        "preload": lambda loaded: loaded.preload(0),
    }
    for door, work in doors.items():
        with closing(harness.load(artifact)) as loaded, asked(harness) as names:
            harness.simulator.call(work, loaded)
        for place in sorted({0, len(names) - 1}) if names else ():
            with closing(harness.load(artifact)) as loaded:
                _check_ends_first(harness, door, partial(work, loaded), _Closing(loaded), place)


def _check_ends_first(
    harness: Harness, door: str, work: Callable[[], object], other: _Closing, place: int
) -> None:
    """Require that a program is not closed within what is done, behind the driver's answer with that number."""
    answers = itertools.count()

    def behind(name: str, proceed: Proceed, *arguments: Any) -> None:
        proceed(*arguments)
        if next(answers) == place:
            within.append(name)
            other(None)

    within: list[str] = []
    simulator = harness.simulator
    with simulator.intercept_every(behind), simulator.intercept("cuLibraryUnload", other.unloads):
        done = observe(harness, work)
        error = other.end()
    where = f"by another thread while a {door} was behind {within}"
    harness.require(not other.early, f"the program was closed {where}")
    harness.require(error is None, f"closing {where} raised {error!r}")
    whole = done.error is None or isinstance(done.error, LifecycleError)
    harness.require(whole, f"a {door} during which its program was closed raised {done.error!r}")
