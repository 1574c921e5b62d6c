"""Laws of calls that overlap: in two threads, and one inside another."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import CompileError, DriverError, LifecycleError, ProgramError, TrunnionError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.plain import is_a
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Allocated, MemoryCopied
from trunnion.testing.comparison import check_expected, check_given, symbols_of
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.forked import CAN_FORK, told_by_a_child
from trunnion.testing.host_machine import HostMachine
from trunnion.testing.laws import LawViolation, law
from trunnion.testing.observed import Observed, is_work, observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, calls, programs
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_faults import referring_to_none, unloading_all
from trunnion.testing.variables import check_written_before
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trunnion.contract.adapter import BoundLaunch, LoadedProgram
    from trunnion.sim.trace import Launched
    from trunnion.testing.expected import Kernel
    from trunnion.testing.harness import Harness
    from trunnion.testing.ways import Arguments

__all__: list[str] = []

_PATIENCE: Final = 300.0
"""Seconds until a thread that was never woken gives up: far more than any machine is busy."""

_SHORT_PATIENCE: Final = 60.0
"""The same where a law is to say so, before whoever checks it takes it for hung."""

_MOMENT: Final = 0.05
"""Seconds that a thread has to come in where it must not; one that waits is never blamed."""

_LONG_MOMENT: Final = 1.0
"""Seconds that a thread waits for another one that may never come."""

_CROSSED: Final = "crossed"
"""The second call's place where it is one of two: each thread calls another program while it loads its own."""

_DRIVERS: Final = (0, 1, 2)
"""The driver's own streams, any of which memory is allocated for that a call on one of them has."""

_HANDLES: Final = ((None, None), (0, None), (None, 0), (None, 1), (None, 2))
"""The streams of both calls; of the driver's own one at most, since memory does not tell those apart."""

_LAST_PUSH: Final = 3
"""The last push of a context behind which a call may come: of a stream, of what prepares, of maps, of the launches."""

_WITHIN: Final = ("launch", "allocation", "kernel", "preparation", "context")
"""Where a call can come in the middle of another in the same thread."""


_SHARED: Final = (Capability.TMA_TILED, Capability.WORKSPACE)
"""Of what one call could leave something to another."""

_PREPARING: Final = ("preparation", "context", "contents")
"""Where a device is being prepared, perhaps: who does that may let nobody in, and says so."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two calls of one program, of which the second comes in the middle of the first."""

    scenario: Scenario
    """The program, and the first call."""

    other: CallSpec
    """The second call."""

    place: str
    """Where in the first one it comes: a key of `_PLACES`, or `_CROSSED`."""

    handles: tuple[int | None, int | None] = (None, None)
    """The streams of both: one of the driver's own, or None, a new one of the call's own."""

    odd: bool = False
    """Of a call within another: the driver refuses its launch. Of two threads': the first has the lesser identity."""

    bound: bool = False
    """Whether both were bound before, and are launched so."""

    later: int = 0
    """How many contexts the first call pushes before the one behind which the second comes, where ``"context"`` is."""


@st.composite
def _overlaps(draw: st.DrawFn, harness: Harness, *places: str) -> Overlap:
    needed = choose(draw, ((), *([one] for one in _SHARED if one in harness.capabilities)))
    program = draw(programs(harness.capabilities, needed))
    return Overlap(
        Scenario(program, draw(calls(program))),
        draw(calls(program)),
        choose(draw, places),
        choose(draw, _HANDLES),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(0, _LAST_PUSH)),
    )


class _Caller:
    """One call on tensors of its own, and a stream of its own or of the driver's."""

    def __init__(
        self, harness: Harness, program: KernelProgram, call: CallSpec, stream: int | None = None
    ) -> None:
        self.harness, self.program = harness, program
        self.args = harness.arguments(call.args)
        self.device = call.device
        self.facts = harness.facts(self.args, device=call.device)
        self.expected = expect(program, self.facts)
        assume(not isinstance(self.expected, Refused) and self.expected.launches)
        on = self.expected.device if isinstance(self.expected, Expected) else 0
        self.stream = harness.simulator.new_stream(on) if stream is None else stream
        self.made = False
        self.result: Any = None
        self._bound: BoundLaunch | None = None

    def bind(self, loaded: LoadedProgram) -> None:
        """Have the call bound, and launched so."""
        self._bound = loaded.bind(self.args, stream=self.stream, device=self.device)

    def launch(self, loaded: LoadedProgram) -> None:
        """Make the call."""
        self.made = True
        if self._bound is not None:
            self.result = self._bound()
        else:
            self.result = loaded.call(self.args, stream=self.stream, device=self.device)

    @property
    def _allocating(self) -> tuple[int, ...]:
        """The streams for which memory may be allocated: see `trunnion.testing.provision.compare_allocations`."""
        return _DRIVERS if self.stream in _DRIVERS else (self.stream,)

    def check(self, events: tuple[Any, ...]) -> None:
        """Compare the work on this caller's stream with the oracle's."""
        if isinstance(self.expected, Refused):
            return
        own = self._allocating
        mine = tuple(
            event
            for event in events
            if (is_work(event) and event.stream == self.stream)
            or (isinstance(event, Allocated) and event.stream in own)
        )
        observed = Observed(result=self.result, error=None, given_out=None, events=mine)
        check_expected(self.harness, self.program, self.facts, (self.expected, observed), first=False)


_LAUNCHES: Final = ("cuLaunchKernel", "cuLaunchKernelEx")

_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "launch": _LAUNCHES,
    "allocation": ("allocate",),
    "kernel": (),
    "loading": ("cuLibraryLoadData", "cuKernelSetAttribute"),
    "preparation": ("cuKernelSetAttribute", "cuCtxGetLimit", "cuCtxSetLimit"),
    "context": ("cuCtxPushCurrent",),
    "contents": ("cuMemcpyHtoDAsync",),
}
"""Where a call can come in the middle of another: ahead of which driver calls, before they read what they are given,
and behind a push; none: while the first kernel runs. Of two threads the second waits for the first where that loads the
program."""


@contextmanager
def _comes(
    harness: Harness, first: _Caller, place: str, inner: Callable[[], None], later: int = 0
) -> Iterator[None]:
    """Have something happen once in the middle of a caller's call."""
    simulator = harness.simulator
    once, pushes = threading.Event(), count()

    def happen() -> None:
        if not once.is_set():
            once.set()
            inner()

    def ahead(proceed: Callable[..., None], *arguments: Any) -> None:
        happen()
        proceed(*arguments)

    def behind(proceed: Callable[..., None], *arguments: Any) -> None:
        proceed(*arguments)
        if next(pushes) == later:
            happen()

    with ExitStack() as until:
        for call in _PLACES[place]:
            until.enter_context(simulator.intercept(call, behind if place == "context" else ahead))
        if not _PLACES[place]:
            symbol = symbols_of(first.program)[_first_kernel(first.expected)]
            simulator.register_body(symbol, lambda _: happen())
            until.callback(simulator.unregister_body, symbol)
        yield
    happen()  # the call allocated nothing


def _first_kernel(expected: Expected | Refused) -> Kernel:
    return ("", 0) if isinstance(expected, Refused) else expected.launches[0].kernel


@contextmanager
def _accepted(harness: Harness) -> Iterator[None]:
    """Take what ends a good call for a violation."""
    try:
        yield
    except (TrunnionError, TimeoutError) as error:
        raise LawViolation(harness.law_id, f"a good call was refused: {error!r}") from error


def _callers(harness: Harness, overlap: Overlap) -> tuple[_Caller, _Caller]:
    program, (first, second) = overlap.scenario.program, overlap.handles
    return (
        _Caller(harness, program, overlap.scenario.call, first),
        _Caller(harness, program, overlap.other, second),
    )


def _bind(overlap: Overlap, loaded: LoadedProgram, *callers: _Caller) -> None:
    """Bind both calls of an overlap, if they are to be bound; what loads or prepares is done by then."""
    if overlap.bound and overlap.place not in ("loading", *_PREPARING):
        for caller in callers:
            caller.bind(loaded)


def _check(harness: Harness, *callers: _Caller) -> None:
    """Compare what was launched since the trace was cleared with the oracle's word on each call."""
    events = harness.sabotage.trace(harness.simulator.trace)
    for caller in callers:
        caller.check(events)


@law("H1", given=lambda harness: _overlaps(harness, *_WITHIN), ways=LOADS)
def nested_calls(harness: Harness, overlap: Overlap) -> None:
    """A call that is made in the middle of another one of the same program disturbs neither.

    So does one whose launch the driver refuses.
    """
    _check_nested(harness, overlap)
    # What a refused call takes back must be its own: where the other one has just made its context current, always.
    _check_nested(harness, replace(overlap, place="context", later=0, odd=True))
    harness.once(_check_deep)
    harness.once(_check_within_itself)


_DEEP: Final = 20
"""How many calls stand one inside another: more than a launcher that has room for a few has."""


def _check_deep(harness: Harness) -> None:
    """Require the same of many calls, each in the middle of the one before."""
    program = taking(ScalarParam("n", dtype("int64")))
    with harness.loaded(program) as loaded:
        loaded.preload(0)  # who is being prepared may let nobody in
        inner = (functools.partial(loaded.call, (number,), device=0) for number in range(1, _DEEP))
        with _ahead_of_launches(harness, inner):
            observed = observe(harness, functools.partial(loaded.call, (0,), device=0))
    received = {launch.parameters for launch in observed.launches}
    harness.require(
        observed.error is None and len(received) == len(observed.launches) == _DEEP,
        f"of {_DEEP} calls, each within the one before, {len(observed.launches)} launched, with {len(received)} "
        f"different numbers: {observed.error!r}",
    )


def _check_within_itself(harness: Harness) -> None:
    """Require that a bound call which is launched in the middle of itself is launched twice."""
    program = taking(ScalarParam("n", dtype("int64")))
    with harness.loaded(program) as loaded:
        bound = loaded.bind((7,), device=0)
        with _ahead_of_launches(harness, iter((bound,))):
            observed = observe(harness, bound)
    harness.require(
        observed.error is None and len(observed.launches) == 2,  # noqa: PLR2004 - itself, and within
        f"a bound call within itself launched {len(observed.launches)} times, expected 2: {observed.error!r}",
    )


@contextmanager
def _ahead_of_launches(harness: Harness, calls: Iterator[Callable[[], Any]]) -> Iterator[None]:
    """Make the next of some calls ahead of each launch, which may be theirs."""

    def ahead(proceed: Callable[..., None], *arguments: Any) -> None:
        for call in calls:
            call()
            break
        proceed(*arguments)

    with ExitStack() as until:
        for launch in _LAUNCHES:
            until.enter_context(harness.simulator.intercept(launch, ahead))
        yield


def _check_nested(harness: Harness, overlap: Overlap) -> None:
    first, second = _callers(harness, overlap)
    with harness.loaded(overlap.scenario.program) as loaded:
        harness.simulator.clear_trace()
        _bind(overlap, loaded, first, second)
        stack = harness.simulator.state.stack()
        before = tuple(stack)
        ended: list[BaseException] = []

        def call() -> None:
            try:
                with _refusing(harness) if overlap.odd else nullcontext():
                    second.launch(loaded)
            except BaseException as error:  # noqa: BLE001 - raised again below, where the call around it has ended
                ended.append(error)

        with _accepted(harness), _comes(harness, first, overlap.place, call, overlap.later):
            harness.simulator.call(first.launch, loaded)
        left, stack[:] = tuple(stack), before
        harness.require(left == before, f"{len(left)} contexts are current, not {len(before)}")
        if overlap.place in _PREPARING and any(isinstance(error, LifecycleError) for error in ended):
            _check(harness, first)  # whoever prepares a device may let nobody in
            return
        refused = [error for error in ended if getattr(error, "code", None) == Status.UNKNOWN]
        with _accepted(harness):
            for error in ended if not overlap.odd or ended != refused else ():
                raise error
        harness.require(len(refused) == overlap.odd, "the driver refused a launch, and the call went through")
        _check(harness, first, *(() if overlap.odd else (second,)))


@contextmanager
def _refusing(harness: Harness) -> Iterator[None]:
    """Have the driver refuse each launch until the block ends."""

    def refuse(*_: Any) -> None:
        raise Refusal(Status.UNKNOWN, "a launch that the suite refuses")

    with ExitStack() as until:
        for call in _LAUNCHES:
            until.enter_context(harness.simulator.intercept(call, refuse))
        yield


@law("H2", given=lambda harness: _overlaps(harness, *_PLACES, _CROSSED), ways=LOADS)
def two_threads(harness: Harness, overlap: Overlap) -> None:
    """Calls of one program in two threads at once each receive their own parameters, stream and tensors.

    Where each of them would wait for the other to load it, one at least is told so by a `LifecycleError`. Where none
    waits for itself none is, be there a third. What the driver refuses in one takes nothing back of the other's. While
    the driver may wait for a device no thread holds Python's lock.
    """
    if overlap.place == _CROSSED:
        _check_crossed(harness, overlap)
        _check_chained(harness, overlap)
    else:
        _check_at_once(harness, overlap)
        _check_refused_at_once(harness, overlap)
    if Capability.MODULE_VARIABLES in harness.capabilities:
        harness.once(_check_contents_at_once)
    harness.once(_check_lock)


_MAY_WAIT: Final = ("cuLaunchKernel", "cuLaunchKernelEx", "cuCtxSynchronize", "cuStreamSynchronize")
"""Calls in which a driver may wait for a device."""


def _check_lock(harness: Harness) -> None:
    """Require that a thread has given Python's lock up where the driver may wait: who ends that wait may need it."""
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    program = taking(tensor)
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))
    held: set[str] = set()

    def note(name: str, proceed: Callable[..., None], *arguments: Any) -> None:
        if harness.simulator.holds_lock():
            held.add(name)
        proceed(*arguments)

    with ExitStack() as until:
        for name in _MAY_WAIT:
            until.enter_context(harness.simulator.intercept(name, functools.partial(note, name)))
        with harness.loaded(program) as loaded:
            for _ in range(4):  # the later ones by what was found out of the first
                loaded.entry(*given.args)
            bound = given.bind(loaded)
            bound()
            bound()
    harness.require(not held, f"Python's lock was held in {sorted(held)}")


def _check_contents_at_once(harness: Harness) -> None:
    """Have a call come in another thread while variables are given what they hold first: it waits for all of it."""
    one = (Const(1),) * 3
    variables = tuple(ModuleVariable(name, dtype("int32"), (2,), bytes(8)) for name in ("v", "w"))
    launch = KernelLaunch("k", variables, one, one)
    program = KernelProgram("p", Signature(()), (CODE,), (launch,), variables=variables)
    call = CallSpec(args=(), device=0)
    _check_at_once(harness, Overlap(Scenario(program, call), call, "contents"))


def _check_at_once(harness: Harness, overlap: Overlap) -> None:
    """Have a call come in another thread in the middle of one, and require that both go through."""
    first, second = _callers(harness, overlap)
    with _prepared(harness, overlap):  # a process may keep a reference to each context
        pass
    with (
        unloading_all(harness),
        referring_to_none(harness, kept=0),
        harness.loaded(overlap.scenario.program) as loaded,
        _two_threads(lesser=overlap.odd) as threads,
    ):
        harness.simulator.clear_trace()
        _bind(overlap, loaded, first, second)
        others: list[Future[None]] = []

        def call() -> None:
            others.append(threads[1].submit(second.launch, loaded))
            # Who loads or prepares may let nobody in: it goes on when the other thread had a moment to try.
            alone = overlap.place in ("loading", *_PREPARING)
            wait(others, _MOMENT if alone else _PATIENCE)

        def launch() -> None:
            with _comes(harness, first, overlap.place, call):
                harness.simulator.call(first.launch, loaded)

        with _accepted(harness):
            threads[0].submit(launch).result()
            others[0].result(_PATIENCE)
        written = [
            event.target
            for event in harness.simulator.trace
            if isinstance(event, MemoryCopied) and event.direction == "HtoD"
        ]
        harness.require(len(set(written)) == len(written), "variables were given their first contents twice")
        check_written_before(harness, harness.simulator.trace)
        _check(harness, first, second)


@contextmanager
def _prepared(harness: Harness, overlap: Overlap) -> Iterator[LoadedProgram]:
    """Open a program that has nothing left to prepare."""
    with harness.loaded(overlap.scenario.program) as loaded:
        for device in harness.machine.alike:
            loaded.preload(device)
        yield loaded


def _check_refused_at_once(harness: Harness, overlap: Overlap) -> None:
    """Have the driver refuse a call in another thread, where one has just made its context current."""
    first, second = _callers(harness, overlap)
    simulator, left = harness.simulator, list[bool]()

    def call(loaded: LoadedProgram) -> None:
        with simulator.current(harness.machine.alike[-1]), _refusing(harness):
            before = tuple(simulator.state.stack())
            with suppress(DriverError):
                second.launch(loaded)
            left.append(tuple(simulator.state.stack()) == before)

    with _prepared(harness, overlap) as loaded, ThreadPoolExecutor(1) as thread:
        simulator.clear_trace()

        def come() -> None:
            thread.submit(call, loaded).result(_PATIENCE)

        with _accepted(harness), _comes(harness, first, "context", come):
            simulator.call(first.launch, loaded)
        harness.require(all(left), "a refused call left other contexts current in its thread than there were")
        _check(harness, first)


class _Loading:
    """Something that a thread does, once, in the middle of loading its program.

    Parameters
    ----------
    harness
        The backend.
    """

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._due = threading.local()

    def ahead(self, proceed: Callable[..., None], *arguments: Any) -> None:
        """Stand before a driver's call that loads."""
        due, self._due.call = getattr(self._due, "call", None), None
        if due is not None:
            due()
        proceed(*arguments)

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Stand before every driver's call that loads, in the block."""
        with ExitStack() as until:
            for call in _PLACES["loading"]:
                until.enter_context(self._harness.simulator.intercept(call, self.ahead))
            yield


class _Crossing(_Loading):
    """A call of another program that a thread makes in the middle of loading its own, when both have come there."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness)
        self._met = threading.Barrier(2)
        self.went_through: list[_Caller] = []
        """The calls that were not refused."""

    def launch(self, outer: _Caller, mine: LoadedProgram, inner: _Caller, other: LoadedProgram) -> None:
        """Make a call, and another one in the middle of it if it loads its program."""
        self._due.call = functools.partial(self._launch, inner, other)
        self._harness.simulator.call(outer.launch, mine)
        self._due.call = None

    def _launch(self, inner: _Caller, other: LoadedProgram) -> None:
        with suppress(threading.BrokenBarrierError):  # the other thread may have nothing to load
            self._met.wait(_LONG_MOMENT)
        with suppress(LifecycleError):
            inner.launch(other)
            self.went_through.append(inner)


def _check_crossed(harness: Harness, overlap: Overlap) -> None:
    """Have each of two threads call the other's program while it loads its own, and require that both end."""
    program, calls_made = overlap.scenario.program, (overlap.scenario.call, overlap.other)
    one, other, *inner = (_Caller(harness, program, call) for call in (*calls_made, *calls_made))
    crossing = _Crossing(harness)
    with (
        harness.loaded(program) as first,
        harness.loaded(program) as second,
        _two_threads(lesser=overlap.odd) as threads,
        crossing.everywhere(),
    ):
        harness.simulator.clear_trace()
        both = (
            threads[0].submit(crossing.launch, one, first, inner[0], second),
            threads[1].submit(crossing.launch, other, second, inner[1], first),
        )
        with _accepted(harness):
            for outer in both:
                outer.result(_PATIENCE)
        _check(harness, one, other, *crossing.went_through)


class _Chain(_Loading):
    """Three calls: one waits for another in the middle of loading its own program, for which the third one waits."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness)
        self.loading = threading.Event()
        """Whether the thread that everybody waits for has come to where it loads, or needs to load nothing."""
        self.held = threading.Event()
        """The same of the thread that waits, and is waited for."""
        self.goes_on = threading.Event()
        """Whether the first one goes on."""

    def launch(
        self, caller: _Caller, loaded: LoadedProgram, due: Callable[[], object], come: threading.Event
    ) -> None:
        """Make a call, and do something once in the middle of it, if it loads its program there."""
        self._due.call = due
        try:
            self._harness.simulator.call(caller.launch, loaded)
        finally:
            come.set()

    def wait(self) -> None:
        """Keep the others waiting."""
        self.loading.set()
        self.goes_on.wait(_PATIENCE)


def _check_chained(harness: Harness, overlap: Overlap) -> None:
    """Have a thread wait for another, which loads, and be waited for by a third, and require that all go through."""
    program, calls_made = overlap.scenario.program, (overlap.scenario.call, overlap.other)
    callers = [_Caller(harness, program, call) for call in (*calls_made, *calls_made)]
    chain = _Chain(harness)
    with (
        unloading_all(harness),
        harness.loaded(program) as first,
        harness.loaded(program) as second,
        ThreadPoolExecutor(3) as threads,
        ExitStack() as until,
        chain.everywhere(),
    ):
        until.callback(chain.goes_on.set)
        harness.simulator.clear_trace()

        def inner() -> None:
            chain.held.set()
            callers[1].launch(first)

        awaited = [threads.submit(chain.launch, callers[0], first, chain.wait, chain.loading)]
        chain.loading.wait(_PATIENCE)
        awaited.append(threads.submit(chain.launch, callers[2], second, inner, chain.held))
        chain.held.wait(_PATIENCE)
        awaited.append(threads.submit(harness.simulator.call, callers[3].launch, second))
        wait(awaited[1:], 2 * _MOMENT)  # those that wait see twice for whom
        chain.goes_on.set()
        with _accepted(harness):
            for one in awaited:
                one.result(_PATIENCE)
        made = [caller for caller in callers if caller is not callers[1] or callers[1].made]
        _check(harness, *made)


@contextmanager
def _two_threads(*, lesser: bool) -> Iterator[tuple[ThreadPoolExecutor, ThreadPoolExecutor]]:
    """Yield two threads, that of the lesser identity first or last: what tells threads apart may compare it."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        ascending = one.submit(threading.get_ident).result() < other.submit(threading.get_ident).result()
        yield (one, other) if ascending == lesser else (other, one)


_AT_ONCE: Final = 24
"""Calls of each of two threads, each with a number of its own: enough that some overlap."""


@law("H3", given=lambda _: st.none(), tier="host", cost="process", ways=("call",))
def threads_and_children(harness: Harness, _: None) -> None:
    """Where two threads call a program again and again, each launch has all of its blocks, and its own numbers.

    So it is on a CPU where each launch has several threads, and in a forked child there; where there is a driver, `C6`
    says what becomes of that one.
    """
    tensor, number = TensorParam("a", dtype("float32"), (Const(4),)), ScalarParam("n", dtype("int64"))
    launch = KernelLaunch("k", (tensor, number), (Const(5), Const(3), Const(2)), (Const(1),) * 3)
    program = KernelProgram("p", Signature((tensor, number)), (CODE,), (launch,))
    if not is_a(harness.machine, HostMachine):
        _check_each_arrives(harness, program)
        return
    _check_each_arrives(replace(harness, machine=harness.machine.apart()), program)
    _check_turns(harness, harness.machine.apart())
    spread = harness.machine.apart(threads=3)
    try:
        spread.image(program)
    except (ProgramError, CompileError):  # the option is one compiler's: others need not have it
        return
    _check_each_arrives(replace(harness, machine=spread), program)


def _check_each_arrives(harness: Harness, program: KernelProgram) -> None:
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    with harness.loaded(program) as loaded:
        given = [harness.given(CallSpec(args=(spec, value))) for value in range(2 * _AT_ONCE)]
        alone: list[tuple[object, ...]] = []
        for one in given:
            check_given(harness, program, one, loaded, first=False)
            alone += map(_told, harness.observed_launches())
        plain = [functools.partial(one.launch, loaded) for one in given]
        for calls_made in (plain, [one.bind(loaded) for one in given]):
            observed = observe(harness, functools.partial(_make_at_once, calls_made))
            harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
            seen = Counter(map(_told, observed.launches))
            odd = {*(seen - Counter(alone)), *(Counter(alone) - seen)}
            harness.require(not odd, f"of two threads there arrived, or did not arrive, {odd}")
        if CAN_FORK and harness.machine.tier == "cpu":
            told = told_by_a_child(lambda: _refusal_of(harness, program, given[-1], loaded))
            harness.require(not told, f"in a forked child: {told}")


def _check_turns(harness: Harness, machine: HostMachine) -> None:
    """Require that launches of one bound call in two threads come one after the other: they have the same memory."""
    number = ScalarParam("n", dtype("int64"))
    launch = KernelLaunch("k", (number,), (Const(8), Const(1), Const(1)), (Const(1),) * 3)
    program = KernelProgram("p", Signature((number,)), (CODE,), (launch,))
    with replace(harness, machine=machine).loaded(program) as loaded:
        bound = harness.given(CallSpec(args=(7,), device=0)).bind(loaded)
        blocks = machine.blocks(functools.partial(_make_at_once, [bound] * 2), _MOMENT)
    told = f"two threads launched a bound call, and its blocks came in the order {blocks}"
    harness.require([sorted(blocks[:8]), sorted(blocks[8:])] == [[*range(8)]] * 2, told)


def _refusal_of(harness: Harness, program: KernelProgram, given: Arguments, loaded: LoadedProgram) -> str:
    """Return in what a call differs from the oracle's word on it; empty: in nothing."""
    try:
        check_given(harness, program, given, loaded, first=False)
    except LawViolation as violation:
        return violation.message
    return ""


def _make_at_once(made: Sequence[Callable[[], object]]) -> None:
    """Make the first half of some calls in one thread and the second in another; both begin together."""
    met, half = threading.Barrier(2), len(made) // 2

    def make(some: Sequence[Callable[[], object]], done: Future[None]) -> None:
        try:
            met.wait(_SHORT_PATIENCE)
            for call in some:
                call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again
            done.set_exception(error)
        else:
            done.set_result(None)

    both: list[Future[None]] = [Future(), Future()]
    halves = zip((made[:half], made[half:]), both, strict=True)
    threads = [threading.Thread(target=make, args=one, daemon=True) for one in halves]
    for thread in threads:
        thread.start()
    wait(both, _SHORT_PATIENCE)
    for one in both:
        one.result(0)  # of a thread that hangs, which nobody waits for any longer, a TimeoutError
    for thread in threads:
        thread.join()


def _told(launch: Launched) -> tuple[object, ...]:
    return launch.grid, launch.block, launch.parameters
