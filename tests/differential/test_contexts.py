"""Which context of a device a program belongs to, where another one than the primary is current."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

import pytest

from trunnion.errors import CaptureError, TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.program import DeviceCode
from trunnion.sim.abi import Limit
from trunnion.sim.objects import Library
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Launched, LibraryUnloaded
from trunnion.sim.variables import variable_in
from trunnion.testing.strategies import TensorSpec

CODE = DeviceCode("cuda", "//")
X = (TensorSpec(dtype="float32", shape=(8,), strides=(1,)),)


def plain():
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.input("x", "float32", (8,)),), 1, 32)
    return p.build()


def remembering():
    p = ProgramBuilder("p", CODE)
    x, gain = p.input("x", "float32", (8,)), p.variable("gain", "float32", init=2.0)
    p.launch("k", (x, gain), 1, 32)
    return p.build()


def persisting():
    p = ProgramBuilder("p", CODE)
    x = p.input("x", "float32", (8,))
    p.launch("k", (x,), 1, 32, window=x.window(hit_ratio=0.75))
    return p.build()


class Contexts:
    """The contexts of device 0, by handle: the primary one, one that ``cuCtxCreate`` made, and a green one."""

    def __init__(self, simulator):
        self._simulator, self._library = simulator, ctypes.CDLL(simulator.library_path)
        self._call("cuInit", 0)
        self.primary = simulator.state.contexts[0].handle
        self.made = self._handle("cuCtxCreate_v2", 0, 0)
        self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self.green = self._handle("cuGreenCtxCreate", ctypes.c_void_p(1), 0, 1)

    def _call(self, name, *arguments):
        assert Status(self._library[name](*arguments)) is Status.SUCCESS

    def _handle(self, name, *arguments):
        out = ctypes.c_void_p()
        self._call(name, ctypes.byref(out), *arguments)
        return out.value

    @contextmanager
    def current(self, which):
        """Make one current, and see that it still is when the block ends."""
        stack = self._simulator.state.stack()
        before, context = list(stack), getattr(self, which)
        self._call("cuCtxPushCurrent_v2", ctypes.c_void_p(context))
        yield context
        assert [one.handle for one in stack] == [*(one.handle for one in before), context]
        del stack[len(before) :]

    def stream(self, which):
        with self.current(which):
            return self._handle("cuStreamCreate", 1)

    @contextmanager
    def replaced_green(self):
        """Let the green one be gone, and one that ``cuCtxCreate`` made have its handle, until the block ends."""
        self._call("cuGreenCtxDestroy", ctypes.c_void_p(self.green))
        made = self._handle("cuCtxCreate_v2", 0, 0)
        self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        assert made == self.green
        yield
        self._call("cuCtxDestroy_v2", ctypes.c_void_p(made))
        self.green = self._handle("cuGreenCtxCreate", ctypes.c_void_p(1), 0, 1)

    def end(self):
        self._call("cuCtxDestroy_v2", ctypes.c_void_p(self.made))
        self._call("cuGreenCtxDestroy", ctypes.c_void_p(self.green))


@pytest.fixture
def contexts(simulator):
    made = Contexts(simulator)
    yield made
    made.end()


def synchronized(simulator, work):
    """Return the contexts that were waited for in some work."""
    waited = []

    def note(proceed, *arguments):
        waited.append(simulator.state.current().handle)
        proceed(*arguments)

    with simulator.intercept("cuCtxSynchronize", note):
        work()
    return waited


@pytest.mark.parametrize("which", ["primary", "made", "green"])
def test_close_waits_in_the_primary_context_and_in_the_current_one(simulator, every_backend, contexts, which):
    with every_backend.loaded(plain()) as pair:
        for harness, loaded in pair.loaded:
            loaded.call(harness.arguments(X))
            with contexts.current(which) as current:
                assert set(synchronized(simulator, loaded.close)) == {contexts.primary, current}, harness


@pytest.mark.parametrize("which", ["made", "green"])
def test_a_device_is_prepared_in_its_primary_context(simulator, every_backend, contexts, which):
    state = simulator.state
    with every_backend.loaded(remembering()) as pair:
        for harness, loaded in pair.loaded:
            with contexts.current(which):
                loaded.preload(0)
            simulator.clear_trace()
            loaded.call(harness.arguments(X))
            (launched,) = [event for event in simulator.trace if isinstance(event, Launched)]
            library = state.get(Library, launched.library)
            gain = variable_in(state, library, library.info.variables[0].name, state.contexts[0])
            assert launched.parameters[1] == gain.address.to_bytes(8, "little"), harness
            assert state.memory.on(0).read(gain.address, 4) == b"\0\0\0\x40", harness


@pytest.mark.parametrize("which", ["made", "green"])
def test_cache_is_set_aside_in_the_primary_context(simulator, every_backend, contexts, which):
    limits, key = simulator.state.contexts[0].limits, Limit.PERSISTING_L2_CACHE_SIZE
    with every_backend.loaded(persisting()) as pair:
        for harness, loaded in pair.loaded:
            before = limits.get(key, 0)
            with contexts.current(which):
                loaded.call(harness.arguments(X))
                assert limits[key] > before, harness
                loaded.close()
                assert limits[key] == before, harness
            assert not simulator.state.handled[contexts.made].limits, harness


def bound(loaded, args, stream):
    loaded.bind(args, stream=stream)()


def called(loaded, args, stream):
    loaded.call(args, stream=stream)


@pytest.mark.parametrize("which", ["primary", "made", "green"])
@pytest.mark.parametrize("own", [False, True], ids=["default", "own"])
def test_where_a_program_with_variables_is_launched(every_backend, contexts, which, own):
    """In a context that has other ones than those that were written, nothing of it is."""
    with every_backend.loaded(remembering()) as pair:
        for harness, loaded in pair.loaded:
            args, stream = harness.arguments(X), contexts.stream(which) if own else None
            loaded.call(args)
            with contexts.current("primary" if own else which):
                for way in (called, bound):
                    if which != "made":
                        way(loaded, args, stream)
                        continue
                    with pytest.raises(TrunnionError) as caught:
                        way(loaded, args, stream)
                    assert caught.value.refusal == "stream-context", (harness, caught.value)


def test_a_bound_launch_looks_where_it_is_made(every_backend, contexts):
    with every_backend.loaded(remembering()) as pair:
        for harness, loaded in pair.loaded:
            bound = loaded.bind(harness.arguments(X), stream=0)
            bound()
            with contexts.current("made"), pytest.raises(TrunnionError, match="variables") as caught:
                bound()
            assert caught.value.refusal == "stream-context", harness
            with contexts.current("green"):
                bound()


@pytest.mark.parametrize("own", [False, True], ids=["default", "own"])
def test_a_green_context_is_asked_once_for_its_variables(simulator, every_backend, contexts, own):
    """Another one is asked anew, by whose handle it is reached when the first is gone."""
    asked = []

    def note(proceed, *arguments):
        asked.append(arguments)
        proceed(*arguments)

    with every_backend.loaded(remembering()) as pair:
        for harness, loaded in pair.loaded:
            args, stream = harness.arguments(X), contexts.stream("green") if own else 0
            loaded.call(args)
            with contexts.current("green"), simulator.intercept("cuLibraryGetGlobal", note):
                loaded.call(args, stream=stream)
                asked.clear()
                loaded.call(args, stream=stream)
                assert not asked, harness
            with (
                simulator.reusing_handles(),
                contexts.replaced_green(),
                contexts.current("green"),
                pytest.raises(TrunnionError) as caught,
            ):
                loaded.call(args, stream=contexts.stream("green") if own else 0)
            assert caught.value.refusal == "stream-context", harness


def test_what_is_not_found_in_another_context_is_told_alike(simulator, every_backend, contexts):
    told = set()
    with every_backend.loaded(remembering()) as pair:
        for harness, loaded in pair.loaded:
            args = harness.arguments(X)
            loaded.call(args)
            with (
                contexts.current("made"),
                simulator.fault("cuLibraryGetGlobal", Status.NOT_FOUND),
                pytest.raises(TrunnionError) as caught,
            ):
                loaded.call(args)
            told.add(str(caught.value))
    (text,) = told
    assert "the variable is" in text


def test_a_capture_that_forbids_one_wait_keeps_the_image_whatever_the_other_says(
    simulator, every_backend, contexts
):
    with every_backend.loaded(plain()) as pair:
        for harness, loaded in pair.loaded:
            loaded.call(harness.arguments(X))
            statuses = [Status.STREAM_CAPTURE_UNSUPPORTED, Status.UNKNOWN]

            def refuse(proceed, *arguments, statuses=statuses):
                raise Refusal(statuses.pop(0), "planted")

            before = sum(isinstance(one, LibraryUnloaded) for one in simulator.trace)
            with (
                contexts.current("made"),
                simulator.intercept("cuCtxSynchronize", refuse),
                pytest.raises(CaptureError),
            ):
                loaded.close()
            assert not statuses, harness
            after = sum(isinstance(one, LibraryUnloaded) for one in simulator.trace)
            assert after == before, harness
