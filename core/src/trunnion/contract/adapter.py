"""The host side of the contract: launcher source and image to a callable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec

__all__ = ["KernelAdapter", "LoadedProgram"]


class LoadedProgram(ABC):
    """A program that is ready to launch in this process."""

    @property
    @abstractmethod
    def entry(self) -> Callable[..., Any]:
        """The launcher itself: positional arguments only, on the tensors' current stream; the fastest way in.

        Returns None, the output, or a tuple of outputs. Every argument is checked on every call.
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
    def preload(self, device: int) -> None:
        """Do for ``device``, now, all that a first launch would do: contexts, function attributes.

        Raises
        ------
        DriverError
            If the driver refuses.
        """

    @abstractmethod
    def close(self) -> None:
        """Wait for the program's launches, then unload it; calling it again does nothing.

        Nothing else unloads: a captured graph may outlive every Python object.
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

    @abstractmethod
    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Make an artifact callable in this process. It runs native code: the caller decides whether to trust it.

        Raises
        ------
        CorruptArtifactError
            If the artifact is not one that this adapter built, or was changed.
        BackendUnavailableError
            If a library that the launcher needs is missing.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """Return what identifies the host toolchain: part of an artifact's key."""
