"""What a handler raises, where a signal may raise it: before its first step, after its last, anywhere."""

import ctypes
import signal
import threading

import pytest

from trunnion.sim.status import Status
from trunnion.testing.interruption import interrupting


def of_the_simulator(frame):
    return "/trunnion/sim/" in frame.f_code.co_filename


def count(library):
    found = ctypes.c_int(-1)
    return library("cuDeviceGetCount", ctypes.byref(found)), found.value


def test_wherever_it_is_raised_the_status_says_so_and_the_exception_is_pending(library, simulator):
    with interrupting(of_the_simulator) as counted:
        assert count(library)[0] is Status.SUCCESS
    assert counted.places > 5
    for place in range(1, counted.places + 1):
        with interrupting(of_the_simulator, place):
            status, _ = count(library)
        assert status is Status.UNKNOWN
        with pytest.raises(KeyboardInterrupt):
            simulator.raise_pending()
    assert count(library) == (Status.SUCCESS, simulator.devices)


def raising_a_signal(call):
    signal.raise_signal(signal.SIGINT)


def raising_from_elsewhere(call):
    thread = ctypes.c_ulong(threading.get_ident())
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(KeyboardInterrupt))


@pytest.mark.parametrize("body", [raising_a_signal, raising_from_elsewhere])
def test_a_signal_during_a_launch_arrives_at_whoever_launched(library, simulator, body):
    library.context()
    kernel = library.kernel("empty")
    simulator.register_body("empty", body)

    def launch():
        return simulator.call(library.launch, kernel, stream=library.handle("cuStreamCreate", 1))

    with pytest.raises(KeyboardInterrupt):
        launch()
    simulator.unregister_body("empty")
    assert launch() is Status.SUCCESS


def test_what_one_thread_raises_is_not_another_s(library, simulator):
    with interrupting(of_the_simulator, 1):
        assert count(library)[0] is Status.UNKNOWN
    seen = []

    def other():
        seen.append((count(library)[0], simulator.has_pending()))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [(Status.SUCCESS, False)]
    with pytest.raises(KeyboardInterrupt):
        simulator.raise_pending()


def test_contexts_are_as_before_a_call_that_was_interrupted(library, simulator):
    context = library.context()
    before = list(simulator.state.stack())

    def uneven():
        library("cuCtxPushCurrent_v2", context)
        simulator.keep_pending(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        simulator.call(uneven)
    assert list(simulator.state.stack()) == before


def test_a_driver_s_call_leaves_alone_what_is_being_raised(library, simulator):
    """A finalizer that unloads runs while an exception is on its way."""

    class Unloading:
        def __del__(self):
            count(library)

    def failing():
        kept = Unloading()
        raise LookupError(kept)

    with pytest.raises(LookupError):
        failing()
