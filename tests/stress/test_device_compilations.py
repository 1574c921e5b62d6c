"""A hundred device compilations leave nothing behind: memory, mappings, descriptors, temporary files, processes."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.compiler.workers import Workers
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_tvm_ffi.compiler.host_compiler import CpuCompiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.contract.compiler import DeviceCompiler

COUNT, FIRST = 100, 40
MOST_BYTES = (
    4 << 20
)  # that the memory of all processes may grow by, in a hundred compilations: allocators keep some
MOST_MAPPINGS = 4

CUDA = """
#include <cuda_fp16.h>
template <int N> __global__ void k(float* x, int n) {
  __shared__ float y[N];
  for (int i = threadIdx.x; i < n; i += N) { y[threadIdx.x] = x[i] * FACTOR; x[i] = __half2float(y[threadIdx.x]); }
}
"""
CUTEDSL = """
import cutlass
from cutlass import cute


@cute.kernel
def k(x: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    if thread < n:
        x[thread] = x[thread] * FACTOR.0
"""
HOST = """
#include <trunnion/block.h>
#include <cmath>
void k(float* x, int n, const trunnion_block_t*) { for (int i = 0; i < n; ++i) x[i] = std::sqrt(x[i]) * FACTOR; }
"""


class Footprint(NamedTuple):
    """What a process and all its descendants hold."""

    processes: int
    descriptors: int
    mappings: int
    resident: int
    files: int


def descendants(process: int) -> list[int]:
    """Return a process and those below it, without those that ended meanwhile."""
    found = [process]
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += descendants(int(child))
    return found


def footprint(temporary: Path) -> Footprint:
    gc.collect()
    processes = descendants(os.getpid())
    places = [Path(f"/proc/{one}") for one in processes]
    pages = sum(int((place / "statm").read_text().split()[1]) for place in places)
    return Footprint(
        processes=len(processes),
        descriptors=sum(len(list((place / "fd").iterdir())) for place in places),
        mappings=sum(len((place / "maps").read_text().splitlines()) for place in places),
        resident=pages * os.sysconf("SC_PAGE_SIZE"),
        files=sum(1 for _ in temporary.rglob("*")),
    )


def request(language: str, text: str, factor: int, name: str) -> CompileRequest:
    """Return a request for a kernel that no other factor makes."""
    p = ProgramBuilder("p", DeviceCode(language, text.replace("FACTOR", str(factor)), name=name))
    x = p.input("x", "float32", (128,), access="read_write")
    n = p.scalar("n", "int32")
    given = x.view() if language == "cutedsl" else x
    p.launch("k<64>" if language == "cuda" else "k", (given, n), 1, 64)
    program = p.build()
    plan = program.plan()
    target = Target("cpu") if language == "c++" else Target.parse("sm_90a")
    return CompileRequest(code=program.code, kernels=plan.kernels, target=target, plan=plan)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def pool(temporary: Path) -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()
    assert not list(temporary.iterdir())


def check(compiler: DeviceCompiler, language: str, text: str, name: str, temporary: Path) -> None:
    images = set()

    def compile_some(first: int, count: int) -> None:
        for factor in range(first, first + count):
            asked = request(language, text, factor, name)
            compiler.environment(asked)
            images.add(compiler.compile(asked).data)

    compile_some(1, FIRST)
    before = footprint(temporary)
    compile_some(1 + FIRST, COUNT)
    after = footprint(temporary)
    assert len(images) == FIRST + COUNT
    assert (after.processes, after.descriptors, after.files) == (
        before.processes,
        before.descriptors,
        before.files,
    )
    assert after.mappings <= before.mappings + MOST_MAPPINGS
    assert after.resident <= before.resident + MOST_BYTES


def test_nvrtc(temporary: Path) -> None:
    check(NvrtcCompiler(), "cuda", CUDA, "k.cu", temporary)


def test_cutedsl_workers(temporary: Path, pool: Workers) -> None:
    check(CuteDslCompiler(pool), "cutedsl", CUTEDSL, "k.py", temporary)


def test_the_host_s_compiler(temporary: Path) -> None:
    check(CpuCompiler(), "c++", HOST, "k.cc", temporary)
