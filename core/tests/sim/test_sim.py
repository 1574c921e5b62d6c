"""Rules about the whole process: each in a fresh one."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from trunnion import sim
from trunnion.errors import ArgumentValueError, DeviceRequirementError, LifecycleError


def run(script, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def passes(script, **environment):
    done = run(script, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_one_simulator_in_a_process(simulator):
    assert sim.active() is simulator
    with pytest.raises(LifecycleError, match="active"):
        sim.start()


def test_a_start_loads_no_torch_and_prints_nothing():
    script = """
        import sys
        from trunnion import sim
        assert sim.active() is None
        simulator = sim.start()
        assert sim.active() is simulator
        assert (simulator.devices, simulator.arch, simulator.driver_version) == (1, "sm_90a", 13000)
        assert not {"torch", "numpy", "cuda", "tvm_ffi"} & set(sys.modules)
    """
    assert passes(script) == ""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [("devices=0", ArgumentValueError), ("arch='sm_12'", DeviceRequirementError)],
)
def test_what_cannot_be_simulated(arguments, error):
    done = run(f"from trunnion import sim; sim.start({arguments})")
    assert f"trunnion.errors.{error.__name__}" in done.stderr


def test_another_libcuda_is_refused(simulator, tmp_path):
    copy = tmp_path / "libcuda.so.1"
    copy.write_bytes(Path(simulator.library_path).read_bytes())
    passes(f"""
        import ctypes
        from trunnion import errors, sim
        ctypes.CDLL({str(copy)!r})
        try:
            sim.start()
        except errors.LifecycleError as error:
            assert {str(copy)!r} in str(error), error
        else:
            raise SystemExit("it started")
        assert sim.active() is None
    """)


def test_no_compiler_says_what_to_install(tmp_path):
    done = run("from trunnion import sim; sim.start()", CC="no-such-compiler", XDG_CACHE_HOME=str(tmp_path))
    assert "DeviceRequirementError" in done.stderr
    assert "no-such-compiler" in done.stderr
    assert "install gcc or clang" in done.stderr


def test_a_compiler_that_fails_is_a_compile_error(tmp_path):
    done = run("from trunnion import sim; sim.start()", CC="false", XDG_CACHE_HOME=str(tmp_path))
    assert "CompileError" in done.stderr


def test_a_thread_number_is_never_used_again(simulator):
    import threading

    seen = []
    for _ in range(20):
        thread = threading.Thread(target=lambda: seen.append(simulator.state.thread()))
        thread.start()
        thread.join()
    assert len(set(seen)) == 20


def test_calls_after_the_end_of_python_are_answered_and_not_run():
    passes("""
        import atexit, ctypes
        def late():  # runs last: what is registered first ends last
            assert library.cuInit(0) == 4
        atexit.register(late)
        from trunnion import sim
        library = ctypes.CDLL(sim.start().library_path)
        assert library.cuInit(0) == 0
    """)


def test_nothing_works_before_init():
    passes("""
        import ctypes
        from trunnion import sim
        from trunnion.sim.status import Status
        library = ctypes.CDLL(sim.start().library_path)
        count = ctypes.c_int()
        assert library.cuDeviceGetCount(ctypes.byref(count)) == Status.NOT_INITIALIZED
        assert library.cuDriverGetVersion(ctypes.byref(count)) == 0
        assert library.cuInit(0) == 0
        assert library.cuDeviceGetCount(ctypes.byref(count)) == 0
    """)


def test_an_older_driver_lacks_newer_calls():
    passes("""
        import ctypes
        from trunnion import sim
        library = ctypes.CDLL(sim.start(driver_version=12000).library_path)
        out, status = ctypes.c_void_p(1), ctypes.c_int(7)
        def find(name, version):
            return library.cuGetProcAddress_v2(
                name, ctypes.byref(out), version, ctypes.c_uint64(0), ctypes.byref(status)
            )
        assert find(b"cuKernelGetParamInfo", 12000) == 0 and (out.value, status.value) == (None, 1)
        assert find(b"cuLibraryLoadData", 12000) == 0 and out.value
        assert find(b"cuInit", 12010) == 1
    """)


def test_an_entry_point_answers_before_and_after_its_handler():
    passes("""
        import ctypes
        from trunnion.sim.shim import load_shim
        shim = load_shim()
        entry = next(entry for entry in shim.entries if entry.symbol == "cuInit")
        call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint32)(entry.address)
        assert call(0) == 4
        shim.register(entry, lambda flags: flags + 1)
        assert call(7) == 8
        shim.unregister()
        assert call(0) == 4
    """)
