"""`CompiledProgram`: a built program, and the comfortable way to call it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.contract.spec import Target
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CorruptArtifactError,
    LifecycleError,
    shorten,
)
from trunnion.model.program import KernelProgram
from trunnion.torch_runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.plan import LaunchPlan

__all__ = ["PROGRAM_FILE", "CompiledProgram"]

PROGRAM_FILE = "program.json"
"""The file of an artifact that holds the program that it was built from."""


class CompiledProgram:
    """A program, compiled and bound to a backend; it loads itself at its first call.

    Made by `trunnion.compile` and `trunnion.load`.

    Parameters
    ----------
    artifact
        What was built.
    spec
        The backend that built it.
    runtime
        The tensor library; None: the simulator's if it runs in this process, else torch's.

    Raises
    ------
    CorruptArtifactError
        If the artifact's program is not the one that its plan was made from.
    """

    def __init__(self, artifact: Artifact, spec: BackendSpec, runtime: Runtime | None = None) -> None:
        self.artifact = artifact
        self.program = _program_of(artifact)
        self.plan: LaunchPlan = self.program.plan()
        if self.plan.hash != artifact.manifest.plan_hash:
            raise CorruptArtifactError(PROGRAM_FILE, "is not the program that the launcher was built from")
        self._spec = spec
        self._runtime = runtime
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._closed = False

    # What it is ------------------------------------------------------------------------------------------------

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self._spec.name

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return Target.parse(self.artifact.manifest.target)

    @property
    def host_source(self) -> str:
        """The launcher's source."""
        return self._spec.load_wrapper()(self._spec).wrap(self.plan, self.target.kind).text

    @property
    def device_source(self) -> str:
        """The device code's text, its parts one after the other; binary parts are left out."""
        return "\n".join(part.source for part in self.program.code if isinstance(part.source, str))

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
        return f"<CompiledProgram {shorten(self.program.name)} for {self.target} by {self.backend}>"

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
            The device's ordinal, or an object or text that names a CUDA device; needed if no argument is a tensor.

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
        return self._load().call(
            args, out=self._outputs(out), stream=_stream_handle(stream), device=_device_ordinal(device)
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
                runtime = self._runtime or default_runtime()
                program = self._spec.load_adapter()(self._spec).load(self.artifact, runtime)
                self._loaded = _Loaded(program, runtime.guarded(program.entry), runtime.guarded(program.call))
            return self._loaded

    def preload(self, device: int) -> None:
        """Do for ``device``, now, all that a first launch would do, so that it can be captured.

        Raises
        ------
        DriverError
            If the driver refuses.
        """
        self._load().program.preload(device)

    def close(self) -> None:
        """Wait for the program's launches, then unload it. Nothing else unloads; calling it again does nothing."""
        with self._lock:
            self._closed = True
            if self._loaded is not None:
                self._loaded.program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Loaded:
    program: LoadedProgram
    entry: Callable[..., Any]
    call: Callable[..., Any]


def _program_of(artifact: Artifact) -> KernelProgram:
    text = artifact.files.get(PROGRAM_FILE)
    if text is None:
        raise CorruptArtifactError(PROGRAM_FILE, "is missing from the artifact")
    try:
        return KernelProgram.from_json(text.decode())
    except ValueError as error:
        raise CorruptArtifactError(PROGRAM_FILE, f"is not a program: {error}") from error


def _stream_handle(stream: Any) -> int | None:
    if stream is None or type(stream) is int:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    if hasattr(stream, "cuda_stream"):
        return int(stream.cuda_stream)
    raise ArgumentTypeError(
        "stream", type(stream).__name__, "None, an int, or an object with __cuda_stream__"
    )


def _device_ordinal(device: Any) -> int | None:
    if device is None or type(device) is int:
        return device
    kind, _, index = str(device).partition(":")
    if kind != "cuda" or not index.isdecimal():
        # Not "cuda" alone: for torch that is the current device, which differs by thread.
        raise ArgumentTypeError(
            "device", shorten(str(device)), "None, an ordinal, or a device such as 'cuda:0'"
        )
    return int(index)
