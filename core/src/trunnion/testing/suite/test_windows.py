"""Laws of access-policy windows."""

from __future__ import annotations

import warnings
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import DriverError, LifecycleError
from trunnion.launcher.l2_persisting import SetAsideWarning
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol, as_expr
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace
from trunnion.sim.abi import DeviceAttribute, Limit
from trunnion.sim.launch_attributes import AccessProperty
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import (
    Launched,
    LimitSet,
    PersistingLinesReset,
    StreamAttributeSet,
    Synchronized,
)
from trunnion.testing.comparison import check_call, check_expected
from trunnion.testing.expected import Refused
from trunnion.testing.faults import PlantedFault
from trunnion.testing.history import in_a_thread
from trunnion.testing.laws import law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.suite.test_devices import moved_to
from trunnion.testing.suite.test_launches import delivers, needing
from trunnion.testing.symbols import kernel_symbol
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.sim.interception import Proceed
    from trunnion.testing.expected import Expected
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told
    from trunnion.testing.observed import Observed

__all__ = ["windows_on_stream"]

_ONE = Const(1)
_ONES = (_ONE, _ONE, _ONE)
_WINDOW = frozenset({Capability.ACCESS_POLICY_WINDOW})


@law("P1", tier="driver", given=needing(Capability.ACCESS_POLICY_WINDOW), requires=_WINDOW)
def windows(harness: Harness, scenario: Scenario) -> None:
    """A window covers the bytes that the program names, with its ratio and properties, for its launch and no other."""
    delivers(harness, scenario)


def _windowed(tensor: Any, window: Any, count: int = 1) -> KernelProgram:
    plain = KernelLaunch("k", (tensor,), _ONES, _ONES)
    launch = KernelLaunch("k", (tensor,), _ONES, _ONES, window=window)
    launches = (launch,) if count == 1 else (plain, launch, plain)
    params = (tensor,) if isinstance(tensor, TensorParam) else ()
    return KernelProgram("p", Signature(params), (CODE,), launches)


@st.composite
def _ranges(draw: st.DrawFn, *, dynamic: bool) -> Scenario:
    """Draw a window at the edges of its tensor, strided ones too."""
    count = draw(st.integers(1, 9))
    extent = Symbol("n", min=0) if dynamic else as_expr(count)
    tensor = TensorParam("a", dtype("float32"), (extent,))
    start = draw(st.sampled_from((0, 1, count - 1, count, count + 1)))
    nbytes = draw(st.sampled_from((None, None, 4, 4 * count, 4 * (count - start), 4 * count + 1)))
    fields: dict[str, Any] = {"element_offset": start, "policy": draw(st.sampled_from(("launch", "stream")))}
    if nbytes is not None and nbytes >= 0:
        fields["nbytes"] = nbytes
    spec = TensorSpec(dtype="float32", shape=(count,), strides=(1,), offset=draw(st.integers(0, 2)))
    return Scenario(_windowed(tensor, tensor.window(**fields)), CallSpec(args=(spec,)))


@law(
    "P2",
    tier="driver",
    given=lambda harness: _ranges(dynamic=Capability.DYNAMIC_SHAPES in harness.capabilities),
    requires=_WINDOW,
)
def windows_within_memory(harness: Harness, scenario: Scenario) -> None:
    """A window without a length reaches to the end of its memory, and one that would reach beyond is refused."""
    delivers(harness, scenario)


@st.composite
def _long(draw: st.DrawFn, most: int) -> Scenario:
    """Draw a window over more than the device allows, which is ``most`` bytes, with and without a length of its own."""
    nbytes = draw(st.sampled_from((most + 1, most + (1 << 20), most)))
    space = Workspace("w", dtype("uint8"), (Const(nbytes),))
    named = draw(st.sampled_from((None, most, min(nbytes, most + 1), nbytes, 1 << 20)))
    fields: dict[str, Any] = {} if named is None else {"nbytes": named}
    return Scenario(_windowed(space, space.window(**fields)), CallSpec(args=(), device=0))


@law(
    "P3",
    tier="driver",
    given=lambda harness: _long(harness.most_window_bytes()),
    requires=_WINDOW | {Capability.WORKSPACE},
    cost="toolchain",
)
def longest_windows(harness: Harness, scenario: Scenario) -> None:
    """A window without a length is at most what the device allows; a longer one that is named is refused."""
    delivers(harness, scenario)


@st.composite
def windows_on_stream(draw: st.DrawFn) -> Scenario:
    """Draw a window that the stream holds for the middle one of three launches."""
    count = draw(st.integers(1, 5000))
    tensor = TensorParam("a", dtype("float32"), (Const(count),))
    window = tensor.window(
        policy="stream",
        hit_ratio=draw(st.sampled_from((1.0, 0.5))),
        hit_property=draw(st.sampled_from(("persisting", "persisting", "streaming"))),
    )
    device = draw(st.sampled_from((0, 1)))
    spec = TensorSpec(dtype="float32", shape=(count,), strides=(1,), device=device)
    return Scenario(_windowed(tensor, window, 3), CallSpec(args=(spec,)))


@law(
    "P4",
    tier="driver",
    given=lambda _: st.tuples(windows_on_stream(), st.sampled_from((0, 0, 1 << 20))),
    requires=_WINDOW | {Capability.MULTI_LAUNCH},
)
def stream_windows(harness: Harness, example: tuple[Scenario, int]) -> None:
    """Under policy "stream" the window is set before its launch and gone after it, its lines and the limit too."""
    scenario, wanted = example
    machine = harness.machine
    with harness.loaded(scenario.program) as loaded, ExitStack() as limits:
        for device in machine.alike:
            limits.callback(machine.set_aside, device, machine.set_aside(device, wanted))
        limit = machine.set_aside(machine.alike[0], wanted)  # a driver may round
        for first in (True, False):
            facts, observed = harness.call(loaded, scenario.call)
            expected = expect(scenario.program, facts)
            assume(not isinstance(expected, Refused))
            if not isinstance(expected, Refused):
                check_expected(harness, scenario.program, facts, (expected, observed), first=first)
                _check_around(harness, observed.events, limit)
                _check_raised(harness, expected, observed.events, limit)
    if harness.machine.tier == "sim":
        harness.once(_check_elsewhere)


def _check_elsewhere(harness: Harness) -> None:
    """Require that lines are made normal on the stream's device, though no context is current, or another device's."""
    tensor = TensorParam("a", dtype("uint8"), (Const(_SHORT),))
    program = _windowed(tensor, tensor.window(policy="stream"))
    call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(_SHORT,), strides=(1,)),))
    first, second = (harness.given(call, stream=harness.simulator.new_stream(0)) for _ in range(2))
    seen: dict[str, Observed] = {}
    with harness.loaded(program) as loaded:
        with harness.simulator.current(1):
            seen["under another device's context"] = harness.call_with(loaded, first)[1]
        in_a_thread(lambda: seen.update({"in a new thread": harness.call_with(loaded, second)[1]}))
    for where, observed in seen.items():
        normal = [event.device for event in observed.events if isinstance(event, PersistingLinesReset)]
        harness.require(
            observed.error is None and normal == [0],
            f"called {where}, lines were made normal on the devices {normal}, expected 0: {observed.error!r}",
        )


@st.composite
def _growing(draw: st.DrawFn) -> tuple[Scenario, ...]:
    """Draw calls of one program whose window, of hits that persist, is now longer and now shorter."""
    tensor = TensorParam("a", dtype("float32"), (Symbol("n", min=1),))
    program = _windowed(tensor, tensor.window())
    # The last is 16 MB: a GPU sets aside whole ways of its cache, a few of which hold all the others.
    lengths = draw(st.permutations((1, 64, 1000, 5000, 4_000_000)))
    places = (TensorSpec(dtype="float32", shape=(count,), strides=(1,)) for count in lengths)
    return tuple(Scenario(program, CallSpec(args=(place,))) for place in places)


@law(
    "P5",
    tier="driver",
    given=lambda _: _growing(),
    requires=_WINDOW | {Capability.DYNAMIC_SHAPES},
    ways=LOADS,
)
def room_for_windows(harness: Harness, scenarios: tuple[Scenario, ...]) -> None:
    """For hits that persist as much cache is set aside as the longest window so far has, if the device has it.

    While its stream is being captured none can be: a longer window is captured with a `SetAsideWarning`, no other.
    """
    machine, device = harness.machine, harness.machine.alike[0]
    most = machine.attribute(device, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE)
    with ExitStack() as limits:
        limits.callback(machine.set_aside, device, machine.set_aside(device, 0))
        if most:
            _check_shared(harness, scenarios)
            _check_streaming(harness)
            _check_each_device(harness, scenarios[0])
            harness.once(_check_longest_first)
            if machine.tier == "sim":
                _check_owed(harness, scenarios[0])
                _check_given_back(harness, scenarios[0])
                _check_lowered(harness, scenarios)
                harness.once(_check_kept_within)
                harness.once(_check_primary)
                _check_without_limit(harness, scenarios[0])
        if Capability.GRAPH_CAPTURE in harness.capabilities and most:
            _check_told(harness, scenarios)
            _check_preloaded(harness)
        machine.set_aside(device, 0)
        loaded = limits.enter_context(harness.loaded(scenarios[0].program))
        for index, scenario in enumerate(scenarios):
            limit = machine.set_aside(device, 0)
            machine.set_aside(device, limit)
            facts, observed = harness.call(loaded, scenario.call)
            expected = expect(scenario.program, facts)
            assert not isinstance(expected, Refused), f"no reason to refuse it: {expected}"
            check_expected(harness, scenario.program, facts, (expected, observed), first=index == 0)
            for event in observed.events:
                if isinstance(event, LimitSet):
                    limit = event.value
                elif isinstance(event, Launched) and event.window is not None:
                    wanted = min(event.window.nbytes, most)
                    harness.require(limit >= wanted, f"{limit} bytes are set aside, expected {wanted}")


_SHORT = 4096  # bytes: within what every device has


def _check_kept_within(harness: Harness) -> None:
    """Require that a close within the program's own launch, which is refused, gives nothing back."""
    tensor = TensorParam("a", dtype("uint8"), (Const(_SHORT),))
    launch = KernelLaunch("k", (tensor,), _ONES, _ONES, window=tensor.window())
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(_SHORT,), strides=(1,)),))
    machine, symbol = harness.machine, kernel_symbol(0)
    refused: list[LifecycleError] = []
    with harness.loaded(program) as loaded:

        def close(_: object) -> None:
            try:
                loaded.close()
            except LifecycleError as error:
                refused.append(error)

        harness.simulator.register_body(symbol, close)
        try:
            harness.call(loaded, call)
        finally:
            harness.simulator.unregister_body(symbol)
        held = machine.set_aside(0, 0)
        machine.set_aside(0, held)
        harness.require(refused, "a close within a launch was not refused")
        harness.require(held >= _SHORT, f"a close that was refused left {held} bytes set aside")


def _check_without_limit(harness: Harness, scenario: Scenario) -> None:
    """Require that calls go through where no cache can be set aside, as in a part of a device (MIG) or under MPS."""

    def refuse(name: str, proceed: Proceed, *arguments: Any) -> None:
        if name in ("cuCtxGetLimit", "cuCtxSetLimit"):
            raise Refusal(Status.UNSUPPORTED_LIMIT, "no cache can be set aside")
        proceed(*arguments)

    with harness.simulator.intercept_every(refuse), harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        check_call(harness, scenario, loaded, first=False)


def _check_shared(harness: Harness, scenarios: tuple[Scenario, ...]) -> None:
    """Call two programs in turns, one with a long window, and require that the other neither adds to it nor takes away.

    On the simulated driver the cache is refused to calls whose window is longer still, which asked for nothing.
    """
    machine, device = harness.machine, harness.machine.alike[0]
    shorter, longer, longest = sorted(scenarios, key=_window_bytes)[-3:]
    machine.set_aside(device, 0)
    with harness.loaded(shorter.program) as one, harness.loaded(shorter.program) as other:
        calls = [(one, longer), (other, shorter), (one, shorter), (other, longer)]
        if machine.tier == "sim":
            calls = [(one, longest), *calls, (other, longest)]
        for loaded, scenario in calls:
            refused = scenario is longest
            fault = PlantedFault("cuCtxSetLimit", 1 if refused else 0, Status.UNKNOWN)
            with harness.simulator.intercept_every(fault) if machine.tier == "sim" else nullcontext():
                _, observed = harness.call(loaded, scenario.call)
            harness.require((observed.error is not None) == refused, f"a call raised {observed.error!r}")
            asked = [event.asked for event in observed.events if isinstance(event, LimitSet)]
            wanted = min(
                _window_bytes(longer), machine.attribute(device, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE)
            )
            held = machine.set_aside(device, 0)
            machine.set_aside(device, held)
            harness.require(
                refused or (held >= wanted and not [one for one in asked if one > wanted]),
                f"{held} bytes are set aside, {asked} were asked for, where the longest window has {wanted}",
            )
        closed = observe(harness, one.close)
        lower = [
            event.asked for event in closed.events if isinstance(event, LimitSet) and event.asked < wanted
        ]
        harness.require(
            not lower, f"{wanted} bytes were asked for by a program that is there, and then {lower}"
        )


def _check_lowered(harness: Harness, scenarios: tuple[Scenario, ...]) -> None:
    """Require that no more is set aside than the windows of the programs that are left have, once one is closed."""
    machine, device = harness.machine, harness.machine.alike[0]
    shorter, longer = sorted(scenarios, key=_window_bytes)[-2:]
    most = machine.attribute(device, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE)
    machine.set_aside(device, 0)
    with harness.loaded(shorter.program) as one, harness.loaded(shorter.program) as other:
        harness.call(one, longer.call)
        harness.call(other, shorter.call)
        one.close()
        held, wanted = machine.set_aside(device, 0), min(_window_bytes(shorter), most)
        machine.set_aside(device, held)
    harness.require(
        held == wanted, f"{held} bytes are set aside, where the longest window that is left has {wanted}"
    )


def _check_primary(harness: Harness) -> None:
    """Require that cache is set aside in the device's primary context, whichever other one is current.

    So it is given back there: by a close in another context, and behind the launch of a window that a stream holds.
    """
    tensor = TensorParam("a", dtype("uint8"), (Const(_SHORT),))
    call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(_SHORT,), strides=(1,)),))
    machine, state = harness.machine, harness.simulator.state
    made, stack, symbol = state.make_context(state.contexts[0].device), state.stack(), kernel_symbol(0)
    for policy in ("launch", "stream"):
        seen: list[int] = []
        machine.set_aside(0, 0)
        with harness.loaded(_windowed(tensor, tensor.window(policy=policy))) as loaded:
            harness.simulator.register_body(symbol, partial(_note_set_aside, harness, seen))
            stack.append(made)
            try:
                _, observed = harness.call(loaded, call)
                loaded.close()
            finally:
                stack.remove(made)
                harness.simulator.unregister_body(symbol)
        left = machine.set_aside(0, 0)
        harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
        harness.require(
            bool(seen) and min(seen) >= _SHORT,
            f"called in another context, {seen} bytes are set aside in the primary one, by policy {policy}",
        )
        harness.require(not left, f"closed in another context, {left} bytes are set aside in the primary one")
    state.destroy(made)


def _note_set_aside(harness: Harness, seen: list[int], _: object) -> None:
    """Note the bytes of the first device's cache that are set aside, and change nothing."""
    seen.append(harness.simulator.state.contexts[0].limits.get(Limit.PERSISTING_L2_CACHE_SIZE, 0))


def _check_streaming(harness: Harness) -> None:
    """Require that no cache is set aside for a window none of whose lines persist, by whatever prepares it."""
    device, nbytes = harness.machine.alike[0], 4096
    tensor = TensorParam("a", dtype("uint8"), (Const(nbytes),))
    program = _windowed(tensor, tensor.window(hit_property="streaming"))
    call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(nbytes,), strides=(1,)),))
    harness.machine.clear_trace()
    with harness.loaded(program) as loaded:
        loaded.preload(device)
        prepared = harness.machine.trace
        _, observed = harness.call(loaded, call)
    asked = [event for event in (*prepared, *observed.events) if isinstance(event, LimitSet)]
    harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
    harness.require(not asked, f"cache was set aside for lines that do not persist: {asked}")


def _check_each_device(harness: Harness, scenario: Scenario) -> None:
    """Require that cache is set aside on each device on which the program is called."""
    machine = harness.machine
    with harness.loaded(scenario.program) as loaded:
        for device in machine.alike:
            before = machine.set_aside(device, 0)
            _, observed = harness.call(loaded, moved_to(scenario.call, device))
            held = machine.set_aside(device, before)
            harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
            harness.require(held, f"on device {device} no cache was set aside")


def _check_owed(harness: Harness, scenario: Scenario) -> None:
    """Require that cache which the driver does not take back at a close is taken back by another one."""
    machine, device = harness.machine, harness.machine.alike[0]
    machine.set_aside(device, 0)
    with harness.loaded(scenario.program) as loaded:
        harness.call(loaded, scenario.call)
        with harness.simulator.fault("cuCtxSetLimit", Status.UNKNOWN):
            refused = observe(harness, loaded.close)
        harness.require(isinstance(refused.error, DriverError), f"closing raised {refused.error!r}")
        again = observe(harness, loaded.close)
        harness.require(again.error is None, f"closing again raised {again.error!r}")
        held = machine.set_aside(device, 0)
        harness.require(not held, f"closed, {held} bytes are set aside")
    _check_made_up(harness)


def _check_given_back(harness: Harness, scenario: Scenario) -> None:
    """Require that each device has the limit again that it had, where those differ."""
    machine = harness.machine
    limits = {device: 256 + 256 * device for device in machine.alike}
    for device, limit in limits.items():
        machine.set_aside(device, limit)
    with harness.loaded(scenario.program) as loaded:
        for device in machine.alike:
            harness.call(loaded, moved_to(scenario.call, device))
        loaded.close()
    found = {device: machine.set_aside(device, 0) for device in machine.alike}
    harness.require(
        found == limits, f"closed, {found} bytes are set aside by device, and were {limits} before"
    )


def _check_longest_first(harness: Harness) -> None:
    """Require that the longest of several windows that persist has its cache as soon as the program is preloaded."""
    if Capability.MULTI_LAUNCH not in harness.capabilities:
        return
    machine, device, long = harness.machine, harness.machine.alike[0], 1 << 14
    tensor = TensorParam("a", dtype("uint8"), (Const(long),))
    windows = (tensor.window(), tensor.window(nbytes=4096))
    for order in (windows, windows[::-1]):
        launches = tuple(KernelLaunch("k", (tensor,), _ONES, _ONES, window=one) for one in order)
        machine.set_aside(device, 0)
        with harness.loaded(KernelProgram("p", Signature((tensor,)), (CODE,), launches)) as loaded:
            loaded.preload(device)
            held = machine.set_aside(device, 0)
            machine.set_aside(device, held)
        harness.require(held >= long, f"preloaded, {held} bytes are set aside for a window of {long}")


def _check_made_up(harness: Harness) -> None:
    """Require that a call sets aside what the driver refused when the device was prepared."""
    machine, device, nbytes = harness.machine, harness.machine.alike[0], 4096
    tensor = TensorParam("a", dtype("uint8"), (Const(nbytes),))
    program = _windowed(tensor, tensor.window())
    with harness.loaded(program) as loaded:
        with harness.simulator.fault("cuCtxSetLimit", Status.UNKNOWN):
            observe(harness, partial(loaded.preload, device))
        spec = TensorSpec(dtype="uint8", shape=(nbytes,), strides=(1,))
        _, observed = harness.call(loaded, CallSpec(args=(spec,)))
        harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
        held = machine.set_aside(device, 0)
        harness.require(held, "no cache is set aside, as the driver had refused it before")


def _window_bytes(scenario: Scenario) -> int:
    return max(spec.nbytes for spec in scenario.call.args if isinstance(spec, TensorSpec))


def _check_told(harness: Harness, scenarios: tuple[Scenario, ...]) -> None:
    """Capture calls of a program that is loaded anew, each ahead of a plain one, and require due warnings alone.

    The plain one sets aside what the captured one could not.
    """
    machine, device, longest = harness.machine, harness.machine.alike[0], 0
    machine.set_aside(device, 0)
    most = machine.attribute(device, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE)
    with harness.loaded(scenarios[0].program) as loaded:
        loaded.preload(device)
        for scenario in scenarios:
            nbytes = _window_bytes(scenario)
            due = nbytes > longest
            for stream in (None, _PER_THREAD) if machine.tier == "sim" else (None,):
                told = _captured_warnings(harness, loaded, scenario, stream)
                harness.require(
                    bool(told) == due, f"{nbytes} bytes, after {longest} at most, were captured: {told}"
                )
            harness.call(loaded, scenario.call)
            longest = max(longest, nbytes)
            held = machine.set_aside(device, 0)
            machine.set_aside(device, held)
            wanted = min(longest, most)
            harness.require(held >= wanted, f"after a capture {held} bytes are set aside, expected {wanted}")


def _check_preloaded(harness: Harness) -> None:
    """Require that a window of the same length in every call has its cache as soon as the program is preloaded."""
    device, nbytes = harness.machine.alike[0], 4096
    tensor = TensorParam("a", dtype("uint8"), (Const(nbytes),))
    program = _windowed(tensor, tensor.window(element_offset=1024))
    with harness.loaded(program) as loaded:
        loaded.preload(device)
        spec = TensorSpec(dtype="uint8", shape=(nbytes,), strides=(1,))
        told = _captured_warnings(harness, loaded, Scenario(program, CallSpec(args=(spec,))))
        harness.require(not told, f"preloaded, and captured: {told}")


_PER_THREAD = 2  # CU_STREAM_PER_THREAD


def _captured_warnings(
    harness: Harness, loaded: LoadedProgram, scenario: Scenario, handle: int | None = None
) -> list[str]:
    """Capture a call, on a new stream or that one, and return what is warned of cache that was not set aside."""
    machine = harness.machine
    device = machine.alike[0]
    stream = machine.new_stream(device) if handle is None else handle
    with (
        machine.stream(stream, device),
        machine.capture(stream, device),
        warnings.catch_warnings(record=True) as told,
    ):
        warnings.simplefilter("always", SetAsideWarning)
        _, observed = harness.call(loaded, scenario.call, stream=handle)
    harness.require(observed.error is None, f"a captured call raised {observed.error!r}")
    return [str(one.message) for one in told if issubclass(one.category, SetAsideWarning)]


def _check_raised(harness: Harness, expected: Expected, events: tuple[Told, ...], limit: int) -> None:
    """Require that cache is set aside for a window whose hits persist, if there is none."""
    persists = any(
        one.window is not None and one.window.hit_property == AccessProperty.PERSISTING
        for one in expected.launches
    )
    raised = [event.asked for event in events if isinstance(event, LimitSet) and event.asked > limit]
    harness.require(raised or limit or not persists, "no cache was set aside for a window whose hits persist")


def _check_around(harness: Harness, seen: tuple[Told, ...], limit: int) -> None:
    """Require that the window is there for the middle one of three launches, and the limit as it was after it."""
    kinds = (LimitSet, StreamAttributeSet, Launched, Synchronized, PersistingLinesReset)
    events = [event for event in seen if isinstance(event, kinds)]
    launched = [index for index, event in enumerate(events) if isinstance(event, Launched)]
    harness.require(len(launched) == 3, f"{len(launched)} launches")  # noqa: PLR2004 - as many as the program has
    before, after = events[launched[0] + 1 : launched[1]], events[launched[1] + 1 : launched[2]]
    harness.require(
        not events[: launched[0]] and not events[launched[2] + 1 :], "more than the window was set"
    )
    _check_set(harness, before)
    _check_cleared(harness, before, after)
    asked = [event.asked for event in after if isinstance(event, LimitSet)]
    harness.require(asked in ([], [limit]), f"the limit is {asked}, was {limit} before the launch")


def _window_of(event: Told) -> int:
    """Return the length of the window that a stream was given."""
    value = getattr(event, "value", None)
    return int(getattr(value, "nbytes", -1))


def _check_set(harness: Harness, before: list[Any]) -> None:
    """Require that the limit was raised, if at all, and then the stream's window was set."""
    harness.require(before and isinstance(before[-1], StreamAttributeSet), f"before the launch: {before}")
    harness.require(_window_of(before[-1]) > 0, f"before the launch: {before}")
    limits = before[:-1]
    harness.require(
        len(limits) <= 1 and all(isinstance(event, LimitSet) for event in limits),
        f"before the launch: {before}",
    )


def _check_cleared(harness: Harness, before: list[Any], after: list[Any]) -> None:
    """Require that the window was taken back, the kernel waited for, the lines reset and the limit restored."""
    kinds = [type(event) for event in after if not isinstance(event, LimitSet)]
    wanted = [StreamAttributeSet, Synchronized, PersistingLinesReset]
    harness.require(kinds == wanted, f"after the launch: {after}")
    harness.require(_window_of(after[0]) == 0, f"after the launch: {after}")
    set_limits = [event.value for event in before if isinstance(event, LimitSet)]
    restored = [event for event in after if isinstance(event, LimitSet)]
    harness.require(len(restored) == len(set_limits), f"limits {set_limits} and then {restored}")
    harness.require(
        not restored or isinstance(after[-1], LimitSet), f"the limit was restored too soon: {after}"
    )
