"""What the tests of the CPU's device compiler share."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import ProgramBuilder, symbols
from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelParameter, KernelSignature
from trunnion_tvm_ffi.compiler.host_compiler import CpuCompiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.compiled import CompiledProgram
    from trunnion.model.program import KernelProgram

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
POINTER = KernelParameter(8, 8, "a pointer")
LONG = KernelParameter(8, 8, "int64 (8 bytes)")

SCALE = """#include <trunnion/block.h>
template <typename T, int Extra>
void scale(const T* x, T* y, int64_t n, T factor, const trunnion_block_t* block) {
  for (int64_t i = block->index[0]; i < n; i += block->grid[0]) y[i] = x[i] * factor + Extra;
}
extern "C" void fill(double* y, bool on, int count, const trunnion_block_t* block) {
  for (int i = 0; on && i < count; ++i) y[i] = block->index[0] + 100. * block->index[2];
}
"""


BLOCK = "#include <trunnion/block.h>\n"
SCALING = """
void scale(const float* x, float* y, int64_t n, float factor, const trunnion_block_t* block) {
  for (int64_t i = block->index[0]; i < n; i += block->grid[0]) y[i] = x[i] * factor;
}
"""


def scaling(*, code: str = SCALING, grid: int = 3) -> KernelProgram:
    p = ProgramBuilder("scale", DeviceCode("c++", BLOCK + code))
    (n,) = symbols("n")
    x, y, factor = (
        p.input("x", "float32", (n,)),
        p.output("y", "float32", (n,)),
        p.scalar("factor", "float32"),
    )
    p.launch("scale", args=(x, y, n, factor), grid=grid, block=1)
    return p.build()


@pytest.fixture(params=COMPILERS or ["g++"])
def cxx(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each compiler that this machine has; without one, the tests say so by failing."""
    monkeypatch.setenv("CXX", request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def scale() -> Iterator[CompiledProgram]:
    """Return a compiled program that scales a vector."""
    with trunnion.compile(scaling()) as program:
        yield program


@pytest.fixture(scope="session")
def host() -> SimpleNamespace:
    """Requests to the device compiler, made of texts and of what a program says of its kernels."""
    return SimpleNamespace(
        request=request_for,
        compiled=compiled,
        kernel=kernel,
        scale=SCALE,
        pointer=POINTER,
        long=LONG,
        scaling=scaling,
    )


def request_for(
    *code: DeviceCode | str,
    kernels: dict[str, tuple[KernelParameter, ...]] | None = None,
    parts: tuple[int, ...] = (),
    target: str = "cpu",
    accepts: tuple[str, ...] = ("host-object",),
    **options: Any,
) -> CompileRequest:
    named = (kernels or {}).items()
    return CompileRequest(
        code=tuple(one if isinstance(one, DeviceCode) else DeviceCode("c++", one) for one in code),
        kernels=tuple(
            KernelSignature(name, parameters, parts[index] if parts else 0)
            for index, (name, parameters) in enumerate(named)
        ),
        target=Target.parse(target),
        options={name.replace("_", "-"): value for name, value in options.items()},
        accepts=accepts,
    )


def compiled(*code: DeviceCode | str, **fields: Any) -> DeviceImage:
    return CpuCompiler().compile(request_for(*code, **fields))


def kernel(text: str, name: str = "k", **fields: Any) -> DeviceImage:
    """Compile one kernel, of which the program says nothing."""
    return compiled(f"#include <trunnion/block.h>\n{text}", kernels={name: ()}, **fields)
