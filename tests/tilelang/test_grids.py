"""Grids drawn at random: what the importer makes of an expression has the value that the interpreter gives it."""

import random

import pytest
import tilelang.language as T
from tilelang_corpus.corpus import TARGET
from tilelang_corpus.entry import Entry
from tilelang_host.bench import Bench, synthetic

from trunnion_tilelang import from_artifact

PROGRAMS, CALLS = 12, 6

OPERATIONS = (
    lambda a, b, number: a + b,
    lambda a, b, number: a - b,
    lambda a, b, number: a * number,
    lambda a, b, number: a // number,
    lambda a, b, number: a % number,
    lambda a, b, number: T.ceildiv(a, number),
    lambda a, b, number: a // T.max(b, 1),
    lambda a, b, number: a % T.max(b, 1),
    lambda a, b, number: T.min(a, b),
    lambda a, b, number: T.max(a, b),
    lambda a, b, number: T.if_then_else(a > b, a, number),
    lambda a, b, number: T.if_then_else(T.Or(a <= number, T.Not(b == number)), b, number),
    lambda a, b, number: T.if_then_else(T.And(a < b, b % number != 0), a, b),
)


def drawn(choice, values, depth):
    """Return an expression over values: of numbers up to 500, none of it leaves 32 bits."""
    if not depth:
        return choice.choice(values)
    operation = choice.choice(OPERATIONS)
    return operation(drawn(choice, values, depth - 1), drawn(choice, values, depth - 1), choice.randint(2, 7))


def extents(seed, values):
    """Return a grid that a launch can have, or that is empty."""
    choice = random.Random(seed)  # noqa: S311 - which grids are drawn is no secret
    return [T.min(T.max(drawn(choice, values, 3), 0), 9) for _ in range(3)]


def kernel(seed):
    def make():
        m, n = T.dynamic("m"), T.dynamic("n")

        @T.prim_func
        def grids(x: T.Tensor((m, n), T.float32), w: T.int32):
            x_extent, y_extent, z_extent = extents(seed, (m, n, w))
            with T.Kernel(x_extent, y_extent, z_extent, threads=32) as (bx, by, bz):
                for i in T.Parallel(32):
                    if (bx + by + bz == 0) and (i < n):
                        x[0, i] = T.cast(w, T.float32)

        return grids

    return make


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_drawn_grids(seed, harnesses):
    entry = Entry(
        name=f"grids_{seed}",
        covers="grids",
        make=kernel(seed),
        inputs=lambda draw: (draw.tensor((draw.size(1, 500), draw.size(1, 500))), draw.size(-200, 500)),
        reference=lambda x, w: (),
    )
    artifact = entry.lower()
    subject, harness = Bench(entry, artifact, from_artifact(artifact)), harnesses[seed % len(harnesses)]
    with subject.loaded(harness, synthetic(artifact, TARGET)) as loaded:
        for call in range(CALLS):
            given = subject.given(harness, call, 0)
            subject.compared(subject.call(harness, loaded, given, 0), given)
