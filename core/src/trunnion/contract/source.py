"""The source side of the contract: launch plan to launcher text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.arguments import expect_text
from trunnion.errors import UnsupportedFeatureError
from trunnion.messages import shorten
from trunnion.model.plan.requirements import requirements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.contract.spec import BackendSpec, Capability
    from trunnion.model.plan import LaunchPlan

__all__ = ["GeneratedSource", "SourceWrapper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedSource:
    """A launcher's text.

    Raises
    ------
    ArgumentTypeError
        If something that is text here is none.
    """

    language: str
    """``"python"``, ``"c++"`` or ``"json"``: by it, law ``S3`` finds the text's string literals."""

    filename: str
    """The file name under which it is stored in an artifact."""

    text: str
    """The text itself, ending in a newline."""

    plan: LaunchPlan
    """The plan that it renders; `KernelAdapter.build` checks the image against it."""

    emitter: str
    """Name and version of what wrote it, the wrapper's `version`: part of an artifact's key."""

    def __post_init__(self) -> None:
        for name in ("language", "filename", "text", "emitter"):
            object.__setattr__(self, name, expect_text(getattr(self, name), name, "text"))


class SourceWrapper(ABC):
    """Render a launch plan as launcher source.

    A wrapper is pure: it reads a plan and returns text. It never touches the driver, the clock, the file system or
    the environment, and equal plans give byte-identical text.

    Parameters
    ----------
    spec
        The backend that the wrapper belongs to; what it declares is what `wrap` lets through.
    """

    text_runs: bool = True
    """Whether the text itself is what runs. Then whoever loads an artifact writes it anew, from the artifact's program,
    and refuses another one. What was compiled from a text is known by its bytes alone."""

    def __init__(self, spec: BackendSpec) -> None:
        self.spec = spec

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the text: it changes whenever the text for some plan does.

        It stands for the text in an artifact's key: what is kept is found without writing it. Whoever names none, an
        empty one, has each text in the key. Who writes a text of its own names `trunnion.model.plan.PLAN_VERSION` in
        it, as core's emitters do in theirs.
        """

    def wrap(self, plan: LaunchPlan, target_kind: str = "cuda") -> GeneratedSource:
        """Return the launcher's source.

        Parameters
        ----------
        plan
            What to launch.
        target_kind
            The kind of device that it is for.

        Raises
        ------
        UnsupportedFeatureError
            If the plan needs a capability that the backend does not declare for this kind of target. The check stands
            here, in core, so that a plugin older than a capability refuses it instead of dropping it.
        """
        self.admit(plan, target_kind)
        return self.emit_for(plan, target_kind)

    def admit(self, plan: LaunchPlan, target_kind: str) -> None:
        """Refuse a plan as `wrap` does, before anything is written; parameters and errors are those of `wrap`."""
        declared = self.spec.targets.get(target_kind)
        if declared is None:
            known = ", ".join(sorted(self.spec.targets))
            raise UnsupportedFeatureError(
                self.spec.name, [f"target {shorten(target_kind)}"], f"it launches on: {known}"
            )
        missing = sorted(plan.requires - declared)
        if missing:
            hint = "choose another backend, see trunnion.explain()"
            raise UnsupportedFeatureError(
                self.spec.name, missing, hint, self._reasons(plan, missing, target_kind)
            )

    def emit_for(self, plan: LaunchPlan, target_kind: str) -> GeneratedSource:
        """Return the source for one kind of device, of a plan that needs only what the backend declares for it.

        This implementation calls `emit`: to a backend of one kind of target, or whose text is the same for all, the
        kind says nothing. A backend whose text differs by kind overrides it.

        Parameters
        ----------
        plan
            What to launch.
        target_kind
            The kind of device that it is for: a key of `BackendSpec.targets`.
        """
        del target_kind
        return self.emit(plan)

    def _reasons(self, plan: LaunchPlan, missing: Iterable[Capability], target_kind: str) -> Iterator[str]:
        """Yield of each capability that is missing what needs it, and what the backend has of it."""
        uses = requirements(
            plan.signature, plan.workspaces, plan.launches, plan.encodes, plan.facts, plan.variables
        )
        for capability in missing:
            kinds = sorted(kind for kind, has in self.spec.targets.items() if capability in has)
            elsewhere = f"declares it for {', '.join(kinds)}, not for {target_kind}"
            known = elsewhere if kinds else "does not declare it"
            yield f"{capability}: {uses[capability]}; {self.spec.name} {known}"

    @abstractmethod
    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return the source of a plan that needs only what the backend declares."""
