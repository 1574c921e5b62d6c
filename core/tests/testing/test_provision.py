"""What was set in memory, from events that were written by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.trace import Allocated, Launched, MemorySet, Synchronized
from trunnion.testing.expected import (
    Address,
    CallSignature,
    Expected,
    ExpectedOutput,
    ExpectedWorkspace,
    TensorFacts,
)
from trunnion.testing.harness import Harness
from trunnion.testing.laws import LawViolation
from trunnion.testing.machine import USED, MemorySeen
from trunnion.testing.observed import Observed
from trunnion.testing.provision import compare_allocations, compare_contents, compare_workspaces, places_set

HARNESS = Harness(spec=None, machine=SimpleNamespace(tier="sim"), law_id="X1")  # type: ignore[arg-type]  # it only raises
SPACE = ExpectedWorkspace(name="w", nbytes=16, alignment=256, zeroed=True)
OUTPUT = ExpectedOutput("o", "complex64", (2,), fill=b"\0\0\x80\x3f\0\0\0\x40")
EXPECTED = Expected(launches=(), outputs=(OUTPUT,), device=0, workspaces=(SPACE,))
WHERE = {Address("w", 0, workspace=True): 0x2000, Address("o"): 0x1000}
ALLOCATIONS = (Allocated(0x1000, 16, 0, 5), Allocated(0x2000, 16, 0, 5))
SETS = (
    MemorySet(0x1000, 0x3F800000, 4, 1, 0, 5, rows=2, pitch=8),
    MemorySet(0x1004, 0x40000000, 4, 1, 0, 5, rows=2, pitch=8),
    MemorySet(0x2000, 0, 1, 16, 0, 5),
)


def launched(stream=5):
    shape = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": None, "dynamic_smem_bytes": 0}
    return Launched(
        kernel="k", library=1, device=0, stream=stream, parameters=(), attributes=LaunchAttributes(), **shape
    )


def observed(*events):
    return Observed(result=None, error=None, given_out=None, events=events)


def test_what_is_right():
    good = observed(*ALLOCATIONS, *SETS, launched())
    compare_contents(HARNESS, EXPECTED, good, WHERE)
    compare_workspaces(HARNESS, EXPECTED, CallSignature(args=()), good, WHERE)


@pytest.mark.parametrize(
    "events",
    [
        (*ALLOCATIONS, *SETS[:2], launched(), SETS[2]),
        (*ALLOCATIONS, *SETS[:2], launched()),
        (*ALLOCATIONS, *SETS, launched(6)),
        (*SETS, *ALLOCATIONS, launched()),
        (*ALLOCATIONS, SETS[0], SETS[2], launched()),
        (*ALLOCATIONS, *SETS[1:], MemorySet(0x1000, 1, 4, 1, 0, 5, rows=2, pitch=8), launched()),
        (*ALLOCATIONS, *SETS, MemorySet(0x3000, 0, 1, 4, 0, 5), launched()),
        (*ALLOCATIONS, *SETS[:2], MemorySet(0x2000, 0, 1, 15, 0, 5), launched()),
    ],
    ids=["late", "missing", "other stream", "before it is there", "half", "other value", "stray", "short"],
)
def test_what_is_set_wrongly(events):
    with pytest.raises(LawViolation, match="X1"):
        compare_contents(HARNESS, EXPECTED, observed(*events), WHERE)


FILLED, ZEROS, FREE = b"\0\0\x80\x3f\0\0\0\x40" * 2, bytes(16), bytes((USED,)) * 16
SEEN = (MemorySeen(0x1000, FILLED), MemorySeen(0x1FF0, FREE + ZEROS + FREE))


def test_what_memory_is_seen_to_hold():
    compare_contents(HARNESS, EXPECTED, observed(*ALLOCATIONS, *SEEN, launched(), *SEEN[:1]), WHERE)
    assert places_set((*SEEN, MemorySeen(0x3000, FREE))) == {0x1000, 0x2000}
    assert places_set(SETS) == {0x1000, 0x1004, 0x2000}


@pytest.mark.parametrize(
    "events",
    [
        (SEEN[0], launched()),
        (launched(), *SEEN),
        (*SEEN[:1], MemorySeen(0x2000, ZEROS[1:] + b"\1"), launched()),
        (MemorySeen(0x1000, FILLED[1:] + b"\0"), SEEN[1], launched()),
        (*SEEN, MemorySeen(0x3000, FREE[1:] + b"\0"), launched()),
        (*SEEN, launched(), MemorySeen(0x1000, FILLED[1:] + b"\0")),
    ],
    ids=["missing", "late", "no zeros", "other value", "stray", "set once more"],
)
def test_what_memory_holds_wrongly(events):
    with pytest.raises(LawViolation, match="X1"):
        compare_contents(HARNESS, EXPECTED, observed(*ALLOCATIONS, *events), WHERE)


INPUT = TensorFacts(dtype="uint8", shape=(32,), strides=(1,), address=0x1FF8, device=0)


@pytest.mark.parametrize(
    ("allocations", "facts", "at"),
    [
        ((ALLOCATIONS[0], Allocated(0x2000, 15, 0, 5)), (), 0x2000),
        (ALLOCATIONS[:1], (), 0x2000),
        ((*ALLOCATIONS, Allocated(0x9000, 1, 0, 5)), (), 0x2000),
        ((ALLOCATIONS[0], Allocated(0x2000, 16, 1, 5)), (), 0x2000),
        ((ALLOCATIONS[0], Allocated(0x2000, 64, 0, 5)), (), 0x2010),
        (ALLOCATIONS, (INPUT,), 0x2000),
        ((Allocated(0x1000, 1024, 0, 5),), (), 0x1000),
    ],
    ids=["small", "none", "too many", "other device", "not aligned", "over an input", "over an output"],
)
def test_where_a_workspace_lies_wrongly(allocations, facts, at):
    where = {**WHERE, Address("w", 0, workspace=True): at}
    with pytest.raises(LawViolation, match="X1"):
        compare_workspaces(HARNESS, EXPECTED, CallSignature(args=facts), observed(*allocations), where)


WAITED = Synchronized(0, 2)


@pytest.mark.parametrize(
    ("under", "stream", "after"),
    [
        (5, 5, ()),
        (0, 0, ()),
        (0, 1, ()),
        (1, 0, ()),
        (2, 2, ()),
        (0, 2, (WAITED,)),
        (1, 2, (WAITED,)),
    ],
)
def test_where_memory_is_safe(under, stream, after):
    compare_allocations(HARNESS, observed(Allocated(1, 1, 0, under), launched(stream), *after), stream)


@pytest.mark.parametrize(
    ("under", "stream", "after"),
    [
        (0, 5, ()),
        (5, 0, ()),
        (2, 1, ()),
        (2, 5, ()),
        (5, 2, (WAITED,)),
        (0, 2, ()),
        (0, 2, (Synchronized(0, 5),)),
        (0, 2, (WAITED, launched(2))),
    ],
)
def test_where_memory_may_still_be_in_use(under, stream, after):
    events = observed(Allocated(1, 1, 0, under), launched(stream), *after)
    with pytest.raises(LawViolation, match="X1"):
        compare_allocations(HARNESS, events, stream)
