"""Memory of programs for the CPU: fills of every width, alignment beyond the allocator's, scratch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol
from trunnion.errors import (
    ArgumentValueError,
)
from trunnion.model.dtypes import dtype as dtype_of

BLOCK = "#include <trunnion/block.h>\n"


# Memory -------------------------------------------------------------------------------------------------------------

FILLS = {
    "int8": -3,
    "bool": True,
    "float16": 1.5,
    "bfloat16": -2.0,
    "float32": 0.1,
    "uint32": 2**32 - 1,
    "float64": -1e300,
    "int64": -(2**40) - 1,
    "complex64": 1 + 2j,
    "complex128": -1 + 0.5j,
}


def test_outputs_are_filled_with_numbers_of_every_width() -> None:
    p = ProgramBuilder("fill", DeviceCode("c++", BLOCK + "void k(void*, const trunnion_block_t*) {}"))
    n = Symbol("n")
    p.scalar("n", "int64", n)
    outputs = [p.output(kind, kind, (n, 3), fill=value) for kind, value in FILLS.items()]
    p.launch("k", args=(outputs[0],), grid=1, block=1)
    with trunnion.compile(p.build()) as program:
        for count in (0, 1, 4099):
            for (kind, value), result in zip(FILLS.items(), program(count), strict=True):
                assert result.shape == (count, 3)
                assert torch.equal(
                    result, torch.full((count, 3), value, dtype=dtype_of(kind).in_torch(torch))
                )


@pytest.mark.parametrize("alignment", [4, 64, 128, 4096, 1 << 20])
def test_outputs_and_workspaces_are_as_aligned_as_the_program_says(alignment: int) -> None:
    """More than the allocator knows of; the memory lives as long as any view of it."""
    text = """
    void first(float* w, float* y, int64_t n, const trunnion_block_t*) { for (int64_t i = 0; i < n; ++i) w[i] += i; }
    void second(const float* w, float* y, int64_t n, const trunnion_block_t*) {
      for (int64_t i = 0; i < n; ++i) y[i] = w[i];
    }
    """
    p = ProgramBuilder("aligned", DeviceCode("c++", BLOCK + text))
    n = Symbol("n")
    p.scalar("n", "int64", n)
    y = p.output("y", "float32", (n, 1, 2), alignment=alignment)
    w = p.workspace("w", "float32", (n, 2), alignment=alignment, zeroed=True)
    for name in ("first", "second"):
        p.launch(name, args=(w, y, n * 2), grid=1, block=1)
    with trunnion.compile(p.build()) as program:
        views = []
        for count in (0, 1, 5, 1000):
            result = program(count)
            assert result.data_ptr() % alignment == 0
            assert result.is_contiguous()
            assert result.flatten().tolist() == list(range(2 * count))
            views.append(result[count // 2 :])
            del result
        assert [view.flatten().tolist() for view in views] == [
            list(range(2 * (count // 2), 2 * count)) for count in (0, 1, 5, 1000)
        ]


def test_aligned_outputs_are_given_back() -> None:
    p = ProgramBuilder(
        "many", DeviceCode("c++", BLOCK + "void k(char* y, const trunnion_block_t*) { y[0] = 1; }")
    )
    y = p.output("y", "uint8", (1 << 20,), alignment=1 << 16)
    p.launch("k", args=(y,), grid=1, block=1)
    with trunnion.compile(p.build()) as program:
        status = Path("/proc/self/statm")
        for _ in range(3):
            program()
        before = int(status.read_text().split()[0])
        for _ in range(300):
            program()
        grown = (int(status.read_text().split()[0]) - before) * os.sysconf("SC_PAGESIZE")
        assert grown < 64 << 20, "300 outputs of a MiB each are not all kept"


def test_scratch_is_there_and_its_lack_is_an_error() -> None:
    text = """
    void k(int64_t* y, const trunnion_block_t* block) {
      unsigned char* scratch = static_cast<unsigned char*>(block->shared);
      for (uint64_t i = 0; i < block->shared_bytes; ++i) scratch[i] = 1;
      int64_t sum = 0;
      for (uint64_t i = 0; i < block->shared_bytes; ++i) sum += scratch[i];
      y[block->index[0]] = sum;
    }
    """
    p = ProgramBuilder("scratch", DeviceCode("c++", BLOCK + text))
    n = Symbol("n")
    p.scalar("n", "int64", n)
    y = p.output("y", "int64", (4,))
    p.launch("k", args=(y,), grid=4, block=1, dynamic_smem_bytes=n)
    with trunnion.compile(p.build()) as program:
        assert program(0).tolist() == [0] * 4
        assert program(1001).tolist() == [1001] * 4
        with pytest.raises(ArgumentValueError, match="2147483647"):
            program(1 << 31)
