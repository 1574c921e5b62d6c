"""Calls of one program after one another, each on what the one before it left, and each compared with the oracle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.params import ScalarParam, TensorParam
from trunnion.sim.trace import Allocated
from trunnion.testing.arithmetic import evaluate
from trunnion.testing.comparison import check_expected, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.interruption import interrupting, is_of_backend
from trunnion.testing.observed import Observed, is_work
from trunnion.testing.provision import compare_allocations
from trunnion.testing.reference import expect
from trunnion.testing.repeatable import Repeatable, bind_call
from trunnion.testing.rounding import COMPLEX, FORMATS
from trunnion.testing.strategies.calls import TensorSpec, row_major
from trunnion.testing.strategies.histories import COLUMNS
from trunnion.testing.ways import WAYS, Arguments, capture

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram
    from trunnion.testing.changes import Change
    from trunnion.testing.harness import Harness

__all__ = ["Bench", "History", "Step"]

_ROOM: Final = 1 << 13
"""Bytes of storage of every tensor, so that each of its shapes finds room in the same one."""

_FIRST_VALUES: Final = {"n": 8, "s": COLUMNS + 4, "k": 1}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a history."""

    what: str
    """What is done: the name of a change, or of an act."""

    pick: int = 0
    """Which of the places where it can be done, and which of the forms that it has; counted, and round again."""

    alike: int = 1
    """How many calls that differ in nothing are made before."""

    door: str = "call"
    """The way in which the call after it is made."""


@dataclass(frozen=True, slots=True)
class History:
    """A program, and what is done with it, step by step."""

    program: KernelProgram
    """One of `history_programs`."""

    steps: tuple[Step, ...]
    """The steps."""


@dataclass(slots=True)
class Situation:
    """All that the next call is made with."""

    values: dict[str, int]
    """What the tensors' symbols shall be."""

    numbers: dict[str, object] = field(default_factory=dict)
    """The arguments that are no tensors, by parameter."""

    tensors: dict[str, Any] = field(default_factory=dict)
    """The tensors, and None for what is left out, by parameter."""

    storages: dict[str, Any] = field(default_factory=dict)
    """The bytes under them."""

    on: int = 0
    """The device that the tensors lie on."""

    device: int | None = None
    """The ``device=`` of the call."""

    out: list[Any] | None = None
    """The ``out=`` of the call."""

    stream: int | None = None
    """The ``stream=`` of the call."""

    current: dict[int, int] = field(default_factory=dict)
    """The current stream of each device, unless it is the legacy one."""

    threaded: bool = False
    """Whether the call is made from a thread that never made one."""

    less: int = 0
    """How many arguments at the end are missing."""

    def copy(self) -> Situation:
        """Return another one that is the same."""
        return replace(
            self,
            values=dict(self.values),
            numbers=dict(self.numbers),
            tensors=dict(self.tensors),
            storages=dict(self.storages),
            current=dict(self.current),
        )


class Bench:
    """A program that is called again and again.

    Parameters
    ----------
    harness
        The backend.
    program
        What is called.
    loaded
        The same, loaded.
    """

    def __init__(self, harness: Harness, program: KernelProgram, loaded: LoadedProgram) -> None:
        self.harness, self.program, self.loaded = harness, program, loaded
        self.now = Situation(dict(_FIRST_VALUES))
        self.refused = False
        """Whether the last call had to be refused, and was."""
        self._undo: list[Callable[[], object]] = []
        self._before = self.now
        for param in program.signature.params:
            if not isinstance(param, TensorParam):
                self.now.numbers[param.name] = self._first_number(param)
        self.place()

    def _first_number(self, param: Param) -> object:
        if not isinstance(param, ScalarParam):
            return bytearray(range(24)) if hasattr(param, "nbytes") else 1 << 20
        kind = param.dtype.name
        if param.symbol is not None and kind != "bool":
            return self.now.values[param.symbol.name]
        return True if kind == "bool" else 0j if kind in COMPLEX else 0.0 if kind in FORMATS else 1

    def change(self, change: Change, pick: int) -> None:
        """Make a difference, for this call and all that follow."""
        self._before = self.now.copy()
        self._undo.clear()
        change.make(self, pick)

    def change_back(self) -> None:
        """Take the last difference back."""
        storages, self.now = self.now.storages, self._before
        while self._undo:
            self._undo.pop()()
        for param in self.program.signature.tensors:
            if param.name not in self.now.storages:  # its memory was freed: it takes what came in its place
                self.put(param, storages[param.name])

    def on_change_back(self, undo: Callable[[], object]) -> None:
        """Have something done when the difference is taken back that is being made: to objects that calls are given."""
        self._undo.append(undo)

    # Tensors ----------------------------------------------------------------------------------------------------

    def spec(self, param: TensorParam, values: dict[str, int] | None = None) -> TensorSpec:
        """Return how a tensor of a parameter lies, where symbols have these values, or those of now."""
        known = self.now.values if values is None else values
        shape = tuple(evaluate(extent, known) for extent in param.shape)
        strides = row_major(shape)
        if param.strides is not None:
            strides = tuple(evaluate(step, known) for step in param.strides)
        return TensorSpec(dtype=param.dtype.name, shape=shape, strides=strides, device=self.now.on)

    def place(self) -> None:
        """Put new tensors of all parameters on the device of now, but for those that are left out."""
        for param in self.program.signature.tensors:
            if self.now.tensors.get(param.name, ...) is not None:
                self.put(param, self.harness.storage(_ROOM, self.now.on))

    def put(self, param: TensorParam, storage: Any = None) -> None:
        """Put a new tensor of a parameter into a storage, or into the one that its tensor has."""
        held = self.now.storages.get(param.name) if storage is None else storage
        if held is None:
            held = self.harness.storage(_ROOM, self.now.on)
        self.now.storages[param.name] = held
        self.now.tensors[param.name] = self.spec(param).over(held)

    def reshape(self) -> None:
        """Put new tensors into the storages that there are."""
        for param in self.program.signature.tensors:
            if self.now.tensors[param.name] is not None:
                self.put(param)

    def replace_memory(self, param: TensorParam) -> None:
        """Free a tensor's memory, then make a new tensor, which most likely lies where the freed one lay."""
        for situation in (self.now, self._before):
            situation.storages.pop(param.name, None)
            situation.tensors.pop(param.name, None)
        self.put(param, self.harness.storage(_ROOM, self.now.on))

    def destinations(self) -> list[Any]:
        """Return new tensors for all outputs."""
        return [
            self.spec(output).over(self.harness.storage(_ROOM, self.now.on))
            for output in self.program.signature.outputs
        ]

    # Calls ------------------------------------------------------------------------------------------------------

    def given(self) -> Arguments:
        """Return what the next call is made with."""
        now = self.now
        args = [
            now.tensors[param.name] if isinstance(param, TensorParam) else now.numbers[param.name]
            for param in self.program.signature.params
        ]
        args = args[: len(args) - now.less]
        return Arguments(args=args, out=now.out, stream=now.stream, device=now.device, on=now.on)

    def call(self, door: str | None = None) -> None:
        """Make the call, and compare what arrived with the oracle's word.

        Parameters
        ----------
        door
            The way in; None: the harness's.

        Raises
        ------
        LawViolation
            If anything differs.
        """
        self.placed(lambda: self._call(door))

    def placed(self, work: Callable[[], None]) -> None:
        """Do something where the call is made: in its thread, with the current streams of now."""

        def on_streams() -> None:
            with ExitStack() as streams:
                for device, handle in self.now.current.items():
                    streams.enter_context(self.harness.simulator.stream(handle, device))
                work()

        if self.now.threaded:
            in_a_thread(on_streams)
        else:
            on_streams()

    def _call(self, door: str | None) -> None:
        harness = self.harness if door is None else replace(self.harness, way=WAYS[door])
        facts, observed = harness.call_with(self.loaded, self.given())
        expected = expect(self.program, facts)
        self.refused = isinstance(expected, Refused)
        if isinstance(expected, Refused):
            check_refused(harness, expected, observed)
            return
        check_expected(harness, self.program, facts, (expected, observed), first=False)
        if harness.way.id != "capture" or self.now.stream is not None:
            self.check_streams(observed, self.stream(expected.device))

    def stream(self, device: int) -> int:
        """Return the stream that the call must use."""
        return self.now.current.get(device, 0) if self.now.stream is None else self.now.stream

    def check_streams(self, observed: Observed, stream: int) -> None:
        """Require that all work happened on one stream, and that memory is allocated for it."""
        used = {event.stream for event in observed.events if is_work(event)}
        self.harness.require(used <= {stream}, f"used the streams {used}, expected {stream:#x}")
        if any(isinstance(event, Allocated) for event in observed.events):
            compare_allocations(self.harness, observed, stream)

    def interrupted(self, door: str, place: int) -> int:
        """Make the call, and interrupt it; return how many places there were.

        Parameters
        ----------
        door
            ``"call"`` or ``"entry"``.
        place
            At which place, counted from 1; 0: nowhere.
        """
        given = self.given()

        def launch() -> None:
            (given.enter if door == "entry" else given.launch)(self.loaded)

        with suppress(KeyboardInterrupt), interrupting(is_of_backend, place) as interruption:
            self.harness.machine.call(launch)
        return interruption.places

    # Calls that can be launched again ---------------------------------------------------------------------------

    def bind(self) -> Repeatable | None:
        """Bind the call; None if it is refused, as it must be."""
        bound = bind_call(self.harness, self.program, self.loaded, self.given())
        if bound is None:
            return None
        stream, said = self.stream(bound.expected.device), bound.launch.stream
        self.harness.require(said == stream, f"says that it is bound to stream {said}, expected {stream}")
        return replace(bound, stream=stream)

    def capture(self) -> Repeatable | None:
        """Capture the call into a graph; None if it is refused, as it must be, or names a stream."""
        given = self.given()
        facts = self.harness.facts(given.args, out=given.out, device=given.device)
        expected = expect(self.program, facts)
        if isinstance(expected, Refused) or given.stream is not None:
            return None
        self.loaded.preload(expected.device)
        given.on = expected.device
        graph, captured = capture(self.harness, self.loaded, given)
        check_expected(self.harness, self.program, facts, (expected, captured), first=False)
        kept = tuple(event for event in captured.events if not is_work(event))
        return Repeatable(graph.launch, facts, replace(captured, events=kept), expected)

    def launch(self, call: Repeatable) -> None:
        """Launch a bound or captured call, and compare what arrived with the oracle's word on what it was made of."""
        whole = call.check(self.harness, self.program)
        if call.stream is not None:
            self.check_streams(whole, call.stream)


def in_a_thread(work: Callable[[], None]) -> None:
    """Do something in a new thread, and raise here what it raises there."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()
