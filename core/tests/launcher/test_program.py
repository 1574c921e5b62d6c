from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import CorruptArtifactError, DriverError, LifecycleError
from trunnion.examples import load
from trunnion.launcher.program import LauncherModule, PythonProgram
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols
from trunnion.testing.forked import CAN_FORK, told_by_a_child
from trunnion.testing.interruption import interrupting, is_of_backend

if TYPE_CHECKING:
    from types import FrameType

    from trunnion.model.program import KernelProgram

REFUSED = DriverError("cuAny", 999, "CUDA_ERROR_UNKNOWN")


def refuse(*_: object) -> None:
    raise REFUSED


def add() -> KernelProgram:
    return load("vector_add").program


def sized() -> KernelProgram:
    p = ProgramBuilder("sized", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x, n), 1, 32, dynamic_smem_bytes=n * 1024)
    return p.build()


def test_a_call_launches_what_it_says(any_rig: Any, tensor: Any) -> None:
    r = any_rig(add())
    a, b = tensor("float32", 1000), tensor("float32", 1000)
    c = r.program.entry(a, b)
    (launch,) = r.facade.launched
    assert (launch.kernel, launch.shape, launch.stream) == ("vector_add", (4, 1, 1, 256, 1, 1, 0), 100)
    pointers = [struct.unpack("<Q", raw)[0] for raw in launch.parameters[:3]]
    assert pointers == [a.address, b.address, c.address]
    assert launch.parameters[3] == struct.pack("<i", 1000)
    assert r.runtime.allocated == [(c, 100)]


def test_stream_and_out_are_taken(any_rig: Any, tensor: Any) -> None:
    r = any_rig(add())
    r.facade.stream_devices[7] = 1
    a, b, c = (tensor("float32", 5, ordinal=1) for _ in range(3))
    assert r.program.call((a, b), out=(c,), stream=7, device=1) is c
    assert r.facade.launched[0].stream == 7
    assert r.runtime.allocated == []
    assert [entry[0] for entry in r.facade.log].count("leave") == [entry[0] for entry in r.facade.log].count(
        "enter"
    )


def test_an_empty_grid_launches_nothing(any_rig: Any, tensor: Any) -> None:
    r = any_rig(add())
    c = r.program.entry(tensor("float32", 0, address=0), tensor("float32", 0, address=0))
    assert c.shape == (0,)
    assert r.facade.launched == []


@pytest.mark.parametrize("method", ["launch", "enter", "set_kernel_attribute"])
def test_a_refusal_leaves_everything_usable(any_rig: Any, tensor: Any, method: str) -> None:
    r = any_rig(sized())
    x = tensor("float32", 100, ordinal=1)
    r.facade.on[method] = refuse
    with pytest.raises(DriverError):
        r.program.entry(x)
    del r.facade.on[method]
    r.program.entry(x)
    assert len(r.facade.launched) == 1
    r.program.close()
    assert r.facade.count("unload") == 1


def test_shared_memory_is_raised_to_the_largest_size_and_no_further(any_rig: Any, tensor: Any) -> None:
    r = any_rig(sized())
    for size in (10, 60, 50, 61, 61):
        r.program.entry(tensor("float32", size))
    asked = [entry[4] for entry in r.facade.log if entry[0] == "set_kernel_attribute"]
    assert asked == [10 * 1024, 60 * 1024, 61 * 1024]


def test_a_call_within_a_call_has_a_frame_of_its_own(any_rig: Any, tensor: Any) -> None:
    r = any_rig(sized())
    inner = tensor("float32", 3)

    def nest(_: str) -> None:
        del r.facade.on["launch"]
        r.program.entry(inner)

    r.facade.on["launch"] = nest
    outer = tensor("float32", 7)
    r.program.entry(outer)
    seen = [
        (struct.unpack("<Q", p[0])[0], struct.unpack("<q", p[1])[0])
        for p in (x.parameters for x in r.facade.launched)
    ]
    assert seen == [(inner.address, 3), (outer.address, 7)]


def test_threads_do_not_mix(any_rig: Any, tensor: Any) -> None:
    r = any_rig(sized())
    barrier = threading.Barrier(4)

    def work(size: int) -> None:
        x = tensor("float32", size, address=size << 20)
        barrier.wait()
        for _ in range(300):
            r.program.call((x,), stream=size)

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(r.facade.launched) == 1200
    for launch in r.facade.launched:
        pointer, count = (
            struct.unpack("<Q", launch.parameters[0])[0],
            struct.unpack("<q", launch.parameters[1])[0],
        )
        assert (pointer >> 20, launch.shape[6] // 1024, launch.stream) == (count, count, count)
    r.program.close()


# Life ------------------------------------------------------------------------------------------------------------


def test_preload_does_what_a_first_launch_would(any_rig: Any, tensor: Any) -> None:
    r = any_rig(load("hopper_gemm").program)
    r.program.preload(1)
    r.program.preload(1)
    assert [entry[0] for entry in r.facade.log] == [
        "load",
        "kernel",
        "enter",
        "set_kernel_attribute",
        "leave",
    ]


def test_close_waits_unloads_once_and_refuses_from_then_on(any_rig: Any, tensor: Any) -> None:
    r = any_rig(sized())
    for ordinal in (1, 0):
        r.program.entry(tensor("float32", 5, ordinal=ordinal))
    r.program.close()
    r.program.close()
    assert sorted(entry[1] for entry in r.facade.log if entry[0] == "synchronize") == [0, 1]
    assert [entry[0] for entry in r.facade.log][-1] == "unload"
    assert r.facade.count("unload") == 1
    with pytest.raises(LifecycleError, match="closed"):
        r.program.entry(tensor("float32", 5))
    with pytest.raises(LifecycleError):
        r.program.preload(0)


@pytest.mark.parametrize("method", ["synchronize", "unload"])
def test_a_close_that_fails_still_does_every_step_and_only_once(
    any_rig: Any, tensor: Any, method: str
) -> None:
    r = any_rig(sized())
    for ordinal in (0, 1):
        r.program.entry(tensor("float32", 5, ordinal=ordinal))
    r.facade.on[method] = refuse
    with pytest.raises(DriverError):
        r.program.close()
    r.program.close()
    assert (r.facade.count("synchronize"), r.facade.count("unload")) == (2, 1)


def test_close_waits_for_a_call_under_way(any_rig: Any, tensor: Any) -> None:
    r = any_rig(sized())
    inside, go = threading.Event(), threading.Event()
    r.facade.on["launch"] = lambda _: (inside.set(), go.wait(60))
    caller = threading.Thread(target=r.program.entry, args=(tensor("float32", 5),))
    caller.start()
    inside.wait(60)
    closer = threading.Thread(target=r.program.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    assert r.facade.count("unload") == 0
    go.set()
    closer.join(60)
    caller.join(60)
    assert [entry[0] for entry in r.facade.log][-2:] == ["synchronize", "unload"]


def test_close_waits_for_no_call_that_an_interrupt_ended(any_rig: Any, tensor: Any) -> None:
    """A frame that was taken and not given back may live as long as the exception, which a debugger keeps."""
    r = any_rig(sized())
    r.program.entry(tensor("float32", 5))
    lost = r.program._context.pop()
    assert r.program._context.pool.busy()
    closer = threading.Thread(target=r.program.close, daemon=True)
    closer.start()
    closer.join(60)
    assert not closer.is_alive()
    assert r.facade.count("unload") == 1
    del lost


def test_a_program_cannot_be_closed_from_within_its_own_launch(any_rig: Any, tensor: Any) -> None:
    r = any_rig(sized())
    r.facade.on["launch"] = lambda _: r.program.close()
    with pytest.raises(LifecycleError, match="within its own launch"):
        r.program.entry(tensor("float32", 5))
    r.facade.on.clear()
    r.program.entry(tensor("float32", 5))
    r.program.close()
    assert r.facade.count("unload") == 1


def test_an_interrupted_close_is_ended_by_another(rig: Any, tensor: Any) -> None:
    """Wherever it was: each device is waited for, then the image unloaded once, and the cache is what it was."""
    p = ProgramBuilder("windowed", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", symbols("n"))
    p.launch("k", (x,), 1, 32, window=x.window())
    r, place, struck = rig(p.build()), 0, True
    tensors = [tensor("float32", 2000, ordinal=ordinal) for ordinal in (0, 1)]

    def of_the_launcher(frame: FrameType) -> bool:
        # What hypothesis has called for each garbage collection cannot be interrupted: nobody gets what it raises.
        others = ("/tests/", "/hypothesis/")
        return not any(one in frame.f_code.co_filename for one in others) and is_of_backend(frame)

    while struck:
        program, place = PythonProgram(r.module, b"image", ["k"], r.facade, r.runtime), place + 1
        for one in tensors:
            program.entry(one)
        assert r.facade.limit == 8000
        r.facade.log.clear()
        with suppress(KeyboardInterrupt), interrupting(of_the_launcher, place) as interruption:
            program.close()
        program.close()
        ends = [entry for entry in r.facade.log if entry[0] in ("synchronize", "unload")]
        assert {entry[1] for entry in ends[:-1]} == {0, 1}, place
        assert [entry[0] for entry in ends].index("unload") == len(ends) - 1, place
        assert r.facade.limit == 4096, place
        with pytest.raises(LifecycleError, match="closed"):
            program.entry(tensors[0])
        struck = interruption.struck
    assert place > 30


def test_a_program_cannot_be_closed_from_within_its_own_preparation(any_rig: Any, tensor: Any) -> None:
    """By a handler: what goes on behind it would prepare an image that is unloaded, and launch it later."""
    r = any_rig(load("hopper_gemm").program)
    r.facade.on["set_kernel_attribute"] = lambda *_: r.program.close()
    with pytest.raises(LifecycleError, match="within its own launch"):
        r.program.preload(1)
    r.facade.on.clear()
    r.program.preload(1)
    r.program.close()
    assert r.facade.count("unload") == 1


def test_a_preload_under_way_does_not_outlive_close(any_rig: Any, tensor: Any) -> None:
    """The state that it makes must not let a later call launch from an unloaded image."""
    r = any_rig(sized())
    inside, go = threading.Event(), threading.Event()
    r.facade.on["enter"] = lambda _: (inside.set(), go.wait(60))
    preloader = threading.Thread(target=r.program.preload, args=(0,))
    preloader.start()
    inside.wait(60)
    closer = threading.Thread(target=r.program.close)
    closer.start()
    closer.join(0.05)
    go.set()
    preloader.join(60)
    closer.join(60)
    r.facade.on.clear()
    with pytest.raises(LifecycleError):
        r.program.entry(tensor("float32", 5))
    assert r.facade.launched == []


def test_what_has_no_launcher_after_all_is_unloaded_again(any_rig: Any) -> None:
    """As where the tensor library has no such type."""
    r = any_rig(sized())
    r.facade.log.clear()
    with pytest.raises(DriverError):
        PythonProgram(replace(r.module, make=refuse), b"image", ["k"], r.facade, r.runtime)
    assert [entry[0] for entry in r.facade.log] == ["load", "kernel", "unload"]


@pytest.mark.skipif(not CAN_FORK, reason="this system cannot fork")
def test_a_child_that_goes_on_with_a_load_has_no_program(any_rig: Any, tensor: Any) -> None:
    """A handler forked in the middle of it: what is loaded is the parent's."""
    r = any_rig(sized())

    def leave_it_to_a_child(*_: object) -> None:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            os._exit(0)

    def called() -> str:
        r.facade.on["kernel"] = leave_it_to_a_child
        program = PythonProgram(r.module, b"image", ["k"], r.facade, r.runtime)
        program.entry(tensor("float32", 5))
        return "it launched"

    assert "LifecycleError" in told_by_a_child(called)


def test_an_image_that_lacks_a_kernel_is_unloaded_again(any_rig: Any) -> None:
    r = any_rig(sized())
    r.facade.log.clear()
    r.facade.on["kernel"] = refuse
    with pytest.raises(DriverError):
        PythonProgram(r.module, b"image", ["k"], r.facade, r.runtime)
    assert [entry[0] for entry in r.facade.log] == ["load", "kernel", "unload"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = (",
        "\0",
        "import nonesuch",
        "make = 1",
        "LAUNCHES = ENCODES = ()",
        "x = y",
        "1 + ''",
        "(1).x",
        "from os import nonesuch",
    ],
)
def test_what_is_no_launcher_is_a_corrupt_artifact(text: str) -> None:
    with pytest.raises(CorruptArtifactError, match="launcher"):
        LauncherModule.execute(text, "launcher.py", plan=lambda: None)


FORK = """
import os, sys, threading, importlib.util
spec = importlib.util.spec_from_file_location("rigs", sys.argv[1])
rigs = importlib.util.module_from_spec(spec); sys.modules["rigs"] = rigs; spec.loader.exec_module(rigs)
from trunnion.errors import LifecycleError
from trunnion.examples import load
from trunnion.model.dtypes import dtype
r = rigs.build_rig(load("vector_add").program)
x = rigs.FakeTensor(dtype("float32"), (5,))
r.program.entry(x, x)
inside, go = threading.Event(), threading.Event()
def hold(_): inside.set(); go.wait(20)
r.facade.on["launch"] = hold
caller = threading.Thread(target=r.program.entry, args=(x, x)); caller.start(); inside.wait(20)
held = r.program._context._preparing
grabbed, free = threading.Event(), threading.Event()
def grab():
    with held.turn(): grabbed.set(); free.wait(20)
grabber = threading.Thread(target=grab); grabber.start(); grabbed.wait(20)
pid = os.fork()
if pid == 0:
    r.facade.on.clear()
    r.facade.lock = threading.Lock()
    before = len(r.facade.log)
    try:
        r.program.entry(x, x)
    except LifecycleError as error:
        assert "fork" in str(error)
    else:
        os._exit(3)
    r.program.close()
    r.program.close()
    names = [entry[0] for entry in r.facade.log[before:]]
    os._exit(0 if not {"launch", "unload", "synchronize", "enter"} & set(names) else 4)
import time
end = time.monotonic() + 15
while time.monotonic() < end:
    done, status = os.waitpid(pid, os.WNOHANG)
    if done: break
    time.sleep(0.01)
else:
    os.kill(pid, 9); os.waitpid(pid, 0); status = 99 << 8
free.set(); go.set(); caller.join(); grabber.join(); r.facade.on.clear()
r.program.entry(x, x); r.program.close()
assert [entry[0] for entry in r.facade.log][-1] == "unload"
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_refuses_and_touches_no_driver() -> None:
    """Even if the parent had a call under way and held the lock: the child's `close` must come back."""
    here = os.fspath(Path(__file__).parents[1] / "conftest.py")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, here],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


WAYS = {
    "entry": lambda program, *args: program.entry(*args),
    "call": lambda program, *args: program.call(args),
    "call on a stream": lambda program, *args: program.call(args, stream=9),
    "bind": lambda program, *args: program.bind(args),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", ["close", "fork"])
def test_a_program_that_has_ended_allocates_nothing(any_rig: Any, tensor: Any, way: str, end: str) -> None:
    """In a forked child, a tensor library's own error about its allocator would hide what is wrong."""
    r = any_rig(add())
    a, b = tensor("float32", 5), tensor("float32", 5)
    r.program.entry(a, b)
    if end == "close":
        r.program.close()
    else:
        r.program._life.forget()
    r.runtime.allocated.clear()
    r.facade.log.clear()
    with pytest.raises(LifecycleError, match="closed" if end == "close" else "fork"):
        WAYS[way](r.program, a, b)
    assert r.runtime.allocated == []
    touched = {entry[0] for entry in r.facade.log} - {"stream_state"}
    assert touched == set()
    assert end == "close" or r.facade.log == []


@pytest.mark.parametrize("policy", ["launch", "stream"])
def test_windows_of_a_forked_child_ask_the_driver_nothing(any_rig: Any, tensor: Any, policy: str) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), n, 32, window=x.window(policy=policy))
    r = any_rig(p.build())
    r.program.entry(tensor("float32", 5))
    r.program._life.forget()
    r.facade.log.clear()
    for way in WAYS.values():
        with pytest.raises(LifecycleError, match="fork"):
            way(r.program, tensor("float32", 6))
    assert r.facade.log == []
