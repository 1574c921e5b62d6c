"""C = A B^T on Hopper in CuTeDSL: two tiled tensor maps, whose boxes are the kernel's tile, mbarriers and wgmma."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.examples import load
from trunnion.examples.hopper_gemm import multiply_tiles
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv
from trunnion_cutedsl.examples.text import device_code

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_TILE_M, _TILE_N, _TILE_K = 128, 64, 64
_STAGES = 3
_THREADS = 128  # one warpgroup
_SMEM_BYTES = 1024 + _STAGES * 2 * _TILE_K * (_TILE_M + _TILE_N)  # barriers, then stages that begin at 1024
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


def _body(call: KernelCall) -> None:
    """Do what ``hopper_gemm`` does, with what the launch delivered."""
    view = call.view(2, (None, None), (None, 1))
    c = call.memory.view(view.address, "float32", view.shape)
    multiply_tiles(call, c, int(call.scalar(3, "int32")), (_TILE_M, _TILE_N, _TILE_K))


EXAMPLE = replace(
    load("hopper_gemm"),  # the same numbers: its inputs, edges, reference and tolerance
    name="cutedsl_hopper_gemm",
    summary="C = A B^T in CuTeDSL, fp16 in, fp32 out, fed by tensor maps",
    program=_program(),
    bodies={f"hopper_gemm(stages={_STAGES})": _body},
)
