"""What one run found: for people, for programs and for the manual."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from launching.report import aligned
from tilelang_runs.judging import RIGHT, Judgement
from tilelang_runs.launchers import LAUNCHERS, PAIRS
from tilelang_runs.work import Timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from launching.machine import Machine
    from launching.timing import Rounds

__all__ = ["CLOSE", "Kernel", "Results"]

CLOSE = 0.01
"""The most that the device's time through ours may differ from that through TileLang's, as a part of it."""

_DIGITS = 2


@dataclass
class Kernel:
    """What was found of one kernel."""

    name: str
    """The kernel's."""

    covers: str
    """What it is in the corpus for."""

    refused: str = ""
    """Why ours has to refuse it; empty if it has to be right."""

    operations: int = 0
    """Floating-point operations of a call, of those whose time on the device is measured; else 0."""

    verdicts: dict[str, Judgement] = field(default_factory=dict)
    """By launcher."""

    host: dict[str, Timed] = field(default_factory=dict)
    """The host's time of a call, by launcher."""

    device: dict[str, Timed] = field(default_factory=dict)
    """The device's time of a call, by launcher."""

    def cell(self, launcher: str) -> str:
        """Return what is said of a launcher in the table."""
        judgement = self.verdicts.get(launcher)
        if judgement is None or judgement.verdict != RIGHT:
            return "-" if judgement is None else f"**{judgement.verdict}**"
        timed = self.host.get(launcher, Timed())
        return f"{timed.time.median:.{_DIGITS}f}" if timed.time else RIGHT

    def median(self, launcher: str) -> float | None:
        """Return the median of the host's time through a launcher, if it is right and was measured."""
        timed = self.host.get(launcher)
        return timed.time.median if timed and timed.time else None

    def right(self, launcher: str) -> bool:
        """Whether a launcher does what it has to: for one of ours that may be to refuse."""
        judgement = self.verdicts.get(launcher)
        return judgement is not None and judgement.verdict == ("refused" if self.refused else RIGHT)


@dataclass(frozen=True)
class Results:
    """Everything that one run found."""

    machine: Machine
    """What was measured on."""

    plan: Rounds
    """How much was measured."""

    kernels: Mapping[str, Kernel]
    """Those of the corpus, and the large ones."""

    def _small(self) -> Iterator[Kernel]:
        return (kernel for kernel in self.kernels.values() if not kernel.operations)

    def _large(self) -> Iterator[Kernel]:
        return (kernel for kernel in self.kernels.values() if kernel.operations)

    @property
    def failures(self) -> tuple[str, ...]:
        """What of ours is not as it has to be."""
        ours = [launcher.name for launcher in LAUNCHERS.values() if launcher.ours and launcher.whole]
        found = [
            f"{kernel.name}, {name}: {_said(kernel.verdicts.get(name))}"
            for kernel in self.kernels.values()
            for name in ours
            if not kernel.right(name)
        ]
        found += [f"{a} is slower than {b}: {names}" for a, b, _, names in self._compared() if names]
        return (*found, *(line for line, close in self._device_lines() if not close))

    def _compared(self) -> Iterator[tuple[str, str, int, str]]:
        """Yield for each pair how often both were measured, and where ours is slower."""
        for ours, theirs in PAIRS:
            times = [
                (kernel.name, a, b)
                for kernel in self._small()
                if (a := kernel.median(ours)) is not None and (b := kernel.median(theirs)) is not None
            ]
            slower = [f"{name} ({a:.2f} against {b:.2f})" for name, a, b in times if a > b]
            yield ours, theirs, len(times), ", ".join(slower)

    def json(self) -> str:
        """Return the report for programs."""
        facts = {
            "benchmark": "tilelang_kernels",
            "unit": "microseconds",
            "machine": asdict(self.machine),
            "plan": asdict(self.plan),
            "kernels": [asdict(kernel) for kernel in self.kernels.values()],
            "failures": self.failures,
        }
        return json.dumps(facts, indent=2) + "\n"

    def markdown(self) -> str:
        """Return the report as Markdown that can be read as it is."""
        parts = [self.machine.line(), *self._summary(), *self._table(), *self._device(), *self._reasons()]
        return "\n".join(parts) + "\n"

    def _summary(self) -> list[str]:
        kernels = list(self._small())
        words = ("right", "wrong", "refused", "crashed", "hung", "not run")
        head = ["", *words, "median µs"]
        rows = [head]
        for name in LAUNCHERS:
            said = [kernel.verdicts[name].verdict for kernel in kernels if name in kernel.verdicts]
            times = sorted(time for kernel in kernels if (time := kernel.median(name)) is not None)
            middle = f"{times[len(times) // 2]:.{_DIGITS}f}" if times else "-"
            rows.append([name, *(str(said.count(word)) for word in words), middle])
        lines = [
            f"{ours} and {theirs}: both were measured on {count} kernels; ours is slower on "
            f"{names or 'none'}."
            for ours, theirs, count, names in self._compared()
        ]
        return [
            "",
            f"{len(kernels)} kernels, verdicts by launcher:",
            "",
            *aligned(rows),
            "",
            *_bullets(lines),
        ]

    def _table(self) -> list[str]:
        rows = [["kernel", *LAUNCHERS]]
        rows += [[kernel.name, *(kernel.cell(name) for name in LAUNCHERS)] for kernel in self._small()]
        sentence = (
            f"Host time of one call in µs where it is right: the median of {self.plan.rounds} rounds of "
            f"{self.plan.launches} launches each, every round in another order."
        )
        return ["", sentence, "", *aligned(rows)]

    def _device(self) -> list[str]:
        if not any(True for _ in self._large()):
            return []
        lines = [line for line, _ in self._device_lines()]
        times = [
            f"{kernel.name} ({kernel.covers}), {name}: "
            + (
                f"{timed.time.median:.1f} µs on the device, "
                f"{kernel.operations / timed.time.median / 1e6:.0f} TFLOP/s"
                if timed.time
                else f"not measured: {timed.absent}"
            )
            for kernel in self._large()
            for name, timed in kernel.device.items()
        ]
        return ["", "Time on the device:", "", *_bullets(times), "", *_bullets(lines)]

    def _device_lines(self) -> Iterator[tuple[str, bool]]:
        """Yield what the device's times say of each pair that has one device source, and whether they are close.

        Of CuTeDSL's text each compiles its own host function around it, with what that says of layouts: there the code
        need not be the same, and ours need only not be slower.
        """
        pairs = [(a, b) for a, b in PAIRS if LAUNCHERS[a].kind == LAUNCHERS[b].kind]
        for kernel in self._large():
            for ours, theirs in pairs:
                a, b = kernel.device.get(ours, Timed()).time, kernel.device.get(theirs, Timed()).time
                what = f"{kernel.name}, {ours} against {theirs}"
                if a is None or b is None:
                    yield f"{what}: not measured", True
                    continue
                off = a.median / b.median - 1
                close = off < CLOSE if LAUNCHERS[ours].kind == "cutedsl" else abs(off) < CLOSE
                yield f"{what}: {off:+.2%}, at most {CLOSE:.0%}: {'ok' if close else 'NOT MET'}", close

    def _reasons(self) -> list[str]:
        said = [
            f"{kernel.name}, {name}: {_said(judgement)}"
            for kernel in self.kernels.values()
            for name, judgement in kernel.verdicts.items()
            if judgement.verdict != RIGHT
        ]
        absent = [
            f"{kernel.name}, {name}: {timed.absent}"
            for kernel in self.kernels.values()
            for name, timed in kernel.host.items()
            if timed.absent
        ]
        lines = ["", "What is not right:", "", *_bullets(said)] if said else []
        return [*lines, "", "Right, and not timed:", "", *_bullets(absent)] if absent else lines


def _said(judgement: Judgement | None) -> str:
    if judgement is None:
        return "not run"
    return f"{judgement.verdict}: {judgement.reason}" if judgement.reason else judgement.verdict


def _bullets(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]
