"""One planted mistake: what it changes between a program and the driver, and which laws must notice."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trunnion.contract.convention import Convention
from trunnion.testing.harness import Harness, Sabotage

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.plan import Encode, LaunchPlan, PlannedLaunch
    from trunnion.testing.machine import Told

__all__ = ["Changed", "Saboteur", "Swallowing", "each_encode", "each_launch", "in_trace", "saboteur"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saboteur:
    """One planted mistake."""

    id: str
    """A short name."""

    sentence: str
    """What it does."""

    caught_by: tuple[str, ...]
    """The laws that must catch it."""

    stage: str
    """``"plan"``, ``"emitter"``, ``"binding"``, ``"driver"`` or ``"lifecycle"``."""

    sabotage: Sabotage
    """The change itself."""

    def apply(self, harness: Harness) -> Harness:
        """Return the harness with the mistake planted."""
        kind = harness.machine.kind

        def loaded(program: LoadedProgram) -> LoadedProgram:
            changed = one = self.sabotage.loaded(program)
            while isinstance(one, Changed):
                one.kind, one = kind, one._true  # noqa: SLF001 - our own, where several mistakes are planted
            return changed

        return replace(harness, sabotage=replace(self.sabotage, loaded=loaded))


class Changed:
    """Something as it is, but for what a subclass spoils."""

    kind = ""
    """Of a loaded program, the kind of target that it launches on, once it is known."""

    def __init__(self, true: Any) -> None:
        self._true = true

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    @property
    def entry(self) -> Callable[..., Any]:
        """What people call, of a loaded program: what a subclass spoils in `call` is spoiled there too."""
        if not hasattr(type(self), "call"):
            true: Callable[..., Any] = self._true.entry
            return true

        def entry(*args: Any, out: Any = None, stream: Any = None, device: Any = None, **named: Any) -> Any:
            if named:
                return self._true.entry(*args, out=out, stream=stream, device=device, **named)
            convention = Convention((), 1, self.kind or ("cpu" if device == "cpu" else "cuda"))
            out, stream, device = convention.words(out, stream, device)
            return self.call(args, out=out, stream=stream, device=device)

        return entry


class Swallowing(Changed):
    """A loaded program that takes an error for success."""

    swallowed: type[Exception]
    """The error."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        with suppress(self.swallowed):
            return self._true.call(*args, **how)

    def preload(self, device: int) -> None:
        """Prepare."""
        with suppress(self.swallowed):
            self._true.preload(device)

    def close(self) -> None:
        """Unload."""
        with suppress(self.swallowed):
            self._true.close()


def each_launch(change: Callable[[PlannedLaunch], PlannedLaunch]) -> Callable[[LaunchPlan], LaunchPlan]:
    """Return the change of a plan that changes each of its launches."""
    return lambda plan: replace(plan, launches=tuple(change(launch) for launch in plan.launches))


def each_encode(change: Callable[[Encode], Encode]) -> Callable[[LaunchPlan], LaunchPlan]:
    """Return the change of a plan that changes each of its tensor maps."""
    return lambda plan: replace(plan, encodes=tuple(change(encode) for encode in plan.encodes))


def in_trace(change: Callable[[Any], Any], kind: type) -> Callable[[tuple[Told, ...]], tuple[Told, ...]]:
    """Return the change of a trace that changes each event of a kind, and drops those that become None."""

    def changed(events: tuple[Told, ...]) -> tuple[Told, ...]:
        found = (change(event) if isinstance(event, kind) else event for event in events)
        return tuple(event for event in found if event is not None)

    return changed


def saboteur(*words: str, stage: str, **change: Any) -> Saboteur:
    """Return a saboteur.

    Parameters
    ----------
    *words
        `Saboteur.id`, `Saboteur.sentence`, and the laws that must catch it.
    stage
        `Saboteur.stage`.
    **change
        The fields of `Sabotage`.
    """
    name, sentence, *laws = words
    return Saboteur(
        id=name, sentence=sentence, caught_by=tuple(laws), stage=stage, sabotage=Sabotage(**change)
    )
