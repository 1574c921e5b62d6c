"""What is recalled is what would be found out again: every call is refused or launched as if nothing were."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from trunnion.errors import ArgumentError, TrunnionError
from trunnion.launcher.recall import ReadingRecall, Recall
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import ceildiv, le, symbols
from trunnion.model.program import DeviceCode


def program() -> Any:
    """Numbers that the tensors decide, numbers that a scalar decides, and numbers of both."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    m, n, s, q = symbols("m n s q")
    x = p.input("x", "float32", (m, n), strides=(s, 1))
    y = p.input("y", "float16", (n, 64))
    k = p.scalar("k", "int32", symbol=q)
    z = p.output("z", "float32", (m, 2 * n))
    p.check(le(m, 100), "m is at most 100")
    p.check(le(q, n), "q is at most n")
    p.launch("a", (x, y.tiled((8, 64)), z, m * n, q + n), ceildiv(m, 4), 32, dynamic_smem_bytes=n * 16)
    p.launch("b", (z, k, s), (q, n), 32)
    return p.build()


CALLS: list[tuple[tuple[Any, ...], tuple[Any, ...], Any]] = [
    (("float32", 8, 4, {}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 4, {}), ("float16", 4, 64, {}), 0),
    (("float32", 8, 4, {"strides": (16, 1)}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 5, {}), ("float16", 5, 64, {}), 5),
    (("float32", 8, 5, {}), ("float16", 5, 64, {}), 6),
    (("float32", 8, 4, {}), ("float16", 5, 64, {}), 2),
    (("float32", 8, 4, {"ordinal": 1}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 4, {"ordinal": 1}), ("float16", 4, 64, {"ordinal": 1}), 2),
    (("float32", 8, 4, {}), ("float16", 4, 64, {"strides": (1, 4)}), 2),
    (("float32", 8, 4, {}), ("float32", 4, 64, {}), 2),
    (("float32", 101, 4, {}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 4, {"address": 6}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 4, {"address": 0}), ("float16", 4, 64, {}), 2),
    (("float32", 0, 4, {"address": 0}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 4, {}), ("float16", 4, 64, {"address": 24}), 2),
    (("float32", 8, 4, {"layout": None}), ("float16", 4, 64, {}), 2),
    (("float32", 8, 4, {}), ("float16", 4, 64, {}), "2"),
]


def outcome(r: Any, tensors: tuple[Any, ...], scalar: Any) -> Any:
    """What a call does: its error, or everything that was launched; addresses of outputs left out."""
    before = len(r.facade.launched)
    try:
        z = r.program.entry(*tensors, scalar)
    except TrunnionError as error:
        return type(error), str(error)
    seen = []
    for launch in r.facade.launched[before:]:
        parameters = [raw for raw in launch.parameters if raw != struct.pack("<Q", z.address)]
        seen.append((launch.kernel, launch.shape, launch.stream, parameters))
    return z.shape, z.ordinal, seen


@pytest.mark.parametrize("readers", [False, True], ids=["guards", "readers"])
@pytest.mark.parametrize("first", range(len(CALLS)))
def test_a_launcher_that_recalls_does_what_one_without_memory_does(
    rig: Any, tensor: Any, first: int, readers: bool
) -> None:
    memory, none = rig(program()), rig(program())
    none.runtime.guards = False
    memory.runtime.readers = readers
    order = [first, first, first, *range(len(CALLS)), first, first, first]
    for index in order:
        x, y, scalar = CALLS[index]
        made = tuple(tensor(*spec[:-1], **spec[-1]) for spec in (x, y))
        assert outcome(memory, made, scalar) == outcome(none, made, scalar), CALLS[index]
    assert none.runtime.guarded_with == none.runtime.read_with == []


def test_few_guards_are_made_where_numbers_change_with_every_call(rig: Any, tensor: Any) -> None:
    r = rig(program())
    y = [tensor("float16", n, 64) for n in (4, 5)]
    x = [tensor("float32", 8, n) for n in (4, 5)]
    for _ in range(5):
        r.program.entry(x[0], y[0], 1)
        r.program.entry(x[1], y[1], 1)
    assert len(r.runtime.guarded_with) == 4
    for _ in range(5):
        r.program.entry(x[0], y[0], 1)
    assert len(r.runtime.guarded_with) == 5
    # Other tensors of the same kind are known, too; and where device= is named, it is still compared.
    r.program.entry(tensor("float32", 8, 4), tensor("float16", 4, 64), 1)
    r.program.call((x[0], y[0], 1), device=0)
    with pytest.raises(ArgumentError, match="where the tensors lie"):
        r.program.call((x[0], y[0], 1), device=1)
    assert len(r.runtime.guarded_with) == 5


def test_a_tensor_that_changes_during_a_call_spoils_no_call_after_it() -> None:
    """Another thread may resize it between the checks, by which numbers are found, and the guard."""
    for during in range(4):
        recall = Recall(lambda tensors: lambda *others: others == tensors)
        calls = (recall(("small" if call == during else "large",), ("of large",)) for call in range(8))
        known = next(found for found in calls if found is not None)
        assert known[0]("large"), during
        assert not known[0]("small"), during


def test_no_more_guards_are_made_once_they_prove_useless() -> None:
    """torch's refuse a tensor that is passed twice."""
    made = []

    def make(tensors: tuple[Any, ...]) -> Any:
        made.append(tensors)
        return lambda *_: False

    recall = Recall(make)
    for _ in range(100):
        assert recall((1, 1), (0, 5)) is None
    assert len(made) == 8


def test_a_library_without_guards_is_asked_a_few_times() -> None:
    asked: list[object] = []
    recall = Recall(asked.append)
    for _ in range(100):
        assert recall((1,), (0, 5)) is None
    assert len(asked) == 8


def test_a_reader_takes_the_place_of_the_guard(rig: Any, tensor: Any) -> None:
    r = rig(program())
    r.runtime.readers = True
    x, y = tensor("float32", 8, 4), tensor("float16", 4, 64)
    for _ in range(5):
        r.program.entry(x, y, 1)
    assert len(r.runtime.read_with) == 1
    assert r.runtime.guarded_with == []
    # The addresses are the reader's: nothing else asks for them.
    x.data_ptr = y.data_ptr = None
    r.program.entry(x, y, 1)
    r.program.call((x, y, 1), device=0)
    assert len(r.facade.launched) == 14
    with pytest.raises(ArgumentError, match="where the tensors lie"):
        r.program.call((x, y, 1), device=1)


def test_a_reader_that_does_not_read_its_own_models_is_not_used() -> None:
    recall = ReadingRecall(lambda _: lambda *_: True, lambda _: lambda *_: None)
    assert recall((1,), (0,)) is None
    guard, reader, memo, device = recall((1,), (0,)) or ()
    assert guard(1) is True
    assert (reader, memo, device) == (None, [None], 0)


def test_what_a_reader_refuses_is_looked_at(rig: Any, tensor: Any) -> None:
    r = rig(program())
    r.runtime.readers = True
    x, y = tensor("float32", 8, 4), tensor("float16", 4, 64)
    for _ in range(3):
        r.program.entry(x, y, 1)
    wide = tensor("float32", 12, 4)
    assert r.program.entry(wide, y, 1).shape == (12, 8)
    with pytest.raises(ArgumentError, match="expected a tensor"):
        r.program.entry(None, y, 1)
    assert r.program.entry(x, y, 1).shape == (8, 8)
