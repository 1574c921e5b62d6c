"""A signal's exception in the simulated driver arrives at the caller, wherever it is raised, and leaves all usable."""

from __future__ import annotations

import weakref

import pytest
import torch

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv
from trunnion.model.tensormap import TiledTensorMap
from trunnion.registry import default_registry
from trunnion.testing.interruption import interrupting

EVERY = 7
"""Of the places of a call, so many are passed over: a prime, so that all kinds of them are met."""

OUTSIDE = ("simulator.py", "trace.py", "__init__.py")  # what the test itself asks


def of_the_simulator(frame):
    """Finalizers aside: what one raises Python itself shows, and raises nowhere."""
    file = frame.f_code.co_filename
    return "/trunnion/sim/" in file and not file.endswith(OUTSIDE) and not is_final(frame)


def is_final(frame):
    while frame is not None and frame.f_code.co_filename != weakref.__file__:
        frame = frame.f_back
    return frame is not None


def reading():
    """Return a program whose call encodes, allocates, fills and launches, within a context that it enters."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    a = builder.input("a", "float32", (n, 64))
    out = builder.output("out", "float32", (n, 64), fill=0.5)
    tiles = TiledTensorMap(a, (8, 16))
    builder.launch("k", (a, out, tiles, builder.scalar("s", "int32")), ceildiv(n, 8), 32)
    return builder.build()


BACKENDS = sorted(spec.name for spec in default_registry().backends() if spec.probe().usable)


@pytest.mark.parametrize("name", BACKENDS)
def test_an_exception_of_a_signal_arrives_wherever_it_is_raised(harnesses, simulator, name):
    harness, program = harnesses[name], reading()
    loaded = harness.load(harness.build(program))
    tensor = simulator.tensor(torch.ones(16, 64))

    def call():
        return simulator.call(loaded.call, [tensor, 7])

    def usual():
        simulator.clear_trace()
        call()
        return [type(event).__name__ for event in simulator.trace]

    usual()
    stack, expected = list(simulator.state.stack()), usual()
    with interrupting(of_the_simulator) as counted:
        call()
    assert counted.places > 200
    for place in range(1, counted.places + 1, EVERY):
        with interrupting(of_the_simulator, place) as interruption:
            try:
                call()
            except KeyboardInterrupt:
                arrived = True
            else:
                arrived = False
        assert arrived is interruption.struck, place
        if not arrived:  # a call after an interrupted one may have fewer places
            break
        simulator.raise_pending()
        assert list(simulator.state.stack()) == stack, place
        if place % 5 == 0:
            assert usual() == expected, place
    assert place > 0.9 * counted.places
    assert usual() == expected
    loaded.close()
