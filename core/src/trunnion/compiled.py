"""`CompiledProgram`: a built program, and the comfortable way to call it."""

from __future__ import annotations

import weakref
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from trunnion.arguments import expect, expect_ordinal, expect_text, file_path
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.store import CorruptArtifactWarning
from trunnion.built_program import LOG_FILE, BuiltProgram
from trunnion.compiled_kernel import CompiledKernels, compiled_kernels
from trunnion.contract.adapter import BoundLaunch, KernelAdapter
from trunnion.contract.convention import Convention
from trunnion.contract.runtime import expect_runtime
from trunnion.errors import (
    ArgumentValueError,
    CorruptArtifactError,
    LifecycleError,
    shorten,
)
from trunnion.plain import is_a
from trunnion.registry import Registry, default_registry
from trunnion.selection import make_part
from trunnion.signing.message import ARTIFACT
from trunnion.signing.vouching import Vouching
from trunnion.torch_runtime import default_runtime
from trunnion.turns import Turns, kept_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from inspect import Signature
    from types import TracebackType
    from typing import Self

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.spec import Target
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.signing.keys import PublicKey

__all__ = ["CompiledProgram"]

_T = TypeVar("_T")

_CALL = """Launch the program: ``program(a, b, n=3, out=None, stream=None, device=None)``.

Once the program is loaded this is the launcher itself: nothing stands between a call and it.

Parameters
----------
*args, **named
    Tensors and numbers, by position in the signature's order, or by name. An argument called ``out``,
    ``stream`` or ``device``, or by what is no identifier of Python's, goes by position, and so do those
    before it: ``inspect.signature(program)`` tells.
out
    Where to put the outputs: a tensor if there is one output, else a sequence; None: they are allocated.
stream
    None: the current stream of the tensors' device; an int: a driver handle, taken as it is (0, 1 and 2 are
    the driver's own); or an object with ``__cuda_stream__`` or ``cuda_stream``.
device
    The device's ordinal, or an object or text that names a device of the target's kind, such as ``"cuda:1"``, or
    ``"cuda"`` for the thread's current one; needed if no argument is a tensor, unless the program runs on the CPU.

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
DeviceRequirementError
    If no argument is a tensor and no device is named, or the device is too small, or the driver too old.
DriverError
    If the driver refuses.
LifecycleError
    If the program was closed, or the process forked after its first call.
"""


class _Signature:
    """What `inspect.signature` finds: how a program is called; of the class nothing, which is called as any other."""

    def __get__(self, program: CompiledProgram | None, _: type) -> Signature | None:
        return None if program is None else program._convention.signature(program.program.signature)  # noqa: SLF001 - this module's own class


class _Help:
    """What `help` finds: of a program how it is called, of the class what a program is.

    Parameters
    ----------
    of_class
        What that is.
    """

    def __init__(self, of_class: str | None) -> None:
        self._of_class = of_class

    def __get__(self, program: CompiledProgram | None, _: type) -> str | None:
        if program is None:
            return self._of_class
        try:
            name, signature = program.program.name, program.__signature__
        except CorruptArtifactError:  # it holds no program
            return self._of_class
        return f"{name if name.isidentifier() else 'program'}{signature}\n\n{_CALL}"


class CompiledProgram:
    """A program, compiled and bound to a backend; it loads itself at its first call.

    Made by `trunnion.compile`, and from what was built before by `from_artifact`.

    Parameters
    ----------
    built
        What was built, or is to be built when it is first needed.
    runtime
        The tensor library; None: for CUDA the simulator's if it runs in this process, else torch's.
    """

    # A call is looked up in the class, whose slot gives what the object has: no function of Python's comes between.
    __slots__ = {"__call__": _CALL, "__dict__": "", "__weakref__": ""}
    __call__: Callable[..., Any]
    __signature__ = _Signature()
    __doc__ = _Help(__doc__)

    def __init__(self, built: BuiltProgram, runtime: Runtime | None = None) -> None:
        self._built = built
        self._spec = built.spec
        self._runtime = runtime
        self._loading = Turns("the program is being loaded")
        self._held: LoadedProgram | None = None
        """What is to be closed: there from the moment that it is loaded, whatever ends the load behind it."""
        self._loaded: _Loaded | None = None
        _set_call(self, _first_call(self))
        self._closed = False

    @classmethod
    def from_artifact(
        cls,
        artifact: Artifact | str | PathLike[str],
        *,
        digest: str | Iterable[str] | None = None,
        trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None = None,
        registry: Registry | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Take up a built program; no compiler is asked. At its first call it runs native code: load what you trust.

        Parameters
        ----------
        artifact
            An artifact, or the folder that `Artifact.save` wrote; every byte of it is verified.
        digest
            What `Artifact.digest` must be, or a list of those that are allowed. Without it and trusted keys, a folder
            and its files must be root's or this user's, and nobody else may write to them.
        trusted_keys
            Public keys, or their files: a folder that none of them signed (``trunnion sign``) is refused, and so is an
            artifact in memory, beside which no signature lies.
        registry
            The plugins to choose from; None: those that are installed.
        runtime
            The tensor library; None: `trunnion.torch_runtime.default_runtime`.

        Raises
        ------
        ArtifactError
            If there is no folder of that name, or another version built it.
        CorruptArtifactError
            If the artifact is not whole, or its launcher's text is what runs and is not what its program makes of it.
        UntrustedArtifactError
            If its digest is another, or none of the keys signed it, or somebody else could have written it, or a key.
        ArgumentTypeError, ArgumentValueError
            If it is no artifact, or the registry, the runtime, the digest or a key is none.
        UnknownBackendError, BackendUnavailableError
            If the backend that built it is not installed, or cannot work here, or keys are trusted, and the library
            ``cryptography`` is not installed.
        """
        expect_runtime(runtime)
        expect(artifact, (Artifact, str, PathLike), "artifact", "an Artifact, or the folder of one")
        plugins = default_registry() if registry is None else registry
        expect(plugins, Registry, "registry", "a Registry")
        vouching = Vouching.of(digest, trusted_keys)
        if is_a(artifact, Artifact):
            whole, folder = artifact, None
        else:
            whole, folder = Artifact.open(artifact, trusted=not vouching.vouches), file_path(artifact)
        vouching.check(folder, ARTIFACT, whole.digest)
        return cls(BuiltProgram(whole, plugins.backend(whole.manifest.backend)), runtime)

    # What it is ------------------------------------------------------------------------------------------------

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self._spec.name

    @property
    def artifact(self) -> Artifact:
        """What was built; it is built now if it was not before.

        What a cache had is compared first with what this version writes for the program, as before a first call; if
        that is something else, it is built again.

        Raises
        ------
        CorruptArtifactError
            If it was built from another text, and not kept by a cache.
        """
        return self._used(lambda artifact: artifact)

    @property
    def target(self) -> Target:
        """What it was compiled for; if it was not compiled yet, it is now."""
        return self._built.target

    @property
    def kind(self) -> str:
        """The kind of device that it runs on, such as ``"cuda"``; nothing is compiled to know that."""
        return self._built.kind

    @property
    def program(self) -> KernelProgram:
        """The program.

        Raises
        ------
        CorruptArtifactError
            If the artifact holds none.
        """
        return self._built.program

    @property
    def plan(self) -> LaunchPlan:
        """The plan of its launches.

        Raises
        ------
        CorruptArtifactError
            If the artifact's program is not the one that its launcher was made from.
        """
        return self._built.source.plan

    @property
    def host_source(self) -> str:
        """The launcher's source, as the artifact holds it."""
        return self._built.source.text

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
        ArgumentTypeError
            If the kind is no text.
        ArgumentValueError
            If the artifact holds no image of that kind.
        """
        kind = expect_text(kind, "kind", "the kind of an image, as text, such as 'cubin'")
        images = self.artifact.images
        if kind not in images:
            kept = ", ".join(images) or "none"
            raise ArgumentValueError("kind", shorten(kind), f"the kind of an image that is kept ({kept})")
        return images[kind]

    @property
    def kernels(self) -> CompiledKernels:
        """What each kernel takes of a device, by the name that the program calls it: read from the image.

        Registers, shared and local memory, bounds of blocks and clusters, the parameters' table; no driver and no
        device are asked. If it was not compiled yet, it is now.

        Raises
        ------
        CorruptArtifactError
            If the image cannot be read, or lacks a kernel.
        """
        return compiled_kernels(self.artifact)

    def __repr__(self) -> str:
        target = str(self.target) if self._built.is_built else f"{self._built.kind}, at its first call,"
        with suppress(CorruptArtifactError):  # it holds no program
            return f"<CompiledProgram {shorten(self.program.name)} for {target} by {self.backend}>"
        return f"<CompiledProgram for {target} by {self.backend}>"

    # Calls -----------------------------------------------------------------------------------------------------

    @kept_property
    def _convention(self) -> Convention:
        """How a call is written."""
        return Convention.of(self.program.signature, self._built.kind)

    def bind(
        self, /, *args: Any, out: Any = None, stream: Any = None, device: Any = None, **named: Any
    ) -> BoundLaunch:
        """Check everything now, and return a launch of these tensors and numbers that can be repeated.

        Parameters and errors are those of a call, but nothing is launched yet. Outputs and workspaces that are not
        given are allocated now, and are the same each time; a stream of None is the one that is current now. See
        `BoundLaunch`.

        Returns
        -------
        BoundLaunch
            Calling it launches. It keeps the tensors alive.

        Raises
        ------
        CorruptArtifactError
            If the artifact holds no program, which says how its arguments are bound; a call may do without.
        """
        loaded, convention = self._load(), self._convention
        given = convention.arguments(args, named) if named else args
        out, stream, device = convention.words(out, stream, device)
        bound = loaded.bind(given, out=out, stream=stream, device=device)
        return BoundLaunch(
            loaded.runtime.guarded(bound.entry),
            name=self.program.name,
            device=bound.device,
            stream=bound.stream,
        )

    @property
    def entry(self) -> Callable[..., Any]:
        """The launcher itself: takes, checks, returns and raises what a call does. Taking it loads the program.

        Once loaded, a call is this function, reached through the program; who launches often may keep it in a variable.
        It keeps the program's code loaded; after `close` it raises `LifecycleError`.
        """
        return self._load().entry

    def as_torch_op(self, name: str, **said: Any) -> Any:
        """Register the program as an operator of torch.

        Parameters
        ----------
        name
            What the operator is called, such as ``"mine::scale"``.
        **said
            What `trunnion.torch_op` takes beside, which says what is returned and raised.
        """
        from trunnion.operators.registration import torch_op  # noqa: PLC0415 - it reads this module

        return torch_op(self, name, **said)

    # Life ------------------------------------------------------------------------------------------------------

    def _load(self) -> _Loaded:
        loaded = self._loaded
        if loaded is not None:
            return loaded
        with self._loading.turn():
            self._check_open()
            loaded = self._loaded
            if loaded is None:
                with ExitStack() as undo:
                    undo.callback(self._unload)
                    loaded = self._made()
                    undo.pop_all()
                self._loaded = loaded
                _set_call(self, loaded.entry)
            # A handler that closed before found nothing, and could not wait; one that comes later finds what is loaded.
            if self._closed:
                self._unload()
            self._check_open()
            return loaded

    def _unload(self) -> None:
        held = self._held
        if held is not None:
            held.close()  # where it fails there is something left, which another close may end
        self._held = self._loaded = None  # what it holds goes with it, however long this object is kept
        _set_call(self, _first_call(self))

    def _check_open(self) -> None:
        if self._closed:
            raise LifecycleError("the program was closed; compile or load it again")

    def _made(self) -> _Loaded:
        def load(artifact: Artifact) -> _Loaded:
            self._unload()  # what an interrupt left of a load before this one
            runtime = self._runtime or default_runtime(self._built.kind)
            adapter = make_part(self._spec, self._spec.load_adapter, KernelAdapter, self._spec)
            self._held = program = adapter.load(artifact, runtime)
            return _Loaded(
                program,
                runtime,
                runtime.guarded(program.entry),
                runtime.guarded(program.bind),
            )

        return self._used(load)

    def _used(self, use: Callable[[Artifact], _T]) -> _T:
        """Return what is made of the artifact, after a look that it is this version's.

        One that a cache kept, and of which nothing can be made, is built again.
        """
        artifact = self._built.artifact
        try:
            self._built.confirm()
            return use(artifact)
        except CorruptArtifactError as error:
            rebuilt = self._built.rebuilt(artifact)
            if rebuilt is None:
                raise
            self._built.confirm()
            text = f"artifact {artifact.manifest.key[:12]} was kept and cannot be used; it was built again: {error}"
            # It may raise: nothing is loaded yet that would be lost.
            self._built.tell(text, CorruptArtifactWarning)
            return use(rebuilt)

    def preload(self, device: Any = None) -> None:
        """Do for ``device``, now, all that a first launch would do, so that it can be captured.

        Cache is set aside for windows whose length is the same in every call. Where it depends on the call, `bind` sets
        it aside, and a call that is not captured; see `LoadedProgram.preload`.

        Parameters
        ----------
        device
            An ordinal, or a device such as ``"cuda:1"``, or ``"cuda"`` for the thread's current one; None: that one.

        Raises
        ------
        ArgumentError
            If it is neither, or there is no such device.
        DeviceRequirementError
            If the device is too small for the program, or the driver too old.
        DriverError
            If the driver refuses.
        """
        kind = self._built.kind
        self._load().program.preload(expect_ordinal(kind if device is None else device, kind))

    warmup = preload
    """What others call it."""

    def close(self) -> None:
        """Wait for the program's launches, then unload it. Nothing else unloads; calling it again does nothing.

        Raises
        ------
        LifecycleError
            If the calling thread is inside a launch of this program, which would have to wait for itself. A load that
            it is inside of ends in that error instead.
        CaptureError
            If some stream is being captured; another close tries again.
        DriverError
            If the driver refuses.
        """
        self._closed = True
        if self._loaded is None:
            if self._loading.is_mine():  # whoever loads, further up, finds it closed
                return
            with self._loading.turn():
                pass
        # In nobody's turn: a launch under way, which this waits for, may ask for one.
        self._unload()

    # It is one thing of the process, as an open file: whoever has a copy has it.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a program that can be called cannot be pickled; pickle its artifact")

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
    bind: Callable[..., BoundLaunch]


def _first_call(program: CompiledProgram) -> Callable[..., Any]:
    """Return what a program calls before there is a launcher; it lies in the program, and so must not keep it."""
    there = weakref.ref(program)

    def first(*args: Any, **words: Any) -> Any:
        program = there()
        if program is None:
            raise LifecycleError("the program is gone: keep it, not only its __call__, until the first call")
        return program._load().entry(*args, **words)  # noqa: SLF001 - this module's own class

    return first


_set_call: Final = CompiledProgram.__dict__["__call__"].__set__
"""Set what a call of an object calls, in the slot of this very class: a subclass may have a ``__call__`` of its own."""
