"""C = A B^T on Hopper in CuTeDSL: two tiled tensor maps, whose boxes are the kernel's tile, mbarriers and wgmma."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trunnion.examples.example import Example
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv
from trunnion_cutedsl.examples.text import device_code

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_TILE_M, _TILE_N, _TILE_K = 128, 64, 64
_STAGES = 3
_THREADS = 128  # one warpgroup
_SMEM_BYTES = 1024 + _STAGES * 2 * _TILE_K * (_TILE_M + _TILE_N)  # barriers, then stages that begin at 1024
_SHAPE = (200, 328, 136)  # m, n, k: all ragged, all different
_MOST = 2**31 - 256  # the kernel computes with 32-bit integers, some tiles beyond the end


def _program() -> KernelProgram:
    p = ProgramBuilder("cutedsl_hopper_gemm", device_code("hopper_gemm", "sm_90a"))
    m, n = Symbol("m", min=1, max=_MOST), Symbol("n", min=1, max=65535 * _TILE_N)
    k = Symbol("k", min=8, max=_MOST, multiple_of=8)  # a row's pitch is a multiple of 16 bytes
    a = p.input("a", "float16", (m, k), alignment=16)
    b = p.input("b", "float16", (n, k), alignment=16)
    c = p.output("c", "float32", (m, n))
    tile_a = a.tiled(box_dim=(_TILE_M, _TILE_K), swizzle="128B", l2_promotion="L2_128B")
    tile_b = b.tiled(box_dim=(_TILE_N, _TILE_K), swizzle="128B", l2_promotion="L2_128B")
    p.launch(
        f"hopper_gemm(stages={_STAGES})",
        args=(tile_a, tile_b, c.view(), k.cast("int32")),
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


def _body(call: KernelCall) -> None:
    """Do what ``hopper_gemm`` does, tile by tile, with what the launch delivered."""
    import torch  # noqa: PLC0415 - describing a program must not import torch

    a, b = call.tensor_map(0), call.tensor_map(1)
    view = call.view(2, (None, None), (None, 1))
    c = call.memory.view(view.address, "float32", view.shape)
    m, n = view.shape
    for x in range(call.grid[0]):
        for y in range(call.grid[1]):
            row, column = x * _TILE_M, y * _TILE_N
            tile = torch.zeros(_TILE_M, _TILE_N)
            for depth in range(0, int(call.scalar(3, "int32")), _TILE_K):
                tile += a.load((depth, row)).float() @ b.load((depth, column)).float().T
            rows, columns = min(_TILE_M, m - row), min(_TILE_N, n - column)
            c[row : row + rows, column : column + columns] = tile[:rows, :columns]


EXAMPLE = Example(
    name="cutedsl_hopper_gemm",
    summary="C = A B^T in CuTeDSL, fp16 in, fp32 out, fed by tensor maps",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, shape=shape) for shape in ((1, 1, 8), (300, 1, 72), (129, 127, 584))),
    reference=_reference,
    bodies={f"hopper_gemm(stages={_STAGES})": _body},
    tolerance=1e-5,
)
