"""How a law is checked on an installed backend: by pytest, by ``trunnion conformance``, by a printed program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import DeviceRequirementError
from trunnion.registry import default_registry
from trunnion.testing.laws import EXAMPLES, LawViolation, catalogue
from trunnion.testing.machine import start_simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.testing.harness import Harness
    from trunnion.testing.laws import Law, Verdict

__all__ = ["Options", "check", "harness_of", "laws_of", "replay"]

_SEEDS = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How laws are checked."""

    examples: int | None = None
    """On how many examples; None: as many as the law's cost class says."""

    seed: int = 0
    """What every draw follows from, together with the law's id: 0 to 2³² - 1."""

    shrink: bool = True
    """Whether to look for a smaller example once one breaks a law."""

    thorough: bool = False
    """Whether every way gets all of the examples."""

    fresh: bool = False
    """Whether every C++ launcher is compiled anew."""

    def __post_init__(self) -> None:
        if self.examples is not None and self.examples < 1:
            raise ValueError(f"got {self.examples} examples, expected at least 1")
        if not 0 <= self.seed < _SEEDS:
            raise ValueError(f"got the seed {self.seed}, expected 0 to {_SEEDS - 1}")


def laws_of(tier: str) -> tuple[Law, ...]:
    """Return the laws that are checked in a tier.

    Parameters
    ----------
    tier
        ``"sim"`` or ``"gpu"``.

    Raises
    ------
    DeviceRequirementError
        If it is a tier for GPUs, and there is none here, or no law of it.
    """
    laws = tuple(law for law in catalogue().laws.values() if law.tier in ("any", tier))
    if tier == "gpu":
        _require_gpu()
        if all(law.tier == "any" for law in laws):
            hint = "the tier sim holds every law of calls"
            raise DeviceRequirementError("laws that are checked on a GPU", "none in this version", hint)
    return laws


def _require_gpu() -> None:
    import torch  # noqa: PLC0415 - only where a GPU is asked for

    if not torch.cuda.is_available():
        hint = "leave the tier out to check the laws on the simulated driver"
        raise DeviceRequirementError(
            "a GPU that torch can use, for the tier gpu of the laws", "a machine without one", hint
        )


def harness_of(backend: str, *, fresh: bool = False) -> Harness:
    """Return the harness of an installed backend, on the simulated driver of this process, which starts if need be.

    Parameters
    ----------
    backend
        Its name.
    fresh
        Whether every C++ launcher is compiled anew.

    Raises
    ------
    RegistryError
        If there is no such backend, or it cannot be loaded.
    DeviceRequirementError
        If the simulated driver cannot be started, or runs with other devices.
    """
    from trunnion.testing.harness import Harness  # noqa: PLC0415 - imports torch, so only where laws are checked
    from trunnion.testing.kept_launchers import launcher_folder  # noqa: PLC0415 - likewise

    spec = default_registry().backend(backend)
    return Harness(spec=spec, simulator=start_simulator(), kept=None if fresh else launcher_folder())


def check(law: Law, harness: Harness, options: Options, told: Callable[[], None] = lambda: None) -> Verdict:
    """Check a law; too few examples are a violation as well.

    Parameters
    ----------
    law
        The law.
    harness
        The backend.
    options
        How.
    told
        Called after each example.

    Raises
    ------
    LawViolation
        If the law does not hold.
    """
    seed = law.seed(options.seed or None)
    verdict = law.check(
        harness,
        seed=seed,
        examples=options.examples,
        shrink=options.shrink,
        thorough=options.thorough,
        told=told,
    )
    least = min(EXAMPLES[law.cost], options.examples or EXAMPLES[law.cost])
    if verdict.examples < least:
        few = LawViolation(law.id, f"was checked on {verdict.examples} examples of {least}")
        few.report, few.verdict = f"{few}; {law.sentence}", verdict
        raise few
    return verdict


def replay(backend: str, law_id: str, example: Any, *, way: str = "call") -> None:
    """Check a law on one example: what the report of a violation ends with.

    Parameters
    ----------
    backend
        The name of an installed backend.
    law_id
        The law.
    example
        As the law's strategy draws it.
    way
        The way in.

    Raises
    ------
    LawViolation
        If the example breaks the law.
    """
    catalogue()[law_id].replay(harness_of(backend), example, way=way)
