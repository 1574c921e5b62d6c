"""What is compiled of ours gives no warning: the shared runtime, and launchers of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trunnion.codegen.cpp.build import launcher_options, runtime_folder
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.codegen.cpp.host import emit_host_launcher
from trunnion.examples import CPU_EXAMPLES, EXAMPLES, load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, symbols
from trunnion.model.float_expr import real, sqrt
from trunnion.model.program import DeviceCode, KernelProgram
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compilation import HostCompilation, run_host

if TYPE_CHECKING:
    from pathlib import Path

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror")


def nullable(size: Symbol) -> KernelProgram:
    """Return a program whose symbol may be read in two places."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", [p.input(name, "float32", (size,), nullable=True) for name in "xy"], 1, 32)
    return p.build()


def computing() -> KernelProgram:
    """Return a program that computes floating-point numbers of types that C++ has, and of others."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = p.input("x", "float32", symbols("n d")).shape[0]
    value = 1 / sqrt(n) * -0.5 + n // (n - 1)
    p.launch("k", [value.cast(kind) for kind in ("float64", "float32", "bfloat16", "float8_e4m3fn")], 1, 32)
    p.launch("l", [real(1) / 0], 1, 32)
    return p.build()


def texts(*, host: bool) -> list[str]:
    """Return all that is compiled for one kind of target."""
    if host:
        plans = [computing().plan(), *(load(name).program.plan() for name in CPU_EXAMPLES)]
        return ["#include <trunnion/host_runtime.cc>", *map(emit_host_launcher, plans)]
    (free,) = symbols("n")
    made = [
        computing(),
        nullable(free),
        nullable(Symbol("n", min=4, multiple_of=4)),
        *(load(name).program for name in EXAMPLES),
    ]
    return ["#include <trunnion/launch_runtime.cc>", *(emit_launcher(program.plan()) for program in made)]


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("host", [True, False])
def test_nothing_of_ours_gives_a_warning(tmp_path: Path, *, host: bool) -> None:
    toolchain = find_host_toolchain("the tests", cuda=not host)
    folders = [word for folder in toolchain.include_folders for word in ("-isystem", folder)]
    options = (
        *launcher_options(toolchain.compiler.family),
        *WARNINGS,
        f"-I{runtime_folder()}",
        *folders,
        "-S",
    )
    for text in texts(host=host):
        wanted = HostCompilation(
            source="text.cc", text=f"{text}\n", output="text.s", options=(*options, "text.cc")
        )
        assert run_host(toolchain.compiler, wanted, tmp_path, "the tests").log == ""
