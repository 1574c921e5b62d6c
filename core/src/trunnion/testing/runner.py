"""How a law is checked on an installed backend: by pytest, by ``trunnion conformance``, by a printed program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.attempts import probe
from trunnion.errors import BackendUnavailableError, DeviceRequirementError, UnsupportedFeatureError
from trunnion.registry import default_registry
from trunnion.testing.laws import EXAMPLES, LawViolation, catalogue
from trunnion.testing.machine import KINDS, SimulatedMachine, start_simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.spec import BackendSpec
    from trunnion.testing.harness import Harness
    from trunnion.testing.laws import Law, Verdict
    from trunnion.testing.machine import Machine

__all__ = ["TIERS", "Options", "backends_of", "check", "harness_of", "laws_of", "replay", "require_target"]

TIERS = tuple(KINDS)
"""Where laws are checked: on the simulated driver, on the GPUs of this machine, or on its CPU."""

_HINT = "leave the tier out to check the laws on the simulated driver"
_SEEDS = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How laws are checked."""

    tier: str = "sim"
    """Where: one of `TIERS`."""

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
        if self.tier not in TIERS:
            raise ValueError(f"got the tier {self.tier!a}, expected {' or '.join(TIERS)}")
        if self.examples is not None and self.examples < 1:
            raise ValueError(f"got {self.examples} examples, expected at least 1")
        if not 0 <= self.seed < _SEEDS:
            raise ValueError(f"got the seed {self.seed}, expected 0 to {_SEEDS - 1}")


def laws_of(tier: str) -> tuple[Law, ...]:
    """Return the laws that are checked in a tier.

    Parameters
    ----------
    tier
        One of `TIERS`.

    Raises
    ------
    DeviceRequirementError
        If it is a tier for GPUs, and there is none here.
    """
    if tier == "gpu":
        _require_gpu()
    return tuple(law for law in catalogue().laws.values() if law.is_of(tier))


def _require_gpu() -> None:
    import torch  # noqa: PLC0415 - only where a GPU is asked for

    if not torch.cuda.is_available():
        raise DeviceRequirementError(
            "a GPU that torch can use, for the tier gpu of the laws", "a machine without one", _HINT
        )


def backends_of(tier: str) -> tuple[BackendSpec, ...]:
    """Return the backends that launch, and can be used here, on what a tier's laws launch on.

    Parameters
    ----------
    tier
        One of `TIERS`.
    """
    kind = KINDS[tier]
    return tuple(
        spec
        for spec in default_registry().backends()
        if kind in spec.targets and not probe(spec).problem((kind,))
    )


def require_target(spec: BackendSpec, tier: str) -> None:
    """Refuse a backend that does not launch on what a tier's laws launch on, or cannot here.

    Parameters
    ----------
    spec
        The backend.
    tier
        One of `TIERS`.

    Raises
    ------
    UnsupportedFeatureError
        If it does not declare that kind of target.
    BackendUnavailableError
        If something is missing here.
    """
    kind = KINDS[tier]
    if kind not in spec.targets:
        others = ", ".join(sorted(one.name for one in default_registry().backends() if kind in one.targets))
        hint = f"it launches on: {', '.join(sorted(spec.targets))}; on {kind} launch: {others or 'none'}"
        raise UnsupportedFeatureError(spec.name, [f"the target {kind}, of the tier {tier} of the laws"], hint)
    problem = spec.probe().problem((kind,))
    if problem:
        raise BackendUnavailableError(spec.name, "", problem)


def _machine(tier: str) -> Machine:
    if tier == "sim":
        return SimulatedMachine(start_simulator())
    if tier == "cpu":
        from trunnion.testing.host_machine import HostMachine  # noqa: PLC0415 - imports torch

        return HostMachine()
    _require_gpu()
    try:
        from trunnion.testing.gpu.machine import start_gpu  # noqa: PLC0415 - only where a GPU is asked for
    except ImportError as error:
        raise DeviceRequirementError(
            "CUDA's Python bindings, for the tier gpu of the laws",
            f"none: {error}",
            "pip install cuda-bindings",
        ) from error
    return start_gpu()


def harness_of(backend: str, *, tier: str = "sim", fresh: bool = False) -> Harness:
    """Return the harness of an installed backend.

    Parameters
    ----------
    backend
        Its name.
    tier
        On the simulated driver of this process, which starts if need be (``"sim"``), on its GPUs (``"gpu"``), or on
        the CPU (``"cpu"``).
    fresh
        Whether every C++ launcher is compiled anew.

    Raises
    ------
    RegistryError
        If there is no such backend, or it cannot be loaded.
    UnsupportedFeatureError
        If it does not launch there.
    DeviceRequirementError
        If the simulated driver cannot be started, or runs with other devices; if there is no such GPU.
    """
    from trunnion.testing.harness import Harness  # noqa: PLC0415 - imports torch, so only where laws are checked
    from trunnion.testing.kept_launchers import launcher_folder  # noqa: PLC0415 - likewise

    spec = default_registry().backend(backend)
    require_target(spec, tier)
    return Harness(spec=spec, machine=_machine(tier), kept=None if fresh else launcher_folder())


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
        Called after each example, and each step of a long one.

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


def replay(backend: str, law_id: str, example: Any, *, way: str = "call", tier: str = "sim") -> None:
    """Check a law on one example, and print that it held: what the report of a violation ends with.

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
    tier
        As for `harness_of`.

    Raises
    ------
    LawViolation
        If the example breaks the law.
    """
    catalogue()[law_id].replay(harness_of(backend, tier=tier), example, way=way)
    print(f"{law_id} held on this example")  # noqa: T201 - nothing else would tell whoever runs a printed program
