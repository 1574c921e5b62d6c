"""A red law for people: what arrived, what was expected, which error was due, and a program that shows it again."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

from trunnion.testing.comparison import symbols_of
from trunnion.testing.example_text import example_text, programs_in
from trunnion.testing.expected import Address, ExpectedMap, ExpectedStruct, ExpectedView, Refused
from trunnion.testing.observed import Seen
from trunnion.testing.reference import expect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.model.program import KernelProgram
    from trunnion.sim.trace import Launched
    from trunnion.testing.expected import Expected, ExpectedLaunch, ExpectedParameter
    from trunnion.testing.laws import Law, LawViolation
    from trunnion.testing.search import Counterexample

__all__ = ["replay_program", "violation_report"]

_ALONE_IT_HELD = (
    "Checked alone, the example held: what came before has a part in it. This program draws all of it again:"
)
_LONG_NAME = re.compile(r"(kernel_\d+)_{8,}")
"""The symbol of a kernel of a synthetic image: what makes it long says nothing."""

_EXAMPLE_NOTES = ("Failing test case", "Falsifying example")
_MOST_VALUE, _MOST_REASONS, _MOST_LAUNCHES, _FRAMES = 40, 1000, 4, 6


def violation_report(
    law: Law, backend: str, violation: LawViolation, found: Counterexample, again: str, tier: str = "sim"
) -> str:
    """Return the text of a red law.

    Parameters
    ----------
    law
        The law.
    backend
        The backend's name.
    violation
        How it was broken.
    found
        The example.
    again
        The arguments of `Law.check` under which it was found, for an example that no text makes.
    tier
        Where the law was checked.
    """
    message = _LONG_NAME.sub(r"\1", violation.message)
    lines = [f"{violation.law_id} on {backend}, by way of {found.way}: {message}"]
    lines.append(f"the law:   {law.sentence}")
    lines += _last_call(found)
    if violation.__cause__ is not None:
        lines.append(_told_of(violation.__cause__))
    program = replay_program(law.id, backend, found, again, tier)
    shows = "This program shows it again:" if found.repeats else _ALONE_IT_HELD
    return "\n".join((*lines, shows, "", program))


def _told_of(error: BaseException) -> str:
    """Return an error's traceback, without what Hypothesis adds to it: the example, of which the program is made."""
    told = traceback.TracebackException.from_exception(error, limit=-_FRAMES)
    notes = [note for note in told.__notes__ or () if not str(note).startswith(_EXAMPLE_NOTES)]
    told.__notes__ = notes or None
    return "".join(told.format()).rstrip()


def replay_program(law_id: str, backend: str, found: Counterexample, again: str, tier: str = "sim") -> str:
    """Return a Python program that checks a law on an example again, and ends in the same violation.

    Where no short text makes the example, or it holds alone, the program draws what the law drew before it, too.

    Parameters
    ----------
    law_id
        The law.
    backend
        The backend's name.
    found
        The example.
    again, tier
        As in `violation_report`.
    """
    where = "" if tier == "sim" else f", tier={tier!r}"
    written = example_text(found.example) if found.repeats else None
    if written is None:
        return (
            "from trunnion.testing.laws import catalogue\n"
            "from trunnion.testing.runner import harness_of\n\n"
            f"catalogue()[{law_id!r}].check(harness_of({backend!r}{where}), {again})\n"
        )
    statements, example = written
    call = f"replay({backend!r}, {law_id!r}, example, way={found.way!r}{where})"
    return f"from trunnion.testing.runner import replay\n{statements}example = {example}\n{call}\n"


def _last_call(found: Counterexample) -> Iterator[str]:
    """Yield what came of the last call, and what the oracle says of it."""
    programs = programs_in(found.example)
    seen = next((one for one in found.seen if isinstance(one, Seen)), None)
    if seen is None or len(programs) != 1 or seen.program not in (None, programs[0]):
        return
    expected = expect(programs[0], seen.facts)
    yield f"arrived:   {_joined(_arrived(seen.launches)) if not seen.error else seen.error}"
    if isinstance(expected, Refused):
        due = dict.fromkeys(f"{_errors(problem.errors)}: {problem.reason}" for problem in expected.problems)
        yield "expected:  no launch"
        yield f"error due: {_short('; or '.join(due), _MOST_REASONS)}"
        return
    yield f"expected:  {_joined(_expected(programs[0], expected))}"
    yield "error due: none"


def _errors(classes: Sequence[type[Exception]]) -> str:
    return " or ".join(one.__name__ for one in classes)


def _joined(launches: Sequence[str]) -> str:
    more = len(launches) - _MOST_LAUNCHES
    shown = [*launches[:_MOST_LAUNCHES], *([f"and {more} more"] if more > 0 else [])]
    return "\n           ".join(shown) or "no launch"


def _arrived(launches: Sequence[Launched]) -> list[str]:
    return [
        _launch(one.kernel, one, [_short(data.hex(), _MOST_VALUE) for data in one.parameters])
        for one in launches
    ]


def _expected(program: KernelProgram, expected: Expected) -> list[str]:
    symbols = symbols_of(program)
    return [
        _launch(symbols[one.kernel], one, [_parameter(value) for value in one.parameters])
        for one in expected.launches
    ]


def _launch(kernel: str, launch: Launched | ExpectedLaunch, parameters: Sequence[str]) -> str:
    shared = f", {launch.dynamic_smem_bytes} bytes shared" if launch.dynamic_smem_bytes else ""
    named = kernel.rstrip("_")  # what makes it long says nothing
    return f"{named}, grid {launch.grid}, block {launch.block}{shared}: {', '.join(parameters) or 'nothing'}"


def _parameter(value: ExpectedParameter) -> str:
    if isinstance(value, bytes):
        return _short(value.hex(), _MOST_VALUE)
    if isinstance(value, Address):
        return f"the address of {_short(value.memory, 20)!a}" + (f" + {value.offset}" if value.offset else "")
    if isinstance(value, ExpectedStruct):
        inner = ", ".join(f"{offset}: {_parameter(one)}" for offset, _, one in value.fields)
        return _short(f"a struct of {value.nbytes} bytes {{{inner}}}", 4 * _MOST_VALUE)
    if isinstance(value, (ExpectedMap, ExpectedView)):
        what = "a map" if isinstance(value, ExpectedMap) else "a view"
        return f"{what} over {'nothing' if value.address is None else _parameter(value.address)}"
    return _short(str(value), _MOST_VALUE)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
