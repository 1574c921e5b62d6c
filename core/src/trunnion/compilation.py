"""`compile`, `load` and `explain`: from a program to something that can be called."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.store import ArtifactStore
from trunnion.compiled import PROGRAM_FILE, CompiledProgram
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import (
    ArgumentTypeError,
    DeviceRequirementError,
    ProgramError,
    UnsupportedFeatureError,
    shorten,
)
from trunnion.registry import default_registry

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec, CompilerSpec
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.registry import Registry

__all__ = ["Choice", "compile", "explain", "load"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What `explain` says of one backend."""

    backend: str
    """The backend's name."""

    chosen: bool
    """Whether ``backend="auto"`` takes it."""

    reason: str
    """Why it is taken, or why not."""


def compile(  # noqa: A001, PLR0913 - the verb of the field; one call with everything that it can say
    program: KernelProgram,
    backend: str = "auto",
    *,
    target: str | Target | None = None,
    compiler: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    cache: ArtifactStore | str | os.PathLike[str] | None = None,
    registry: Registry | None = None,
) -> CompiledProgram:
    """Compile a program for a backend. Needs no device if a target is named.

    Parameters
    ----------
    program
        The program.
    backend
        The backend's name; ``"auto"``: the usable one with the highest rank that can do what the program needs.
    target
        What to compile for, for example ``"sm_90a"``; None: what the device code names, else the first device.
    compiler
        The device compiler's name; None: the usable one with the highest rank that fits language and backend.
    options
        Options for plugins: ``{plugin: {option: value}}``.
    cache
        A store, or the folder of one, that is asked first and keeps what is built; None: nothing is kept.
    registry
        The plugins to choose from; None: those that are installed.

    Raises
    ------
    UnknownBackendError, BackendUnavailableError
        If a plugin that is asked for is not installed, or cannot work here.
    UnsupportedFeatureError
        If the backend does not declare something that the program needs.
    ProgramError
        If the program cannot be launched, or an option or target is wrong.
    CompileError
        If the compiler refuses the source.
    ParameterMismatchError
        If a launch does not pass what the compiled kernel takes.
    DeviceRequirementError
        If no target is named and there is no device.
    """
    job = _job(program, backend, compiler, registry or default_registry())
    given = dict(options or {})
    unknown = set(given) - {job.compiler.name}
    if unknown:
        names = ", ".join(shorten(name) for name in sorted(unknown))
        raise ProgramError(f"got options for {names}, expected only {job.compiler.name}", field="options")
    request = CompileRequest(
        code=program.code,
        kernels=job.plan.kernels,
        target=_target(program, target, job.device_compiler),
        options=given.get(job.compiler.name, {}),
    )
    if cache is None:
        with tempfile.TemporaryDirectory(prefix="trunnion-") as staging:
            artifact = job.build(request, Path(staging))
    else:
        store = cache if isinstance(cache, ArtifactStore) else ArtifactStore(Path(cache))
        inputs = job.key_inputs(request)
        artifact = _from_store(store, job, request, inputs)
    return CompiledProgram(artifact, job.backend)


def load(artifact: Artifact | str | os.PathLike[str], *, registry: Registry | None = None) -> CompiledProgram:
    """Take up a built program. At its first call it runs native code: load only what you trust.

    Parameters
    ----------
    artifact
        An artifact, or the folder that `Artifact.save` wrote; every byte of it is verified.
    registry
        The plugins to choose from; None: those that are installed.

    Raises
    ------
    CorruptArtifactError
        If the artifact is not whole.
    UnknownBackendError, BackendUnavailableError
        If the backend that built it is not installed, or cannot work here.
    """
    whole = artifact if isinstance(artifact, Artifact) else Artifact.open(artifact)
    spec = (registry or default_registry()).backend(whole.manifest.backend)
    return CompiledProgram(whole, spec)


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


# Selection ----------------------------------------------------------------------------------------------------------


def _by_rank(specs: tuple[BackendSpec, ...]) -> list[BackendSpec]:
    return sorted(specs, key=lambda spec: (-spec.auto_rank, spec.name))


def _refusal(spec: BackendSpec, plan: LaunchPlan, program: KernelProgram, registry: Registry) -> str:
    """Why a backend cannot take a program; empty if it can."""
    capable = [kind for kind, declared in spec.targets.items() if plan.requires <= declared]
    if not capable:
        missing = plan.requires - frozenset().union(*spec.targets.values())
        return f"does not support {', '.join(sorted(missing or plan.requires))}"
    probe = spec.probe()
    if not probe.usable:
        return probe.detail
    if not any(_fits(compiler, spec, program) for compiler in registry.compilers()):
        languages = ", ".join(sorted({part.language for part in program.code}))
        return (
            f"no installed device compiler makes of {languages} what it launches ({', '.join(spec.accepts)})"
        )
    return ""


def _fits(compiler: CompilerSpec, backend: BackendSpec, program: KernelProgram) -> bool:
    speaks = all(part.language in compiler.languages for part in program.code)
    return (
        speaks
        and bool(set(compiler.produces) & set(backend.accepts))
        and bool(set(compiler.targets) & set(backend.targets))
    )


def _choose_backend(program: KernelProgram, name: str, plan: LaunchPlan, registry: Registry) -> BackendSpec:
    if not isinstance(name, str):
        raise ArgumentTypeError("backend", type(name).__name__, "a backend's name, or 'auto'")
    if name != "auto":
        return registry.backend(name)
    reasons = {}
    for spec in _by_rank(registry.backends()):
        reasons[spec.name] = _refusal(spec, plan, program, registry)
        if not reasons[spec.name]:
            return spec
    if not reasons:
        return registry.backend(name)  # says that none is installed
    text = "; ".join(f"{backend}: {reason}" for backend, reason in reasons.items())
    raise UnsupportedFeatureError("every installed backend", sorted(plan.requires) or ["this program"], text)


def _choose_compiler(
    program: KernelProgram, name: str | None, backend: BackendSpec, registry: Registry
) -> CompilerSpec:
    if name is not None:
        spec = registry.compiler(name)
        if not _fits(spec, backend, program):
            languages = ", ".join(sorted({part.language for part in program.code}))
            hint = f"it compiles {', '.join(spec.languages)} to {', '.join(spec.produces)}"
            raise UnsupportedFeatureError(spec.name, [f"{languages} for {backend.name}"], hint)
        return spec
    fitting = [spec for spec in registry.compilers() if _fits(spec, backend, program)]
    if not fitting:
        languages = sorted({part.language for part in program.code})
        hint = f"install a device compiler for it; see: trunnion backends ({backend.name} loads {backend.accepts})"
        raise UnsupportedFeatureError("every installed device compiler", languages, hint)
    usable = [spec for spec in fitting if spec.probe().usable]
    return min(usable or fitting, key=lambda spec: (-spec.auto_rank, spec.name))


def _target(program: KernelProgram, given: str | Target | None, compiler: DeviceCompiler) -> Target:
    if given is not None:
        return Target.parse(given)
    named = {part.target for part in program.code if part.target}
    if len(named) > 1:
        raise ProgramError(f"the parts name different targets: {', '.join(sorted(named))}", field="code")
    if named:
        return Target.parse(named.pop())
    found = compiler.default_target()
    if found is None:
        raise DeviceRequirementError(
            "a target", "none, and no device to take it from", "pass target='sm_90a', say"
        )
    return found


# Building -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    """One program, and who compiles and launches it."""

    program: KernelProgram
    plan: LaunchPlan
    backend: BackendSpec
    compiler: CompilerSpec
    device_compiler: DeviceCompiler

    def build(self, request: CompileRequest, staging: Path) -> Artifact:
        source = self.wrap(request.target)
        image = self.device_compiler.compile(request)
        built = self.backend.load_adapter()(self.backend).build(source, image, staging)
        return built.including(PROGRAM_FILE, self.program.to_json().encode())

    def wrap(self, target: Target) -> GeneratedSource:
        return self.backend.load_wrapper()(self.backend).wrap(self.plan, target.kind)

    def key_inputs(self, request: CompileRequest) -> dict[str, str]:
        """Everything that the artifact's bytes depend on, but for headers that the source includes from disk."""
        return {
            "program": self.program.to_json(),
            "launcher": self.wrap(request.target).text,
            "target": str(request.target),
            "options": json.dumps(dict(request.options), sort_keys=True, default=str),
            "backend": f"{self.backend.name} {self.backend.load_adapter()(self.backend).fingerprint()}",
            "compiler": f"{self.compiler.name} {self.device_compiler.fingerprint()}",
        }


def _job(program: KernelProgram, backend: str, compiler: str | None, registry: Registry) -> _Job:
    plan = program.plan()
    chosen = _choose_backend(program, backend, plan, registry)
    spec = _choose_compiler(program, compiler, chosen, registry)
    return _Job(program, plan, chosen, spec, spec.load_compiler()())


def _from_store(store: ArtifactStore, job: _Job, request: CompileRequest, inputs: dict[str, str]) -> Artifact:
    return store.get_or_build(artifact_key(inputs), lambda staging: job.build(request, staging).keyed(inputs))
