"""The C++ program that the manual shows: built against TVM-FFI alone, it calls a module's ``main_out``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import tvm_ffi

pytestmark = pytest.mark.tvm_ffi_abi

FOLDER = Path(__file__).parent / "host_program"
PACKAGE = Path(tvm_ffi.__file__).parent


def _compile(source: Path, output: Path, *options: str) -> Path:
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None
    # The headers are a system's: what a compiler thinks of them is not this program's affair.
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-isystem", str(PACKAGE / "include")]
    command += [*options, str(source), f"-L{PACKAGE / 'lib'}", "-ltvm_ffi", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compile(
        FOLDER / "add.cc", tmp_path_factory.mktemp("host") / "add", f"-Wl,-rpath,{PACKAGE / 'lib'}"
    )


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("module") / "stand_in.so"
    return _compile(FOLDER / "stand_in.cc", output, "-shared", "-fPIC")


def _run(program: Path, module: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, module], capture_output=True, text=True, check=False, timeout=60)


def test_a_program_without_python_calls_a_module(program: Path, module: Path) -> None:
    done = _run(program, module)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1000 sums\n", "")


def test_python_calls_the_same_module_without_trunnion(module: Path) -> None:
    import torch

    a, b, c = torch.arange(5.0), torch.ones(5), torch.zeros(5)
    add = tvm_ffi.load_module(str(module))
    assert add.main_out(a, b, c) is None
    assert torch.equal(c, a + b)
    with pytest.raises(ValueError, match="different extents"):
        add["main_out"](a, torch.ones(4), c)
    with pytest.raises(TypeError, match="expected three tensors"):
        add.main_out(a)


def test_what_fails_is_told(program: Path, tmp_path: Path) -> None:
    done = _run(program, tmp_path / "nowhere.so")
    assert done.returncode == 1
    assert "nowhere.so" in done.stderr
