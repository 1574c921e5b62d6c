"""A compiled program: what it tells of itself; and its end: what was loaded goes with it, and every call says so."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

import trunnion
from trunnion import CompiledProgram
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.location import VARIABLE
from trunnion.artifacts.manifest import FileRecord
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import CorruptArtifactWarning
from trunnion.built_program import BuiltProgram
from trunnion.bundles.bundle import Bundle
from trunnion.bundles.writing import write_bundle
from trunnion.contract.convention import Convention
from trunnion.errors import CaptureError, CorruptArtifactError, DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.selection import load_part
from trunnion.sim.trace import Launched
from trunnion.testing.interruption import interrupting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'


def ones() -> KernelProgram:
    builder = ProgramBuilder("ones", DeviceCode("cuda", KERNEL))
    x = builder.input("x", "float32", (8,), access="write")
    builder.launch("k", (x,), 1, 8)
    return builder.build()


def still_loaded(simulator: Any) -> int:
    """Return how many of the libraries that were loaded since the trace was cleared were not unloaded."""
    events = [type(event).__name__ for event in simulator.trace]
    return events.count("LibraryLoaded") - events.count("LibraryUnloaded")


@pytest.fixture
def program(backend: str) -> Any:
    return trunnion.compile(ones(), backend, compiler="nvrtc", target="sm_90")


@pytest.fixture
def kept(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Artifact, Callable[[], Any]]:
    """What an emitter of the same version wrote otherwise, kept; and what compiles the program in that cache."""
    spec = trunnion.default_registry().backend(backend)
    wrapper = load_part(spec, spec.load_wrapper)
    emit = wrapper.emit

    def otherwise(self: Any, plan: Any) -> Any:
        made = emit(self, plan)
        return replace(made, text=made.text + ("// other\n" if made.language == "c++" else "# other\n"))

    def compiled() -> Any:
        return trunnion.compile(ones(), backend, compiler="nvrtc", target="sm_90", cache=tmp_path / "store")

    before = compiled().artifact
    monkeypatch.setattr(wrapper, "emit", otherwise)
    return before, compiled


def call(program: Any, simulator: Any, folder: Path) -> None:
    with simulator.torch_mode():
        program(torch.zeros(8, device="cuda"))


def bind(program: Any, simulator: Any, folder: Path) -> None:
    with simulator.torch_mode():
        program.bind(torch.zeros(8, device="cuda"))


def preload(program: Any, simulator: Any, folder: Path) -> None:
    program.preload(0)


def enter(program: Any, simulator: Any, folder: Path) -> None:
    assert program.entry is program.entry


def take(program: Any, simulator: Any, folder: Path) -> None:
    assert program.artifact is program.artifact


def save(program: Any, simulator: Any, folder: Path) -> None:
    program.artifact.save(folder / "saved")
    assert Artifact.open(folder / "saved") == program.artifact


def export(program: Any, simulator: Any, folder: Path) -> None:
    write_bundle(folder / "all.trn", {"ones": program})
    bundle = Bundle.open(folder / "all.trn")
    (variant,) = bundle.index.variants
    assert bundle.artifact(variant) == program.artifact.unkeyed()


@pytest.mark.parametrize("use", [call, bind, preload, enter, take, save, export])
def test_what_an_emitter_of_the_same_version_wrote_otherwise_is_built_again_before_it_is_used(
    backend: str,
    simulator: Any,
    tmp_path: Path,
    kept: tuple[Artifact, Callable[[], Any]],
    use: Callable[[Any, Any, Path], None],
) -> None:
    before, compiled = kept
    program = compiled()
    with pytest.warns(CorruptArtifactWarning, match="built again") as told:
        use(program, simulator, tmp_path)
    assert told[0].filename == __file__
    assert program.artifact.digest != before.digest
    assert program.artifact == compiled().artifact
    assert program.host_source.endswith(" other\n")
    program.close()


def test_the_cache_that_nobody_asked_for_does_not_warn_of_what_is_built_again(
    backend: str,
    tmp_path: Path,
    kept: tuple[Artifact, Callable[[], Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "store"))
    program = trunnion.compile(ones(), backend, compiler="nvrtc", target="sm_90")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program.artifact.digest != kept[0].digest
    (told,) = [record.getMessage() for record in caplog.records if record.name == "trunnion"]
    assert "built again" in told


def test_where_a_warning_is_an_error_nothing_of_what_is_built_again_is_loaded(
    backend: str,
    simulator: Any,
    tmp_path: Path,
    kept: tuple[Artifact, Callable[[], Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody could close it."""
    spec = trunnion.default_registry().backend(backend)
    adapter, loaded = load_part(spec, spec.load_adapter), []
    load = adapter.load
    monkeypatch.setattr(adapter, "load", lambda *given: loaded.append(load(*given)) or loaded[-1])
    program = kept[1]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CorruptArtifactWarning, match="built again"):
            call(program, simulator, tmp_path)
        assert not loaded
        call(program, simulator, tmp_path)
    program.close()


def test_what_was_built_of_another_text_and_not_kept_is_refused(
    backend: str, kept: tuple[Artifact, Callable[[], Any]]
) -> None:
    """Nobody can build it again."""
    before, compiled = kept
    known = compiled()._built._known
    program = CompiledProgram(BuiltProgram(before, trunnion.default_registry().backend(backend), known))
    with pytest.raises(CorruptArtifactError, match="not what this version writes"):
        _ = program.artifact


def refuse(program: Any, x: torch.Tensor) -> None:
    """Have every way to call it say that it was closed."""
    ways: tuple[Callable[[], object], ...] = (
        lambda: program(x),
        lambda: program(x, stream=0),
        lambda: program.bind(x),
        lambda: program.entry(x),
        lambda: program.preload(0),
    )
    for way in ways:
        with pytest.raises(LifecycleError, match="the program was closed"):
            way()


def closed(program: Any, x: torch.Tensor) -> weakref.ref[Any]:
    """Use a program, close it, and refer to what was loaded."""
    program(x)
    loaded, entry, bound = weakref.ref(program._load().program), program.entry, program.bind(x)
    program.close()
    refuse(program, x)
    for taken in (lambda: entry(x), bound):
        with pytest.raises(LifecycleError, match="the program was closed"):
            taken()
    program.close()
    return loaded


def test_what_was_loaded_goes_at_the_close_though_the_program_is_kept(program: Any, simulator: Any) -> None:
    with simulator.torch_mode():
        loaded = closed(program, torch.zeros(8, device="cuda:0"))
    gc.collect()
    assert loaded() is None
    assert program.plan.kernels


@pytest.mark.parametrize("was", ["never called", "closed"])
def test_it_goes_without_the_collector(program: Any, simulator: Any, was: str) -> None:
    subject = CompiledProgram.from_artifact(program.artifact)
    if was == "closed":
        with simulator.torch_mode():
            closed(subject, torch.zeros(8, device="cuda:0"))
    kept, call = weakref.ref(subject), subject.__call__
    gc.collect()
    gc.disable()
    try:
        del subject
        assert kept() is None
    finally:
        gc.enable()
    with pytest.raises(LifecycleError, match="the program is gone: keep it"):
        call()


def test_a_handler_that_closes_at_any_moment_of_the_load_leaves_nothing_loaded(
    program: Any, simulator: Any
) -> None:
    """Nor what could still be called: whoever closed it may think that its image is gone."""

    def of_the_load(frame: FrameType) -> bool:
        return frame.f_code in (CompiledProgram._load.__code__, CompiledProgram._check_open.__code__)

    x, place, struck = simulator.tensor(torch.zeros(8)), 0, True
    while struck:
        fresh, place = CompiledProgram.from_artifact(program.artifact), place + 1
        simulator.clear_trace()
        with suppress(LifecycleError), interrupting(of_the_load, place, fresh.close) as interruption:
            fresh(x)
        struck = interruption.struck
        if struck:
            assert still_loaded(simulator) == 0, place
            refuse(fresh, x)
        fresh.close()
        assert still_loaded(simulator) == 0, place
    assert place > 5


def test_an_interrupted_load_leaves_nothing_loaded_and_the_next_one_begins_anew(
    program: Any, simulator: Any
) -> None:
    codes = (CompiledProgram._load, CompiledProgram._made, CompiledProgram._used, simulator.runtime.guarded)

    def of_the_load(frame: FrameType) -> bool:
        return frame.f_code in [one.__code__ for one in codes]

    x, place, struck = simulator.tensor(torch.zeros(8)), 0, True
    while struck:
        fresh, place = CompiledProgram.from_artifact(program.artifact), place + 1
        simulator.clear_trace()
        with suppress(KeyboardInterrupt), interrupting(of_the_load, place) as interruption:
            fresh(x)
        struck = interruption.struck
        fresh(x)
        assert still_loaded(simulator) == 1, place
        fresh.close()
        assert still_loaded(simulator) == 0, place
    assert place > 20


def test_a_program_that_was_loaded_and_cannot_be_used_is_closed(
    program: Any, simulator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise OSError

    monkeypatch.setattr(simulator.runtime, "guarded", refused)
    simulator.clear_trace()
    with pytest.raises(OSError):
        program(simulator.tensor(torch.zeros(8)))
    assert "LibraryUnloaded" in [type(event).__name__ for event in simulator.trace]


def test_an_interrupted_close_is_ended_by_another(program: Any, simulator: Any) -> None:
    def of_the_close(frame: FrameType) -> bool:
        return frame.f_code in (CompiledProgram.close.__code__, CompiledProgram._unload.__code__)

    x, place, struck = simulator.tensor(torch.zeros(8)), 0, True
    while struck:
        fresh, place = CompiledProgram.from_artifact(program.artifact), place + 1
        fresh(x)
        simulator.clear_trace()
        with suppress(KeyboardInterrupt), interrupting(of_the_close, place) as interruption:
            fresh.close()
        fresh.close()
        assert [type(event).__name__ for event in simulator.trace].count("LibraryUnloaded") == 1, place
        refuse(fresh, x)
        struck = interruption.struck
    assert place > 3


def test_a_close_that_was_refused_is_tried_again(program: Any, simulator: Any) -> None:
    with simulator.torch_mode():
        x = torch.zeros(8, device="cuda:0")
        program(x)
        refused = pytest.raises(CaptureError)
        with suppress(DriverError), simulator.capture(mode="global"), refused:  # the attempt invalidates it
            program.close()
        before = len(simulator.trace)
        refuse(program, x)
        program.close()
    assert "LibraryUnloaded" in [type(event).__name__ for event in simulator.trace[before:]]


def test_it_tells_how_it_is_called(program: Any) -> None:
    told = "(x: 'float32[8]', *, out=None, stream=None, device=None)"
    assert str(inspect.signature(program)).removesuffix(" -> None") == told
    shown = pydoc.render_doc(program, renderer=pydoc.plaintext)
    assert f"ones{told}" in shown
    assert "ArgumentError" in shown
    assert inspect.signature(CompiledProgram).parameters.keys() == {"built", "runtime"}
    assert (CompiledProgram.__doc__ or "").startswith("A program")


def test_if_its_program_is_not_known_it_tells_what_its_class_does_and_cannot_be_bound(
    program: Any, backend: str, simulator: Any
) -> None:
    files = {name: data for name, data in program.artifact.files.items() if name != PROGRAM_FILE}
    records = {name: FileRecord.of(data) for name, data in files.items()}
    bare = Artifact(replace(program.artifact.manifest, files=records), files)
    if backend == "nvrtc":  # a launcher that is text is compared with what its program makes of it
        with pytest.raises(CorruptArtifactError):
            CompiledProgram.from_artifact(bare)
        return
    loaded = CompiledProgram.from_artifact(bare)
    assert loaded.__doc__ == CompiledProgram.__doc__
    assert repr(loaded) == f"<CompiledProgram for {loaded.target} by {backend}>"
    x = simulator.tensor(torch.zeros(8))
    loaded(x)
    with pytest.raises(
        CorruptArtifactError, match=r"program\.json: .*missing.*; build it again from the program"
    ):
        loaded.bind(x)
    loaded.close()


def test_nothing_stands_between_a_call_and_its_launcher(program: Any, simulator: Any) -> None:
    x = simulator.tensor(torch.zeros(8))
    program(x)
    assert program.__call__ is program.entry
    program(x=x)
    program(x=x, stream=0, device="cuda:0", out=None)
    assert len([one for one in simulator.trace if isinstance(one, Launched)]) == 3


def test_a_subclass_may_have_a_call_of_its_own(program: Any, simulator: Any) -> None:
    class Counting(CompiledProgram):
        calls = 0

        def __call__(self, *args: Any, **named: Any) -> Any:  # type: ignore[override]  # a slot there
            self.calls += 1
            return super().__call__(*args, **named)

    counting = Counting.from_artifact(program.artifact)
    x = simulator.tensor(torch.zeros(8))
    counting(x)
    counting(x=x)
    assert counting.calls == 2
    counting.close()
    with pytest.raises(LifecycleError):
        counting(x)


def test_no_lock_is_held_while_a_program_finds_out_how_it_is_called(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that is forked in the middle would wait for it for ever."""
    two, both, find = (
        [CompiledProgram.from_artifact(program.artifact) for _ in range(2)],
        threading.Barrier(2),
        Convention.of,
    )

    def found(*given: Any) -> Convention:
        both.wait(20)  # a lock over this would never let the second in
        return find(*given)

    monkeypatch.setattr(Convention, "of", found)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(inspect.signature, two)
    assert first == second


def test_a_copy_is_the_program_itself(program: Any) -> None:
    assert copy.copy(program) is program
    assert copy.deepcopy([program])[0] is program
    with pytest.raises(TypeError, match="pickle its artifact"):
        pickle.dumps(program)


@pytest.mark.parametrize("handle", [2**63, 2**64 - 1])
def test_every_handle_of_a_stream_comes_to_the_driver(program: Any, simulator: Any, handle: int) -> None:
    x = simulator.tensor(torch.zeros(8))
    with pytest.raises(DriverError, match="INVALID_HANDLE"):
        program(x, stream=handle)


def test_a_closed_one_says_so_whatever_it_is_called_with(program: Any, simulator: Any) -> None:
    program(simulator.tensor(torch.zeros(8)))
    entry = program.entry
    program.close()
    for args in ((), (3,), (1, 2, 3)):
        with pytest.raises(LifecycleError):
            entry(*args)


def test_what_is_warmed_up_by_default_is_the_current_device(program: Any, simulator: Any) -> None:
    program.warmup()
    with simulator.capture(device=0) as graph:  # which forbids a first launch
        program(simulator.tensor(torch.ones(8), 0))
    assert graph.nodes
