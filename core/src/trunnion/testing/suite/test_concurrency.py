"""Laws of calls that overlap: in two threads, and one inside another."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.errors import TrunnionError
from trunnion.sim.trace import Allocated, Launched, MemorySet
from trunnion.testing.comparison import check_expected, symbols_of
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.laws import LawViolation, law
from trunnion.testing.observed import Observed
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, calls, programs
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import Kernel
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_PATIENCE = 300.0  # seconds until a thread that was never woken gives up: far more than any machine is busy


@st.composite
def _two_calls(draw: st.DrawFn, harness: Harness) -> tuple[Scenario, CallSpec, str]:
    program = draw(programs(harness.capabilities))
    place = draw(st.sampled_from(tuple(_PLACES)))
    return Scenario(program, draw(calls(program))), draw(calls(program)), place


class _Caller:
    """One call on tensors of its own and a stream of its own."""

    def __init__(self, harness: Harness, program: KernelProgram, call: CallSpec) -> None:
        self.harness, self.program = harness, program
        self.args = harness.arguments(call.args)
        self.device = call.device
        self.facts = harness.facts(self.args, device=call.device)
        self.expected = expect(program, self.facts)
        assume(not isinstance(self.expected, Refused) and self.expected.launches)
        on = self.expected.device if isinstance(self.expected, Expected) else 0
        self.stream = harness.simulator.new_stream(on)
        self.result: Any = None

    def launch(self, loaded: LoadedProgram) -> None:
        """Make the call."""
        self.result = loaded.call(self.args, stream=self.stream, device=self.device)

    def check(self, events: tuple[Any, ...]) -> None:
        """Compare the launches on this caller's stream with the oracle's."""
        if isinstance(self.expected, Refused):
            return
        kinds = (Launched, Allocated, MemorySet)
        mine = tuple(event for event in events if isinstance(event, kinds) and event.stream == self.stream)
        observed = Observed(result=self.result, error=None, given_out=None, events=mine)
        check_expected(self.harness, self.program, self.facts, (self.expected, observed), first=False)


_LAUNCHES: Final = ("cuLaunchKernel", "cuLaunchKernelEx")

_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "launch": _LAUNCHES,
    "allocation": ("allocate",),
    "kernel": (),
}
"""Where a call can come in the middle of another: ahead of which driver calls, before they read what they are given;
none: while the first kernel runs."""


@contextmanager
def _comes(harness: Harness, first: _Caller, place: str, inner: Callable[[], None]) -> Iterator[None]:
    """Have something happen once in the middle of a caller's call."""
    simulator = harness.simulator
    once = threading.Event()

    def happen() -> None:
        if not once.is_set():
            once.set()
            inner()

    def ahead(proceed: Callable[..., None], *arguments: Any) -> None:
        happen()
        proceed(*arguments)

    with ExitStack() as until:
        for call in _PLACES[place]:
            until.enter_context(simulator.intercept(call, ahead))
        if not _PLACES[place]:
            symbol = symbols_of(first.program)[_first_kernel(first.expected)]
            simulator.register_body(symbol, lambda _: happen())
            until.callback(simulator.unregister_body, symbol)
        yield
    happen()  # the call allocated nothing


def _overlap(
    harness: Harness, loaded: LoadedProgram, callers: tuple[_Caller, _Caller], place: str, *, threads: bool
) -> None:
    """Make the second call in the middle of the first one."""
    first, second = callers
    nested: list[BaseException] = []

    def call() -> None:
        try:
            second.launch(loaded)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that waits
            nested.append(error)

    def in_a_thread() -> None:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join(_PATIENCE)
        if thread.is_alive():
            nested.append(TimeoutError("a call waits for another thread's call to end"))

    try:
        with _comes(harness, first, place, in_a_thread if threads else call):
            harness.simulator.call(first.launch, loaded)
    except TrunnionError as refused:
        nested.append(refused)
    for error in nested:
        if isinstance(error, (TrunnionError, TimeoutError)):
            raise LawViolation(harness.law_id, f"a good call was refused: {error!r}") from error
        raise error


def _first_kernel(expected: Expected | Refused) -> Kernel:
    return ("", 0) if isinstance(expected, Refused) else expected.launches[0].kernel


def _check_overlap(harness: Harness, example: tuple[Scenario, CallSpec, str], *, threads: bool) -> None:
    scenario, other, place = example
    callers = (_Caller(harness, scenario.program, scenario.call), _Caller(harness, scenario.program, other))
    with harness.loaded(scenario.program) as loaded:
        harness.simulator.clear_trace()
        _overlap(harness, loaded, callers, place, threads=threads)
        events = harness.sabotage.trace(harness.simulator.trace)
        for caller in callers:
            caller.check(events)


@law("H1", given=_two_calls, ways=LOADS)
def nested_calls(harness: Harness, example: tuple[Scenario, CallSpec, str]) -> None:
    """A call that is made in the middle of another one of the same program disturbs neither."""
    _check_overlap(harness, example, threads=False)


@law("H2", given=_two_calls, ways=LOADS)
def two_threads(harness: Harness, example: tuple[Scenario, CallSpec, str]) -> None:
    """Calls of one program in two threads at once each receive their own parameters, stream and tensors."""
    _check_overlap(harness, example, threads=True)
