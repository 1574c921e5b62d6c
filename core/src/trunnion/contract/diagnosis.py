"""What a plugin finds on a machine: every component, every place where it was looked for, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trunnion.model.fields import flag, instance, instances, text

__all__ = ["Candidate", "Component", "Diagnosis", "Finding", "Severity"]


class Severity(StrEnum):
    """How bad a finding is."""

    INFO = "info"
    """Good to know."""

    WARNING = "warning"
    """Something that some programs need is missing, or does not fit."""

    ERROR = "error"
    """The plugin cannot do its work here."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place where a component was looked for."""

    origin: str
    """Who names the place: ``"CUDA_HOME"``, ``"a wheel"``, ``"the loader's cache"``."""

    path: str
    """The place; empty if the origin names none here."""

    chosen: bool
    """Whether this one is used."""

    reason: str
    """Why it is, or why not."""

    def __post_init__(self) -> None:
        _texts(self, "origin", "path", "reason")
        flag(self.chosen, "chosen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Something that a plugin works with: a library, a folder of headers, a compiler, a driver, a distribution."""

    name: str
    """What it is called."""

    kind: str
    """``"library"``, ``"headers"``, ``"compiler"``, ``"driver"``, ``"distribution"``, …"""

    version: str = ""
    """The version of the one that is used; empty if there is none, or it has none."""

    chosen: str = ""
    """Where the one that is used lies; empty if there is none."""

    detail: str = ""
    """What else there is to say."""

    candidates: tuple[Candidate, ...] = ()
    """Every place that was looked at, in the order of the search."""

    def __post_init__(self) -> None:
        _texts(self, "name", "kind", "version", "chosen", "detail")
        object.__setattr__(self, "candidates", instances(self.candidates, Candidate, "candidates"))


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not fit, is missing, or should be known."""

    severity: Severity
    """How bad it is."""

    code: str
    """A word that stays the same: ``"driver-too-old"``."""

    summary: str
    """What was found, in one sentence."""

    advice: str = ""
    """What to do about it; empty if there is nothing to do."""

    def __post_init__(self) -> None:
        instance(self.severity, Severity, "severity")
        _texts(self, "code", "summary", "advice")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that a plugin found out, without initialising a device."""

    components: tuple[Component, ...] = ()
    """What it works with."""

    findings: tuple[Finding, ...] = ()
    """What does not fit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", instances(self.components, Component, "components"))
        object.__setattr__(self, "findings", instances(self.findings, Finding, "findings"))

    @property
    def healthy(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


def _texts(value: object, *fields: str) -> None:
    for name in fields:
        object.__setattr__(value, name, text(getattr(value, name), name, least=0))
