"""Laws of stream capture."""

from __future__ import annotations

import functools
import itertools
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import CaptureError, DriverError, LifecycleError, TrunnionError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.window import WindowPolicy
from trunnion.model.workspace import Workspace
from trunnion.sim.trace import (
    Allocated,
    AttributeSet,
    Captured,
    LibraryLoaded,
    LibraryUnloaded,
    LimitSet,
    MemoryCopied,
)
from trunnion.testing.comparison import check_call, check_expected
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.laws import LawViolation, law
from trunnion.testing.observed import Observed, is_work, observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, scenarios
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_histories import check_waits
from trunnion.testing.suite.test_windows import windows_on_stream
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.sim.trace import Event
    from trunnion.testing.expected import CallSignature
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_CAPTURE = frozenset({Capability.GRAPH_CAPTURE})
_PER_THREAD = 2  # CU_STREAM_PER_THREAD
_STREAMS = (None, _PER_THREAD)
"""The streams that are captured: a new one, and the thread's own."""

_PREPARES = (LibraryLoaded, AttributeSet, LimitSet, MemoryCopied)
"""What a device is prepared by, which drivers forbid in a capture, or make a part of the graph."""


def _capturable(harness: Harness, *required: Capability) -> SearchStrategy[Any]:
    """Return calls without a window of policy "stream", which waits for its kernel."""
    return scenarios(harness.capabilities, required).filter(
        lambda scenario: (
            not any(
                launch.window is not None and launch.window.policy is WindowPolicy.STREAM
                for launch in scenario.program.launches
            )
        )
    )


class _Capture:
    """A call that is made while its stream is captured, and the graph that it became."""

    def __init__(
        self,
        harness: Harness,
        scenario: Scenario,
        loaded: LoadedProgram,
        device: int,
        stream: int | None = None,
        *,
        bound: bool = False,
    ) -> None:
        self.stream = stream
        simulator = harness.simulator
        handle = simulator.new_stream(device) if stream is None else stream
        given = harness.given(scenario.call, stream=handle)
        self.facts: CallSignature = harness.facts(given.args, out=given.out, device=given.device)
        self.graph: Any = None
        result = None
        before = observe(harness, functools.partial(given.bind, loaded)) if bound else None
        self.error = self.unbound = None if before is None else before.error
        self.launch = functools.partial(given.launch, loaded) if before is None else before.result
        simulator.clear_trace()
        try:
            with simulator.capture(handle, device) as self.graph:
                try:
                    result = simulator.call(self.launch) if self.error is None else None
                except TrunnionError as error:
                    self.error = error
        except DriverError as error:
            raise LawViolation(harness.law_id, f"the capture is broken: {error}") from error
        self.ran = [event for event in simulator.trace if is_work(event)]
        everything = [_captured(event) for event in simulator.trace]
        self.stray = [event for event in everything if isinstance(event, _PREPARES) and not is_work(event)]
        events = harness.sabotage.trace(tuple(_captured(event) for event in simulator.trace))
        self.allocated = any(isinstance(event, Allocated) and event.nbytes for event in events)
        if before is not None:
            events = (*before.events, *events)
        self.observed = Observed(result=result, error=self.error, given_out=given.out, events=events)


def _captured(event: Event) -> Event:
    return event.event if isinstance(event, Captured) else event


def _expected(harness: Harness, scenario: Scenario) -> Expected:
    """Return what a call of a scenario comes to; other examples are passed over."""
    args = harness.arguments(scenario.call.args)
    told = expect(scenario.program, harness.facts(args, device=scenario.call.device))
    assume(isinstance(told, Expected) and told.launches)
    if isinstance(told, Refused):
        raise TypeError("an example that was passed over goes on")
    return told


def _refuses_captures(harness: Harness, scenario: Scenario) -> None:
    """A backend that does not declare capture raises CaptureError, and captures nothing, of a bound call neither.

    Nor does it allocate: memory that is new to the process ends a capture that no tensor library knows of.
    """
    device = _expected(harness, scenario).device
    with harness.loaded(scenario.program) as loaded:
        harness.call(loaded, scenario.call)
        for stream, bound in itertools.product(_STREAMS, (False, True)):
            capture = _Capture(harness, scenario, loaded, device, stream, bound=bound)
            harness.require(capture.unbound is None, f"a good call was not bound: {capture.unbound!r}")
            harness.require(isinstance(capture.error, CaptureError), f"raised {capture.error!r}")
            harness.require(not capture.observed.launches, "a refused call was captured")
            harness.require(not capture.allocated, "a refused call allocated while its stream was captured")
            harness.require(not capture.graph.nodes, "a refused call left something in the graph")


@law("G1", given=_capturable, requires=_CAPTURE, ways=LOADS, undeclared=_refuses_captures)
def captured_calls(harness: Harness, scenario: Scenario) -> None:
    """A call whose stream is captured becomes nodes that deliver what a plain call delivers, and runs nothing.

    So does the launch of a call that was bound before.
    """
    device = _expected(harness, scenario).device
    with harness.loaded(scenario.program) as loaded:
        harness.call(loaded, scenario.call)
        for stream, bound in itertools.product(_STREAMS, (False, True)):
            capture = _Capture(harness, scenario, loaded, device, stream, bound=bound)
            expected = expect(scenario.program, capture.facts)
            assume(isinstance(expected, Expected))
            if isinstance(expected, Expected):
                _check_graph(harness, scenario, capture, expected, first=False)


def _check_graph(
    harness: Harness, scenario: Scenario, capture: _Capture, expected: Expected, *, first: bool
) -> None:
    """Require that a call ran and prepared nothing, and became a graph that does the same at each launch."""
    if capture.stream == _PER_THREAD and capture.allocated:
        return  # no tensor library keeps memory for a graph of a stream that it does not know
    harness.require(not capture.ran, f"{len(capture.ran)} events ran during the capture")
    harness.require(not capture.stray, f"within the capture a device was prepared: {capture.stray}")
    check_expected(harness, scenario.program, capture.facts, (expected, capture.observed), first=first)
    for _ in range(2):
        harness.simulator.clear_trace()
        capture.graph.launch()
        ran = harness.sabotage.trace(harness.simulator.trace)
        kept = tuple(event for event in capture.observed.events if not is_work(event))
        again = replace(capture.observed, events=(*kept, *ran))
        check_expected(harness, scenario.program, capture.facts, (expected, again), first=False)


def _to_prepare(harness: Harness) -> SearchStrategy[Any]:
    """Return such calls, most of them of a program with what a device is asked for, or given, when it is prepared."""
    prepared = sorted(harness.capabilities & {Capability.MODULE_VARIABLES, Capability.DEVICE_FACTS})
    return st.one_of(_capturable(harness), *(_capturable(harness, one) for one in prepared))


@law(
    "G2",
    given=_to_prepare,
    requires=_CAPTURE,
    ways=tuple(way for way in LOADS if way != "preload"),
    undeclared=_refuses_captures,
)
def unprepared_captures(harness: Harness, scenario: Scenario) -> None:
    """A first call whose stream is captured is captured whole, or is a CaptureError that leaves the capture empty.

    What prepares a device belongs neither into the graph, which is launched again and again, nor into the capture: a
    program that has anything left to prepare refuses.
    """
    for stream in _STREAMS:
        _check_first(harness, scenario, stream)


def _check_first(harness: Harness, scenario: Scenario, stream: int | None) -> None:
    """Require that a first call, on a new stream or that one, is captured whole or refused."""
    device = _expected(harness, scenario).device
    with harness.loaded(scenario.program) as loaded:
        capture = _Capture(harness, scenario, loaded, device, stream)
        expected = expect(scenario.program, capture.facts)
        assume(isinstance(expected, Expected))
        whole = isinstance(expected, Expected) and capture.error is None
        if isinstance(expected, Expected) and whole:
            _check_graph(harness, scenario, capture, expected, first=True)
        else:
            harness.require(isinstance(capture.error, CaptureError), f"raised {capture.error!r}")
            harness.require(not capture.observed.launches, "a refused call was captured")
            harness.require(not capture.graph.nodes, "a refused call left something in the graph")
        check_call(harness, scenario, loaded, first=not whole)


@law(
    "G3",
    given=lambda _: windows_on_stream(),
    requires=_CAPTURE | {Capability.ACCESS_POLICY_WINDOW, Capability.MULTI_LAUNCH},
    ways=LOADS,
    undeclared=_refuses_captures,
)
def windows_that_wait(harness: Harness, scenario: Scenario) -> None:
    """A call with a window of policy "stream", which waits for its kernel, is a CaptureError while it is captured."""
    _refuses_captures(harness, scenario)
    harness.once(_check_nothing_filled)


def _check_nothing_filled(harness: Harness) -> None:
    """Require the same of a call that fills memory ahead of its launch: no fill of it is left in the graph."""
    tensor = TensorParam("a", dtype("uint8"), (Const(4096),))
    filled = TensorParam("o", dtype("int32"), (Const(4),), access="write", fill=7)
    outputs = (filled,) if Capability.OUTPUT_FILL in harness.capabilities else ()
    zeroed = Workspace("w", dtype("uint8"), (Const(64),), zeroed=True)
    spaces = (zeroed,) if Capability.WORKSPACE in harness.capabilities else ()
    one, window = (Const(1),) * 3, tensor.window(policy="stream")
    launch = KernelLaunch("k", (tensor, *outputs, *spaces), one, one, window=window)
    program = KernelProgram("p", Signature((tensor,), outputs), (CODE,), (launch,))
    spec = TensorSpec(dtype="uint8", shape=(4096,), strides=(1,))
    _refuses_captures(harness, Scenario(program, CallSpec(args=(spec,))))


_MODES = ("global", "thread_local", "relaxed")
_POLICIES = ("launch", "stream")


def _beside_a_capture(harness: Harness) -> SearchStrategy[Any]:
    """Return calls, and the device and the mode of the capture that somebody else has begun."""
    return st.tuples(_to_prepare(harness), st.sampled_from((0, 1)), st.sampled_from(_MODES))


@law("G4", given=_beside_a_capture, ways=LOADS)
def captures_of_others(harness: Harness, example: tuple[Scenario, int, str]) -> None:
    """While somebody else's stream is captured a program is loaded and launches, or says CaptureError.

    The capture is none of its affair: it goes on, and nothing of the program is in its graph. Once it has ended the
    program launches, whatever it said before.
    """
    (scenario, place, mode), simulator = example, harness.simulator
    device = _expected(harness, scenario).device
    artifact = harness.built(scenario.program)
    given = harness.given(scenario.call, stream=simulator.new_stream(device))
    facts, expected = harness.facts(given.args, out=given.out, device=given.device), None
    with ExitStack() as until:
        loaded = None
        try:
            with simulator.capture(simulator.new_stream(place), place, mode) as graph, suppress(CaptureError):
                loaded = until.enter_context(closing(harness.take(scenario.program, artifact)))
                facts, observed = harness.call_with(loaded, given)
                expected = expect(scenario.program, facts)
        except DriverError as error:
            raise LawViolation(harness.law_id, f"the capture is broken: {error}") from error
        harness.require(not graph.nodes, "a call on another stream left something in the graph")
        if isinstance(expected, Expected):
            if observed.error is None:
                check_expected(harness, scenario.program, facts, (expected, observed))
            else:
                harness.require(isinstance(observed.error, CaptureError), f"raised {observed.error!r}")
                harness.require(not observed.launches, "a refused call launched")
        if loaded is None:
            loaded = until.enter_context(closing(harness.reopen(scenario.program, artifact)))
        check_call(harness, scenario, loaded, first=False)
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities:
        harness.once(_check_cache_beside)
    harness.once(_check_wait_beside)


def _call_beside(harness: Harness, program: KernelProgram, call: CallSpec, stream: int, mode: str) -> None:
    """Require that a first call on a stream breaks no capture of somebody else's, in one mode."""
    simulator = harness.simulator
    with harness.loaded(program) as loaded:
        try:
            with simulator.capture(simulator.new_stream(0), 0, mode):
                _, observed = harness.call(loaded, call, stream=stream)
        except DriverError as error:
            raise LawViolation(harness.law_id, f"the capture is broken: {error}") from error
        good = observed.error is None or isinstance(observed.error, CaptureError)
        harness.require(good, f"raised {observed.error!r}")


def _check_cache_beside(harness: Harness) -> None:
    """Require that cache set aside for a window, and the wait for one, break no capture of somebody else's."""
    one, tensor = (Const(1),) * 3, TensorParam("a", dtype("uint8"), (Const(4096),))
    call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(4096,), strides=(1,)),))
    for mode, policy in itertools.product(_MODES, _POLICIES):
        launch = KernelLaunch("k", (tensor,), one, one, window=tensor.window(policy=policy))
        program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
        before = harness.machine.set_aside(0, 0)
        _call_beside(harness, program, call, harness.simulator.new_stream(0), mode)
        harness.machine.set_aside(0, before)


def _check_wait_beside(harness: Harness) -> None:
    """Require the same of the wait for memory that was allocated on the thread's own stream."""
    program = taking(outputs=(TensorParam("o", dtype("float32"), (Const(4),), access="write"),))
    for mode in _MODES:
        _call_beside(harness, program, CallSpec(args=(), device=0), _PER_THREAD, mode)


@law("G5", given=_beside_a_capture, ways=LOADS)
def closes_in_captures(harness: Harness, example: tuple[Scenario, int, str]) -> None:
    """A program that is closed while a stream is captured waits and unloads, or unloads nothing and says CaptureError.

    In that case another close waits and unloads, once the capture has ended. No call is made any more before that.
    """
    (scenario, place, mode), simulator = example, harness.simulator
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        assume(isinstance(expected, Expected) and expected.launches and observed.error is None)
        used = {(event.device, event.stream) for event in observed.launches}
        # What waits for a device ends a capture there, as the driver says: that is the caller's affair.
        with suppress(DriverError), simulator.capture(simulator.new_stream(place), place, mode):
            closed = observe(harness, loaded.close)
        harness.require(
            closed.error is None or isinstance(closed.error, CaptureError), f"raised {closed.error!r}"
        )
        _, later = harness.call(loaded, scenario.call)
        harness.require(isinstance(later.error, LifecycleError), f"a closed program raised {later.error!r}")
        again = observe(harness, loaded.close)
        harness.require(again.error is None, f"closing again raised {again.error!r}")
        check_waits(harness, (*closed.events, *again.events), used)
    harness.once(_close_in_another_context)


def _close_in_another_context(harness: Harness) -> None:
    """Require the same where the stream that is captured, and what was launched, is another current context's."""
    state = harness.simulator.state
    made, stack = state.make_context(state.contexts[0].device), state.stack()
    stream = state.new_stream(made).handle
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
    with harness.loaded(taking(tensor)) as loaded:
        stack.append(made)
        try:
            _, observed = harness.call(loaded, call, stream=stream)
            with suppress(DriverError), harness.simulator.capture(stream, 0, "relaxed"):
                closed = observe(harness, loaded.close)
            again = observe(harness, loaded.close)
        finally:
            stack.remove(made)
    state.destroy(made)
    harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
    first, later = (
        sum(isinstance(event, LibraryUnloaded) for event in one.events) for one in (closed, again)
    )
    harness.require(
        isinstance(closed.error, CaptureError) and not first and later == 1,
        f"closed in a context where a stream is captured: {closed.error!r}, {first} unloaded; then {later}",
    )
