"""Extents and strides near the ends of 31, 32 and 63 bits: no memory reaches so far, but tensors do."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st
from twins.twins import WAYS

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, eq, le, minimum
from trunnion.model.tensormap import TiledTensorMap
from trunnion.model.window import AccessPolicyWindow
from trunnion.testing.draws import for_examples
from trunnion.testing.strategies import CallSpec, TensorSpec

CALLS = 300
LAUNCHES, SCRATCH = 7, 4
EDGES = (
    0,
    1,
    2,
    3,
    64,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**33 + 1,
    2**40,
    2**60,
    2**61,
    2**62 + 1,
    2**63 - 1,
)


def every_place():
    """Return a program in which extents and strides go wherever a number can go, one launch in each call."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, m, p, q, which = (Symbol(name) for name in "nmpqw")
    builder.scalar("which", "int64", symbol=which)
    a = builder.input("a", "float32", (n, m), strides=(p, q))
    b = builder.input("b", "uint8", (n + m, 1), strides=(p * 2, q - 1))
    scratch = builder.workspace("scratch", "float64", (n, m))
    out = builder.output("out", "int16", (minimum(n, 5), m % 7), fill=1)
    builder.check(le(q, 2**62 + 5), "q is not so large")
    numbers = (n * m, n - m * 3, (n * p + q) // -7, m % n, (n - m).cast("int32"), (q * 2).cast("uint32"))
    slices = TiledTensorMap(a, (1, 4), shape=(n, m), strides=(q, 1), element_offset=n * p)
    launches = (
        {"args": (a, b, out, *numbers)},
        {"args": (n, m, p, q), "grid": (n, ceildiv(m, 2**40), 1)},
        {"args": (), "block": (n, m, 1)},
        {"args": (), "dynamic_smem_bytes": n * m - p},
        {"args": (scratch, a)},
        {"args": (slices,)},
        {"args": (a,), "window": AccessPolicyWindow(a, element_offset=p, nbytes=n * 4)},
    )
    for index, launch in enumerate(launches):
        fields = {"grid": (1, 1, 1), "block": (1, 1, 1), "when": eq(which, index), **launch}
        builder.launch(f"k{index}", **fields)
    return builder.build()


@st.composite
def calls_of(draw):
    """Draw a call whose tensors have one element each, seen again and again where their extents are more.

    Scratch memory is small, or larger than any memory: between them it depends on the machine.
    """
    which = draw(st.integers(0, LAUNCHES - 1))
    near = st.one_of(st.integers(1, 9), st.sampled_from(EDGES))
    n, m, p, q = (draw(near) for _ in range(4))
    p, q = (p if n <= 1 else 0), (q if m <= 1 else 0)
    if n * m > 2**63 - 1:
        n = (2**63 - 1) // m
    hypothesis.assume(which != SCRATCH or n * m * 8 < 2**20 or n * m * 8 >= 2**63)
    total = min(n + m, 2**63 - 1) + draw(st.sampled_from((0,) * 9 + (-1,)))
    a = TensorSpec(dtype="float32", shape=(n, m), strides=(p, q))
    b = TensorSpec(
        dtype="uint8", shape=(max(total, 0), 1), strides=(min(p * 2, 2**63 - 1) if total <= 1 else 0, 1)
    )
    return CallSpec(args=(which, a, b)), draw(st.sampled_from(WAYS))


def test_extents_and_strides_that_no_memory_has(twins):
    with twins.loaded(every_place()) as pair:
        for_examples(calls_of(), CALLS, lambda example: pair.compare(*example))
        assert min(pair.refused, pair.launched) > CALLS // 5
