"""Right, wrong, refused or crashed: of launchers made for it, on the host in the place of a device."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch

from tilelang_runs.judging import CRASHED, REFUSED, RIGHT, WRONG, Judgement, Place, judge


@dataclass
class Entry:
    """Adds two vectors, as an entry of the corpus says it."""

    dtype: torch.dtype = torch.float32
    tolerance: float = 0.0
    written: bool = False
    drawn: list[int] = field(default_factory=list)

    def arguments(self, seed: int):
        self.drawn.append(seed)
        values = torch.arange(float(seed + 3))
        return values.to(self.dtype), (values + 1).to(self.dtype)

    def reference(self, a, b):
        return ((a.float() + b.float()).to(a.dtype),)

    def passed(self, given):
        return given

    def results(self, given, returned):
        return (given[0],) if self.written else (returned,) if returned is not None else ()


class Breaking(Place):
    """A device that answers nothing after a call."""

    def __init__(self, calls: int) -> None:
        super().__init__("cpu")
        self.calls = calls

    def synchronize(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise RuntimeError("an illegal memory access was encountered")


HOST = Place("cpu")


def add(a, b):
    return (a.float() + b.float()).to(a.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bfloat16, torch.int8, torch.float8_e5m2])
def test_what_is_right_is_right(dtype):
    entry = Entry(dtype)
    assert judge(entry, add, HOST) == Judgement(RIGHT)
    assert entry.drawn == [1, 2, 3, 4, 5]


def test_what_is_written_to_an_argument_counts():
    assert judge(Entry(written=True), lambda a, b: a.add_(b), HOST) == Judgement(RIGHT)
    assert judge(Entry(written=True), lambda a, b: None, HOST).verdict == WRONG


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda a, b: a, "result 0 differs in 4 of 4 elements"),
        (lambda a, b: add(a, b).double(), "result 0 is float64[4], expected float32[4]"),
        (lambda a, b: add(a, b)[1:], "result 0 is float32[3], expected float32[4]"),
        (lambda a, b: add(a, b) * float("nan"), "result 0 differs in 4 of 4 elements"),
        (lambda a, b: None, "0 results, expected 1"),
        (lambda a, b: 3, "result 0 is int, expected a tensor"),
    ],
)
def test_what_is_wrong_is_wrong_and_why(call, reason: str):
    assert judge(Entry(), call, HOST, [1]) == Judgement(WRONG, reason)


def test_the_tolerance_is_absolute_and_relative():
    for off, verdict in ((0.9, RIGHT), (1.1, WRONG)):
        entry = Entry(tolerance=0.01)
        found = judge(entry, lambda a, b, off=off: add(a, b) + 0.01 * off * (1 + add(a, b)), HOST)
        assert found.verdict == verdict


def test_one_byte_types_are_compared_by_their_bytes():
    entry = Entry(torch.float8_e4m3fn)
    assert judge(entry, lambda a, b: a, HOST, [1]).reason == "result 0 differs in 4 of 4 elements"


def test_what_raises_refuses():
    def refuse(a, b):
        raise TypeError("no such type\nat all")

    assert judge(Entry(), refuse, HOST) == Judgement(REFUSED, "TypeError: no such type")


def test_the_worst_of_several_calls_counts():
    def sometimes(a, b):
        if len(a) == 5:
            raise ValueError("not this one")
        return a if len(a) == 6 else add(a, b)

    assert judge(Entry(), sometimes, HOST, [1, 2]).reason == "1 of 2 calls: ValueError: not this one"
    found = judge(Entry(), sometimes, HOST, [1, 2, 3, 4])
    assert (found.verdict, found.reason) == (WRONG, "1 of 4 calls: result 0 differs in 6 of 6 elements")


def test_after_a_crash_nothing_more_is_called():
    entry = Entry()
    found = judge(entry, add, Breaking(3))
    assert found.verdict == CRASHED
    assert found.reason == "1 of 2 calls: RuntimeError: an illegal memory access was encountered"
    assert entry.drawn == [1, 2]


def test_a_copy_has_the_strides_and_the_offset():
    tensor = torch.arange(24.0).reshape(4, 6)[1:, ::2]
    copy = HOST.put(tensor)
    assert torch.equal(copy, tensor)
    assert copy.stride() == tensor.stride()
    assert copy.data_ptr() != tensor.data_ptr()
    assert HOST.put(3) == 3
