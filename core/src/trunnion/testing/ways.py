"""The ways in: how a program comes to be callable, and how a call of it is made. A law about calls holds by every one.

A way is two choices: what becomes of the artifact before the first call, and which of the program's functions makes the
call. A call that a way cannot say, such as one on a stream while one is captured, is made by `LoadedProgram.call`, and
does not count as made in that way.
"""

from __future__ import annotations

import functools
import gc
import tempfile
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trunnion.artifacts.artifact import Artifact
from trunnion.built_program import BuiltProgram, KnownProgram, PendingArtifact
from trunnion.compiled import CompiledProgram
from trunnion.contract.adapter import BoundLaunch, LoadedProgram
from trunnion.errors import CaptureError
from trunnion.launcher.l2_persisting import SetAsideWarning
from trunnion.registry import Registry
from trunnion.sim.trace import Captured
from trunnion.testing.observed import Observed, is_work, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.program import KernelProgram
    from trunnion.sim.trace import Allocated
    from trunnion.testing.harness import Harness

__all__ = [
    "CALLS", "LOADS", "NEEDS", "WAYS", "Arguments", "Way", "capture", "compiled_program", "kept", "stream_objects",
    "taken_up",
]  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Arguments:
    """What a call is made with; the tensors are true ones."""

    args: list[Any]
    """By position."""

    out: list[Any] | None = None
    """The destinations."""

    stream: int | None = None
    """The handle of the stream; None: the current one."""

    device: int | None = None
    """The ``device=`` of the call."""

    on: int = 0
    """The ordinal of the device that the call is for, whether it says so or not."""

    def launch(self, loaded: LoadedProgram) -> Any:
        """Make the call by `LoadedProgram.call`."""
        return loaded.call(self.args, out=self.out, stream=self.stream, device=self.device)

    def enter(self, loaded: LoadedProgram) -> Any:
        """Make the call by `LoadedProgram.entry`, with no other word than what is given."""
        out: Any = None if self.out is None else tuple(self.out)
        if out is not None and len(out) == 1 and hasattr(out[0], "data_ptr"):  # a tensor may stand alone
            (out,) = out
        words = {"out": out, "stream": self.stream, "device": self.device}
        return loaded.entry(*self.args, **{word: said for word, said in words.items() if said is not None})

    def bind(self, loaded: LoadedProgram) -> BoundLaunch:
        """Bind the call."""
        return loaded.bind(self.args, out=self.out, stream=self.stream, device=self.device)


# How a program becomes callable ----------------------------------------------------------------------------------


def _at_first_call(harness: Harness, artifact: Artifact, program: KernelProgram) -> LoadedProgram:
    del program
    return harness.load(artifact)


def _preloaded(harness: Harness, artifact: Artifact, program: KernelProgram) -> LoadedProgram:
    del program
    with ExitStack() as undo:
        loaded = harness.load(artifact)
        undo.callback(loaded.close)
        for device in harness.machine.alike:
            loaded.preload(device)
        undo.pop_all()
    return loaded


def _opened(harness: Harness, artifact: Artifact, program: KernelProgram) -> LoadedProgram:
    """Return what `trunnion.load` makes of the artifact, saved once, after the folder is gone."""
    if not any(saved is artifact for saved, _ in harness.opened):
        harness.opened[:] = [(artifact, _saved_and_opened(artifact))]
    built = _AsBuilt(harness.opened[0][1], _loading_as(harness))
    harness.require(built.program == program, "what was saved is another program than what was opened")
    return _ordinary(harness, built)


def _saved_and_opened(artifact: Artifact) -> Artifact:
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        artifact.save(Path(folder) / "saved")
        return Artifact.open(Path(folder) / "saved")


def _compiled(
    harness: Harness, artifact: Artifact, program: KernelProgram, *, lazy: bool = False
) -> LoadedProgram:
    """Return what `trunnion.compile` returns, as a loaded program."""
    known = KnownProgram(program, program.to_json(), lambda: harness.source(program))
    pending = PendingArtifact(harness.machine.kind, lambda: artifact, known) if lazy else artifact
    return _ordinary(harness, _AsBuilt(pending, _loading_as(harness), known))


def taken_up(
    harness: Harness, artifact: Artifact | Path, digest: str | list[str] | None = None
) -> LoadedProgram:
    """Return what `trunnion.load` makes of an artifact, or of the folder of one, as a loaded program.

    Parameters
    ----------
    harness
        The backend.
    artifact
        What was built.
    digest
        What its digest must be, or which it may be; None: any.

    Raises
    ------
    TrunnionError
        If it is refused.
    """
    registry = Registry(())
    registry.register(_loading_as(harness))
    runtime = harness.sabotage.runtime(harness.machine.runtime)
    return _Ordinary(
        CompiledProgram.from_artifact(artifact, digest=digest, registry=registry, runtime=runtime)
    )


def kept(
    harness: Harness,
    artifact: Artifact,
    program: KernelProgram,
    again: Callable[[Artifact], Artifact] | None,
    tell: Callable[[str, type[Warning]], None],
    *,
    lazy: bool = False,
) -> LoadedProgram:
    """Return what `trunnion.compile` makes of an artifact that it finds in a cache, as a loaded program.

    Parameters
    ----------
    harness
        The backend.
    artifact
        What was kept.
    program
        What is compiled.
    again, tell
        As `BuiltProgram` takes them.
    lazy
        Whether it is looked for when it is first needed.
    """
    known = KnownProgram(program, program.to_json(), lambda: harness.source(program))
    held = PendingArtifact(harness.machine.kind, lambda: artifact, known) if lazy else artifact
    built = BuiltProgram(held, _loading_as(harness), known, again, tell)
    return _ordinary(harness, built)


def _loading_as(harness: Harness) -> BackendSpec:
    """Return the backend, but loading as the harness does."""
    return replace(harness.spec, load_adapter=functools.partial(_adapter_of, harness))


def _ordinary(harness: Harness, built: BuiltProgram) -> LoadedProgram:
    return _Ordinary(CompiledProgram(built, harness.sabotage.runtime(harness.machine.runtime)))


class _AsBuilt(BuiltProgram):
    """A built program that is not compared with its plan: a saboteur has changed it, and the law has to notice."""

    def _check(self, artifact: Artifact) -> None:
        """Take every artifact."""

    def confirm(self) -> None:
        """Take every launcher."""


def _adapter_of(harness: Harness) -> type[KernelAdapter]:
    """Return the class of an adapter that loads as the harness does."""
    adapter = harness.adapter

    class Loading(type(adapter)):  # type: ignore[misc]  # a class that is known only now
        def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
            return harness.sabotage.loaded(harness.sabotage.adapter(adapter).load(artifact, runtime))

    return Loading


def compiled_program(loaded: LoadedProgram) -> CompiledProgram | None:
    """Return the program that `trunnion.compile` or `trunnion.load` returned, if a way made it callable by one."""
    return loaded.compiled if isinstance(loaded, _Ordinary) else None


class _Ordinary(LoadedProgram):
    """The program that `trunnion.compile` returns, called as people call it."""

    def __init__(self, program: CompiledProgram) -> None:
        self.compiled = program

    @property
    def entry(self) -> Callable[..., Any]:
        return self.compiled.entry

    def call(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Any:
        return self.compiled(*args, out=out, stream=stream, device=device)

    def bind(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> BoundLaunch:
        return self.compiled.bind(*args, out=out, stream=stream, device=device)

    def preload(self, device: int) -> None:
        self.compiled.preload(device)

    def close(self) -> None:
        self.compiled.close()


# How a call is made ----------------------------------------------------------------------------------------------


def _called(harness: Harness, loaded: LoadedProgram, given: Arguments) -> Observed:
    return observe(harness, lambda: given.launch(loaded), given_out=given.out)


def _entered(harness: Harness, loaded: LoadedProgram, given: Arguments) -> Observed:
    return observe(harness, lambda: given.enter(loaded), given_out=given.out)


def _written(harness: Harness, loaded: LoadedProgram, given: Arguments) -> Observed:
    """Make the call with the objects that people have: a stream, a device, of several kinds; a list of tensors."""
    kind = "cuda" if harness.machine.runtime.only_device is None else "cpu"
    device: Any = None if given.device is None else kind if kind == "cpu" else f"{kind}:{given.device}"
    turn = harness.made["written"]
    objects = None if given.stream is None else stream_objects(harness, given.stream)
    stream = None if objects is None else objects[turn % len(objects)]
    if turn % 2 and given.device is not None:
        device = harness.storage(1, given.device).device
    call = functools.partial(loaded.entry, *given.args, out=given.out, stream=stream, device=device)
    return observe(harness, call, given_out=given.out)


def stream_objects(harness: Harness, handle: int) -> tuple[Any, ...]:
    """Return the objects of several libraries for one stream."""
    return _Stream(handle), harness.machine.stream_object(handle), _NamedStream(handle)


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream of some library's."""

    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the protocol's version, and the handle (cuda.core, "CUDA stream protocol")."""
        return 0, self.handle


@dataclass(frozen=True, slots=True)
class _NamedStream:
    """A stream of a library that has not heard of the protocol."""

    cuda_stream: int


def _bound(
    harness: Harness, loaded: LoadedProgram, given: Arguments, *, times: int = 1, dropped: bool = False
) -> Observed:
    """Bind, then launch; what both did together is what a call does."""
    held: list[BoundLaunch] = []
    binding = observe(harness, lambda: held.append(given.bind(loaded)), given_out=given.out)
    harness.require(not binding.launches, "binding launched")
    if binding.error is not None:
        return binding
    decoys = _drop(harness, given, binding.allocations) if dropped else []
    observed = binding
    for _ in range(times):
        observed = observe(harness, held[0], given_out=given.out)
        if observed.error is not None:
            break
    del decoys
    return replace(observed, events=(*binding.events, *observed.events))


def _drop(harness: Harness, given: Arguments, allocated: Sequence[Allocated]) -> list[Any]:
    """Let go of the arguments, and take what memory that frees: none of what the launch is bound to may be there."""
    tensors = [x for x in given.args if hasattr(x, "untyped_storage")]
    held = [x.data_ptr() for x in tensors if x.numel()] + [one.address for one in allocated]
    sizes = [x.untyped_storage().nbytes() for x in tensors] + [one.nbytes for one in allocated]
    tensors.clear()
    given.args.clear()
    gc.collect()
    decoys = [harness.machine.empty(nbytes, given.on) for nbytes in sizes]
    for decoy in decoys:
        taken = [one for one in held if 0 <= one - decoy.data_ptr() < decoy.numel()]
        harness.require(not taken, f"the memory of a tensor that the launch is bound to was freed: {taken}")
    return decoys


def _captured(harness: Harness, loaded: LoadedProgram, given: Arguments) -> Observed | None:
    """Make the call while its stream is captured, then launch the graph that it became."""
    if given.stream is not None:
        return None
    graph, captured = capture(harness, loaded, given)
    if isinstance(captured.error, CaptureError):  # a first call may ask for what a capture forbids
        loaded.preload(given.on)
        graph, captured = capture(harness, loaded, given)
        if isinstance(captured.error, CaptureError):
            return None
    if captured.error is not None:
        return captured
    harness.machine.clear_trace()
    graph.launch()
    kept = [event for event in captured.events if not is_work(event)]
    return replace(captured, events=(*kept, *harness.sabotage.trace(harness.machine.trace)))


def capture(harness: Harness, loaded: LoadedProgram, given: Arguments) -> tuple[Any, Observed]:
    """Capture a call, and return the graph that it becomes, and what came of the call.

    Parameters
    ----------
    harness
        The backend.
    loaded
        The program.
    given
        What it is called with: no stream, since that is the capture's.

    Raises
    ------
    LawViolation
        If anything ran during the capture.
    """
    machine = harness.machine
    handle = machine.new_stream(given.on)
    with (
        warnings.catch_warnings(),
        machine.stream(handle, given.on),
        machine.capture(handle, given.on) as graph,
    ):
        warnings.simplefilter("ignore", SetAsideWarning)  # a capture may forbid to set cache aside
        captured = observe(harness, lambda: given.launch(loaded), given_out=given.out)
    ran = captured.error is None and any(is_work(event) for event in captured.events)
    harness.require(not ran, "work ran during the capture")
    events = tuple(event.event if isinstance(event, Captured) else event for event in captured.events)
    return graph, replace(captured, events=events)


NEEDS: Final[Mapping[str, frozenset[str]]] = {
    "any": frozenset({"sim", "gpu", "cpu"}),
    "launch": frozenset({"sim", "gpu", "cpu"}),
    "driver": frozenset({"sim", "gpu"}),
    "host": frozenset({"sim", "cpu"}),
    "sim": frozenset({"sim"}),
}
"""What can be asked of a machine, and the tiers whose machines answer: nothing, as by laws of a launcher's text;
delivered launches; what a driver of GPUs is asked to do; launches of several threads, told apart whatever their order;
what only the simulated one has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way in."""

    id: str
    """A word."""

    sentence: str
    """What is done."""

    load: Callable[[Harness, Artifact, KernelProgram], LoadedProgram] = _at_first_call
    """Makes an artifact callable."""

    make: Callable[[Harness, LoadedProgram, Arguments], Observed | None] = _called
    """Makes a call, and returns what came of it; None, and no effect, if the way cannot say such a call."""

    needs: str = "launch"
    """What it needs of a machine: a key of `NEEDS`."""

    @property
    def loads(self) -> bool:
        """Whether it is about how a program becomes callable, and calls are made as ever."""
        return self.make is _called


WAYS: Final[Mapping[str, Way]] = {
    way.id: way
    for way in (
        Way(id="call", sentence="`LoadedProgram.call`."),
        Way(id="entry", sentence="`LoadedProgram.entry`, with handles and ordinals.", make=_entered),
        Way(
            id="written",
            sentence="`LoadedProgram.entry`, with a stream and a device as objects, and destinations in a list.",
            make=_written,
        ),
        Way(id="bind", sentence="`LoadedProgram.bind`, then one launch.", make=_bound),
        Way(
            id="bind-again",
            sentence="`LoadedProgram.bind`, and the second launch of it.",
            make=functools.partial(_bound, times=2),
        ),
        Way(
            id="bind-dropped",
            sentence="`LoadedProgram.bind`, and a launch after the caller let go of its tensors.",
            make=functools.partial(_bound, dropped=True),
        ),
        Way(id="preload", sentence="A call after every device was preloaded.", load=_preloaded),
        Way(
            id="open",
            sentence="An ordinary call of what was saved, and taken up by `trunnion.load`.",
            load=_opened,
        ),
        Way(id="compiled", sentence="An ordinary call of what `trunnion.compile` returns.", load=_compiled),
        Way(
            id="lazy",
            sentence="The same, built at its first call.",
            load=functools.partial(_compiled, lazy=True),
        ),
        Way(
            id="capture",
            sentence="A call whose stream is captured, and its graph.",
            make=_captured,
            needs="driver",
        ),
    )
}
"""Every way in, by its id."""

LOADS: Final[tuple[str, ...]] = tuple(way.id for way in WAYS.values() if way.loads)
"""The ways that differ in how a program becomes callable alone: for laws that make their calls themselves."""

CALLS: Final[tuple[str, ...]] = ("call", *(way.id for way in WAYS.values() if not way.loads))
"""The ways that differ in how a call is made alone: for laws that make programs callable themselves."""
