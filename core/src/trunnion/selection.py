"""Which backend and which device compiler take a program, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentTypeError, UnsupportedFeatureError
from trunnion.registry import default_registry

if TYPE_CHECKING:
    from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.registry import Registry

__all__ = ["Choice", "choose_backend", "choose_compiler", "explain"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What `explain` says of one backend."""

    backend: str
    """The backend's name."""

    chosen: bool
    """Whether ``backend="auto"`` takes it."""

    reason: str
    """Why it is taken, or why not."""


def explain(program: KernelProgram, *, registry: Registry | None = None) -> tuple[Choice, ...]:
    """Say of each installed backend whether ``backend="auto"`` would take it, and why not.

    Parameters
    ----------
    program
        The program.
    registry
        The plugins to choose from; None: those that are installed.
    """
    plugins = registry or default_registry()
    plan = program.plan()
    choices, taken = [], False
    for spec in _by_rank(plugins.backends()):
        reason = _refusal(spec, plan, program, plugins)
        chosen = not reason and not taken
        taken = taken or chosen
        choices.append(
            Choice(spec.name, chosen, reason or ("chosen" if chosen else "usable, but of lower rank"))
        )
    choices += [
        Choice(missing.name, chosen=False, reason=missing.reason) for missing in plugins.unavailable()
    ]
    return tuple(choices)


def _by_rank(specs: tuple[BackendSpec, ...]) -> list[BackendSpec]:
    return sorted(specs, key=lambda spec: (-spec.auto_rank, spec.name))


def _missing(spec: BackendSpec, plan: LaunchPlan) -> frozenset[Capability]:
    """Return what a program needs and a backend does not declare, for the kind of target that comes nearest."""
    lacking = [plan.requires - declared for declared in spec.targets.values()]
    return min(lacking, key=lambda lack: (len(lack), sorted(lack)), default=plan.requires)


def _refusal(spec: BackendSpec, plan: LaunchPlan, program: KernelProgram, registry: Registry) -> str:
    """Why a backend cannot take a program; empty if it can."""
    missing = _missing(spec, plan)
    if missing:
        return f"does not support {', '.join(sorted(missing))}"
    probe = spec.probe()
    if not probe.usable:
        return probe.detail
    if not any(_fits(compiler, spec, program) for compiler in registry.compilers()):
        languages = ", ".join(sorted({part.language for part in program.code}))
        known = sorted({language for compiler in registry.compilers() for language in compiler.languages})
        return (
            f"no installed device compiler makes of {languages} what it launches ({', '.join(spec.accepts)}); "
            f"they read {', '.join(known) or 'nothing'}"
        )
    return ""


def _fits(compiler: CompilerSpec, backend: BackendSpec, program: KernelProgram) -> bool:
    speaks = all(part.language in compiler.languages for part in program.code)
    return (
        speaks
        and bool(set(compiler.produces) & set(backend.accepts))
        and bool(set(compiler.targets) & set(backend.targets))
    )


def choose_backend(program: KernelProgram, name: str, plan: LaunchPlan, registry: Registry) -> BackendSpec:
    """Return the backend of that name; under ``"auto"`` the usable one of the highest rank that can take the program.

    Raises
    ------
    UnknownBackendError, BackendUnavailableError
        If the named backend is not installed or cannot be loaded.
    UnsupportedFeatureError
        If under ``"auto"`` no backend can take the program; the reasons are given.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError("backend", type(name).__name__, "a backend's name, or 'auto'")
    if name != "auto":
        return registry.backend(name)
    refusals = []
    for spec in _by_rank(registry.backends()):
        reason = _refusal(spec, plan, program, registry)
        if not reason:
            return spec
        refusals.append((spec, reason))
    if not refusals:
        return registry.backend(name)  # says that none is installed
    text = "; ".join(f"{spec.name}: {reason}" for spec, reason in refusals)
    nowhere = frozenset.intersection(*(_missing(spec, plan) for spec, _ in refusals))
    raise UnsupportedFeatureError("every installed backend", sorted(nowhere) or ["this program"], text)


def choose_compiler(
    program: KernelProgram, name: str | None, backend: BackendSpec, registry: Registry
) -> CompilerSpec:
    """Return the device compiler of that name; without one, the usable one of the highest rank that fits.

    Raises
    ------
    UnknownBackendError, BackendUnavailableError
        If the named compiler is not installed or cannot be loaded.
    UnsupportedFeatureError
        If no compiler makes what the backend launches of the program's languages.
    """
    if name is not None:
        spec = registry.compiler(name)
        if not _fits(spec, backend, program):
            languages = ", ".join(sorted({part.language for part in program.code}))
            hint = f"it compiles {', '.join(spec.languages)} to {', '.join(spec.produces)}"
            raise UnsupportedFeatureError(spec.name, [f"{languages} for {backend.name}"], hint)
        return spec
    fitting = [spec for spec in registry.compilers() if _fits(spec, backend, program)]
    if not fitting:
        spoken = sorted({part.language for part in program.code})
        hint = f"install a device compiler for it; see: trunnion backends ({backend.name} loads {backend.accepts})"
        raise UnsupportedFeatureError("every installed device compiler", spoken, hint)
    usable = [spec for spec in fitting if spec.probe().usable]
    return min(usable or fitting, key=lambda spec: (-spec.auto_rank, spec.name))
