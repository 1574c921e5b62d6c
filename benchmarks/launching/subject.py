"""`Subject`: something that launches kernels, and how it is made ready."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from launching.case import Case
    from launching.stage import Stage
    from launching.trial import Trial

__all__ = ["NotHereError", "Prepare", "Ready", "Subject", "one_plain_launch", "prepare", "version_of"]

Prepare: TypeAlias = "Callable[[Stage], Trial]"
"""Returns a way to launch a case; raises `NotHereError` if there is none."""


class NotHereError(Exception):
    """The subject cannot launch this case here; the text says why."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One row of the table."""

    name: str
    """What it is called there."""

    group: str
    """``"yardstick"``, ``"other"`` or ``"ours"``."""

    omits: str
    """What it does not do that our launcher does."""

    prepare: Prepare
    """Makes it ready for a case."""

    distribution: str = ""
    """The distribution that it needs; empty if it is not an extra one."""

    launches: bool = True
    """Whether it launches the kernel, so that what the kernel received can be checked."""

    adds_scalar: bool = True
    """Whether what it launches is the case's kernel, which adds the scalar."""

    needs_gpu: bool = True
    """Whether it cannot work on the simulated driver."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The subjects that can be measured for a case, each checked, and what keeps the others away."""

    trials: Mapping[str, Trial]
    """By the subject's name."""

    absent: Mapping[str, str]
    """By the subject's name: the reason."""


def one_plain_launch(case: Case) -> None:
    """Refuse a case of several launches, or with scalars of many types.

    Raises
    ------
    NotHereError
        If it is one.
    """
    if not case.plain:
        raise NotHereError("is written for one launch with one scalar")


def prepare(subjects: tuple[Subject, ...], stage: Stage) -> Ready:
    """Make each subject ready and launch with it once, to see that the kernel receives what is passed."""
    trials: dict[str, Trial] = {}
    absent: dict[str, str] = {}
    for subject in subjects:
        try:
            trials[subject.name] = _ready(subject, stage)
        except NotHereError as reason:
            absent[subject.name] = str(reason)
        except Exception as error:  # noqa: BLE001 - whatever a launcher of others raises is its row, and ends no other
            absent[subject.name] = f"failed: {type(error).__name__}: {error}".partition("\n")[0]
    return Ready(trials, absent)


def _ready(subject: Subject, stage: Stage) -> Trial:
    if subject.needs_gpu and stage.device.simulator is not None:
        raise NotHereError("needs a GPU")
    if subject.distribution and not version_of(subject.distribution):
        raise NotHereError("not installed")
    trial = subject.prepare(stage)
    if subject.launches and not stage.received(trial, adds_scalar=subject.adds_scalar):
        raise NotHereError("WRONG: the kernel did not receive what was passed")
    trial.seconds(1)
    if stage.held:
        names = ", ".join(stage.held)
        raise NotHereError(f"holds {names}, which all subjects share: give it tensors of its own")
    return trial


def version_of(distribution: str) -> str:
    """Return the version of a distribution, one of several alternatives with ``|`` between; empty if none is here."""
    for name in distribution.split("|"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""
