"""What a process has once for all of its code, and a backend leaves as it is."""

from __future__ import annotations

import ctypes
import gc
import logging
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from trunnion.messages import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.testing.harness import Harness

__all__ = ["changed_in_process", "keeping_silent", "leaving_process", "process_state"]

_SMALLEST = 5e-324


@contextmanager
def leaving_process(harness: Harness) -> Iterator[None]:
    """Require that what a process has once is after the block as before.

    Parameters
    ----------
    harness
        The backend.

    Raises
    ------
    LawViolation
        If the block changed some of it.
    """
    # A search seeds before each example, perhaps as the block does.
    random.random()  # noqa: S311 - no secret
    before = process_state()
    yield
    changed = changed_in_process(before)
    harness.require(not changed, f"changed for the whole process: {', '.join(changed)}")


@contextmanager
def keeping_silent(harness: Harness) -> Iterator[None]:
    """Require that the block warns of nothing, and writes nothing to the standard output and the standard error.

    Parameters
    ----------
    harness
        The backend.

    Raises
    ------
    LawViolation
        If it did.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        with warnings.catch_warnings(record=True) as told, _written_to(file):
            warnings.simplefilter("always")
            yield
        file.seek(0)
        said = file.read()
    harness.require(not said, f"written to the standard output or error: {shorten(said)}")
    warned = "; ".join(f"{one.category.__name__}: {one.message}" for one in told)
    harness.require(not warned, f"warned of what nobody asked for: {warned}")


@contextmanager
def _written_to(file: TextIO) -> Iterator[None]:
    """Have all that Python and C write to the standard streams in a file: pytest gives them to Python as others."""
    _flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            os.dup2(file.fileno(), number)
        with redirect_stdout(file), redirect_stderr(file):
            yield
    finally:
        file.flush()
        _flush()
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)


def _flush() -> None:
    """Have written what is kept for later."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def changed_in_process(before: Mapping[str, object]) -> list[str]:
    """Return what is not as it was, in words.

    Parameters
    ----------
    before
        What `process_state` returned.
    """
    after = process_state()
    return [what for what, value in before.items() if after[what] != value]


def process_state() -> dict[str, object]:
    """Return what a process has once, by what it is; what torch has of it only where torch is loaded."""
    return {
        "the garbage collector": (gc.isenabled(), gc.get_threshold()),
        "the recursion limit": sys.getrecursionlimit(),
        "the switch interval": sys.getswitchinterval(),
        "the environment": dict(os.environ),
        "the working folder": Path.cwd(),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
        "the handler of SIGTERM": signal.getsignal(signal.SIGTERM),
        "the root logger's level": logging.root.level,
        "the root logger's handlers": tuple(logging.root.handlers),
        "the filters of all warnings": _filters(),
        "the places of modules": tuple(sys.path),
        "the random numbers": random.getstate(),
        "how processes are started": multiprocessing.get_start_method(allow_none=True),
        "the most digits of a number in a text": sys.get_int_max_str_digits(),
        "the smallest number": _SMALLEST * float(len(sys.path) > 0),  # 0 where the processor takes such for 0
        **(_torch_state() if "torch" in sys.modules else {}),
    }


def _filters() -> tuple[object, ...]:
    """Return the filters of Python's own kinds of warnings, but for those of one message or module.

    What is imported adds such for its own: numpy for instance, which torch imports late.
    """
    known = (one for one in warnings.filters if one[2].__module__ == "builtins")
    return tuple(one for one in known if one[1] is None and one[3] is None)


def _torch_state() -> dict[str, object]:
    import torch  # noqa: PLC0415 - only a run of the suite needs it

    return {
        "torch's gradients": torch.is_grad_enabled(),
        "torch's threads": torch.get_num_threads(),
        "torch's default type": torch.get_default_dtype(),
        "torch's generator": torch.initial_seed(),
    }
