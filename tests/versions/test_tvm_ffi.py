"""Which apache-tvm-ffi the tests run with: the pinned one, and what is marked ``tvm_ffi_abi`` with the oldest too.

The run with the oldest is the one that has ``TRUNNION_TVM_FFI`` in its environment; the Makefile sets it. A third run
has TileLang and the one that TileLang admits.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import tvm_ffi

from trunnion.toolchain.host_headers import LEAST_FFI

ROOT = Path(__file__).resolve().parents[2]
_ASK = """
import json, sys
from importlib import metadata
import tvm_ffi
with open("/proc/self/maps") as maps:
    libraries = sorted({line.split(maxsplit=5)[5].strip() for line in maps if line.rstrip().endswith("/libtvm_ffi.so")})
print(json.dumps([metadata.version("apache-tvm-ffi"), tvm_ffi.__version__, tvm_ffi.__file__, libraries]))
"""


def _only(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text, re.MULTILINE)
    return str(found)


def oldest() -> str:
    """Return the least version that core's metadata allow."""
    project = tomllib.loads((ROOT / "core/pyproject.toml").read_text("utf-8"))["project"]
    (requirement,) = project["optional-dependencies"]["cpp"]
    return _only(r"^apache-tvm-ffi>=([0-9.]+)$", requirement)


def newest() -> str:
    """Return the version that everything is tested with."""
    return _only(r"^apache-tvm-ffi==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"))


def numbers(version: str) -> list[int]:
    """Return the numbers of a version; a post-release counts like its release."""
    return [int(number) for number in re.findall(r"\d+", version)][:3]


def _steps(*arguments: str) -> list[str]:
    """Return the test runs of ``make test``, in order, without running anything."""
    inherited = ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "ARGS", "VENV", "TRUNNION_TVM_FFI", "PYTHONPATH")
    done = subprocess.run(
        ["make", "--dry-run", "test", f"VENV={sys.prefix}", *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in inherited},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = re.sub(r"\\\n\s*", "", done.stdout).splitlines()
    return [line for line in lines if " -m pytest " in line]


@pytest.mark.tvm_ffi_abi
def test_this_run_has_the_version_that_it_is_for() -> None:
    expected = os.environ.get("TRUNNION_TVM_FFI") or newest()
    assert metadata.version("apache-tvm-ffi") == expected
    assert tvm_ffi.__version__ == expected


@pytest.mark.tvm_ffi_abi
def test_a_process_that_a_test_starts_has_it_too_and_loads_its_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ASK], capture_output=True, text=True, check=True, timeout=60
    )
    distribution, package, file, libraries = json.loads(done.stdout)
    assert distribution == package == metadata.version("apache-tvm-ffi")
    assert file == tvm_ffi.__file__
    assert libraries == [str(Path(file).parent / "lib" / "libtvm_ffi.so")]


def test_both_ends_are_covered_by_make_test() -> None:
    first, *_, last = _steps()
    assert f"TRUNNION_TVM_FFI={oldest()} " in first
    assert f"PYTHONPATH={sys.prefix}/oldest-tvm-ffi" in first
    assert "-m 'tvm_ffi_abi and not gpu'" in first
    assert "TVM_FFI" not in last
    assert "-m 'not gpu'" in last
    assert numbers(oldest()) < numbers(newest())


def test_the_oldest_is_the_one_that_the_toolchain_refuses_to_go_below() -> None:
    assert numbers(oldest()) == list(LEAST_FFI)


def test_arguments_go_to_the_whole_run_which_is_then_the_only_one() -> None:
    (only,) = _steps("ARGS=-k nothing")
    assert "TRUNNION_TVM_FFI" not in only
    assert only.endswith("-k nothing")


def test_every_test_of_the_oldest_lies_where_make_looks_for_it() -> None:
    places = _steps()[0].partition("not gpu' ")[2].split()
    assert all((ROOT / place).exists() for place in places)
    marked = {
        path.relative_to(ROOT)
        for folder in ("core/tests", "plugins", "tests")
        for path in (ROOT / folder).rglob("test_*.py")
        if re.search(r"\bmark\.tvm_ffi_abi\b", path.read_text("utf-8"))
    }
    assert len(marked) > 1, "this file, and what it is for"
    for path in marked:
        assert any(path.is_relative_to(place) for place in places), path
    for place in places:
        assert any(path.is_relative_to(place) for path in marked), f"nothing in {place} is marked"
