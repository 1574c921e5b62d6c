"""Floating-point expressions in C++: each operation is a machine's own, and alone, whatever the machine could fuse."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from trunnion.codegen.cpp.build import launcher_options, runtime_folder
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols
from trunnion.model.float_expr import real, sqrt
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compilation import HostCompilation, run_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FUSES = {"x86_64": (("-O2", "-mfma"), "vfmadd"), "aarch64": (("-O2",), "fmadd")}
"""By machine: what lets a compiler fuse a product and a sum, and what the instruction's name begins with."""


def launcher() -> str:
    """Return a launcher that computes a product and a sum, and square roots."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    a, b, c = symbols("a b c")
    p.input("x", "float32", (a, b, c))
    p.launch("k", [real(a) * b + c, c - real(a) * 0.1, 1 / sqrt(real(a) - b)], 1, 32)
    return emit_launcher(p.build().plan())


@pytest.fixture
def assembled(tmp_path: Path) -> Callable[..., str]:
    """Compile a text as a launcher is compiled, with more options, to assembly."""
    toolchain = find_host_toolchain("the tests", cuda=True)
    folders = [word for folder in toolchain.include_folders for word in ("-isystem", folder)]

    def assemble(text: str, *more: str) -> str:
        family = toolchain.compiler.family
        options = (*launcher_options(family), f"-I{runtime_folder()}", *folders, *more, "-S")
        wanted = HostCompilation(
            source="text.cc", text=f"{text}\n", output="text.s", options=(*options, "text.cc")
        )
        return run_host(toolchain.compiler, wanted, tmp_path, "the tests").data.decode()

    return assemble


@pytest.mark.usefixtures("cxx")
def test_no_product_is_fused_with_a_sum(assembled: Callable[..., str]) -> None:
    allowed, instruction = FUSES[platform.machine()]
    assert instruction not in assembled(launcher(), *allowed)
    assert instruction in assembled(launcher(), *allowed, "-ffp-contract=fast")


@pytest.mark.usefixtures("cxx")
def test_a_square_root_is_an_instruction_that_tells_no_errno(assembled: Callable[..., str]) -> None:
    text = assembled(launcher())
    assert "sqrt" in text
    assert "call\tsqrt" not in text
    assert "bl\tsqrt" not in text
