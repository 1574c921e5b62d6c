"""C = A B^T on Hopper: two tiled tensor maps with a 128-byte swizzle, mbarriers and wgmma; fp16 in, fp32 out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE", "multiply_tiles"]

_TILE_M = _TILE_N = 128
_TILE_K = 64
_STAGES = 3
_THREADS = 288  # two consumer warpgroups and one producer warp
_SMEM_BYTES = _STAGES * 32768 + 1024  # two 16 KiB tiles for each stage, and room to align them to 1024
_SHAPE = (200, 328, 136)  # m, n, k: all ragged, all different
_MOST = 2**31 - 128  # the kernel computes with 32-bit integers, a tile beyond the end


def _program() -> KernelProgram:
    code = device_code(
        "hopper_gemm.cu", headers=("tensor_copy.cuh",), options=("--std=c++17",), target="sm_90a"
    )
    p = ProgramBuilder("hopper_gemm", code)
    m, n = Symbol("m", min=1, max=_MOST), Symbol("n", min=1, max=65535 * _TILE_N)
    k = Symbol("k", min=8, max=_MOST, multiple_of=8)  # a row's pitch is a multiple of 16 bytes
    a = p.input("a", "float16", (m, k), alignment=16)
    b = p.input("b", "float16", (n, k), alignment=16)
    c = p.output("c", "float32", (m, n))
    tile_a = a.tiled(box_dim=(_TILE_M, _TILE_K), swizzle="128B", l2_promotion="L2_128B")
    tile_b = b.tiled(box_dim=(_TILE_N, _TILE_K), swizzle="128B", l2_promotion="L2_128B")
    p.launch(
        f"hopper_gemm<{_STAGES}>",
        args=(tile_a, tile_b, c, m.cast("int32"), n.cast("int32"), k.cast("int32")),
        grid=(ceildiv(m, _TILE_M), ceildiv(n, _TILE_N)),
        block=_THREADS,
        dynamic_smem_bytes=_SMEM_BYTES,
    )
    return p.build()


def _inputs(
    generator: torch.Generator, device: str, *, shape: tuple[int, int, int] = _SHAPE
) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    m, n, k = shape
    return tuple(torch.randn(rows, k, generator=generator).half().to(device) for rows in (m, n))


def _reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() @ b.double().T).float()


def multiply_tiles(call: KernelCall, c: torch.Tensor, k: int, tile: tuple[int, int, int]) -> None:
    """Do what such a kernel does, tile by tile, for any tile: other languages' kernels do the same.

    Parameters
    ----------
    call
        The launch: its parameters 0 and 1 are the maps of A and B, and each block computes one tile.
    c
        C, as the launch delivered it: fp32 of shape (m, n).
    k
        The depth, in elements.
    tile
        A tile's m, n and k, in elements: the boxes of the maps.
    """
    import torch  # noqa: PLC0415 - describing a program must not import torch

    a, b = call.tensor_map(0), call.tensor_map(1)
    (m, n), (tile_m, tile_n, tile_k) = c.shape, tile
    for x in range(call.grid[0]):
        for y in range(call.grid[1]):
            row, column = x * tile_m, y * tile_n
            total = torch.zeros(tile_m, tile_n)
            for depth in range(0, k, tile_k):
                total += a.load((depth, row)).float() @ b.load((depth, column)).float().T
            rows, columns = min(tile_m, m - row), min(tile_n, n - column)
            c[row : row + rows, column : column + columns] = total[:rows, :columns]


def _body(call: KernelCall) -> None:
    """Do what ``hopper_gemm.cu`` does, with what the launch delivered."""
    m, n, k = (int(call.scalar(i, "int32")) for i in (3, 4, 5))
    c = call.memory.view(call.pointer(2), "float32", (m, n))
    multiply_tiles(call, c, k, (_TILE_M, _TILE_N, _TILE_K))


EXAMPLE = Example(
    name="hopper_gemm",
    summary="C = A B^T, fp16 in, fp32 out, fed by tensor maps",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, shape=shape) for shape in ((1, 1, 8), (300, 1, 72), (129, 127, 584))),
    reference=_reference,
    bodies={f"hopper_gemm<{_STAGES}>": _body},
    tolerance=1e-5,
)
