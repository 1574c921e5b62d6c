"""The report of a run of the suite: one document, of which the page and the badge are made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GOOD", "SCHEMA", "STATUSES", "LawReport", "Report", "suite_revision"]

SCHEMA: Final = "trunnion.conformance/1"
"""The schema's name and version. Keys are never renamed under one version; new ones may appear."""

STATUSES: Final[Mapping[str, str]] = {
    "held": "it held on every example",
    "refused": "the backend does not declare what it needs, and such programs are refused",
    "failed": "an example broke it",
    "crashed": "the process that checked it ended",
    "hung": "the process that checked it did not go on",
}
"""What may become of a law."""

GOOD: Final = frozenset({"held", "refused"})
"""What must become of every law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawReport:
    """What became of one law."""

    id: str
    """The law's id."""

    status: str
    """One of `STATUSES`."""

    sentence: str = ""
    """What the law says."""

    requires: tuple[str, ...] = ()
    """The capabilities that it needs."""

    examples: int = 0
    """On how many examples it was checked, until one broke it."""

    calls: Mapping[str, int] = field(default_factory=dict)
    """How many programs were made callable in each way, or calls made in it."""

    digest: str = ""
    """A digest of what was drawn."""

    seconds: float = 0.0
    """How long it took."""

    text: str = ""
    """What is wrong, with a program that shows it; empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of the laws of one backend."""

    backend: str
    """The backend's name."""

    distribution: str
    """The distribution that brings it, with its version."""

    capabilities: tuple[str, ...]
    """What it declares for CUDA devices."""

    tier: str
    """``"sim"`` or ``"gpu"``."""

    seed: int
    """What every draw followed from."""

    examples: int | None
    """How many examples were asked for; None: as many as each law's cost class says."""

    thorough: bool
    """Whether every way got all of the examples."""

    suite: str
    """The suite's revision; see `suite_revision`."""

    versions: Mapping[str, str]
    """The versions of trunnion, Python, hypothesis and torch."""

    date: str
    """The day, as ``YYYY-MM-DD`` in UTC."""

    laws: tuple[LawReport, ...]
    """Every law that was checked, in the suite's order."""

    schema: str = SCHEMA
    """`SCHEMA`."""

    @property
    def good(self) -> bool:
        """Whether every law held or was refused as declared."""
        return bool(self.laws) and all(law.status in GOOD for law in self.laws)

    @property
    def digest(self) -> str:
        """A digest of all that was drawn, for all laws: equal digests, equal draws."""
        drawn = "".join(f"{law.id} {law.digest}\n" for law in self.laws)
        return hashlib.sha256(drawn.encode()).hexdigest()[:16]

    def count(self, status: str) -> int:
        """Return of how many laws a status is."""
        return sum(law.status == status for law in self.laws)

    def summary(self) -> str:
        """Return how many laws there are of each status, in a line."""
        counted = {status: self.count(status) for status in STATUSES}
        words = {**dict.fromkeys(STATUSES, ""), "refused": " as declared"}
        return ", ".join(f"{count} {status}{words[status]}" for status, count in counted.items() if count)

    def document(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        return {**dataclasses.asdict(self), "digest": self.digest, "good": self.good}

    def to_json(self) -> str:
        """Return the document as text, keys sorted, in ASCII."""
        return json.dumps(self.document(), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read a document.

        Parameters
        ----------
        text
            What `to_json` wrote, or a later version of the same schema.

        Raises
        ------
        CorruptArtifactError
            If it is no such document.
        """
        try:
            given = json.loads(text)
            if given["schema"] != SCHEMA:
                raise CorruptArtifactError(
                    "report", f"got the schema {given['schema']!r}, expected {SCHEMA!r}"
                )
            laws = tuple(_read(LawReport, law, requires=tuple(law["requires"])) for law in given["laws"])
            report: Report = _read(cls, given, laws=laws, capabilities=tuple(given["capabilities"]))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}; expected what trunnion conformance --json wrote"
            raise CorruptArtifactError("report", problem) from error
        return report


def _read(cls: type[Any], given: Mapping[str, Any], **changed: Any) -> Any:
    names = {one.name for one in dataclasses.fields(cls)}
    return cls(**{**{name: value for name, value in given.items() if name in names}, **changed})


def suite_revision() -> str:
    """Return a digest of the suite's own text: laws, strategies and the oracle."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda one: one.relative_to(folder).as_posix()):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:16]
