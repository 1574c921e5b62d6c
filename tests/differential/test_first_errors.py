"""Calls in which two rules are broken at once: whoever launches tells the same one, that which the plan has first."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial

import pytest

from trunnion.errors import TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, symbols
from trunnion.model.window import AccessPolicyWindow
from trunnion.testing.strategies import TensorSpec
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.strategies.numbers import BytesSpec

NAMES = ("x", "y", "z", "i8", "k", "f", "e", "b", "q", "u")


def tensor(dtype, *shape, strides=None, **said):
    return TensorSpec(
        dtype=dtype, shape=shape, strides=row_major(shape) if strides is None else strides, **said
    )


def x(*shape, **said):
    return tensor("float32", *shape, **said)


GOOD = {
    "x": x(16),
    "y": tensor("float16", 16, 32),
    "z": x(16),
    "i8": 3,
    "k": 16,
    "f": 1.5,
    "e": 2.0**-127,
    "b": True,
    "q": 64,
    "u": BytesSpec(bytes(8)),
}
WRONG = {
    "x": {
        "no tensor": 3,
        "type": tensor("int32", 16),
        "rank": x(16, 1),
        "layout": x(16, strides=(2,)),
        "alignment": x(16, offset=1),
        "on the CPU": x(16, device=None),
        "on another device": x(16, device=1),
        "another extent": x(18),
        "the author's check": x(3),
        "too many blocks": x(70000),
        "no whole cluster": x(15),
    },
    "y": {
        "None": None,
        "type": tensor("bfloat16", 16, 32),
        "stride": tensor("float16", 16, 32, strides=(32, 2)),
        "a map's rule": tensor("float16", 16, 20, strides=(20, 1)),
        "the author's check": tensor("float16", 16, 16),
    },
    "z": {"extent": x(17), "rank": x(16, 1), "text": "text"},
    "i8": {"range": 1000, "text": "x", "float": 1.5},
    "k": {
        "least": 0,
        "multiple": 6,
        "greatest": 104,
        "range": 2**40,
        "bool": True,
        "a workspace's extent": 4,
        "threads": 100,
        "window": 24,
    },
    "f": {"range": 1e6, "text": "x"},
    "e": {"zero": 0.0, "text": "x"},
    "b": {"int": 1},
    "q": {"alignment": 8, "null": 0, "text": "x"},
    "u": {"size": BytesSpec(bytes(7)), "int": 3},
    "out": {"shape": (x(13),), "type": (tensor("int32", 14),), "number": (), "None": (None,)},
    "device": {"another": 1, "none": 99},
}
"""What breaks a rule, by argument."""


def program(order, *, nullable=False):
    """Return a program that asks something of everything, its parameters in one order or the other."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, m, s = symbols("n m s")
    k = Symbol("k", min=1, max=100, multiple_of=4)
    made = {
        "x": lambda: p.input("x", "float32", (n,), alignment=16),
        "y": lambda: p.input("y", "float16", (n, m), strides=(s, 1)),
        "z": lambda: p.input("z", "float32", (n,), nullable=nullable),
        "i8": lambda: p.scalar("i8", "int8"),
        "k": lambda: p.scalar("k", "int32", k),
        "f": lambda: p.scalar("f", "float16"),
        "e": lambda: p.scalar("e", "float8_e8m0fnu"),
        "b": lambda: p.scalar("b", "bool"),
        "q": lambda: p.pointer("q", alignment=16),
        "u": lambda: p.struct("u", 8, 8),
    }
    given = {name: made[name]() for name in order}
    p.check(n - 3, "n is 3")
    p.check(k - m, "k is m")
    out = p.output("out0", "float32", (n - 2,))
    scratch = p.workspace("scratch", "int8", (k - 8,))
    passed = [given[name] for name in NAMES if name != "y"]
    p.launch(
        "first",
        (*passed, given["y"].tiled((2, 8)), out, (k * n).cast("int16")),
        grid=(1, 1, n),
        block=(k * 16, 1, 1),
        dynamic_smem_bytes=k * 100,
    )
    window = AccessPolicyWindow(given["x"], nbytes=k * 4, hit_ratio=0.5)
    p.launch("second", (given["x"], scratch), grid=(n, 1, 1), block=32, cluster=(2, 1, 1), window=window)
    return p.build()


def mistakes():
    return [(argument, what) for argument, some in WRONG.items() for what in some]


def pairs():
    return [(one, other) for one, other in itertools.combinations(mistakes(), 2) if one[0] != other[0]]


def told(harness, loaded, order, call):
    """Return what a refused call raises, in whatever way it is made."""
    made, out, device = call
    args, words = [made[name] for name in order], {"out": out, "device": device}
    said = []
    for launch in (partial(loaded.call, args), partial(loaded.entry, *args)):
        with pytest.raises(TrunnionError) as caught:
            harness.simulator.call(launch, **words)
        said.append((type(caught.value), str(caught.value), vars(caught.value)))
    assert said[0] == said[1]
    return said[0]


def call_with(harness, *wrong):
    """Return the arguments, the destinations and the device of a call, each tensor made once for all backends."""
    given = GOOD | {argument: WRONG[argument][what] for argument, what in wrong}
    out, device = given.pop("out", None), given.pop("device", None)
    made = dict(zip(given, harness.arguments(tuple(given.values())), strict=True))
    return made, None if out is None else harness.arguments(out), device


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]], ids=["forwards", "backwards"])
def test_of_two_broken_rules_every_backend_tells_the_same(twins, order, nullable):
    first, seen = Counter(), 0
    with twins.loaded(program(order, nullable=nullable)) as pair:
        for one, other in [*((one,) * 2 for one in mistakes()), *pairs()]:
            call = call_with(pair.loaded[0][0], one, other)
            said = [told(harness, loaded, order, call) for harness, loaded in pair.loaded]
            assert said[0] == said[1], (one, other)
            first[said[0][1]] += 1
            seen += 1
    assert seen == len(mistakes()) + len(pairs())
    assert len(first) > len(mistakes()) / 2, "the same few refusals hide the others"


def test_what_was_right_is_launched_all_the_same(twins):
    with twins.loaded(program(NAMES)) as pair:
        for harness, loaded in pair.loaded:
            made, *_ = call_with(harness)
            harness.simulator.call(loaded.call, list(made.values()))
            assert harness.observed_launches()
