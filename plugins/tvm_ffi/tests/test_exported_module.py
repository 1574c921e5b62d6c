"""A built module on its own: in a C++ program, in a Python without trunnion, beside another one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import tvm_ffi

import trunnion
from trunnion import examples
from trunnion.toolchain.host_headers import cuda_headers

pytestmark = pytest.mark.tvm_ffi_abi

FOLDER = Path(__file__).parent / "exported"
PACKAGE = Path(tvm_ffi.__file__).parent


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """Return the library of vector_add, in a folder of its own."""
    program = trunnion.compile(examples.load("vector_add").program, "tvm_ffi", target="sm_90a")
    path = tmp_path_factory.mktemp("module") / "launcher.so"
    path.write_bytes(program.artifact.files["launcher.so"])
    return path


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Return the folder of a stand-in for the driver."""
    folder = tmp_path_factory.mktemp("driver")
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    _compile("gcc", FOLDER / "stub_driver.c", folder / "libcuda.so.1", *options)
    return folder


def _compile(compiler, source, output, *options):
    command = [shutil.which(compiler), "-O1", "-Wall", "-Werror", f"-isystem{cuda_headers('tvm_ffi').folder}"]
    done = subprocess.run(
        [*command, str(source), "-o", str(output), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_cpp_program_launches_it(module, driver, tmp_path):
    host, tvm = tmp_path / "host", PACKAGE / "lib"
    options = ["-std=c++17", f"-isystem{PACKAGE / 'include'}", f"-L{tvm}", "-ltvm_ffi", f"-Wl,-rpath,{tvm}"]
    _compile("g++", FOLDER / "host.cc", host, *options)
    done = subprocess.run(
        [host, module],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": str(driver)},
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "ValueError: argument 'b': got a tensor on cpu, expected a tensor on a CUDA device; call .to('cuda')",
        "image \x7fELF",
        "vector_add grid 4 block 256 stream 0x40 length 1000",
        "unloaded 1",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def python(forked_python, module, code):
    """Run code in a Python that cannot import trunnion; `launcher` is the module."""
    head = "import sys\nsys.modules['trunnion'] = None\nimport torch, tvm_ffi\n"
    text = f"{head}launcher = tvm_ffi.load_module({str(module)!r})\n{code}"
    done = forked_python(text, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_python_without_trunnion_is_told_in_its_own_exceptions(module, forked_python):
    said = python(
        forked_python,
        module,
        """
for args in ((), (1, 2), (torch.ones(3), torch.ones(3)), (torch.ones(3).double(), torch.ones(3))):
    try:
        launcher.main(*args)
    except (TypeError, ValueError, RuntimeError) as error:
        print(type(error).__name__, error)
""",
    )
    assert said == [
        "TypeError got 0 arguments, expected 2 ('a', 'b')",
        "TypeError argument 'a': got int, expected a tensor",
        "ValueError argument 'a': got a tensor on cpu, expected a tensor on a CUDA device; call .to('cuda')",
        "TypeError argument 'a': got a tensor of float64, expected one of float32",
    ]


def test_without_a_driver_it_says_what_is_missing(module, forked_python):
    (said,) = python(
        forked_python, module, "try:\n    launcher.load()\nexcept RuntimeError as error:\n    print(error)"
    )
    assert said.startswith("needs a CUDA driver (libcuda.so.1), got none: libcuda.so.1: ")
    assert said.endswith("; install the NVIDIA driver, or simulate: trunnion.sim.start()")


def test_it_names_no_symbol_of_the_driver(module):
    """Neither linked with the driver nor left to be found when it is called."""
    listed = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", module], capture_output=True, text=True, check=True
    ).stdout
    undefined = [line.split()[-1] for line in listed.splitlines()]
    assert undefined
    assert [name for name in undefined if name.startswith("cu") or "CUDA" in name] == []
    needed = subprocess.run(
        ["readelf", "--dynamic", module], capture_output=True, text=True, check=True
    ).stdout
    libraries = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line}
    assert libraries <= {"libtvm_ffi.so", "libc.so.6", "ld-linux-x86-64.so.2"}


def test_two_of_one_program_share_nothing(module, driver, tmp_path, forked_python):
    twin = shutil.copy(module, tmp_path / "twin.so")
    said = python(
        forked_python,
        module,
        f"""
import ctypes
ctypes.CDLL({str(driver / "libcuda.so.1")!r}, mode=ctypes.RTLD_GLOBAL)
twin = tvm_ffi.load_module({str(twin)!r})
launcher.load(), twin.load()
launcher.close()
twin.preload(0)
try:
    launcher.preload(0)
except RuntimeError as error:
    print(error, flush=True)
""",
    )
    assert [line for line in said if line.startswith("the program")] == ["the program was closed"]
