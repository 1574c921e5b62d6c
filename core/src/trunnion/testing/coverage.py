"""Which features of programs default draws bring together with which events: what no example shows, no law sees.

``python -m trunnion.testing.coverage NAME`` prints the table of a backend.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.program import KernelProgram
from trunnion.testing.expected import Refused
from trunnion.testing.laws import catalogue
from trunnion.testing.reference import expect
from trunnion.testing.strategies.breakage import Breakage
from trunnion.testing.strategies.calls import CallSpec, Scenario, TensorSpec, row_major
from trunnion.testing.strategies.limits import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trunnion.testing.harness import Harness

__all__ = ["EVENTS", "GENERAL_LAWS", "count_cells", "events_of", "table"]

GENERAL_LAWS: Final = (
    "A1",
    "O1",
    "O2",
    "E1",
    "L8",
    "N1",
    "N2",
    "N4",
    "N6",
    "C1",
    "C4",
    "C5",
    "G1",
    "G2",
    "F1",
    "F2",
)
"""Laws of any program: what the table counts. Laws of one feature draw more of that one."""

EVENTS: Final[Mapping[str, str]] = {
    "good": "the call succeeds",
    "refused": "it must be refused",
    "skipped": "a launch is skipped",
    "none": "a tensor is left out",
    "out": "destinations are given",
    "empty": "a tensor has no elements",
    "strided": "a tensor is not row-major",
    "offset": "a tensor begins within its storage",
    "second device": "the call is for device 1",
    "no tensor": "the call has no tensor, and says its device",
    "bound": "the call is bound",
    "entered": "the call is made by `LoadedProgram.entry`",
    "captured": "its stream is captured",
    "first": "nothing is prepared before the first call",
}
"""What can happen in a call, by a word."""


def events_of(way: str, program: KernelProgram, call: CallSpec) -> Iterator[str]:
    """Yield the events of a call.

    Parameters
    ----------
    way
        The way in.
    program
        What is called.
    call
        What it is called with.
    """
    expected = expect(program, call.imagined())
    refused = isinstance(expected, Refused)
    yield "refused" if refused else "good"
    if not isinstance(expected, Refused) and expected.skipped:
        yield "skipped"
    tensors = [given for given in (*call.args, *(call.out or ())) if isinstance(given, TensorSpec)]
    if None in call.args:
        yield "none"
    if call.out:
        yield "out"
    if not tensors and call.device is not None:
        yield "no tensor"
    yield from _of_tensors(tensors)
    if 1 in {call.device, *(one.device for one in tensors)}:
        yield "second device"
    if way.startswith("bind"):
        yield "bound"
    elif way in _WAYS:
        yield _WAYS[way]
    if way not in ("preload", "capture"):
        yield "first"


_WAYS: Final = {"entry": "entered", "written": "entered", "capture": "captured"}


def _of_tensors(tensors: Sequence[TensorSpec]) -> Iterator[str]:
    if any(0 in one.shape for one in tensors):
        yield "empty"
    if any(0 not in one.shape and one.strides != row_major(one.shape) for one in tensors):
        yield "strided"
    if any(one.offset for one in tensors):
        yield "offset"


def _calls_in(example: object) -> Iterator[tuple[KernelProgram, CallSpec]]:
    """Yield each call of an example, with its program."""
    match example:
        case Scenario(program, call):
            yield program, call
        case Series(program, calls):
            yield from ((program, call) for call in calls)
        case (KernelProgram() as program, tuple(mistakes)):
            yield from ((program, one.call) for one in mistakes if isinstance(one, Breakage))
        case (Scenario() as scenario, *_):
            yield from _calls_in(scenario)


def count_cells(harness: Harness, laws: Sequence[str] = GENERAL_LAWS) -> Counter[tuple[str, str]]:
    """Return how often default draws bring a feature together with an event; nothing is built.

    Parameters
    ----------
    harness
        The backend.
    laws
        The ids of the laws whose draws are counted.
    """
    counted: Counter[tuple[str, str]] = Counter()

    def count(drawn: Harness, example: Any) -> None:
        own = {_OF_LAWS[drawn.law_id]} if drawn.law_id in _OF_LAWS else set()
        for program, call in _calls_in(example):
            events = own | set(events_of(drawn.way.id, program, call))
            features = ("any program", *map(str, program.plan().requires))
            counted.update((feature, event) for feature in features for event in events)
        drawn.made[drawn.way.id] += _ENOUGH  # so that no way gets examples of its own

    for law_id in laws:
        replace(catalogue()[law_id], body=count).check(harness, shrink=False)
    return counted


_ENOUGH: Final = 8
_OF_LAWS: Final[Mapping[str, str]] = {"G1": "captured", "G2": "captured", "C5": "bound"}
"""What a law does with each of its calls, whatever the way in."""


def table(counted: Counter[tuple[str, str]]) -> str:
    """Return the counts as a table in Markdown: a row for each feature, a column for each event."""
    features = sorted({feature for feature, _ in counted})
    lines = [f"| | {' | '.join(EVENTS)} |", f"|---|{'---|' * len(EVENTS)}"]
    lines += [f"| {one} | {' | '.join(str(counted[one, event]) for event in EVENTS)} |" for one in features]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from trunnion.testing.runner import harness_of

    sys.stdout.write(table(count_cells(harness_of(sys.argv[1]))))
