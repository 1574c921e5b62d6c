"""`CompiledProgram`: a built program, and the comfortable way to call it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from trunnion.arguments import device_ordinal, expect, file_path, stream_handle
from trunnion.artifacts.artifact import Artifact
from trunnion.contract.adapter import BoundLaunch
from trunnion.contract.spec import CONTRACT_VERSION, Target
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    LifecycleError,
    ProgramError,
    shorten,
)
from trunnion.model.program import KernelProgram
from trunnion.registry import Registry, default_registry
from trunnion.selection import load_part
from trunnion.torch_runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.plan import LaunchPlan

__all__ = ["LOG_FILE", "PROGRAM_FILE", "CompiledProgram", "KnownProgram", "PendingArtifact", "program_of"]

PROGRAM_FILE = "program.json"
"""The file of an artifact that holds the program that it was built from."""

LOG_FILE = "compile.log"
"""The file of an artifact that holds what the device compiler said; there is none if it said nothing."""


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """What whoever built, or found, an artifact has made of its program already."""

    program: KernelProgram
    """The program."""

    text: str
    """The program as JSON: if the artifact's file says something else, the file counts."""

    source: GeneratedSource
    """The launcher, with its plan."""


@dataclass(frozen=True, slots=True)
class PendingArtifact:
    """What is still to be built, for a program that is already known."""

    kind: str
    """The kind of device that it is for."""

    build: Callable[[], Artifact]
    """Build it, or find it in a store."""

    known: KnownProgram
    """The program."""


class CompiledProgram:
    """A program, compiled and bound to a backend; it loads itself at its first call.

    Made by `trunnion.compile`, and from what was built before by `from_artifact`.

    Parameters
    ----------
    artifact
        What was built, or is to be built when it is first needed.
    spec
        The backend that built it.
    runtime
        The tensor library; None: for CUDA the simulator's if it runs in this process, else torch's.
    known
        What is known of its program already; None: it is read from the artifact.

    Raises
    ------
    CorruptArtifactError
        If the artifact's program is not the one that its plan was made from.
    """

    def __init__(
        self,
        artifact: Artifact | PendingArtifact,
        spec: BackendSpec,
        runtime: Runtime | None = None,
        known: KnownProgram | None = None,
    ) -> None:
        self._artifact: Artifact | None = None
        self._pending: PendingArtifact | None = None
        self._making = threading.Lock()
        if isinstance(artifact, PendingArtifact):
            self._pending, known, self._kind = artifact, artifact.known, artifact.kind
        else:
            self._artifact, self._kind = artifact, _target_of(artifact).kind
            known = known if known and artifact.files.get(PROGRAM_FILE) == known.text.encode() else None
        if known is None:
            self.program = program_of(self.artifact)
            wrapper = load_part(spec, spec.load_wrapper)(spec)
            self._source = wrapper.wrap(self.program.plan(), self._kind)
        else:
            self.program, self._source = known.program, known.source
        self.plan: LaunchPlan = self._source.plan
        if self._artifact is not None:
            self._check_manifest(self._artifact)
        self._spec = spec
        self._runtime = runtime
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._closed = False

    @classmethod
    def from_artifact(
        cls, artifact: Artifact | str | PathLike[str], *, registry: Registry | None = None
    ) -> Self:
        """Take up a built program; no compiler is asked. At its first call it runs native code: load what you trust.

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
        expect(artifact, (Artifact, str, PathLike), "artifact", "an Artifact, or the folder of one")
        plugins = default_registry() if registry is None else registry
        expect(plugins, Registry, "registry", "a Registry")
        whole = artifact if isinstance(artifact, Artifact) else Artifact.open(file_path(artifact))
        return cls(whole, plugins.backend(whole.manifest.backend))

    # What it is ------------------------------------------------------------------------------------------------

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self._spec.name

    @property
    def artifact(self) -> Artifact:
        """What was built; if nothing was built yet, it is built now, once for all threads that ask."""
        found = self._artifact
        if found is not None:
            return found
        with self._making:
            if self._artifact is None:
                assert self._pending is not None  # noqa: S101 - what was not built is to be built
                built = self._pending.build()
                self._check_manifest(built)
                self._artifact = built
            return self._artifact

    @property
    def target(self) -> Target:
        """What it was compiled for; if it was not compiled yet, it is now."""
        return _target_of(self.artifact)

    @property
    def host_source(self) -> str:
        """The launcher's source, as the artifact holds it."""
        return self._source.text

    @property
    def device_source(self) -> str:
        """The device code's text, its parts one after the other; binary parts are left out."""
        return "\n".join(part.source for part in self.program.code if isinstance(part.source, str))

    @property
    def log(self) -> str:
        """What the device compiler said when it made the image: warnings, remarks; empty if nothing."""
        return self.artifact.files.get(LOG_FILE, b"").decode(errors="replace")

    def image(self, kind: str) -> bytes:
        """Return the device image.

        Parameters
        ----------
        kind
            Its kind, for example ``"cubin"``.

        Raises
        ------
        ArgumentValueError
            If the artifact holds no image of that kind.
        """
        name = f"image.{kind}"
        if name not in self.artifact.files:
            kept = (
                ", ".join(sorted(file for file in self.artifact.files if file.startswith("image."))) or "none"
            )
            raise ArgumentValueError("kind", shorten(kind), f"the kind of an image that is kept ({kept})")
        return self.artifact.files[name]

    def __repr__(self) -> str:
        found = self._artifact
        target = f"{self._kind}, at its first call," if found is None else str(_target_of(found))
        return f"<CompiledProgram {shorten(self.program.name)} for {target} by {self.backend}>"

    def _check_manifest(self, artifact: Artifact) -> None:
        """Refuse an artifact whose parts do not belong together, or that another version built."""
        manifest, source = artifact.manifest, self._source
        if self.plan.hash != manifest.plan_hash:
            raise CorruptArtifactError(PROGRAM_FILE, "is not the program that the launcher was built from")
        if [kernel.name for kernel in manifest.kernels] != [kernel.name for kernel in self.plan.kernels]:
            raise CorruptArtifactError("manifest.json", "its kernels are not those of the program")
        built = f"{manifest.emitter}, contract {manifest.contract_version}"
        here = f"{source.emitter}, contract {CONTRACT_VERSION}"
        if built != here:
            raise ArtifactError(f"it was built by {built}; this is {here}: build it again from the program")
        if artifact.files.get(source.filename) != source.text.encode():
            raise CorruptArtifactError(source.filename, "is not what this version writes for the program")

    # Calls -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Any = None, stream: Any = None, device: Any = None) -> Any:
        """Launch the program.

        Parameters
        ----------
        *args
            Tensors and numbers, in the signature's order.
        out
            Where to put the outputs: a tensor if there is one output, else a sequence; None: they are allocated.
        stream
            None: the current stream of the tensors' device; an int: a driver handle, taken as it is (0, 1 and 2 are
            the driver's own); or an object with ``__cuda_stream__`` or ``cuda_stream``.
        device
            The device's ordinal, or an object or text that names a device of the target's kind, such as ``"cuda:1"``;
            needed if no argument is a tensor, unless the program runs on the CPU.

        Returns
        -------
        Any
            None, the output, or a tuple of outputs.

        Raises
        ------
        ArgumentError
            If an argument does not fit: it is named, with what was got and what is allowed. Nothing was launched.
        TensorMapError
            If a tensor's address, extents or strides break the rules of a tensor map; all of them are named.
        ExprError
            If an expression cannot be computed from this call's values.
        DriverError
            If the driver refuses.
        LifecycleError
            If the program was closed, or the process forked after its first call.
        """
        ordinal = device_ordinal(device, self._kind)
        return self._load().call(args, out=self._outputs(out), stream=stream_handle(stream), device=ordinal)

    def bind(self, *args: Any, out: Any = None, stream: Any = None, device: Any = None) -> BoundLaunch:
        """Check everything now, and return a launch of these tensors and numbers that can be repeated.

        Parameters and errors are those of a call, but nothing is launched yet. Outputs and workspaces that are not
        given are allocated now, and are the same each time; a stream of None is the one that is current now. See
        `BoundLaunch`.

        Returns
        -------
        BoundLaunch
            Calling it launches. It keeps the tensors alive.
        """
        loaded = self._load()
        bound = loaded.bind(
            args,
            out=self._outputs(out),
            stream=stream_handle(stream),
            device=device_ordinal(device, self._kind),
        )
        return BoundLaunch(
            loaded.runtime.guarded(bound.entry),
            name=self.program.name,
            device=bound.device,
            stream=bound.stream,
        )

    @property
    def entry(self) -> Callable[..., Any]:
        """The launcher itself: positional arguments, the current stream, the least time. Loads the program."""
        return self._load().entry

    def _outputs(self, out: Any) -> Sequence[Any] | None:
        if out is None or isinstance(out, (tuple, list)):
            return out
        if len(self.plan.results) == 1:
            return (out,)
        raise ArgumentTypeError(
            "out", type(out).__name__, f"a sequence of {len(self.plan.results)} tensors, or None"
        )

    # Life ------------------------------------------------------------------------------------------------------

    def _load(self) -> _Loaded:
        loaded = self._loaded
        if loaded is not None:
            return loaded
        with self._lock:
            if self._closed:
                raise LifecycleError("the program was closed; compile or load it again")
            if self._loaded is None:
                artifact = self.artifact
                runtime = self._runtime or default_runtime(self._kind)
                adapter = load_part(self._spec, self._spec.load_adapter)(self._spec)
                program = adapter.load(artifact, runtime)
                self._loaded = _Loaded(
                    program,
                    runtime,
                    runtime.guarded(program.entry),
                    runtime.guarded(program.call),
                    runtime.guarded(program.bind),
                )
            return self._loaded

    def preload(self, device: int) -> None:
        """Do for ``device``, now, all that a first launch would do, so that it can be captured.

        Cache is set aside for windows whose length is the same in every call. Where it depends on the call, `bind` sets
        it aside, and a call that is not captured; see `LoadedProgram.preload`.

        Raises
        ------
        DeviceRequirementError
            If the device is too small for the program, or the driver too old.
        DriverError
            If the driver refuses.
        """
        self._load().program.preload(device)

    def close(self) -> None:
        """Wait for the program's launches, then unload it. Nothing else unloads; calling it again does nothing."""
        with self._lock:
            self._closed = True
            loaded = self._loaded
        # Not under the lock: a launch under way, which this waits for, may ask for it.
        if loaded is not None:
            loaded.program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Loaded:
    program: LoadedProgram
    runtime: Runtime
    entry: Callable[..., Any]
    call: Callable[..., Any]
    bind: Callable[..., BoundLaunch]


def _target_of(artifact: Artifact) -> Target:
    try:
        return Target.parse(artifact.manifest.target)
    except ProgramError as error:
        raise CorruptArtifactError("manifest.json", f"names no target: {error}") from error


def program_of(artifact: Artifact) -> KernelProgram:
    """Return the program that an artifact was built from.

    Raises
    ------
    CorruptArtifactError
        If it holds none.
    """
    text = artifact.files.get(PROGRAM_FILE)
    if text is None:
        raise CorruptArtifactError(PROGRAM_FILE, "is missing from the artifact")
    try:
        return KernelProgram.from_json(text.decode())
    except ValueError as error:
        raise CorruptArtifactError(PROGRAM_FILE, f"is not a program: {error}") from error
