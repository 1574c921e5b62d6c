from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv, lt, select
from trunnion.model.program import DeviceCode

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

HOSTILE = "'\"\\\n{x}\0\u2028\ud800"


def rich_program(**changes: Any) -> KernelProgram:
    """Return a program that uses everything once; `changes` replace parts of it."""
    p = ProgramBuilder(
        changes.get("name", "rich"),
        (
            DeviceCode(
                "cuda", "// 1", includes=(("a.h", ""),), options=("-G",), defines=(("A", None), ("B", "1"))
            ),
            DeviceCode("cubin", b"\x7fELF\0", name="k.cubin", target="sm_90a"),
        ),
    )
    m, n, k = Symbol("m"), Symbol(HOSTILE, min=1, max=2**20, multiple_of=4), Symbol("k", max=99)
    a = p.input("a", "float16", (m, n), strides=(Symbol("lda", min=8, multiple_of=8), 1), alignment=16)
    b = p.input(HOSTILE, "float16", (n * 2, 64))
    s = p.scalar("s", "int32", k)
    f = p.scalar("f", "bfloat16")
    c = p.output("c", "float32", (m, n + k))
    p.check(lt(k, 50), "k is below 50")
    box = changes.get("box", (64, 64))
    p.launch(
        "first<1>",
        (a.tiled((8, 64), swizzle="128B", label=changes.get("label", "A")), b.tiled(box, label="B"), c, s, f),
        grid=(ceildiv(m, 128), n, 1),
        block=128,
        cluster=(2, 1, 1),
        cooperative=True,
    )
    p.launch(
        changes.get("second", "second"),
        (
            b.tiled(box, label="other"),
            b.tiled((64, 64), l2_promotion="L2_128B"),
            m.cast("int32"),
            select(k, m, 3),
        ),
        grid=m,
        block=(32, changes.get("block_y", 2)),
        dynamic_smem_bytes=k * 1024,
        pdl=True,
    )
    return p.build()


@pytest.fixture
def program() -> KernelProgram:
    return rich_program()


@pytest.fixture
def tree(program: KernelProgram) -> dict[str, Any]:
    return json.loads(program.to_json())


@pytest.fixture
def make_program() -> Any:
    return rich_program
