"""Laws of driver calls that fail: whichever it is, the call says so, and the next one is right."""

from __future__ import annotations

import gc
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain, cycle, islice, product
from typing import TYPE_CHECKING, Any, Final

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.errors import DriverError, LifecycleError, TrunnionError
from trunnion.model.capability import Capability
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.sim.abi import Limit
from trunnion.sim.objects import Library, Stream
from trunnion.sim.status import Status
from trunnion.sim.trace import LibraryUnloaded
from trunnion.testing.comparison import check_call, check_expected, check_given
from trunnion.testing.dealing import Deal
from trunnion.testing.expected import Refused
from trunnion.testing.faults import (
    CALL_STATUSES,
    PROBES,
    STICKY_STATUSES,
    UNDO,
    PlantedFault,
    asked,
    effects_after,
    planted,
    reports,
)
from trunnion.testing.laws import EVERY_WAY, law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.repeatable import bind_call
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, scenarios
from trunnion.testing.strategies.programs import CODE, PROGRAM_CAPABILITIES, taking
from trunnion.testing.suite.test_devices import moved_to
from trunnion.testing.variable_contents import check_first_contents, noting_contents
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.sim.objects import CaptureMode, Context
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed

__all__: list[str] = []

_Fault = tuple[Scenario, int, "Status"]
_Faults = tuple[Scenario, "Status"]
_PLACES: Final = st.integers(0, 255)
_UNCAPTURED: Final = tuple(way for way in EVERY_WAY if way != "capture")
"""A capture has statuses of its own."""


def _deal(*beside: SearchStrategy[Any]) -> Deal:
    """Return the deal of a good call, and of something drawn beside it, such as what its driver calls return."""

    def needing(harness: Harness, required: Sequence[Capability]) -> SearchStrategy[Any]:
        return st.tuples(scenarios(harness.capabilities, required), *beside)

    return Deal(
        lambda harness: harness.capabilities & PROGRAM_CAPABILITIES,
        needing,
        lambda example: example[0].program.plan().requires,
    )


_EACH: Final = _deal(st.sampled_from(CALL_STATUSES))
_STICKY: Final = _deal(_PLACES, st.sampled_from(STICKY_STATUSES))


def _failures(
    harness: Harness, names: list[str], first: Status, *, only: str = ""
) -> Iterator[tuple[int, Status]]:
    """Yield where in a good run calls fail in turn, and what each returns; when thorough, all of both.

    Otherwise the first, the middle and the last of a name fail, and what they return is dealt round. When thorough
    there may be a thousand: after each the law says that it goes on.

    Parameters
    ----------
    harness
        The backend.
    names
        The calls of the run.
    first
        What the first one returns.
    only
        How the names begin of those that fail.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name.startswith(only):
            places.setdefault(name, []).append(place)
    if harness.thorough:
        failures = list(product(chain(*places.values()), CALL_STATUSES))
    else:
        some = {each[at] for each in places.values() for at in (0, len(each) // 2, -1)}
        start = CALL_STATUSES.index(first)
        failures = list(zip(sorted(some), islice(cycle(CALL_STATUSES), start, None), strict=False))
    for failure in failures:
        yield failure
        harness.step()


@contextmanager
def _leaving_nothing(harness: Harness) -> Iterator[list[PlantedFault]]:
    """Require that the thread's contexts, its capture mode, each device's memory and streams' windows stay as they are.

    The faults that the block adds to the list are named, and excuse what nobody could take back.
    """
    faults: list[PlantedFault] = []
    gc.collect()
    used, others = _used(harness), _windowed(harness)
    with _thread_restored(harness) as (contexts, mode):
        yield faults
        after, left = _thread(harness)
    name = faults[0].name
    harness.require(
        left == mode or name in UNDO, f"{name} failed, and the thread's capture mode is {left}, was {mode}"
    )
    harness.require(
        after == contexts or name in UNDO,
        f"{name} failed, and {len(after)} contexts are current, not {len(contexts)}",
    )
    gc.collect()
    harness.require(
        _used(harness) == used, f"{name} failed, and memory in use is {_used(harness)}, was {used}"
    )
    windowed = _windowed(harness) - others
    harness.require(
        not windowed or name == "cuStreamSetAttribute",
        f"{name} failed, and streams {[handle for handle, _ in sorted(windowed)]} have a window",
    )


def _every_stream(harness: Harness) -> Iterator[Stream]:
    """Yield each stream of the process, the default ones included."""
    state = harness.simulator.state
    yield from (one for one in list(state.handled.values()) if isinstance(one, Stream))
    for context in state.contexts:
        yield from context.defaults.values()


def _windowed(harness: Harness) -> set[tuple[int, int]]:
    """Return the handle and the number of each stream that has a window."""
    return {
        (one.handle, one.number)
        for one in _every_stream(harness)
        if one.window is not None and one.window.nbytes
    }


def _streams(harness: Harness) -> set[int]:
    return {handle for handle, one in harness.simulator.state.handled.items() if isinstance(one, Stream)}


@contextmanager
def _thread_restored(harness: Harness) -> Iterator[tuple[tuple[Context, ...], CaptureMode]]:
    """Give the thread back its contexts and its capture mode at the end of the block, whatever a fault left."""
    state = harness.simulator.state
    contexts, mode = _thread(harness)
    try:
        yield contexts, mode
    finally:
        state.stack()[:] = contexts
        state.captures.exchange_mode(state.thread(), mode)


def _thread(harness: Harness) -> tuple[tuple[Context, ...], CaptureMode]:
    """Return the thread's contexts and its capture mode."""
    state = harness.simulator.state
    return tuple(state.stack()), state.captures.mode_of(state.thread())


def _used(harness: Harness) -> tuple[int, ...]:
    """Return the bytes of each device that are in use."""
    return tuple(map(harness.simulator.memory.used, range(harness.simulator.devices)))


@contextmanager
def unloading_all(harness: Harness) -> Iterator[None]:
    """Require that what the block loads is unloaded at its end.

    Raises
    ------
    LawViolation
        If it is not.
    """
    before, limits = _libraries(harness), _set_aside(harness)
    yield
    left = _libraries(harness) - before
    harness.require(not left, f"the program is closed, and libraries of it that are loaded: {left}")
    kept = _set_aside(harness)
    harness.require(kept == limits, f"the program is closed, and {kept} bytes are set aside, not {limits}")


@contextmanager
def referring_to_none(
    harness: Harness, *, kept: int = 1, of: Collection[int] | None = None
) -> Iterator[None]:
    """Require that the block leaves no reference to a primary context, but the one that a process may keep of each.

    Parameters
    ----------
    harness
        The backend.
    kept
        How many it may leave for each device: 0 where the process has its own already.
    of
        The devices for which it may leave any; None: all.

    Raises
    ------
    LawViolation
        If it leaves more.
    """
    before = _references(harness)
    yield
    left = [now - then for now, then in zip(_references(harness), before, strict=True)]
    most = [kept if of is None or device in of else 0 for device in range(len(left))]
    few = all(one <= limit for one, limit in zip(left, most, strict=True))
    told = f"closed, programs left {left} references to the devices' contexts, expected {most} at the most"
    harness.require(few, told)


def _references(harness: Harness) -> list[int]:
    """Return how many references there are to each device's primary context."""
    return [context.references for context in harness.simulator.state.contexts]


def _set_aside(harness: Harness) -> list[int]:
    """Return the bytes of each device's cache that are set aside."""
    limits = (context.limits for context in harness.simulator.state.contexts)
    return [one.get(Limit.PERSISTING_L2_CACHE_SIZE, 0) for one in limits]


def _libraries(harness: Harness) -> int:
    """Return how many libraries are loaded."""
    return sum(isinstance(one, Library) for one in harness.simulator.state.handled.values())


def _good_run(harness: Harness, scenario: Scenario, artifact: Artifact) -> list[str]:
    """Return what a first call asks the driver; examples in which none succeeds are passed over.

    It is the second first call, since a process asks for some things once.
    """
    with closing(harness.reopen(scenario.program, artifact)) as loaded:
        harness.call(loaded, scenario.call)
    with closing(harness.reopen(scenario.program, artifact)) as loaded, asked(harness) as names:
        facts, _ = harness.call(loaded, scenario.call)
    told = expect(scenario.program, facts)
    assume(not isinstance(told, Refused) and told.launches and names)
    return names


def _check_struck(harness: Harness, fault: PlantedFault, error: BaseException | None) -> None:
    what = f"{fault.name} returned {fault.status.name}"
    harness.require(error is not None, f"{what}, and the call went through")
    if error is not None and not reports(error, fault):
        harness.violation(f"{what}, and the error was {type(error).__name__}: {error}")


def _check_told(harness: Harness, fault: PlantedFault, observed: Observed) -> None:
    """Require that a fault that has struck is told, unless it was a probe's, whose failure is an answer."""
    if fault.struck and not (fault.name in PROBES and observed.error is None):
        _check_struck(harness, fault, observed.error)


def _check_nothing_after(harness: Harness, fault: PlantedFault, observed: Observed) -> None:
    late = effects_after(observed.events)
    harness.require(not late, f"after {fault.name} had failed, the driver was asked for {late}")


def _struck_call(
    harness: Harness, example: _Fault, loaded: Any, names: list[str]
) -> tuple[PlantedFault, BaseException | None, Observed | None]:
    """Make a call with a fault in it; an error of the tensor library's own comes with nothing observed."""
    scenario, place, status = example
    with planted(harness, names, place, status) as fault:
        try:
            facts, observed = harness.call(loaded, scenario.call)
        except RuntimeError as error:  # torch's, of memory that has run out
            return fault, error, None
    if fault.name in PROBES and observed.error is None:
        told = expect(scenario.program, facts)
        if not isinstance(told, Refused):
            check_expected(harness, scenario.program, facts, (told, observed), first=False)
        fault.struck = False
    return fault, observed.error, observed


@law("F1", given=_EACH.given, deal=_EACH, ways=_UNCAPTURED)
def failing_driver_calls(harness: Harness, example: _Faults) -> None:
    """Each driver call of a call fails in turn: it is named with its status, nothing follows; the next is right."""
    scenario, status = example
    _fail_each(harness, scenario, status)
    _fail_again(harness, scenario, status)
    if Capability.OUTPUT_FILL in harness.capabilities:
        harness.once(_fail_fills)
    if harness.capabilities >= _WIDE_CLUSTERS:
        harness.once(_fail_clusters)
    if harness.capabilities >= _AT_TIMES:
        harness.once(_fail_at_times)
    harness.once(_fail_launch)
    harness.once(_fail_wait)
    harness.once(_fail_stream)
    if Capability.TMA_TILED in harness.capabilities:
        harness.once(_fail_map)
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities:
        harness.once(_fail_windows)


def _fail_fills(harness: Harness) -> None:
    """Let writes to memory fail of a number whose two words differ, which no write of one word does."""
    output = TensorParam("o", dtype("float64"), (Const(3),), access="write", fill=3.0)
    program = taking(outputs=(output,))
    _fail_each(harness, Scenario(program, CallSpec(args=(), device=0)), Status.UNKNOWN, only="cuMem")


def _fail_launch(harness: Harness) -> None:
    """Let a launch fail, plain and bound: whoever launches many programs is told which kernel it was of."""
    one = (Const(1),) * 3
    program = KernelProgram("p", Signature(()), (CODE,), (KernelLaunch("refused_kernel", (), one, one),))
    with harness.loaded(program) as loaded:
        bound = harness.simulator.call(loaded.bind, (), device=0)
        for launch in (partial(loaded.call, (), device=0), bound):
            with ExitStack() as failing:
                for name in ("cuLaunchKernel", "cuLaunchKernelEx"):
                    failing.enter_context(harness.simulator.fault(name))
                observed = observe(harness, launch)
            named = isinstance(observed.error, DriverError) and "refused_kernel" in str(observed.error)
            harness.require(named, f"the driver refused a launch of 'refused_kernel': {observed.error!r}")


_PER_THREAD: Final = 2  # CU_STREAM_PER_THREAD


def _fail_wait(harness: Harness) -> None:
    """Let what waits for the thread's own stream fail, of which an allocator may know nothing."""
    output = TensorParam("o", dtype("float32"), (Const(3),), access="write")
    program = taking(outputs=(output,))
    with harness.loaded(program) as loaded:
        for turn in range(4):
            fault = PlantedFault("cuStreamSynchronize", turn % 2, Status.UNKNOWN)
            with harness.simulator.intercept_every(fault):
                _, observed = harness.call(loaded, CallSpec(args=(), device=0), stream=_PER_THREAD)
            if fault.struck:
                _check_struck(harness, fault, observed.error)
            else:
                harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")


def _fail_stream(harness: Harness) -> None:
    """Let each driver call fail that asks of which device a new stream is."""
    tensor = TensorParam("a", dtype("float32"), (Const(3),))
    program = taking(tensor)
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(3,), strides=(1,)),))
    with harness.loaded(program) as loaded:
        harness.call(loaded, call)
        for name in ("cuStreamGetCtx", "cuStreamIsCapturing", "cuCtxPushCurrent", "cuCtxGetDevice"):
            for turn in (1, 2):
                stream = harness.simulator.new_stream(0)
                fault = PlantedFault(name, turn, Status.UNKNOWN)
                with _leaving_nothing(harness) as faults, harness.simulator.intercept_every(fault):
                    faults.append(fault)
                    _, observed = harness.call(loaded, call, stream=stream)
                    if fault.struck:
                        _check_struck(harness, fault, observed.error)
                    del observed
                given = harness.given(call, stream=stream)
                check_given(harness, program, given, loaded, first=False)


def _fail_map(harness: Harness) -> None:
    """Let a tensor map fail of a tensor that the next call is given, too."""
    tensor = TensorParam("a", dtype("float32"), (Const(4), Const(64)))
    launch = KernelLaunch("k", (tensor.tiled((1, 16)),), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(4, 64), strides=(64, 1)),)))
    with harness.loaded(program) as loaded:
        fault = PlantedFault("cuTensorMapEncodeTiled", 1, Status.UNKNOWN)
        with harness.simulator.intercept_every(fault):
            _, observed = harness.call_with(loaded, given)
        _check_struck(harness, fault, observed.error)
        check_given(harness, program, given, loaded)


def _fail_windows(harness: Harness) -> None:
    """Let calls fail around a window that a stream holds, and around one of a launch."""
    tensor = TensorParam("a", dtype("uint8"), (Const(4096),))
    call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(4096,), strides=(1,)),))
    for policy in ("stream", "launch"):
        window = tensor.window(policy=policy)
        launch = KernelLaunch("k", (tensor,), (Const(1),) * 3, (Const(1),) * 3, window=window)
        program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
        _fail_each(harness, Scenario(program, call), Status.UNKNOWN)
        _fail_again(harness, Scenario(program, call), Status.UNKNOWN)


_WIDE_CLUSTERS: Final = {Capability.DYNAMIC_SHAPES, Capability.CLUSTER, Capability.COMPUTED_ATTRIBUTES}


def _fail_clusters(harness: Harness) -> None:
    """Let what allows a wide cluster fail, where a call decides how wide it is."""
    width = Symbol("w", min=1, max=16)
    launch = KernelLaunch(
        "k", (), (width, Const(1), Const(1)), (Const(1),) * 3, cluster=(width, Const(1), Const(1))
    )
    program = KernelProgram("p", Signature((ScalarParam("w", dtype("int32"), width),)), (CODE,), (launch,))
    scenario = Scenario(program, CallSpec(args=(16,), device=0))
    _fail_each(harness, scenario, Status.UNKNOWN, only="cuKernelSetAttribute")


_AT_TIMES: Final = {Capability.DYNAMIC_SHAPES, Capability.CONDITIONAL_LAUNCH}


def _fail_at_times(harness: Harness) -> None:
    """Let what allows a kernel much shared memory fail, where a call says whether it is launched."""
    flag, one = Symbol("flag", max=1), (Const(1),) * 3
    launch = KernelLaunch("k", (), one, one, dynamic_smem_bytes=Const(100 << 10), when=flag)
    program = KernelProgram("p", Signature((ScalarParam("flag", dtype("int32"), flag),)), (CODE,), (launch,))
    _fail_each(harness, Scenario(program, CallSpec(args=(1,), device=0)), Status.UNKNOWN, only="cuKernel")


def _fail_each(harness: Harness, scenario: Scenario, status: Status, *, only: str = "") -> None:
    """Let driver calls of a call fail in turn, or those alone whose names begin so."""
    artifact = harness.built(scenario.program)
    names = _good_run(harness, scenario, artifact)
    for place, returned in _failures(harness, names, status, only=only):
        with unloading_all(harness), closing(harness.reopen(scenario.program, artifact)) as loaded:
            with _leaving_nothing(harness) as faults:
                fault, error, observed = _struck_call(harness, (scenario, place, returned), loaded, names)
                faults.append(fault)
                if fault.struck:
                    _check_struck(harness, fault, error)
                if fault.struck and observed is not None:
                    _check_nothing_after(harness, fault, observed)
                del error, observed
            with noting_contents(harness, scenario.program) as seen:
                check_call(harness, scenario, loaded, first=False)
            check_first_contents(harness, scenario.program, seen)


def _fail_again(harness: Harness, scenario: Scenario, status: Status) -> None:
    """Let driver calls fail in turn of a call that was bound, and launch that very call again after each."""
    with unloading_all(harness), harness.loaded(scenario.program) as loaded:
        bound = bind_call(harness, scenario.program, loaded, harness.given(scenario.call))
        if bound is None:
            return
        bound.check(harness, scenario.program)
        with asked(harness) as names:
            bound.check(harness, scenario.program)
        for place, returned in _failures(harness, names, status):
            with _leaving_nothing(harness) as faults:
                with planted(harness, names, place, returned) as fault:
                    observed = observe(harness, bound.launch)
                faults.append(fault)
                _check_told(harness, fault, observed)
                if fault.struck and observed.error is not None:
                    _check_nothing_after(harness, fault, observed)
                del observed
            bound.check(harness, scenario.program)


@law("F2", given=_STICKY.given, deal=_STICKY, ways=_UNCAPTURED)
def broken_devices(harness: Harness, example: _Fault) -> None:
    """A device that fails for good is the same typed error in every call, and launches nothing; closing ends."""
    scenario, place, status = example
    names = _good_run(harness, scenario, harness.built(scenario.program))
    with _thread_restored(harness), harness.loaded(scenario.program) as loaded:
        with planted(harness, names, place, status) as fault:
            for first in (True, False):
                try:
                    _, observed = harness.call(loaded, scenario.call)
                except RuntimeError:  # torch's, of its own calls
                    continue
                assume(fault.struck)
                error: Any = observed.error
                if first and error is None and fault.name in PROBES:
                    continue  # it failed when all was done: the next call meets it first
                harness.require(
                    getattr(error, "code", None) == status, f"{fault.name} returned {status.name}: {error!r}"
                )
                harness.require(not effects_after(observed.events), "launched on a device that failed")
            closed = observe(harness, loaded.close)
            harness.require(
                closed.error is None or getattr(closed.error, "code", None) == status,
                f"closing raised {closed.error!r}",
            )
        loaded.close()


class _Preparation:
    """A program that is loaded and preloaded, the latter in one go with the former or not."""

    def __init__(self, harness: Harness, scenario: Scenario, artifact: Artifact) -> None:
        self._harness, self._scenario, self._artifact = harness, scenario, artifact
        self._loaded: LoadedProgram | None = None

    def run(self) -> LoadedProgram:
        """Load the program, unless it is loaded, and preload a device."""
        if self._loaded is None:
            self._loaded = self._harness.take(self._scenario.program, self._artifact)
        self._loaded.preload(1)
        return self._loaded

    def close(self) -> None:
        """Close the program, if it is loaded."""
        if self._loaded is not None:
            self._loaded.close()


@law("F3", given=_EACH.given, deal=_EACH, ways=LOADS)
def failing_preparations(harness: Harness, example: _Faults) -> None:
    """Each driver call of loading and preloading fails in turn: it is named with its status, and again they succeed."""
    scenario, status = example
    artifact = harness.built(scenario.program)
    for _ in range(2):  # a process asks for some things once
        with closing(_Preparation(harness, scenario, artifact)) as preparation, asked(harness) as names:
            preparation.run()
    assume(names)
    there = Scenario(scenario.program, moved_to(scenario.call, 1))
    for place, returned in _failures(harness, names, status):
        with unloading_all(harness), closing(_Preparation(harness, scenario, artifact)) as preparation:
            streams = _streams(harness)
            with _leaving_nothing(harness) as faults:
                with planted(harness, names, place, returned) as fault:
                    prepared = observe(harness, preparation.run)
                faults.append(fault)
                _check_told(harness, fault, prepared)
                del prepared
            left = len(_streams(harness) - streams)
            told = f"{fault.name} failed, and {left} streams were created and not destroyed"
            harness.require(not left or fault.name == "cuStreamDestroy", told)
            with noting_contents(harness, scenario.program) as seen:
                loaded = preparation.run()
                check_call(harness, there, loaded)
                check_call(harness, scenario, loaded, first=False)
            check_first_contents(harness, scenario.program, seen)


@law("F4", given=_EACH.given, deal=_EACH, ways=LOADS)
def failing_closes(harness: Harness, example: _Faults) -> None:
    """Each driver call of a close fails in turn: it is named with its status, and the program is closed."""
    scenario, status = example
    artifact = harness.built(scenario.program)
    names = _closing_calls(harness, scenario, artifact)
    assume(names)
    for place, returned in _failures(harness, names, status):
        _check_close(harness, (scenario, place, returned), harness.reopen(scenario.program, artifact), names)


def _check_close(harness: Harness, example: _Fault, loaded: LoadedProgram, names: list[str]) -> None:
    scenario, place, status = example
    try:
        harness.call(loaded, scenario.call)
        with _thread_restored(harness), planted(harness, names, place, status) as fault:
            closed = observe(harness, loaded.close)
        _check_told(harness, fault, closed)
        again = observe(harness, loaded.close)
        harness.require(again.error is None, f"closing again raised {again.error!r}")
        unloaded = any(isinstance(event, LibraryUnloaded) for event in (*closed.events, *again.events))
        harness.require(
            unloaded or fault.name == "cuLibraryUnload", f"{fault.name} failed, and nothing was unloaded"
        )
        _, later = harness.call(loaded, scenario.call)
        harness.require(isinstance(later.error, LifecycleError), f"a closed program raised {later.error!r}")
    finally:
        loaded.close()


def _closing_calls(harness: Harness, scenario: Scenario, artifact: Artifact) -> list[str]:
    """Return what closing asks the driver after a good call."""
    loaded = harness.reopen(scenario.program, artifact)
    try:
        facts, _ = harness.call(loaded, scenario.call)
        told = expect(scenario.program, facts)
        assume(not isinstance(told, Refused) and told.launches)
        with asked(harness) as names:
            try:
                loaded.close()
            except TrunnionError as error:
                harness.violation(f"closing raised {error!r}")
        return names
    finally:
        loaded.close()
