"""`compile` and `load`: from a program to something that can be called."""

from __future__ import annotations

import errno
import functools
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from trunnion.arguments import expect, expect_text, file_path
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.default_store import default_store
from trunnion.artifacts.fitting import BACKEND_INPUT, PROGRAM_INPUT, TARGET_INPUT, key_input
from trunnion.artifacts.manifest import MANIFEST_NAME, artifact_key
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import ArtifactStore
from trunnion.built_program import (
    BUNDLE_SUFFIX,
    LOG_FILE,
    BuiltProgram,
    KnownProgram,
    PendingArtifact,
)
from trunnion.checked_compiler import load_compiler
from trunnion.compiled import CompiledProgram
from trunnion.compiler_options import options_of
from trunnion.contract.adapter import KernelAdapter
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.source import GeneratedSource, SourceWrapper
from trunnion.contract.spec import Target
from trunnion.errors import (
    ArtifactError,
    DeviceRequirementError,
    ProgramError,
    TrunnionError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.image.match import match_launches
from trunnion.model.plan import PLAN_VERSION
from trunnion.plain import is_a, path_text
from trunnion.registry import Registry, default_registry
from trunnion.selection import (
    check_forms,
    choose_backend,
    choose_compiler,
    expect_answer,
    expect_program,
    launch_kind,
    make_part,
    named_target,
)
from trunnion.storage.refusals import refusals, warn_not_kept
from trunnion.storage.scratch import scratch_folder
from trunnion.storage.stamps import unchanged, witnessed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from trunnion.bundles.bundle import Bundle
    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.spec import BackendSpec, CompilerSpec
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.signing.keys import PublicKey
    from trunnion.storage.stamps import Sighting

__all__ = ["compile", "key_inputs", "load"]

_MISTAKEN = frozenset({errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})
"""What says that a path is not one of a folder, whatever state the system is in."""

_WHEEL_SUFFIX = ".whl"
_MOST_NAMED = 3
"""So many bundles of a folder are named at the most."""


def compile(  # noqa: A001, PLR0913 - the verb of the field; one call with everything that it can say
    program: KernelProgram,
    backend: str = "auto",
    *,
    target: str | Target | None = None,
    compiler: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    cache: ArtifactStore | str | PathLike[str] | bool | None = True,
    recache: bool = False,
    registry: Registry | None = None,
    lazy: bool = False,
    trust: bool = False,
) -> CompiledProgram:
    """Compile a program for a backend. Needs no device if a target is named.

    Parameters
    ----------
    program
        The program.
    backend
        The backend's name; ``"auto"``: the usable one with the highest rank that can do what the program needs.
    target
        What to compile for, for example ``"sm_90a"`` or ``"cpu"``; None: what the device code names, else what its
        compiler takes by itself: the first GPU for CUDA C++, the CPU for C++.
    compiler
        The device compiler's name; None: the usable one with the highest rank that fits language and backend.
    options
        Options for plugins: ``{plugin: {option: value}}``.
    cache
        A store, or the folder of one, that is asked first and keeps what is built; True: this user's, which the
        environment variable ``TRUNNION_CACHE`` turns off or moves, and which never keeps a program from being
        compiled; False or None: nothing is kept.
    recache
        Whether to compile in any case, and to replace what the cache has.
    registry
        The plugins to choose from; None: those that are installed.
    lazy
        Whether to compile, or to look into the cache, only when it is needed: at the first call, bind, preload or look
        at what was built. Whatever can be said of the program without a compiler is said now all the same; a target
        that is not named is asked for then, and what a compiler refuses is raised then.
    trust
        Whether device code may run here, as you, while it is compiled, where its language is a program that does.

    Raises
    ------
    ArgumentTypeError
        If something is given that is none of these, such as a `ProgramBuilder` for the program.
    UntrustedArtifactError
        If the device code would run here and is not trusted.
    UnknownBackendError, BackendUnavailableError, DuplicatePluginError
        If a plugin that is asked for is not installed, cannot work here, or is announced by two distributions; or the
        device compiler returns what its contract does not allow.
    UnsupportedFeatureError
        If the backend does not declare something that the program needs.
    ProgramError
        If the program cannot be launched, or an option or target is wrong.
    CompileError
        If the compiler refuses the source.
    ParameterMismatchError
        If a launch does not pass what the compiled kernel takes.
    VariableMismatchError, UnknownVariableError
        If a module variable of the code has another size than the program says, or the code has none of that name.
    CorruptArtifactError
        If device code that is finished, a cubin or a fatbin, is not whole.
    ArtifactError
        If something else than a folder is where ``cache`` says, or others may write to that.
    ArgumentValueError
        If ``TRUNNION_CACHE`` is neither 0 nor 1 nor an absolute path.
    DeviceRequirementError
        If no target is named and there is no device, or no device of the target can launch the program; or this machine
        has no file, folder or process to compile with.
    """
    expect_program(program)
    for flag, name in ((lazy, "lazy"), (recache, "recache")):
        expect(flag, bool, name, "True or False")
    with _machine():
        store = _store(cache)
        job, named = _job(program, backend, target, compiler, registry)
        _check_trust(job, trust)
        given = options_of(options, job.compiler.name)
        if named is None and not lazy:
            named = _default_target(job.device_compiler)
        kind = launch_kind(program, job.backend, named, lambda: (job.compiler,))
        known = job.known(kind)
        if lazy:
            known.write()

    def artifact(*, anew: bool = recache) -> Artifact:
        with _machine():
            return job.artifact(job.request(named, kind, given), known, store, anew=anew)

    built = PendingArtifact(kind, artifact, known) if lazy else artifact()
    if store is None:
        return CompiledProgram(BuiltProgram(built, job.backend, known))

    def again(broken: Artifact) -> Artifact:
        store.set_aside(broken.manifest.key)
        return artifact(anew=True)  # where it could not be moved, the store would find it again

    return CompiledProgram(BuiltProgram(built, job.backend, known, again, store.tell))


def key_inputs(
    program: KernelProgram,
    backend: str = "auto",
    *,
    target: str | Target | None = None,
    compiler: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    registry: Registry | None = None,
) -> dict[str, str]:
    """Return what the key of a program's artifact is made of, each input under a name. Nothing is compiled or run.

    Parameters and errors are those of `compile`.
    """
    expect_program(program)
    with _machine():
        job, named = _job(program, backend, target, compiler, registry)
        given = options_of(options, job.compiler.name)
        named = _default_target(job.device_compiler) if named is None else named
        kind = launch_kind(program, job.backend, named, lambda: (job.compiler,))
        return _Build(job, job.request(named, kind, given), job.known(kind)).key_inputs()


@overload
def load(
    artifact: Artifact,
    *,
    digest: str | Iterable[str] | None = None,
    trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None = None,
    registry: Registry | None = None,
) -> CompiledProgram: ...


@overload
def load(
    artifact: str | PathLike[str],
    *,
    digest: str | Iterable[str] | None = None,
    trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None = None,
    registry: Registry | None = None,
) -> Any: ...


def load(
    artifact: Artifact | str | PathLike[str],
    *,
    digest: str | Iterable[str] | None = None,
    trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None = None,
    registry: Registry | None = None,
) -> CompiledProgram | Bundle:
    """Take up what was built. At its first call it runs native code: load only what you trust.

    Parameters
    ----------
    artifact
        An artifact, the folder that `Artifact.save` wrote, or the index of a bundle, a file in ``.trn``; every byte of
        what is used is verified.
    digest
        What it must be, or a list of all that are allowed: `Artifact.digest`, or `Bundle.digest`. Without it and
        trusted keys, what is read must be root's or this user's, and nobody else may write to it.
    trusted_keys
        Public keys (`trunnion.PublicKey`), or paths of their files: what none of them signed (``trunnion sign``) is
        refused.
    registry
        The plugins to choose from; None: those that are installed.

    Returns
    -------
    CompiledProgram or Bundle
        A program; of a bundle all of them, by name (`CompiledProgram.from_artifact` and `Bundle.open` return one of
        them alone).

    Raises
    ------
    ArtifactError
        If there is nothing of that name, or another version built it.
    CorruptArtifactError
        If it is not whole.
    UntrustedArtifactError
        If its digest is another, or none of the keys signed it, or somebody else could have written it, or a key.
    ArgumentTypeError, ArgumentValueError
        If it is no artifact and no path, or the registry, the digest or a key is none.
    UnknownBackendError, BackendUnavailableError
        If the backend that built it is not installed, or cannot work here, or keys are trusted, and the library
        ``cryptography`` is not installed.
    """
    index = _index_path(artifact)
    if index is not None:
        from trunnion.bundles.bundle import Bundle  # noqa: PLC0415 - whoever compiles opens no archives

        return Bundle.open(index, digest=digest, trusted_keys=trusted_keys, registry=registry)
    try:
        return CompiledProgram.from_artifact(
            artifact, digest=digest, trusted_keys=trusted_keys, registry=registry
        )
    except ArtifactError as error:
        meant = _meant(artifact)
        if not meant:
            raise
        raise ArtifactError(meant) from error


def _meant(given: object) -> str:
    """Return what lies there and how that is loaded, if it is a bundle's folder or a wheel; else an empty text."""
    said = path_text(given)
    if said is None:
        return ""
    path = file_path(said)
    with suppress(OSError):  # an error is being told: nothing else is, of what that one came from
        from trunnion.bundles.index import indices_in  # noqa: PLC0415 - whoever compiles opens no bundle

        if path.suffix == _WHEEL_SUFFIX and path.is_file():
            return f"{shorten(said)} is a wheel: install it with pip, and import the package that it brings"
        found = [] if (path / MANIFEST_NAME).exists() else indices_in(path)
        if found:
            names = " or ".join(shorten(one.name) for one in found[:_MOST_NAMED])
            return f"{shorten(said)} is a folder with a bundle in it: load the index there, which is {names}"
    return ""


def _index_path(given: object) -> Path | None:
    """Return the path of a bundle's index: of what lies there, or is called so if nothing does; None: it is none."""
    said = path_text(given)
    if said is None or not said.endswith(BUNDLE_SUFFIX):
        return None
    path = file_path(said)
    return None if os.path.isdir(path) else path  # noqa: PTH112 - False for a name that is too long


def _machine() -> AbstractContextManager[None]:
    """Turn what the machine refuses while something is compiled, whoever asked for it, into a typed error."""
    return refusals("files, folders and processes to compile with")


# Building -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    """One program, and who compiles and launches it."""

    program: KernelProgram
    plan: LaunchPlan
    backend: BackendSpec
    compiler: CompilerSpec
    device_compiler: DeviceCompiler

    def adapter(self) -> KernelAdapter:
        return make_part(self.backend, self.backend.load_adapter, KernelAdapter, self.backend)

    def wrapper(self) -> SourceWrapper:
        return make_part(self.backend, self.backend.load_wrapper, SourceWrapper, self.backend)

    def known(self, kind: str) -> KnownProgram:
        """Return what is known before anything is built. The launcher is written when somebody needs it, once.

        Raises
        ------
        UnsupportedFeatureError
            If the backend does not declare what the program needs: not even what was built before is taken then.
        """
        wrapper = self.wrapper()
        wrapper.admit(self.plan, kind)

        def write() -> GeneratedSource:
            return expect_answer(self.backend, "wrap", wrapper.wrap(self.plan, kind), GeneratedSource)

        return KnownProgram(self.program, self.program.to_json(), functools.cache(write))

    def request(self, named: Target | None, kind: str, options: Mapping[str, Any]) -> CompileRequest:
        """Return what the device compiler is asked for.

        Raises
        ------
        ProgramError
            If no target is named, and the compiler's own is of another kind than the launcher is for.
        """
        target = _default_target(self.device_compiler) if named is None else named
        if target.kind != kind:
            raise ProgramError(f"got {target} by itself, expected one for {kind}: name it", field="target")
        return CompileRequest(
            code=self.program.code,
            kernels=self.plan.kernels,
            variables=self.plan.variables,
            plan=self.plan,
            target=target,
            options=options,
            accepts=self.backend.accepts,
        )

    def artifact(
        self, request: CompileRequest, known: KnownProgram, store: ArtifactStore | None, *, anew: bool
    ) -> Artifact:
        """Return what is built, or was built before and is in the store, unless it is to be built anew."""
        build = _Build(self, request, known)
        if store is not None:
            return build.from_store(store, anew=anew)
        with scratch_folder() as staging:
            return build.run(staging)


class _ChangedError(Exception):
    """A header, say, changed while a program was built, or nobody knows what it depends on: it is not kept."""

    def __init__(self, artifact: Artifact) -> None:
        super().__init__()
        self.artifact = artifact


@dataclass(frozen=True, slots=True)
class _Build:
    """One job for one target, with what is made of the program before any compiler runs."""

    job: _Job
    request: CompileRequest
    known: KnownProgram

    def run(self, staging: Path) -> Artifact:
        source = self.known.write()
        image = self.job.device_compiler.compile(self.request)
        match_launches(self.job.plan, image)
        built = self.job.adapter().build(source, image, staging)
        built = expect_answer(self.job.backend, "build", built, Artifact)
        built = built.including(PROGRAM_FILE, self.known.text.encode())
        return built.including(LOG_FILE, image.log.encode()) if image.log else built

    def from_store(self, store: ArtifactStore, *, anew: bool) -> Artifact:
        with witnessed() as read:
            inputs = self.key_inputs()
        try:
            key = artifact_key(inputs)
            return store.get_or_build(key, lambda staging: self._kept(inputs, read, staging), anew=anew)
        except _ChangedError as changed:
            return changed.artifact

    def _kept(self, inputs: Mapping[str, str], read: set[Sighting], staging: Path) -> Artifact:
        """Return what is built, with its key.

        Parameters
        ----------
        inputs
            What the key is made of.
        read
            The files that this was read from.
        staging
            The folder to build in.

        Raises
        ------
        _ChangedError
            If what it depends on is not what it was, or was something else for a while, or something is read that the
            key does not know: nobody can tell which of the two was compiled.
        """
        with witnessed() as read_now:
            artifact = self.run(staging)
            try:
                same = self.key_inputs() == inputs
            except TrunnionError:  # such as a compiler that has gone since
                same = False
        if not same or not unchanged(read, read_now):
            raise _ChangedError(artifact)
        return artifact.keyed(inputs)

    def key_inputs(self) -> dict[str, str]:
        """Everything that the artifact's bytes depend on; of what is long, the digest."""
        job, request = self.job, self.request
        environment = job.device_compiler.environment(request)
        inputs = {
            **{f"environment {name}": value for name, value in environment.items()},
            PROGRAM_INPUT: self.known.text,
            **self._launcher_inputs(),
            TARGET_INPUT: str(request.target),
            "contract": str(job.backend.contract_version),
            "options": json.dumps(dict(request.options), sort_keys=True),
            BACKEND_INPUT: f"{job.backend.name} {job.adapter().fingerprint_for(request.target.kind)}",
            "compiler": f"{job.compiler.name} {job.device_compiler.fingerprint()}",
        }
        return {name: key_input(value) for name, value in inputs.items()}

    def _launcher_inputs(self) -> dict[str, str]:
        """Return what tells how the launcher is made of the program: to write it takes as long as most of the rest."""
        version = self.job.wrapper().version
        if not version:  # only its text tells
            return {"launcher": self.known.write().text}
        return {"emitter": version, "plan": str(PLAN_VERSION)}


def _job(
    program: KernelProgram,
    backend: str,
    target: str | Target | None,
    compiler: str | None,
    registry: Registry | None,
) -> tuple[_Job, Target | None]:
    """Return who compiles and launches a program, and the target that somebody named; parameters are `compile`'s."""
    if compiler is not None:
        compiler = expect_text(compiler, "compiler", "a device compiler's name, or None")
    plugins = default_registry() if registry is None else expect(registry, Registry, "registry", "a Registry")
    named = named_target(program) if target is None else Target.parse(target)
    kind = None if named is None else named.kind
    plan = program.plan()
    chosen = choose_backend(program, backend, plan, plugins, kind)
    spec = choose_compiler(program, compiler, chosen, plugins, kind)
    check_forms(program, spec)
    return _Job(program, plan, chosen, spec, load_compiler(spec)), named


def _check_trust(job: _Job, trust: bool) -> None:
    """Refuse source that would run here unless the caller vouches for it.

    Raises
    ------
    UntrustedArtifactError
        If it does not.
    """
    expect(trust, bool, "trust", "True or False")
    if job.compiler.runs_source and not trust:
        raise UntrustedArtifactError(
            f"the device code of {shorten(job.program.name)} is a program, which {job.compiler.name} runs here, as "
            "you, to compile it; got trust=False: read it, and pass trust=True"
        )


def _store(given: ArtifactStore | str | PathLike[str] | bool | None) -> ArtifactStore | None:
    """Return the store that is meant, if one is; None, with a warning, where the system refuses the folder of one.

    Raises
    ------
    ArtifactError
        If something else is at that place.
    ArgumentValueError
        If the environment says of the user's what nobody understands.
    """
    if given is None or given is False:
        return None
    if given is True:
        return default_store()
    expect(
        given, (ArtifactStore, str, PathLike), "cache", "an ArtifactStore, the folder of one, True or False"
    )
    if is_a(given, ArtifactStore):
        return given
    try:
        return ArtifactStore(given)
    except ArtifactError as error:
        reason = error.__cause__
        if not isinstance(reason, OSError) or reason.errno in _MISTAKEN:
            raise
        warn_not_kept(f"there can be no cache at {shorten(str(file_path(given)))}", reason)
        return None


def _default_target(compiler: DeviceCompiler) -> Target:
    """Return the target that a compiler takes if none is named.

    Raises
    ------
    DeviceRequirementError
        If there is no device.
    """
    found = compiler.default_target()
    if found is None:
        hint = (
            "name one, such as target='sm_90a' (on the command line: --target sm_90a), "
            "or simulate a GPU: trunnion.sim.start()"
        )
        raise DeviceRequirementError("a target", "none, and no device to take it from", hint)
    return found
