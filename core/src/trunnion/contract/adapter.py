"""The host side of the contract: launcher source and image to a callable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import FileRecord, Manifest
from trunnion.errors import ArgumentTypeError, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec

__all__ = ["BoundLaunch", "KernelAdapter", "LoadedProgram"]


class BoundLaunch:
    """A call whose arguments are decided: calling it launches again, on the same tensors, numbers and stream.

    It keeps the tensors alive, and returns the same outputs each time. Outputs with a fill and zeroed workspaces are
    filled anew by every launch.

    Parameters
    ----------
    entry
        Launches.
    name
        The program's name; empty if it is not known.
    device
        The device's ordinal; None: each launch finds it out.
    stream
        The handle of the stream; None: each launch takes the current one.
    """

    __slots__ = ("device", "entry", "name", "stream")

    def __init__(
        self,
        entry: Callable[[], Any],
        *,
        name: str = "",
        device: int | None = None,
        stream: int | None = None,
    ) -> None:
        self.entry = entry
        """The function behind it, for the least time."""
        self.name = name
        """The program's name; empty if it is not known."""
        self.device = device
        """The ordinal of the device that it launches on; None: each launch finds it out."""
        self.stream = stream
        """The handle of the stream that it launches on; None: the current one at each launch."""

    def __repr__(self) -> str:
        of = f" of {shorten(self.name)}" if self.name else ""
        on = "the current stream" if self.stream is None else f"stream {self.stream:#x}"
        where = "" if self.device is None else f" of device {self.device}"
        return f"<BoundLaunch{of} on {on}{where}>"

    def __call__(self, /, *given: Any, **named: Any) -> Any:
        """Launch; return None, the output, or a tuple of outputs.

        Raises
        ------
        ArgumentTypeError
            If it is given anything: what it launches with is bound.
        DriverError
            If a driver call failed.
        LifecycleError
            If the program was closed, or the process forked after it was loaded.
        """
        if given or named:
            got = f"{len(given) + len(named)} arguments"
            raise ArgumentTypeError(
                "", got, "none: the arguments are bound; call the program, or bind others"
            )
        return self.entry()


class LoadedProgram(ABC):
    """A program that is ready to launch in this process."""

    @property
    @abstractmethod
    def entry(self) -> Callable[..., Any]:
        """The launcher itself, as people call it: see `trunnion.contract.convention.Convention`.

        It takes arguments by position or by name, and ``out=``, ``stream=`` and ``device=`` as they are written;
        returns None, the output, or a tuple of outputs. Every argument is checked on every call. A backend that knows
        no quicker way returns `Convention.over` of `call`.
        """

    @abstractmethod
    def call(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Any:
        """Launch with everything that a call can say.

        What was written is no longer seen here, nor in `bind` and `preload`: `Convention` has made of it None, a list
        or tuple of destinations, a plain int of 0 to 2**64 - 1 as the stream, and one of 32 signed bits as the device.
        Whether there is such a stream or device, and whether it is the tensors' own, is still to be checked.

        Parameters
        ----------
        args
            The arguments, in the signature's order.
        out
            Destinations for every output; None: the launcher allocates them.
        stream
            A driver stream handle (0, 1 and 2 are the driver's own); None: the current stream of the device.
        device
            The device's ordinal; needed only if no argument is a tensor.

        Raises
        ------
        ArgumentError
            If an argument does not fit; nothing was launched.
        DriverError
            If a driver call failed.
        LifecycleError
            If the program was closed, or the process forked after it was loaded.
        """

    @abstractmethod
    def bind(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> BoundLaunch:
        """Return a call that can be repeated; parameters and errors are those of `call`, but nothing is launched yet.

        All is decided here: arguments are checked, outputs allocated, numbers, extents and addresses read, and the
        current stream taken if none is named. Each launch launches just that, whatever became of the arguments since.
        """

    @abstractmethod
    def preload(self, device: int) -> None:
        """Do for ``device``, now, all that a first launch would do: contexts, functions' attributes, set-aside.

        Cache is set aside for windows whose length is the same in every call. For one that depends on the call nobody
        can know it before; the first call that is not captured, or `bind`, sets it aside.

        Raises
        ------
        ArgumentError
            If there is no such device; its argument is called ``"device"``.
        DeviceRequirementError
            If the device is too small for the program, or the driver too old.
        DriverError
            If the driver refuses.
        """

    @abstractmethod
    def close(self) -> None:
        """Wait for the program's launches, then unload it; calling it again does nothing.

        Nothing else unloads: a captured graph may outlive every Python object. In a forked child it asks the driver
        nothing.
        """


class KernelAdapter(ABC):
    """Build and load launchers of one backend.

    Parameters
    ----------
    spec
        The backend that the adapter belongs to.
    """

    def __init__(self, spec: BackendSpec) -> None:
        self.spec = spec

    @abstractmethod
    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Return the artifact of a launcher and its image.

        Parameters
        ----------
        source
            What `SourceWrapper.wrap` returned.
        image
            What a device compiler returned.
        staging
            An empty folder that belongs to this build alone and is deleted after it.

        Raises
        ------
        ParameterMismatchError
            If a launch passes another number of arguments, other offsets or other sizes than the image's table says.
        CompileError
            If the launcher itself is compiled and that fails.
        """

    def artifact(
        self,
        source: GeneratedSource,
        image: DeviceImage,
        files: Mapping[str, bytes],
        toolchain: Mapping[str, str] | None = None,
    ) -> Artifact:
        """Return the artifact of what `build` built.

        Parameters
        ----------
        source
            The launcher that was built; its plan's hash and its emitter are recorded.
        image
            The device image that it launches; its kernels, target and toolchain are recorded.
        files
            All that has to be kept, by plain file name; ``manifest.json`` is added where it is saved.
        toolchain
            Name and version of what built the host side, beside the image's own.

        Raises
        ------
        CorruptArtifactError
            If a file name is not a plain name, or a file is too large.
        """
        manifest = Manifest(
            backend=self.spec.name,
            contract_version=self.spec.contract_version,
            target=str(image.target),
            plan_hash=source.plan.hash,
            emitter=source.emitter,
            kernels=image.kernels,
            variables=image.variables,
            files={name: FileRecord.of(data) for name, data in files.items()},
            toolchain={**image.toolchain, **(toolchain or {})},
        )
        return Artifact(manifest, files)

    @abstractmethod
    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Make an artifact callable in this process. It runs native code: the caller decides whether to trust it.

        Beside what `build` returned the artifact has the program (`trunnion.artifacts.program_file.PROGRAM_FILE`).

        Raises
        ------
        CorruptArtifactError
            If the artifact is not one that this adapter built, or was changed.
        BackendUnavailableError
            If a library that the launcher needs is missing.
        """

    def fingerprint_for(self, target_kind: str) -> str:
        """Return what identifies the host toolchain for one kind of device; this implementation calls `fingerprint`.

        Parameters
        ----------
        target_kind
            A key of `BackendSpec.targets`. A backend that needs less for one of them overrides this, so that what is
            not needed need not be there.
        """
        del target_kind
        return self.fingerprint()

    @abstractmethod
    def fingerprint(self) -> str:
        """Return what identifies the host toolchain: part of an artifact's key."""
