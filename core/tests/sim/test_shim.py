import ctypes
import os
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunnion.errors import CompileError, DeviceRequirementError, UntrustedArtifactError
from trunnion.sim.driver import HANDLERS
from trunnion.sim.shim import build_shim, compiler_command, compiler_problem
from trunnion.sim.status import Status
from trunnion.storage.workshop import Workshop

# What a C++ launcher does: no link against libcuda, every entry point by cuGetProcAddress_v2.
LAUNCHER = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
typedef int (*find_t)(const char *, void **, int, uint64_t, int *);
struct config { unsigned g[3], b[3], smem; void *stream, *attrs; unsigned count; };
static void *find(const char *name, int version) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = 0;
  find_t look = library ? (find_t)dlsym(library, "cuGetProcAddress_v2") : 0;
  int status = -1;
  if (!look || look(name, &found, version, 0, &status) || status) return 0;
  return found;
}
int launch(void *kernel, void *stream, int number, void *pointer) {
  int (*go)(const void *, void *, void **, void **) = find("cuLaunchKernelEx", 12000);
  struct config c;
  memset(&c, 0, sizeof c);
  c.g[0] = c.g[1] = c.g[2] = c.b[0] = c.b[1] = c.b[2] = 1;
  c.stream = stream;
  void *values[] = {&number, &pointer};
  return go ? go(&c, kernel, values, 0) : -1;
}
static void *current(void *out) {
  int (*get)(void **) = find("cuCtxGetCurrent", 12000);
  int (*set)(void *) = find("cuCtxSetCurrent", 12000);
  void **result = out;
  get(&result[0]);
  set(result[1]);
  get(&result[2]);
  return 0;
}
int in_thread(void **result) {
  pthread_t thread;
  return pthread_create(&thread, 0, current, result) || pthread_join(thread, 0);
}
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launcher")
    (folder / "launcher.c").write_text(LAUNCHER)
    command = ["cc", "-shared", "-fPIC", "-pthread", "launcher.c", "-o", "launcher.so", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "launcher.so"))
    library.launch.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    return library


def test_native_code_launches_through_dlopen(library, simulator, launcher):
    stream = library.handle("cuStreamCreate", 1)
    assert launcher.launch(library.kernel("plain"), stream, 5, 0x123456789) == Status.SUCCESS
    assert simulator.trace[-1].parameters == ((5).to_bytes(4, "little"), (0x123456789).to_bytes(8, "little"))
    assert simulator.trace[-1].stream == stream
    assert launcher.launch(0x7777_0000_0000, stream, 5, 0) == Status.INVALID_HANDLE


def test_a_native_thread_keeps_its_own_context_from_call_to_call(library, launcher):
    context = library.context()
    for _ in range(3):  # an operating system's thread number comes again; a context must not
        result = (ctypes.c_void_p * 3)(1, context, 1)
        assert launcher.in_thread(result) == 0
        assert list(result) == [None, context, context]


INTERPOSED = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
from trunnion import sim
sim.start()
library = ctypes.CDLL("libcuda.so.1")
found, status, count = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
name = b"cuDriverGetVersion"
assert not library.cuGetProcAddress_v2(name, ctypes.byref(found), 12000, ctypes.c_uint64(), ctypes.byref(status))
function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(found.value)
print(function(ctypes.addressof(count)), count.value != 77)
"""


def test_another_library_s_functions_of_the_same_names_are_not_taken(tmp_path):
    """TVM brings such stubs, which look for the driver themselves, and end the process if something is missing."""
    (tmp_path / "stub.c").write_text("int cuDriverGetVersion(int *count) { *count = 77; return 999; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "stub.c", "-o", "stub.so"], cwd=tmp_path, check=True)
    command = [sys.executable, "-c", INTERPOSED, str(tmp_path / "stub.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "0 True\n"


def test_every_entry_point_has_a_handler_and_every_handler_an_entry_point(simulator):
    symbols = {entry.handler for entry in simulator._shim.entries}
    assert symbols == set(HANDLERS)


def test_many_threads_may_call(library):
    kernel = library.kernel("empty")
    stream = library.handle("cuStreamCreate", 1)
    library.simulator.clear_trace()

    def work(_):
        statuses = {library.launch(kernel, stream=stream) for _ in range(50)}
        return statuses, threading.get_ident()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert all(statuses == {Status.SUCCESS} for statuses, _ in results)
    assert len(library.simulator.trace) == 200


def test_the_library_is_built_once_for_a_compiler(tmp_path, monkeypatch):
    first = build_shim(tmp_path)
    written = first.stat().st_mtime_ns
    assert build_shim(tmp_path) == first
    assert first.stat().st_mtime_ns == written
    assert first.name == "libcuda.so.1"
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    monkeypatch.setenv("CC", "cc -DANOTHER")
    assert build_shim(tmp_path) != first
    assert kept(tmp_path) == {first.parent, build_shim(tmp_path).parent}


def kept(cache):
    """Return what is kept in a cache, in which nothing else is left."""
    assert not [*(cache / "locks").iterdir(), *(cache / "staging").iterdir()]
    return {*cache.iterdir()} - {cache / name for name in Workshop.names}


def test_what_an_environment_brought_goes_with_it(tmp_path, monkeypatch):
    clean = build_shim(tmp_path)
    folder = tmp_path.with_name("brought")
    folder.mkdir()
    (folder / "stdint.h").write_text("#include_next <stdint.h>\n")
    monkeypatch.setenv("CPATH", str(folder))
    brought = build_shim(tmp_path)
    (folder / "stdint.h").write_text("#include_next <stdint.h>\n#define CHANGED\n")
    assert len({clean, brought, build_shim(tmp_path)}) == 3
    monkeypatch.delenv("CPATH")
    assert build_shim(tmp_path) == clean


def test_a_missing_and_a_failing_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(DeviceRequirementError, match="apt-get install gcc"):
        build_shim(tmp_path)
    monkeypatch.setenv("CC", "cc -no-such-option")
    with pytest.raises(CompileError, match="no-such-option"):
        build_shim(tmp_path)
    assert kept(tmp_path) == set()
    monkeypatch.setenv("CC", "'")
    with pytest.raises(DeviceRequirementError, match="mend CC"):
        build_shim(tmp_path)
    no_program = tmp_path / "text"
    no_program.write_text("no program")
    no_program.chmod(0o700)
    monkeypatch.setenv("CC", str(no_program))
    with pytest.raises(DeviceRequirementError, match="can be run"):
        build_shim(tmp_path)


@pytest.mark.parametrize("executable", ["", None])
def test_without_an_interpreter_no_compiler_is_blamed(tmp_path, monkeypatch, executable):
    """A program that embeds Python may have none to name."""
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(DeviceRequirementError, match=r"got a sys\.executable that names none; set it to"):
        build_shim(tmp_path)
    assert "sys.executable" in compiler_problem(compiler_command())


def test_without_a_path_the_compiler_finds_its_parts_where_it_was_found(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("PATH")
    assert build_shim(tmp_path).is_file()


def test_a_compiler_that_builds_nothing_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "true")
    for _ in range(2):
        with pytest.raises(CompileError, match="built no library"):
            build_shim(tmp_path)
    assert kept(tmp_path) == set()


def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    for cache in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(DeviceRequirementError, match="XDG_CACHE_HOME"):
            build_shim(cache)


def _truncate(built):
    built.write_bytes(built.read_bytes()[:100])


def _empty(built):
    for path in built.parent.iterdir():
        path.unlink()


def _forget(built):
    (built.parent / "sha256").unlink()


def _replace(built):
    shutil.rmtree(built.parent)
    built.parent.write_text("")


@pytest.mark.parametrize("damage", [_truncate, _empty, _forget, _replace])
def test_a_damaged_library_is_built_again(tmp_path, damage):
    built = build_shim(tmp_path)
    size = built.stat().st_size
    damage(built)
    assert build_shim(tmp_path) == built
    assert built.stat().st_size == size
    assert kept(tmp_path) == {built.parent}


def test_a_library_that_others_can_write_is_not_loaded(tmp_path):
    built = build_shim(tmp_path)
    built.parent.chmod(0o777)
    with pytest.raises(UntrustedArtifactError):
        build_shim(tmp_path)
    built.parent.chmod(0o700)
    assert build_shim(tmp_path) == built


def test_where_it_cannot_be_kept_it_runs_all_the_same(words_without):
    text = """
import os, warnings
os.environ["XDG_CACHE_HOME"] = "/proc/nowhere"
from trunnion import sim
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    sim.start()
print([one.category.__name__ for one in caught][0], sim.active() is not None)
"""
    assert words_without((), text) == ["NotKeptWarning", "True"]


def test_a_folder_from_which_no_code_is_loaded_is_told(tmp_path, monkeypatch):
    flags = os.statvfs_result((*[0] * 8, os.ST_NOEXEC, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: flags)
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done; echo no library > $1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(DeviceRequirementError, match="which is mounted noexec; set XDG_CACHE_HOME"):
        build_shim(tmp_path / "cache")
