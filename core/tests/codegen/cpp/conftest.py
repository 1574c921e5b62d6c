"""What the tests of C++ launchers share: every compiler of this machine, and a launcher that needs no other text."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from trunnion.codegen.cpp.build import build_launcher
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.codegen.cpp.program import CppProgram
from trunnion.contract.compiler import DeviceImage
from trunnion.contract.spec import Target
from trunnion.testing.machine import synthetic_image

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]

NATIVE = Path(__file__).parent / "native"
HEADERS = [
    Path(importlib.util.find_spec(name).submodule_search_locations[0]) / "include"
    for name in ("trunnion.codegen.cpp", "tvm_ffi")
]
NATIVE_FLAGS = (
    *("-O1", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wpedantic", "-Werror"),
    "-Wno-tautological-compare",  # a drawn expression may compare a value with itself
)
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")

STAND_IN = """
#include <cuda.h>
#include <tvm/ffi/c_api.h>
#include <cstring>

extern "C" {
extern const unsigned char trunnion_image[] __attribute__((visibility("hidden")));
extern const unsigned char trunnion_image_end[] __attribute__((visibility("hidden")));
extern const char trunnion_kernel_names[] __attribute__((visibility("hidden")));

static int32_t answer(const void* data, uint64_t size, TVMFFIAny* result) {
  TVMFFIByteArray bytes{static_cast<const char*>(data), size};
  TVMFFIAny view;
  view.type_index = kTVMFFIByteArrayPtr;
  view.zero_padding = 0;
  view.v_ptr = &bytes;
  return TVMFFIAnyViewToOwnedAny(&view, result);
}

__attribute__((visibility("default"))) int32_t __tvm_ffi_image(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  return answer(trunnion_image, trunnion_image_end - trunnion_image, result);
}

__attribute__((visibility("default"))) int32_t __tvm_ffi_names(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  const char* name = trunnion_kernel_names;
  while (*name) name += strlen(name) + 1;
  return answer(trunnion_kernel_names, name - trunnion_kernel_names, result);
}

__attribute__((visibility("default"))) int32_t __tvm_ffi_placed(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  static_assert(sizeof(CUtensorMap) == 128 && CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION != 0);
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = reinterpret_cast<uintptr_t>(trunnion_image) % 64;
  return 0;
}
}
"""
"""Returns what was embedded, through TVM-FFI."""


@pytest.fixture(params=COMPILERS or ["g++"])
def cxx(request, monkeypatch):
    """Each compiler that this machine has; without one, the tests say so by failing."""
    monkeypatch.setenv("CXX", request.param)
    return request.param


@pytest.fixture
def stand_in():
    return STAND_IN


@pytest.fixture
def embedded():
    """Make an image that is embedded."""

    def make(data: bytes = b"\x7fELF stand-in", kind: str = "cubin") -> DeviceImage:
        return DeviceImage(kind=kind, data=data, target=Target("cuda", "sm_90a"), kernels=())

    return make


def compile_native(compiler: str, flags: list[str], source: str, binary: Path) -> None:
    roots = [f"-I{place}" for place in (NATIVE, *HEADERS)]
    command = [compiler, *NATIVE_FLAGS, *flags, *roots, NATIVE / source, "-o", binary]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session", params=COMPILERS or ["g++"])
def native(request, tmp_path_factory):
    """Compile a program of ``native`` over a table; what is returned runs it, from its input to its output."""

    def build(program: str, table: str = "", std: str = "c++17"):
        folder = tmp_path_factory.mktemp(program)
        (folder / "table.inc").write_text(table, "ascii")
        binary = folder / program
        compile_native(request.param, [f"-std={std}", f"-I{folder}", *SANITIZED], f"{program}.cc", binary)

        def run(given: bytes) -> bytes:
            ran = subprocess.run([binary], input=given, capture_output=True, check=False)
            assert ran.returncode == 0, ran.stderr.decode(errors="replace")
            return ran.stdout

        return run

    return build


@pytest.fixture(scope="session", params=COMPILERS or ["g++"])
def native_module(request, tmp_path_factory):
    """Compile a module of ``native``, and load it through TVM-FFI."""
    import tvm_ffi

    def load(module: str, table: str = ""):
        folder = tmp_path_factory.mktemp(module)
        (folder / "table.inc").write_text(table, "ascii")
        library = folder / f"{module}.so"
        compile_native(
            request.param, ["-std=c++17", "-shared", "-fPIC", f"-I{folder}"], f"{module}.cc", library
        )
        return tvm_ffi.load_module(library)

    return load


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Build the launcher of a program, once for equal plans; what is returned are its bytes."""
    libraries = {}

    def build(program) -> bytes:
        plan = program.plan()
        if plan.hash not in libraries:
            image = synthetic_image(program)
            symbols = image.symbols
            folder = tmp_path_factory.mktemp("launcher")
            libraries[plan.hash] = build_launcher(emit_launcher(plan), image, symbols, folder, plugin="test")
        return libraries[plan.hash]

    return build


@pytest.fixture
def launcher(simulator, built):
    """Load programs on the simulated driver; they are closed after the test."""
    made = []

    def load(program) -> CppProgram:
        made.append(CppProgram(built(program), CallSignature.of(program.plan()), simulator.runtime, "test"))
        return made[-1]

    with simulator.torch_mode():
        yield load
        for program in made:
            program.close()
