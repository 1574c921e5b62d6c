"""Calls leave nothing behind: no object of TVM-FFI or of Python, no device memory, and no more resident memory.

Each way in is taken until nothing new is kept, then many times more. TVM-FFI's objects lie in the C library's heap,
which is asked how much of it is in use: less than one block for each call may be more.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import os
import sys
import weakref
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest
import torch
import tvm_ffi

from trunnion.errors import TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, le
from trunnion.model.tensormap import TiledTensorMap
from trunnion.model.window import AccessPolicyWindow
from trunnion.registry import default_registry
from trunnion.sim.status import Refusal, Status
from trunnion.testing.harness import Harness
from trunnion.testing.machine import SimulatedMachine

CALLS, WARM_UP = 1500, 300
PERIODS = 3
MOST_HEAP = 16  # bytes of a call: the smallest block of the C library has 32
MOST_OBJECTS = 0.5  # of a call
MOST_RESIDENT = 1 << 20
LOADS = 12
MOST_OF_A_LOAD = (
    256 << 10
)  # a launcher's library stays in the process: what it captured may outlive every object


class Heap(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


LIBC = ctypes.CDLL(None)
LIBC.mallinfo2.restype = Heap


@dataclass(frozen=True)
class Reading:
    """What is in use."""

    heap: int
    objects: int
    resident: int
    device: int
    handles: int

    @classmethod
    def now(cls, simulator):
        simulator.clear_trace()
        gc.collect()
        heap = LIBC.mallinfo2()
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return cls(
            heap=heap.uordblks + heap.hblkhd,
            objects=sys.getallocatedblocks(),
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            device=sum(simulator.memory.used(ordinal) for ordinal in range(simulator.devices)),
            handles=len(simulator.state.handled),
        )

    def __sub__(self, other):
        return Reading(*(new - old for new, old in zip(astuple(self), astuple(other), strict=True)))


def growth(simulator, action, count=CALLS, warm_up=WARM_UP):
    """Return what an action leaves behind."""
    for _ in range(warm_up):
        action()
    before = Reading.now(simulator)
    for number in range(count):
        action()
        if number % 100 == 0:
            simulator.clear_trace()
    return Reading.now(simulator) - before


def assert_nothing(simulator, action, count=CALLS):
    """Assert that an action leaves nothing behind: what leaks does so in every period.

    The C library counts what a thread keeps to hand out again as in use, so one period alone says little of the heap.
    """
    for _ in range(PERIODS):
        left = growth(simulator, action, count)
        assert (left.device, left.handles) == (0, 0), left
        if _is_little(left, count):
            return
    raise AssertionError(left)


def _is_little(left, count):
    objects, heap = MOST_OBJECTS * count, MOST_HEAP * count
    return left.objects <= objects and left.heap <= heap and left.resident <= MOST_RESIDENT


def every_kind():
    """Return a program with everything that a call can hold, make or ask for."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, m = Symbol("n"), Symbol("m")
    a = builder.input("a", "float32", (n, 64))
    b = builder.input("b", "int8", (m,), strides=(Symbol("step"),), nullable=True)
    scalars = [builder.scalar(f"s{kind}", kind) for kind in ("uint64", "float16", "complex64")]
    places = [builder.pointer("pointer"), builder.struct("struct", 24, 8)]
    builder.scalar("count", "int32", symbol=m)
    outs = [builder.output("y", "float32", (n, 64), fill=0.5), builder.output("z", "int8", (m,))]
    scratch = builder.workspace("scratch", "float32", (n, 3), zeroed=True)
    builder.check(le(m, 1000), "m is small")
    tiles = TiledTensorMap(a, (8, 16))
    window = AccessPolicyWindow(a, nbytes=n * 4)
    builder.launch(
        "k", (a, b, tiles, *scalars, *places, *outs, scratch, n * m), ceildiv(n, 8), 32, window=window
    )
    return builder.build()


def plain():
    """Return a program of tensors and a number, which is called without TVM-FFI's general way."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    a, out = builder.input("a", "float32", (n,)), builder.output("out", "float32", (n,))
    builder.launch("k", (a, out, builder.scalar("s", "int32")), 1, 1)
    return builder.build()


@pytest.fixture(scope="module")
def built(running_simulator):
    """Return what builds a program with a backend, once."""
    made = {}

    def artifact(name, program):
        spec = next(spec for spec in default_registry().backends() if spec.name == name)
        harness = Harness(spec=spec, machine=SimulatedMachine(running_simulator))
        if (name, program) not in made:
            made[name, program] = harness.build(program)
        return harness, made[name, program]

    return artifact


@pytest.fixture(params=("tvm_ffi", "nvrtc"))
def loaded(request, built, simulator):
    """Return a program that has everything, loaded, and arguments of a good call."""
    harness, artifact = built(request.param, every_kind())
    program = harness.load(artifact)
    yield program
    program.close()


@pytest.fixture
def good(simulator):
    a = simulator.tensor(torch.ones(16, 64))
    b = simulator.tensor(torch.ones(10, dtype=torch.int8))[::2]
    return [a, b, 2**64 - 1, 0.5, 1j, 4096, bytes(24), 5]


def wrong_calls(good):
    """Return calls that are refused, each for another reason and at another place."""
    a, b, *rest = good
    return [
        good[:-1],
        [None, b, *rest],
        [a.to(torch.float64), b, *rest],
        [a[:, :32], b, *rest],
        [a.cpu(), b, *rest],
        [a, b, -1, *rest[1:]],
        [a, b, rest[0], "half", *rest[2:]],
        [a, b, rest[0], 1e6, *rest[2:]],
        [a, b, *rest[:4], bytes(23), 5],
        [a, b, *rest[:-1], 6],
        [a, None, *rest[:-1], 2000],
        [a, None, *rest[:-1], -1],
    ]


def test_good_calls(loaded, good, simulator):
    out = list(loaded.call(good))
    ways = itertools.cycle(
        (lambda: loaded.entry(*good), lambda: loaded.call(good), lambda: loaded.call(good, out=out, stream=0))
    )

    def called():
        next(ways)()

    assert_nothing(simulator, called)


def test_the_direct_way_in(built, simulator):
    harness, artifact = built("tvm_ffi", plain())
    program = harness.load(artifact)
    tensor = simulator.tensor(torch.ones(4))
    assert_nothing(simulator, lambda: program.entry(tensor, 7))

    def refused():
        with contextlib.suppress(TrunnionError):
            program.entry(tensor, 2**31)

    assert_nothing(simulator, refused)
    program.close()


def test_refused_calls(loaded, good, simulator):
    wrong = wrong_calls(good)
    refusals = []

    def refused(way, args):
        try:
            way(args)
        except TrunnionError as error:
            return type(error)
        raise AssertionError(args)

    for args in wrong:
        refusals += [refused(loaded.call, args), refused(lambda args: loaded.entry(*args), args)]
    assert len(set(refusals)) > 1
    several = itertools.cycle(
        [*((loaded.call, args) for args in wrong), *((enter(loaded), args) for args in wrong)]
    )
    assert_nothing(simulator, lambda: refused(*next(several)))


def enter(loaded):
    return lambda args: loaded.entry(*args)


@pytest.mark.parametrize(
    "call", ["cuLaunchKernelEx", "cuTensorMapEncodeTiled", "cuMemsetD32Async", "allocate"]
)
def test_calls_that_the_driver_fails(loaded, good, simulator, call):
    """What a call has allocated by then is given back."""

    def fails(proceed, *arguments):
        raise Refusal(Status.OUT_OF_MEMORY, "planted")

    def failed():
        # Another address each time, so that no map is found encoded.
        a = simulator.tensor(torch.ones(16, 64))
        try:
            simulator.call(loaded.call, [a, *good[1:]])
        except (TrunnionError, torch.OutOfMemoryError):
            return
        raise AssertionError(call)

    with simulator.intercept(call, fails):
        assert_nothing(simulator, failed, CALLS // 4)


def test_bound_launches_that_are_dropped(loaded, good, simulator):
    def bound():
        launch = loaded.bind(good)
        launch()
        launch()

    assert_nothing(simulator, bound, CALLS // 4)


def test_what_is_loaded_is_let_go_once_it_is_closed(built, good, simulator):
    for name in ("tvm_ffi", "nvrtc"):
        harness, artifact = built(name, every_kind())
        seen = []

        def used(harness=harness, artifact=artifact, seen=seen):
            program = harness.load(artifact)
            program.bind(good)()
            seen.append(weakref.ref(program))
            program.close()

        left = growth(simulator, used, LOADS, 3)
        assert (left.device, left.handles) == (0, 0), (name, left)
        assert left.resident <= LOADS * MOST_OF_A_LOAD, (name, left)
        assert not [program for program in seen if program() is not None], name


def test_leaks_are_seen(loaded, good, simulator):
    """Of TVM-FFI's objects, of device memory, of Python's objects: one in every call."""
    library = ctypes.CDLL(str(tvm_ffi.libinfo.find_libtvm_ffi()))
    kept = []

    def native():
        array = tvm_ffi.Array([])
        library.TVMFFIObjectIncRef(ctypes.c_void_p(array.__chandle__()))

    left = growth(simulator, native)
    assert left.heap > MOST_HEAP * CALLS, left
    left = growth(simulator, lambda: kept.append(loaded.entry(*good)), 500)
    assert left.device >= 500 * 16 * 64 * 4, left
    assert left.objects > MOST_OBJECTS * 500, left
