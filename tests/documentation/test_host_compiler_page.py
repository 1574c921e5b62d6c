"""The page of the host's compiler says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunnion.codegen.cpp.build import launcher_options
from trunnion.errors import BackendUnavailableError
from trunnion.toolchain import host_compiler as compilers
from trunnion.toolchain import host_headers as headers

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "host-compiler.md").read_text("utf-8")


def row(first: str) -> list[str]:
    """Return the cells of the one row of a table that begins so."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {first}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_least_versions_are_those_that_are_checked():
    assert row("compiler")[2] == f"GCC {compilers._LEAST['g++']}, Clang {compilers._LEAST['clang++']}"
    assert row("`cuda.h`")[2] == f"CUDA {'.'.join(map(str, headers.LEAST_CUDA))}"
    assert row("`tvm/ffi/c_api.h`")[2] == ".".join(map(str, headers.LEAST_FFI))


def test_every_place_is_named():
    searched = row("compiler")[1]
    assert all(f"`{name}`" in searched for name in ("CXX", *compilers._NAMES))
    searched = row("`cuda.h`")[1]
    places = [
        *headers._WHEELS,
        "CONDA_PREFIX",
        "CUDA_PATH",
        "CUDA_HOME",
        "nvcc",
        "/usr/local/cuda",
        "/usr/include",
    ]
    positions = [searched.index(f"`{place}`") for place in places]
    assert positions == sorted(positions)


def test_what_to_install_is_what_errors_say():
    for command in ("apt-get install g++", "dnf install gcc-c++"):
        assert command in compilers.INSTALL_COMPILER
        assert f"$ {command}" in PAGE


def test_the_error_that_is_shown_is_the_one_that_is_raised(monkeypatch):
    trial = compilers.CompilerTrial("CXX", "/opt/old/g++", "", None, "it is g++ 7.5.0; 8 or newer is needed")
    monkeypatch.setattr(compilers, "try_compilers", lambda: iter([trial]))
    with pytest.raises(BackendUnavailableError) as caught:
        compilers.host_compiler("tvm_ffi")
    (shown,) = (block for block in PAGE.split("```text\n")[1:])
    assert " ".join(shown.partition("```")[0].split()) == str(caught.value)


@pytest.mark.parametrize("family", ["g++", "clang++"])
def test_the_level_of_optimisation_is_the_one_that_is_used(family):
    assert [option for option in launcher_options(family) if option.startswith("-O")] == ["-O1"]
    assert "It is compiled with `-O1`" in PAGE
