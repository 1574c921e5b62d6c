"""Calls leave nothing behind: no reference, and no memory."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import TYPE_CHECKING, Any

import torch

from trunnion_fastcall import caller, tensor_reader

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 100_000
NOISE = CALLS // 10
"""What other tests of the same process may let go of meanwhile; what a call leaves behind is there `CALLS` times."""


def left_behind(call: Callable[[], object], *watched: object) -> tuple[int, list[int]]:
    """The blocks of memory, and the references to what is watched, that calls add."""
    for _ in range(100):
        call()
    gc.collect()
    blocks, before = sys.getallocatedblocks(), [sys.getrefcount(one) for one in watched]
    for _ in range(CALLS):
        call()
    gc.collect()
    return sys.getallocatedblocks() - blocks, [
        sys.getrefcount(one) - count for one, count in zip(watched, before, strict=True)
    ]


def check(call: Callable[[], object], *watched: object) -> None:
    blocks, references = left_behind(call, *watched, None, False)
    assert abs(blocks) < NOISE
    assert all(abs(change) < NOISE for change in references), references


def test_reading(exchange: int) -> None:
    first, other = torch.zeros(4), torch.zeros(4)
    negative, small = torch._neg_view(first), torch.zeros(4, dtype=torch.uint8)
    questions = ((torch.Tensor.is_neg,), ())
    read = tensor_reader(exchange, torch.Tensor, (first, small), questions)

    def both() -> None:
        read(first, small)
        read(other, small)

    watched = (first, other, negative, small, torch.Tensor, torch.uint8, torch.float32)
    check(both, *watched)
    check(lambda: read(negative, small), *watched)
    check(lambda: read(first), *watched)
    check(lambda: read(small, small), *watched)


def test_questions_that_raise(exchange: int) -> None:
    one = torch.zeros(4)
    error = ValueError("no")

    def ask(_: object) -> bool:
        raise error.with_traceback(None)

    read = tensor_reader(exchange, torch.Tensor, (one,), ((ask,),))
    check(lambda: read(one), one, error, ask)


def test_making_readers(exchange: int) -> None:
    one, questions = torch.zeros(4, dtype=torch.uint8), ((torch.Tensor.is_neg,),)

    def failing() -> None:
        try:
            tensor_reader(exchange, torch.Tensor, (one, one.float().to_sparse()), ((), ()))
        except ValueError:
            return
        raise AssertionError

    def make() -> Any:
        return tensor_reader(exchange, torch.Tensor, (one,), questions)

    check(make, one, questions, torch.Tensor, torch.uint8)
    for _ in range(3):
        failing()
    before = sys.getrefcount(one)
    for _ in range(100):
        failing()
    assert sys.getrefcount(one) == before


def test_calling() -> None:
    kept = object()
    libc = ctypes.CDLL(None)
    function = ctypes.cast(libc.getpid, ctypes.c_void_p).value or 0
    call = caller(function, (0, 0, 0, 0), kept)
    check(call, kept, call)
    check(lambda: caller(function, (0, 0, 0, 0), kept), kept)
