"""The direct entry where launches fail, programs are closed, threads meet, or a process forks."""

from __future__ import annotations

import gc
import os
import re
import struct
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.errors import ArgumentError, DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, gt

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.codegen.cpp.program import CppProgram
    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi

THREADS = 8
CALLS = 500


def several_launches() -> KernelProgram:
    """Return a program of three launches; the last one depends on a number."""
    builder = ProgramBuilder("several", DeviceCode("cuda", "// no text", name="several.cu"))
    n, m = Symbol("n", max=2**31 - 1), Symbol("m", max=2**31 - 1)
    x, count = builder.input("x", "float32", (n,)), builder.scalar("count", "int32", m)
    builder.launch("first", args=(x, count), grid=ceildiv(n, 256), block=256)
    builder.launch("second", args=(count,), grid=1, block=32)
    builder.launch("third", args=(x,), grid=1, block=32, when=gt(m, 10))
    return builder.build()


@pytest.fixture
def program(load: Callable[..., CppProgram]) -> CppProgram:
    program = load(several_launches())
    program.preload(0)
    return program


def address(tensor: torch.Tensor) -> bytes:
    return struct.pack("<Q", tensor.data_ptr())


# Failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("launch", [0, 1, 2])
def test_a_launch_that_fails_is_told_once_and_ends_the_call(
    program: CppProgram, driver: Any, launch: int
) -> None:
    x = torch.zeros(8)
    for _ in range(3):
        driver.reset(failing_from=launch)
        with pytest.raises(DriverError) as failed:
            program.entry(x, 11)
        assert (failed.value.call, failed.value.code) == ("cuLaunchKernelEx", 719)
        assert failed.value.code_name == "CUDA_ERROR_LAUNCH_FAILED"
        assert len(driver.launches) == launch + 1
    driver.reset()
    assert program.entry(x, 11) is None
    assert len(driver.launches) == 3


def test_a_failure_is_that_of_the_general_entry(program: CppProgram, driver: Any) -> None:
    def failure(entry: Callable[..., Any]) -> tuple[Any, ...]:
        driver.reset(failing_from=0)
        with pytest.raises(DriverError) as failed:
            entry(torch.zeros(8), 3)
        error = failed.value
        return str(error), error.call, error.code, error.code_name, type(error.__cause__)

    assert failure(program.entry) == failure(lambda *given: program.call(given))


def test_nothing_is_left_behind_by_a_failure(program: CppProgram, driver: Any) -> None:
    x = torch.zeros(8)
    driver.reset(failing_from=0)
    with pytest.raises(DriverError):
        program.entry(x, 3)
    assert sys.exc_info() == (None, None, None)
    driver.reset()
    with pytest.raises(TypeError, match="expected"):
        program._function("preload")("none")  # raises its own error, not the one before
    assert program.entry(x, 3) is None


@pytest.mark.parametrize("meanwhile", ["refused", "failed", "closed"])
def test_a_failure_is_told_whatever_happens_before_it_is(
    program: CppProgram, load: Any, driver: Any, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """A signal's handler or a finalizer may run, and another thread, before Python has the error."""
    other, run, x = load(several_launches()), program._run, torch.zeros(8)
    other.preload(0)

    def interrupted(function: Any, *given: Any) -> Any:
        monkeypatch.undo()
        if meanwhile == "closed":
            program.close()
        else:
            with pytest.raises(ArgumentError if meanwhile == "refused" else DriverError):
                other.entry(*((x,) if meanwhile == "refused" else (x, 1)))
        return run(function, *given)

    for launch in (lambda: program.entry(x, 11), program.bind((x, 11))):
        driver.reset(failing_from=0)
        monkeypatch.setattr(program, "_run", interrupted)
        with pytest.raises(DriverError) as told:
            launch()
        assert (told.value.call, told.value.code) == ("cuLaunchKernelEx", 719)
        if meanwhile == "closed":
            break
        driver.reset()


def test_what_asks_a_device_within_a_call_allocates_in_the_general_way() -> None:
    """There it is under way already, so that nobody closes the program meanwhile."""

    def generally(**fields: Any) -> bool:
        builder = ProgramBuilder("asking", DeviceCode("cuda", "// no text", name="asking.cu"))
        n, m = Symbol("n", max=2**31 - 1), Symbol("m", min=1, max=8)
        x, _ = builder.input("x", "float32", (n,)), builder.scalar("m", "int32", m)
        given = {name: m if value == "m" else value for name, value in fields.items()}
        if fields.get("cluster"):
            given["cluster"] = (m, 1, 1)
        grid = m if fields.get("cluster") else 1
        builder.launch("k", args=(x, builder.output("y", "float32", (n,))), grid=grid, block=32, **given)
        (rule,) = re.findall(r"call_rule<Call>\((.*)\);", emit_launcher(builder.build().plan()))
        return rule.split(", ")[-3] == "true"

    assert not generally()
    assert not generally(when="m")
    assert generally(when="m", dynamic_smem_bytes=1 << 16)
    assert generally(cluster=True)


def test_a_failure_of_one_thread_is_not_told_to_another(program: CppProgram, driver: Any) -> None:
    driver.reset(failing_from=1)  # of the launches to come, the first one alone succeeds
    driver.hold()
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(program.entry, torch.zeros(8), count) for count in (3, 4)]
        driver.await_launches(1)
        driver.release()
        errors = [call.exception() for call in calls]
    assert [type(error) for error in errors] == [DriverError, DriverError]
    assert len(driver.launches) in (3, 4)
    driver.reset()
    program.entry(torch.zeros(8), 3)


# Threads -----------------------------------------------------------------------------------------------------------


def test_many_threads_launch_what_is_theirs(program: CppProgram, driver: Any) -> None:
    tensors = [torch.zeros(8 + thread) for thread in range(THREADS)]
    begin = threading.Barrier(THREADS)

    def work(thread: int) -> None:
        begin.wait()
        for call in range(CALLS):
            program.entry(tensors[thread], thread * CALLS + call)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    got: dict[bytes, list[int]] = {}
    firsts = [launch for launch in driver.launches if len(launch.parameters) == 2]
    for launch in firsts:
        got.setdefault(launch.parameters[0], []).append(*struct.unpack("<i", launch.parameters[1]))
    wanted = {
        address(tensor): list(range(thread * CALLS, (thread + 1) * CALLS))
        for thread, tensor in enumerate(tensors)
    }
    assert got == wanted


def test_python_runs_while_a_launch_lasts(program: CppProgram, driver: Any) -> None:
    driver.hold()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(program.entry, torch.zeros(8), 3)
        driver.await_launches(1)
        counted = sum(1 for _ in range(10_000))
        assert not call.done()
        driver.release()
        assert call.result() is None
    assert counted == 10_000


# Life ----------------------------------------------------------------------------------------------------------------


def test_a_closed_program_launches_no_more(program: CppProgram, driver: Any) -> None:
    program.close()
    for _ in range(2):
        with pytest.raises(LifecycleError, match="closed"):
            program.entry(torch.zeros(8), 3)
    assert not driver.launches


def call_until_refused(program: CppProgram) -> None:
    while True:
        program.preload(0)


def test_closing_waits_for_a_launch(program: CppProgram, driver: Any) -> None:
    loaded = driver.loaded
    driver.hold()
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(program.entry, torch.zeros(8), 3)
        driver.await_launches(1)
        closing = pool.submit(program.close)
        with pytest.raises(LifecycleError):
            call_until_refused(program)  # by then it has begun to close
        assert driver.loaded == loaded
        assert not closing.done()
        driver.release()
        assert call.result() is None
        closing.result()
    assert driver.loaded == loaded - 1


def test_closing_while_threads_call(program: CppProgram, driver: Any) -> None:
    begin = threading.Barrier(THREADS + 1)

    def work(thread: int) -> int:
        x, count = torch.zeros(8), 0
        begin.wait()
        while True:
            try:
                program.entry(x, thread)
            except LifecycleError:
                return count
            count += 1

    with ThreadPoolExecutor(THREADS) as pool:
        calls = [pool.submit(work, thread) for thread in range(THREADS)]
        begin.wait()
        program.close()
        before = len(driver.launches)
        made = sum(call.result() for call in calls)
    assert len(driver.launches) == before == 2 * made


LOCKED = """
import os, sys, threading
from pathlib import Path
import torch
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.program import CppProgram
from trunnion.errors import LifecycleError
from trunnion.torch_runtime import HostRuntime

sys.setswitchinterval(1e-5)
library, facts = (Path(path).read_bytes() for path in sys.argv[1:])
for _ in range(5):
    program = CppProgram(library, CallSignature.from_json(facts), HostRuntime(), "stub")
    program.preload(0)
    begin = threading.Barrier(5)

    def work():
        x = torch.zeros(8)
        begin.wait()
        try:
            while True:
                program.entry(x, 3)
        except LifecycleError:
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    begin.wait()
    program.close()
    for thread in threads:
        thread.join()
"""


def test_closing_by_a_thread_that_keeps_pythons_lock(build: Any, driver: Any, tmp_path: Any) -> None:
    """As TVM-FFI calls where it is told to: then a call must not need the lock to be over."""
    from trunnion.codegen.cpp.call_signature import CallSignature

    program, paths = several_launches(), [tmp_path / "launcher.so", tmp_path / "call.json"]
    paths[0].write_bytes(build(program))
    paths[1].write_text(CallSignature.of(program.plan()).to_json())
    done = subprocess.run(
        [sys.executable, "-c", driver.in_another_process() + LOCKED, *map(str, paths)],
        env={**os.environ, "TVM_FFI_RELEASE_GIL_BY_DEFAULT": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_is_refused(program: CppProgram, driver: Any) -> None:
    x = torch.zeros(8)
    program.entry(x, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads; the child makes none
        child = os.fork()
    if child == 0:
        status = 1
        try:
            program.entry(x, 3)
        except LifecycleError as error:
            status = 0 if "fork" in str(error) and len(driver.launches) == 2 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    program.entry(x, 3)
    assert len(driver.launches) == 4


def test_the_entry_outlives_the_program_that_it_came_from(load: Any, driver: Any) -> None:
    x = torch.zeros(8)
    entry = load(several_launches()).entry
    gc.collect()
    entry(x, 3)
    entry(x, 3)
    with pytest.raises(TypeError):
        entry(x)
    assert len(driver.launches) == 4
