from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, lt, select

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

HOSTILE = "'\"\\\n{x}\0\u2028\ud800"


def rich_program(**changes: Any) -> KernelProgram:
    """Return a program that uses everything once; `changes` replace parts of it."""
    cubin = DeviceCode("cubin", b"\x7fELF\0", name="k.cubin", target="sm_90a")
    p = ProgramBuilder(
        changes.get("name", "rich"),
        (
            DeviceCode(
                "cuda", "// 1", includes=(("a.h", ""),), options=("-G",), defines=(("A", None), ("B", "1"))
            ),
            cubin,
        ),
    )
    m, n, k = Symbol("m"), Symbol(HOSTILE, min=1, max=2**20, multiple_of=4), Symbol("k", max=99)
    a = p.input("a", "float16", (m, n), strides=(Symbol("lda", min=8, multiple_of=8), 1), alignment=16)
    b = p.input(HOSTILE, "float16", (n * 2, 64))
    s = p.scalar("s", "int32", k)
    f = p.scalar("f", "bfloat16")
    images = p.input("images", "float16", (m, 16, 16, 64), nullable=True)
    address, record = p.pointer("address", nullable=True, alignment=16), p.struct("record", 24, 8)
    c = p.output("c", "float32", (m, n + k), fill=1.5)
    z = p.output("z", "complex64", (), fill=complex(1, -2))
    scratch = p.workspace("scratch", "float16", (m, 64), zeroed=True)
    p.check(lt(k, 50), "k is below 50")
    tensors = {"a": a, "b": b, "images": images, "scratch": scratch, "z": z}
    _first(p, changes, tensors, (c, s, f), (m, n))
    _second(p, changes, tensors, (address, record), (m, k), cubin)
    return p.build()


def _first(p: ProgramBuilder, changes: Any, t: Any, rest: Any, symbols: Any) -> None:
    m, n = symbols
    box = changes.get("box", (64, 64))
    p.launch(
        "first<1>",
        (
            t["a"].tiled((8, 64), swizzle="128B", label=changes.get("label", "A")),
            t["b"].tiled(box, label="B"),
            *rest,
        ),
        grid=(ceildiv(m, 128), n, 1),
        block=128,
        cluster=(2, 1, 1),
        preferred_cluster=(4, 1, 1),
        cooperative=True,
        window=t["scratch"].window(hit_ratio=0.5, nbytes=n * 2, element_offset=64, policy="stream"),
        priority=-1,
        carveout=50,
        scheduling_policy="spread",
        mem_sync_domain="remote",
    )


def _second(p: ProgramBuilder, changes: Any, t: Any, rest: Any, symbols: Any, code: Any) -> None:
    m, k = symbols
    box = changes.get("box", (64, 64))
    p.launch(
        changes.get("second", "second"),
        (
            t["b"].tiled(box, label="other"),
            t["b"].tiled((64, 64), l2_promotion="L2_128B"),
            m.cast("int32"),
            select(k, m, 3),
            t["images"].im2col(
                pixel_box_lower_corner=(-1, -2),
                pixel_box_upper_corner=(1, 0),
                channels_per_pixel=64,
                pixels_per_column=32,
            ),
            t["scratch"].tiled((8, 64), element_offset=64, shape=(m, 32), strides=(64, 1)),
            *rest,
            t["z"],
            t["scratch"],
        ),
        grid=m,
        block=(32, changes.get("block_y", 2)),
        dynamic_smem_bytes=k * 1024,
        pdl=True,
        when=k,
        code=code,
    )


@pytest.fixture
def program() -> KernelProgram:
    return rich_program()


@pytest.fixture
def tree(program: KernelProgram) -> dict[str, Any]:
    return json.loads(program.to_json())


@pytest.fixture
def make_program() -> Any:
    return rich_program
