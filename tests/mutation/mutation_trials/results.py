"""What came of a sample: scores with intervals, by file and in all, and what a person says of each survivor."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mutation_trials.scope import group_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mutation_trials.judge import Verdict
    from mutation_trials.mutant import Mutant

KINDS: Final[Mapping[str, str]] = {
    "equivalent": "no call does anything else",
    "message": "only the text of an error differs",
    "cache": "only what is kept, and how fast it is found, differs",
    "unreached": "laws on the simulated driver cannot come there",
    "hole": "a law should have killed it",
    "": "nobody has looked at it",
}
"""What a person may say of a survivor."""

_EXCUSED = frozenset({"equivalent", "message", "cache"})
_Z = 1.959964  # of 95 %


@dataclass(frozen=True, slots=True)
class Reason:
    """What a person says of a survivor."""

    path: str
    """The file."""

    before: str
    """The line or lines before: `Mutant.before`."""

    after: str
    """The same after."""

    kind: str
    """One of `KINDS`."""

    reason: str
    """Why."""


def reasons(text: str) -> tuple[Reason, ...]:
    """Read the table of reasons.

    Raises
    ------
    ValueError
        If a kind is unknown, or there is no reason.
    """
    found = tuple(Reason(**row) for row in json.loads(text))
    for row in found:
        if not row.kind or row.kind not in KINDS or not row.reason.strip():
            known = ", ".join(filter(None, KINDS))
            raise ValueError(
                f"{row.path}, {row.after!r}: got the kind {row.kind!r}, expected one of {known}, and a reason"
            )
    return found


def wilson(killed: int, counted: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    Parameters
    ----------
    killed
        How many.
    counted
        Of how many; 0: nothing is known.
    """
    if not counted:
        return 0.0, 1.0
    share, square = killed / counted, _Z * _Z
    middle = (share + square / (2 * counted)) / (1 + square / counted)
    width = _Z / (1 + square / counted) * math.sqrt(share * (1 - share) / counted + square / (4 * counted**2))
    return max(0.0, middle - width), min(1.0, middle + width)


@dataclass(frozen=True, slots=True)
class Score:
    """How many of the mutants that count were killed."""

    killed: int
    counted: int
    excused: int

    def document(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        low, high = wilson(self.killed, self.counted)
        real = self.counted - self.excused
        first, last = wilson(self.killed, real)
        return {
            "killed": self.killed,
            "counted": self.counted,
            "score": _share(self.killed, self.counted),
            "interval": [round(low, 3), round(high, 3)],
            "equivalent": self.excused,
            "score without equivalent": _share(self.killed, real),
            "interval without equivalent": [round(first, 3), round(last, 3)],
        }

    def words(self) -> str:
        """Return it as the cells of a table's row."""
        low, high = wilson(self.killed, self.counted)
        real = self.counted - self.excused
        first, last = wilson(self.killed, real)
        whole = (
            f"{100 * (_share(self.killed, self.counted) or 0):.0f} % ({100 * low:.0f} to {100 * high:.0f})"
        )
        without = f"{100 * (_share(self.killed, real) or 0):.0f} % ({100 * first:.0f} to {100 * last:.0f})"
        return f"{self.counted} | {self.killed} | {whole} | {self.excused} | {without}"


def _share(killed: int, counted: int) -> float | None:
    return round(killed / counted, 3) if counted else None


class Results:
    """The verdicts on a sample.

    Parameters
    ----------
    tried
        The mutants that were tried, with their verdicts.
    reasons
        What a person says of survivors.
    """

    def __init__(self, tried: Sequence[tuple[Mutant, Verdict]], reasons: Iterable[Reason]) -> None:
        self._reasons = {(row.path, row.before, row.after): row for row in reasons}
        self._counted = [(mutant, verdict) for mutant, verdict in tried if verdict.status != "left out"]
        self._left_out = len(tried) - len(self._counted)
        self._cpu = sum(verdict.cpu for _, verdict in tried)

    def reason(self, mutant: Mutant) -> tuple[str, str]:
        """Return the kind of a survivor and why; empty if nobody has said."""
        row = self._reasons.get((mutant.path, mutant.before, mutant.after))
        return ("", "") if row is None else (row.kind, row.reason)

    def score(self, within: str = "") -> Score:
        """Return the score of a file, of a group, or of all."""
        found = [
            (mutant, verdict)
            for mutant, verdict in self._counted
            if within in ("", mutant.path, group_of(mutant.path))
        ]
        survivors = [mutant for mutant, verdict in found if verdict.status == "survived"]
        excused = sum(self.reason(mutant)[0] in _EXCUSED for mutant in survivors)
        return Score(len(found) - len(survivors), len(found), excused)

    @property
    def survivors(self) -> list[tuple[Mutant, Verdict]]:
        """The survivors, by file and line."""
        left = [(mutant, verdict) for mutant, verdict in self._counted if verdict.status == "survived"]
        return sorted(left, key=lambda one: (one[0].path, one[0].line))

    def document(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Return all of it as values of JSON.

        Parameters
        ----------
        about
            Of which run.
        """
        paths = sorted({mutant.path for mutant, _ in self._counted})
        groups = sorted({group_of(path) for path in paths})
        laws = Counter(verdict.law for _, verdict in self._counted if verdict.law)
        return {
            **about,
            "total": self.score().document(),
            "not counted, since vector add does not launch": self._left_out,
            "processor seconds": round(self._cpu),
            "groups": {group: self.score(group).document() for group in groups},
            "files": {path: self.score(path).document() for path in paths},
            "killed by": dict(sorted(laws.items(), key=lambda one: (-one[1], one[0]))),
            "survivors": [self._survivor(mutant, verdict) for mutant, verdict in self.survivors],
        }

    def _survivor(self, mutant: Mutant, verdict: Verdict) -> dict[str, Any]:
        kind, reason = self.reason(mutant)
        return {
            "path": mutant.path,
            "line": mutant.line,
            "operator": mutant.operator,
            "before": mutant.before,
            "after": mutant.after,
            "kind": kind,
            "reason": reason,
            "other draws break": list(verdict.unconfirmed),
        }

    def page(self, about: Mapping[str, Any]) -> str:
        """Return all of it for people, in Markdown."""
        said = ", ".join(f"{name} {value}" for name, value in about.items() if not isinstance(value, dict))
        head = "| | counted | killed | score (95 %) | equivalent | score without |\n|---|---|---|---|---|---|"
        paths = sorted({mutant.path for mutant, _ in self._counted})
        groups = sorted({group_of(path) for path in paths})
        rows = [f"| **all** | {self.score().words()} |"]
        rows += [f"| **{group}** | {self.score(group).words()} |" for group in groups]
        rows += [f"| {path} | {self.score(path).words()} |" for path in paths]
        parts = [
            "# Mutants",
            f"{said}. Not counted, since vector add does not launch: {self._left_out}.",
            "\n".join([head, *rows]),
        ]
        parts.append("## Survivors")
        for mutant, verdict in self.survivors:
            kind, reason = self.reason(mutant)
            text = f"**{kind or 'not looked at'}** {reason}".strip()
            also = (
                f" Other draws of {', '.join(verdict.unconfirmed)} break it." if verdict.unconfirmed else ""
            )
            parts.append(f"```diff\n{mutant.diff()}\n```\n{text}{also}")
        return "\n\n".join(parts) + "\n"
