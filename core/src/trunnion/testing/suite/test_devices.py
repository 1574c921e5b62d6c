"""Laws of streams, devices and threads' contexts."""

from __future__ import annotations

import itertools
import pickle
import threading
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError, DriverError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace
from trunnion.sim.objects import CaptureMode
from trunnion.sim.status import Status
from trunnion.testing.comparison import check_call, check_expected, check_given
from trunnion.testing.expected import Refused
from trunnion.testing.faults import NAMED_STATUSES, PlantedFault, asked, reports
from trunnion.testing.history import in_a_thread
from trunnion.testing.laws import EVERY_WAY, law
from trunnion.testing.machine import ARCHITECTURES
from trunnion.testing.observed import is_work, observe
from trunnion.testing.process_state import keeping_silent, leaving_process
from trunnion.testing.provision import compare_allocations
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, calls, scenarios
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.ways import stream_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed

__all__: list[str] = []

_ONE = (Const(1),) * 3
_LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx")
_UNCAPTURED = tuple(way for way in EVERY_WAY if way != "capture")
"""Whatever names a stream of its own cannot be made on the one that a capture has."""


def _any(harness: Harness) -> st.SearchStrategy[Any]:
    return scenarios(harness.capabilities)


@st.composite
def _numbers(draw: st.DrawFn) -> Scenario:
    """Draw a call that takes numbers only, and so says itself on which device."""
    kinds = draw(st.lists(st.sampled_from(("int32", "float32", "uint8")), max_size=3))
    scalars = tuple(ScalarParam(f"s{index}", kind) for index, kind in enumerate(kinds))  # type: ignore[arg-type]  # reads spellings
    program = taking(*scalars)
    return Scenario(program, draw(calls(program)))


def _good_call(harness: Harness, loaded: Any, scenario: Scenario, stream: int | None = None) -> Any:
    """Make a call that the oracle expects to succeed, and return what came of it."""
    facts, observed = harness.call(loaded, scenario.call, stream=stream)
    expected = expect(scenario.program, facts)
    assume(not isinstance(expected, Refused) and expected.launches)
    if not isinstance(expected, Refused):
        check_expected(harness, scenario.program, facts, (expected, observed), first=False)
    return expected, observed


@law("N1", given=lambda harness: st.one_of(_any(harness), _numbers()), ways=_UNCAPTURED)
def current_stream(harness: Harness, scenario: Scenario) -> None:
    """Without ``stream=``, launches and allocations happen on the current stream of the call's device."""
    simulator = harness.simulator
    streams = [simulator.new_stream(device) for device in (0, 1)]
    with (
        harness.loaded(scenario.program) as loaded,
        simulator.stream(streams[0], 0),
        simulator.stream(streams[1], 1),
    ):
        expected, observed = _good_call(harness, loaded, scenario)
        want = streams[expected.device]
        got = {event.stream for event in (*observed.launches, *observed.allocations)}
        harness.require(
            got == {want}, f"used the streams {got}, expected {want:#x} of device {expected.device}"
        )


@law(
    "N2",
    given=lambda harness: st.tuples(
        scenarios(harness.capabilities), st.sampled_from((0, 1, 2, "new")), st.booleans()
    ),
)
def explicit_stream(harness: Harness, example: tuple[Scenario, Any, bool]) -> None:
    """A ``stream=`` is used as it is, the driver's own 0, 1 and 2 included, whatever the current stream is.

    So it is where launchers are told of one device alone, and may allocate in a quicker way: under the current stream.
    """
    scenario, choice, alone = example
    everywhere, simulator = harness, harness.simulator
    harness = harness.alone() if alone else harness
    with harness.loaded(scenario.program) as loaded:
        device = harness.there(_device_of(scenario.call))
        handle = simulator.new_stream(device) if choice == "new" else int(choice)
        for _ in range(2):  # the second call has nothing to prepare
            with simulator.stream(simulator.new_stream(device), device):
                _, observed = _good_call(harness, loaded, scenario, stream=handle)
            got = {event.stream for event in observed.launches}
            harness.require(got == {handle}, f"launched on {got}, expected {handle:#x}")
            compare_allocations(harness, observed, handle)
    if Capability.WORKSPACE in harness.capabilities:
        everywhere.once(_check_workspace_alone)
        everywhere.once(_check_workspace_of_one_device)
    everywhere.once(_check_stream_objects)


def _device_of(call: CallSpec) -> int:
    """Return the device that a call is drawn for."""
    devices = {x.device for x in call.args if isinstance(x, TensorSpec)} or {call.device}
    return next(iter(devices)) or 0


def _check_stream_objects(harness: Harness) -> None:
    """Require that a stream is as good as its handle, whichever library's object it is."""
    number = ScalarParam("n", dtype("int32"))
    program = taking(number)
    handle = harness.simulator.new_stream(0)
    with harness.loaded(program) as loaded:
        for stream in (handle, *stream_objects(harness, handle) * 2):
            observed = observe(harness, partial(loaded.entry, 7, stream=stream, device=0))
            got = [launch.stream for launch in observed.launches]
            harness.require(got == [handle], f"{stream}: launched on {got}: {observed.error!r}")


def _check_workspace_alone(harness: Harness) -> None:
    """Require that memory is allocated for a stream where a call has no other than scratch memory."""
    launch = KernelLaunch("k", (Workspace("w", dtype("uint8"), (Const(64),)),), _ONE, _ONE)
    program = KernelProgram("p", Signature(()), (CODE,), (launch,))
    scenario = Scenario(program, CallSpec(args=(), device=0))
    with harness.loaded(program) as loaded:
        for stream in (0, 1, 2, harness.simulator.new_stream(0)):
            _, observed = _good_call(harness, loaded, scenario, stream=stream)
            compare_allocations(harness, observed, stream)


def _check_workspace_of_one_device(harness: Harness) -> None:
    """Require the same where a launcher may allocate in a quicker way, under the current stream."""
    _check_workspace_alone(harness.alone())


@contextmanager
def _leaving_library(harness: Harness) -> Iterator[None]:
    """Require that the tensor library's current device and streams are after the block as before."""
    before = harness.machine.current()
    yield
    left = harness.machine.current()
    said = [
        f"device {device} and the streams {list(map(hex, streams))}" for device, *streams in (left, before)
    ]
    harness.require(left == before, f"the tensor library's current ones are {said[0]}, and were {said[1]}")


@contextmanager
def _leaving_thread(harness: Harness) -> Iterator[None]:
    """Require that the thread's contexts, capture mode and current streams are after the block as before."""
    state = harness.simulator.state
    stack, thread = state.stack(), state.thread()
    before, mode = tuple(stack), state.captures.mode_of(thread)
    with _leaving_library(harness):
        yield
    harness.require(
        tuple(stack) == before, f"{len(stack)} contexts are current, or others, not {len(before)}"
    )
    left = state.captures.mode_of(thread)
    harness.require(left is mode, f"the thread's capture mode is {left.name}, and was {mode.name}")


def moved_to(call: CallSpec, device: int) -> CallSpec:
    """Return a call with all of its tensors on one device."""
    args = tuple(on(value, device) for value in call.args)
    out = None if call.out is None else tuple(on(value, device) for value in call.out)
    return CallSpec(args=args, out=out, device=None if call.device is None else device)


def on(value: object, device: int) -> object:
    """Return a described tensor on another device."""
    if not isinstance(value, TensorSpec):
        return value
    return TensorSpec(
        dtype=value.dtype, shape=value.shape, strides=value.strides, offset=value.offset, device=device
    )


@contextmanager
def _capture_mode(harness: Harness, mode: CaptureMode) -> Iterator[None]:
    """Give the thread a capture mode, until the block ends."""
    state = harness.simulator.state
    before = state.captures.exchange_mode(state.thread(), mode)
    try:
        yield
    finally:
        state.captures.exchange_mode(state.thread(), before)


def _often(harness: Harness, *wanted: Capability) -> st.SearchStrategy[Any]:
    """Return calls, many of them of programs that need one of some capabilities."""
    there = [one for one in wanted if one in harness.capabilities]
    return st.one_of(_any(harness), *(scenarios(harness.capabilities, (one,)) for one in there))


def _to_prepare(harness: Harness) -> st.SearchStrategy[Any]:
    """Return calls, many of programs with variables, which are written when a device is prepared."""
    return _often(harness, Capability.MODULE_VARIABLES)


_PREPARED = 5
"""Turns after which all devices are prepared."""


_STREAMS: Final = (0, None, 1, 2)
"""The driver's own streams; None: a new one."""


@law(
    "N3",
    given=lambda h: st.tuples(_to_prepare(h), st.sampled_from(_STREAMS), st.sampled_from(CaptureMode)),
)
def every_device(harness: Harness, example: tuple[Scenario, int | None, CaptureMode]) -> None:
    """A program launches on each device, the null stream too, and leaves the thread's contexts and capture mode alone.

    So it does whatever context is current, and whatever mode: other code of the thread relies on both. It relies on the
    tensor library's current device and streams as well, and on what a process has once: its environment, its handlers,
    its random numbers. Loading and calling warn of nothing, and write nothing to the standard output and error.
    """
    (scenario, handle, mode), simulator = example, harness.simulator
    with (
        leaving_process(harness),
        _capture_mode(harness, mode),
        _leaving_thread(harness),
        harness.loaded(scenario.program) as loaded,
    ):
        for turn, (device, current) in enumerate(itertools.product((0, 1, 0), (None, 0, 1))):
            moved = Scenario(scenario.program, moved_to(scenario.call, device))
            stream = simulator.new_stream(device) if handle is None else handle
            with (
                nullcontext() if current is None else simulator.current(current),
                _leaving_thread(harness),
                asked(harness) as names,
            ):
                expected, observed = _good_call(harness, loaded, moved, stream=stream)
            if (
                current == device and turn > _PREPARED and handle == 0
            ):  # it may be a green one, of fewer processors
                harness.require(
                    "cuCtxPushCurrent" not in names, "a context of the device was current, and is not used"
                )
            got = {launch.device for launch in observed.launches}
            harness.require(got == {expected.device} == {device}, f"launched on {got}, expected {device}")
    if frozenset({Capability.CONDITIONAL_LAUNCH, Capability.DYNAMIC_SHAPES}) <= harness.capabilities:
        harness.once(_check_condition)
    harness.once(_check_current_device)


def _check_current_device(harness: Harness) -> None:
    """Require that a device of no number is the thread's current one, where no tensor tells one, and no word of it."""
    number = ScalarParam("n", dtype("int32"))
    program = taking(number)
    artifact = harness.built(program)
    with keeping_silent(harness), closing(harness.reopen(program, artifact)) as loaded:
        for device in (1, 0, 1):
            with harness.simulator.current(device):
                observed = observe(harness, partial(loaded.entry, 7, device=harness.machine.kind))
            got = [launch.device for launch in observed.launches]
            harness.require(got == [device], f"launched on {got}, expected {device}: {observed.error!r}")


_MUCH = 100 << 10
"""Bytes of dynamic shared memory that a kernel has to be allowed on each device."""


def _check_condition(harness: Harness) -> None:
    """Require that each device is prepared for a launch that happens there for the first time in a later call."""
    flag = Symbol("flag", max=1)
    asking = KernelLaunch("k", (), _ONE, _ONE, dynamic_smem_bytes=Const(_MUCH), when=flag)
    program = KernelProgram("p", Signature((ScalarParam("flag", dtype("int32"), flag),)), (CODE,), (asking,))
    with harness.loaded(program) as loaded:
        for value, device in itertools.product((0, 1, 1), (0, 1)):
            check_call(harness, Scenario(program, CallSpec(args=(value,), device=device)), loaded)


def _to_write(harness: Harness) -> st.SearchStrategy[Any]:
    """Return calls, many of which write to memory before they launch: on the null stream that takes a context.

    There ``cuMemsetD8Async`` answers CUDA_ERROR_INVALID_CONTEXT in a thread that has none (driver 580).
    """
    return _often(harness, Capability.OUTPUT_FILL, Capability.WORKSPACE, Capability.MODULE_VARIABLES)


@law("N4", given=lambda harness: st.tuples(_to_write(harness), st.booleans(), st.booleans()))
def fresh_thread(harness: Harness, example: tuple[Scenario, bool, bool]) -> None:
    """A call from a thread that never used the driver launches on the tensors' device, the second one too."""
    scenario, named, into = example
    failures: list[BaseException] = []
    moved = Scenario(scenario.program, moved_to(scenario.call, 1))
    told = expect(moved.program, moved.call.imagined())
    assume(not isinstance(told, Refused) and told.launches)
    # Whoever makes a tensor uses the driver: so all are made here, the outputs too where nothing else is to be had.
    call = (
        harness.with_destinations(moved.call, told) if into and not isinstance(told, Refused) else moved.call
    )
    given = harness.given(call, stream=harness.simulator.new_stream(1) if named else 0)
    with harness.loaded(scenario.program) as loaded:

        def work() -> None:
            try:
                facts, observed = harness.call_with(loaded, given)
                expected = expect(moved.program, facts)
                if not isinstance(expected, Refused):
                    check_expected(harness, moved.program, facts, (expected, observed))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    if failures:
        raise failures[0]
    if Capability.OUTPUT_FILL in harness.capabilities:
        harness.once(_check_bound_elsewhere)


def _check_bound_elsewhere(harness: Harness) -> None:
    """Require the same of a bound call that was launched under its device's context before, and of another device's."""
    filled = TensorParam("o", dtype("float32"), (Const(4),), access="write", fill=1.0)
    program = taking(TensorParam("a", dtype("float32"), (Const(4),)), outputs=(filled,))
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
    with harness.loaded(program) as loaded:
        bound = harness.given(call, stream=0).bind(loaded)
        with harness.simulator.current(0):
            bound()
            bound()
        with harness.simulator.current(1):
            seen = {"under another device's context": observe(harness, bound)}
        in_a_thread(lambda: seen.update({"in a new thread": observe(harness, bound)}))
    for where, observed in seen.items():
        launched = [launch.device for launch in observed.launches]
        harness.require(
            observed.error is None and launched == [0],
            f"bound to device 0 and launched {where}, it launched on {launched}: {observed.error!r}",
        )


_STATUSES = st.lists(st.sampled_from(NAMED_STATUSES), min_size=12, max_size=12, unique=True)
"""Some of what a driver has a name for: all examples together meet nearly all of it."""


@law("N5", given=lambda harness: st.tuples(_any(harness), _STATUSES))
def bad_stream(harness: Harness, example: tuple[Scenario, list[Status]]) -> None:
    """What the driver refuses is a DriverError with the call, the code and its name, and the next call works."""
    scenario, statuses = example
    with harness.loaded(scenario.program) as loaded:
        _good_call(harness, loaded, scenario)
        facts, observed = harness.call(loaded, scenario.call, stream=0x7B)
        assume(not isinstance(expect(scenario.program, facts), Refused))
        error = observed.error
        harness.require(isinstance(error, DriverError), f"an unknown stream ended in {error!r}")
        if isinstance(error, DriverError):
            facts_seen = (error.code, error.code_name, error.call.startswith("cu"))
            harness.require(
                facts_seen == (400, "CUDA_ERROR_INVALID_HANDLE", True),
                f"the error says {facts_seen}, {error}",
            )
        harness.require(not observed.launches, "the refused call launched")
        _check_pickled(harness, error)
        for status in (Status.NEWER, *statuses):
            _check_refused_launch(harness, loaded, scenario, status)
        _good_call(harness, loaded, scenario)


def _check_pickled(harness: Harness, error: BaseException | None) -> None:
    """Require that an error passes from process to process."""
    try:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception as failure:  # noqa: BLE001 - a class's own code may raise anything
        harness.violation(f"a {type(error).__name__} cannot be pickled: {failure!r}")
    alike = (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    harness.require(alike, f"{error!r} is pickled, and read again it is {again!r}")


def _check_refused_launch(harness: Harness, loaded: Any, scenario: Scenario, status: Status) -> None:
    """Require that a launch which the driver refuses, with whatever status, is told by the driver's name for that."""
    with ExitStack() as refusing:
        for call in _LAUNCHES:
            refusing.enter_context(harness.simulator.fault(call, status))
        _, observed = harness.call(loaded, scenario.call, stream=0)
    error = observed.error
    told = error is not None and any(reports(error, PlantedFault(call, 1, status)) for call in _LAUNCHES)
    harness.require(
        told, f"a launch was refused with {status.symbol} ({int(status)}), and the error is {error!r}"
    )


@law("N6", given=_any)
def foreign_stream(harness: Harness, scenario: Scenario) -> None:
    """A ``stream=`` of another device than the tensors' is an ArgumentError before anything happens.

    So is an object that is no stream: one that answers otherwise than the CUDA stream protocol says, and a number of
    another class than int; and likewise what is no device under ``device=``, or is to be prepared.
    """
    harness.once(_check_foreign_of_a_plain_call)
    harness.once(_check_devices_without_tensors)
    harness.once(_check_prepared)
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        assume(not isinstance(expected, Refused))
        if isinstance(expected, Refused):
            return
        foreign = harness.simulator.new_stream(1 - expected.device)
        there = Scenario(scenario.program, moved_to(scenario.call, 1 - expected.device))
        facts, observed = harness.call(
            loaded, there.call, stream=foreign
        )  # where it is right, it is no precedent
        told = expect(scenario.program, facts)
        harness.require(isinstance(told, Refused) or observed.error is None, f"raised {observed.error!r}")
        with _leaving_thread(harness):
            _, observed = harness.call(loaded, scenario.call, stream=foreign)
        _check_refused_word(harness, observed, "stream")
        harness.simulator.replace_stream(foreign, expected.device)  # a driver gives handles again
        given = harness.given(scenario.call, stream=foreign)
        check_given(harness, scenario.program, given, loaded, first=False)
        _, observed = harness.call(loaded, there.call, stream=foreign)
        if not isinstance(told, Refused):
            _check_refused_word(harness, observed, "stream")
        here = harness.simulator.new_stream(expected.device)
        given = harness.given(scenario.call)
        call = partial(loaded.entry, *given.args)
        for stream in (*map(_Answering, _no_streams(here)), *_NO_NUMBERS, -1, 1 << 64, (0, here)):
            refused = observe(harness, partial(call, stream=stream, device=given.device))
            _check_refused_word(harness, refused, "stream")
        on = expected.device
        # None is a word of torch's.
        texts = ("cpu", "cuda:x", f"cuda:0{on}", f"cuda: {on}", f"cuda:+{on}")
        for device in (*_NO_DEVICES, (on,), *texts):
            _check_refused_word(harness, observe(harness, partial(call, device=device)), "device")


def _check_foreign_of_a_plain_call(harness: Harness) -> None:
    """Require the same of calls that allocate nothing, which a launcher may make in a shorter way."""
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    program = taking(tensor)
    with harness.loaded(program) as loaded:
        for device in (0, 1, 0, 1):
            call = CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,), device=device),))
            for right in (False, True, False):  # the very first call is wrong
                stream = harness.simulator.new_stream(device if right else 1 - device)
                if right:
                    _good_call(harness, loaded, Scenario(program, call), stream=stream)
                else:
                    _check_refused_word(harness, harness.call(loaded, call, stream=stream)[1], "stream")


def _check_devices_without_tensors(harness: Harness) -> None:
    """Require that what is no device is refused where no tensor tells one."""
    number = ScalarParam("n", dtype("int32"))
    program = taking(number)
    with harness.loaded(program) as loaded:
        for ordinal in (0, 1):
            check_call(harness, Scenario(program, CallSpec(args=(7,), device=ordinal)), loaded, first=False)
            for device in _NO_DEVICES:
                _check_refused_word(
                    harness, observe(harness, partial(loaded.entry, 7, device=device)), "device"
                )


def _check_prepared(harness: Harness) -> None:
    """Require that a device which is not there cannot be prepared either."""
    program = taking()
    with harness.loaded(program) as loaded:
        for device in (-1, -len(ARCHITECTURES), len(ARCHITECTURES), 1 << 31):
            _check_refused_word(harness, observe(harness, partial(loaded.preload, device)), "device")
        check_call(harness, Scenario(program, CallSpec(args=(), device=0)), loaded)


_NO_NUMBERS = (True, False, 0.0, 1.0, "0", b"1", 1j)
"""What is equal to a number, or says one."""

_NO_DEVICES = (*_NO_NUMBERS, -1, -len(ARCHITECTURES), len(ARCHITECTURES), 1 << 31)
"""No ordinals, of which some would be one where they count from the end."""


def _check_refused_word(harness: Harness, observed: Observed, word: str) -> None:
    """Require that a call was refused for its stream or its device, and did nothing."""
    error = observed.error
    harness.require(isinstance(error, ArgumentError), f"raised {error!r}")
    harness.require(getattr(error, "argument", "") == word, f"the error names another argument: {error}")
    harness.require(not observed.launches and not observed.allocations, "the refused call had effects")


@dataclass(frozen=True, slots=True)
class _Answering:
    """An object that is asked what stream it is."""

    answer: object

    def __cuda_stream__(self) -> object:
        """Return anything (cuda.core, "CUDA stream protocol": a tuple of the version, which is 0, and the handle)."""
        return self.answer


def _no_streams(handle: int) -> tuple[object, ...]:
    """Return answers that are none of the protocol's, each with a good handle somewhere."""
    pairs = ([0, handle], (0, handle, 0), (handle,), (-1, handle), (1, handle), ("0", handle), (None, handle))
    return (*pairs, handle, str(handle), None, (0, str(handle)), (0, float(handle)), (0, None), (0, -handle))


@law("N7", tier="driver", given=_any, ways=_UNCAPTURED)
def own_stream(harness: Harness, scenario: Scenario) -> None:
    """A call works on a new stream, named or current, and leaves the library's current device and streams alone.

    Its launches and its allocations are there, also where another stream of the device is the current one.
    """
    machine = harness.machine
    device = harness.there(_device_of(scenario.call))
    with harness.loaded(scenario.program) as loaded, ExitStack() as entered:
        for each in machine.alike:
            entered.enter_context(machine.stream(machine.new_stream(each), each))
        for named in (False, True, True, False):  # the second of each has nothing to prepare
            stream = machine.new_stream(device) if named else harness.current_stream(device)
            with _leaving_library(harness):
                _, observed = _good_call(harness, loaded, scenario, stream=stream if named else None)
            got = {event.stream for event in observed.events if is_work(event)}
            harness.require(
                got == {stream}, f"used the streams {got}, expected {stream:#x} of device {device}"
            )
            compare_allocations(harness, observed, stream)
