"""What can happen to a program between two calls, beside that the next call differs: each is an act of a history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trunnion.model.capability import Capability
from trunnion.sim.trace import LibraryUnloaded
from trunnion.testing.changes import CHANGES
from trunnion.testing.expected import Refused
from trunnion.testing.faults import CALL_STATUSES, PROBES, asked, effects_after, planted, reports
from trunnion.testing.forked import CAN_FORK, told_by_a_child
from trunnion.testing.history import Bench
from trunnion.testing.observed import going_on, observe
from trunnion.testing.reference import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.harness import Harness
    from trunnion.testing.history import Step
    from trunnion.testing.repeatable import Repeatable

__all__ = ["ACTS", "Life"]

_STATUSES: Final = CALL_STATUSES


class Life(Bench):
    """A program from load to close, and again; there may be two of the same artifact.

    Parameters
    ----------
    harness
        The backend.
    program
        What is called.
    """

    def __init__(self, harness: Harness, program: KernelProgram) -> None:
        super().__init__(harness, program, harness.open(program))
        self.other: LoadedProgram | None = None
        self.bound: list[Repeatable] = []
        """What was bound to the program, which is not closed."""
        self.graphs: list[Repeatable] = []
        """What was captured of it."""
        self._others: tuple[list[Repeatable], list[Repeatable]] = ([], [])

    def close(self) -> None:
        """Close all that is open."""
        self.loaded.close()
        if self.other is not None:
            self.other.close()

    def take(self, step: Step) -> None:
        """Take a step, then make the call.

        Raises
        ------
        LawViolation
            If anything that arrives is not what the oracle says.
        """
        change = CHANGES.get(step.what)
        if change is None:
            self.placed(lambda: ACTS[step.what](self, step.pick))
        else:
            self.change(change, step.pick)
        self.call(step.door)
        if change is not None and self.refused:  # what follows is to be about good calls
            self.change_back()
            self.call(step.door)

    def end(self) -> None:
        """Launch once more all that can be, then close the program.

        Raises
        ------
        LawViolation
            If anything that arrives is not what the oracle says, or a closed program goes on.
        """
        for one in (*self.bound, *self.graphs):
            self.launch(one)
        _close(self, 0)

    def switch(self) -> None:
        """Go on with the other program."""
        if self.other is None:
            self.other = self.harness.open(self.program)
        self.loaded, self.other = self.other, self.loaded
        (self.bound, self.graphs), self._others = self._others, (self.bound, self.graphs)

    def reopen(self) -> None:
        """Take a program anew, since the one before is closed: nothing that was made of it can be launched again."""
        self.loaded = self.harness.open(self.program)
        self.bound, self.graphs = [], []

    def gone(self) -> Iterator[str]:
        """Yield which ways to call raise no LifecycleError."""
        given = self.given()
        ways: dict[str, Callable[[], Any]] = {
            "call": lambda: given.launch(self.loaded),
            "entry": lambda: given.enter(self.loaded),
            "bind": lambda: given.bind(self.loaded),
            "preload": lambda: self.loaded.preload(0),
        }
        ways |= {f"bound call {place}": bound.launch for place, bound in enumerate(self.bound)}
        yield from going_on(ways)


def _again(_: Life, __: int) -> None:
    """Change nothing."""


def _bind(life: Life, _: int) -> None:
    bound = life.bind()
    if bound is not None:
        life.bound.append(bound)
        life.launch(bound)


def _launch_bound(life: Life, pick: int) -> None:
    """Launch what was bound some steps ago."""
    if life.bound:
        life.launch(life.bound[pick % len(life.bound)])
    else:
        _bind(life, pick)


def _capture(life: Life, _: int) -> None:
    graph = life.capture() if Capability.GRAPH_CAPTURE in life.harness.capabilities else None
    if graph is not None:
        life.graphs.append(graph)
        life.launch(graph)


def _launch_graph(life: Life, pick: int) -> None:
    """Launch what was captured some steps ago."""
    if life.graphs:
        life.launch(life.graphs[pick % len(life.graphs)])
    else:
        _capture(life, pick)


def _preload(life: Life, pick: int) -> None:
    before = len(life.harness.observed_launches())
    life.loaded.preload(pick % 2)
    life.harness.require(len(life.harness.observed_launches()) == before, "preloading launched")


def _fault(life: Life, pick: int) -> None:
    """Have a driver's call fail, which the program's call must say."""
    harness, given = life.harness, life.given()
    told = expect(life.program, harness.facts(given.args, out=given.out, device=given.device))
    if isinstance(told, Refused):
        return
    with asked(harness) as names:
        harness.call_with(life.loaded, life.given())
    places = [place for place, name in enumerate(names) if name not in PROBES]
    if not places:
        return
    place, status = places[pick % len(places)], _STATUSES[pick // len(places) % len(_STATUSES)]
    events: tuple[Any, ...] = ()
    with planted(harness, names, place, status) as fault:
        try:
            _, observed = harness.call_with(life.loaded, life.given())
            error: BaseException | None = observed.error
            events = observed.events
        except RuntimeError as raised:  # torch's, of memory that has run out
            error = raised
    if not fault.struck:
        return
    what = f"{fault.name} returned {fault.status.name}"
    if error is None or not reports(error, fault):
        harness.violation(f"{what}, and the call ended with {error!r}")
    late = effects_after(events)
    harness.require(not late, f"{what}, and then the driver was asked for {late}")


def _close(life: Life, _: int) -> None:
    """Close the program, which nobody can call then, and take it anew."""
    harness = life.harness
    closing = observe(harness, life.loaded.close)
    harness.require(closing.error is None, f"closing raised {closing.error!r}")
    unloaded = [event for event in closing.events if isinstance(event, LibraryUnloaded)]
    harness.require(len(unloaded) == 1, f"closing unloaded {len(unloaded)} images")
    harness.simulator.clear_trace()
    told = "; ".join(life.gone())
    harness.require(not told, f"after closing, {told}")
    harness.require(not harness.observed_launches(), "a closed program launched")
    life.reopen()


def _fork(life: Life, _: int) -> None:
    """Have a child, which can call nothing."""
    if CAN_FORK:
        told = told_by_a_child(lambda: "; ".join(life.gone()))
        life.harness.require(not told, f"in a forked child, {told}")


def _switch(life: Life, _: int) -> None:
    life.switch()


ACTS: Final[Mapping[str, Callable[[Life, int], None]]] = {
    "again": _again,
    "bind": _bind,
    "launch bound": _launch_bound,
    "capture": _capture,
    "launch graph": _launch_graph,
    "preload": _preload,
    "fault": _fault,
    "close": _close,
    "fork": _fork,
    "other program": _switch,
}
"""Every act, by its name."""
