"""`compile` and `load`: from a program to something that can be called."""

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
    DeviceRequirementError,
    ProgramError,
    shorten,
)
from trunnion.registry import default_registry
from trunnion.selection import choose_backend, choose_compiler

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec, CompilerSpec
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.registry import Registry

__all__ = ["compile", "load"]


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
        """Everything that the artifact's bytes depend on."""
        surroundings = self.device_compiler.surroundings(request)
        return {
            **{f"surroundings {name}": value for name, value in surroundings.items()},
            "program": self.program.to_json(),
            "launcher": self.wrap(request.target).text,
            "target": str(request.target),
            "options": json.dumps(dict(request.options), sort_keys=True, default=str),
            "backend": f"{self.backend.name} {self.backend.load_adapter()(self.backend).fingerprint()}",
            "compiler": f"{self.compiler.name} {self.device_compiler.fingerprint()}",
        }


def _job(program: KernelProgram, backend: str, compiler: str | None, registry: Registry) -> _Job:
    plan = program.plan()
    chosen = choose_backend(program, backend, plan, registry)
    spec = choose_compiler(program, compiler, chosen, registry)
    return _Job(program, plan, chosen, spec, spec.load_compiler()())


def _from_store(store: ArtifactStore, job: _Job, request: CompileRequest, inputs: dict[str, str]) -> Artifact:
    return store.get_or_build(artifact_key(inputs), lambda staging: job.build(request, staging).keyed(inputs))


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
