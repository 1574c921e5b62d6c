"""A job that crashes, hangs or raises hurts no other."""

from __future__ import annotations

import operator
import os
import signal
import tempfile
import time

import pytest

from tilelang_runs.isolation import Job, run_jobs, told

FOREVER = float("inf")


def run(*jobs: Job, workers: int = 2, until: float = FOREVER):
    return run_jobs(jobs, workers, until)


def test_every_job_comes_to_its_own_end():
    found = run(
        Job("aborts", os.abort, (), 60),
        Job("leaves", os._exit, (3,), 60),
        Job("hangs", signal.pause, (), 1),
        Job("raises", operator.truediv, (1, 0), 60),
        Job("returns", operator.add, ([1], [2]), 60),
        Job("returns what cannot be sent", open, (os.devnull,), 60),
    )
    assert {name: outcome.how for name, outcome in found.items()} == {
        "aborts": "crashed",
        "leaves": "crashed",
        "hangs": "hung",
        "raises": "raised",
        "returns": "returned",
        "returns what cannot be sent": "crashed",
    }
    assert "SIGABRT" in found["aborts"].reason
    assert found["leaves"].reason == "ended with status 3"
    assert found["hangs"].reason == "ended after 1 s"
    assert found["raises"].reason == "ZeroDivisionError: division by zero"
    assert found["returns"].value == [1, 2]


def test_its_last_words_are_kept():
    (outcome,) = run(Job("dies", os.execvp, ("sh", ["sh", "-c", "echo why >&2; kill -SEGV $$"]), 60)).values()
    assert outcome.how == "crashed"
    assert outcome.reason == "ended with signal SIGSEGV: why"


def test_what_is_late_is_not_begun():
    found = run(Job("late", operator.add, (1, 2), 60), until=time.monotonic())
    assert (found["late"].how, found["late"].reason) == ("not run", "out of time")


def test_each_outcome_is_told_once():
    seen = []
    jobs = [Job(str(index), operator.neg, (index,), 60) for index in range(5)]
    found = run_jobs(jobs, 3, FOREVER, seen.append)
    assert sorted(outcome.name for outcome in seen) == [str(index) for index in range(5)]
    assert [found[str(index)].value for index in range(5)] == [0, -1, -2, -3, -4]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("\n  first\nsecond"), "ValueError: first"),
        (
            RuntimeError("text of a kernel\nk.cu(3): error: no such name\nmore"),
            "RuntimeError: k.cu(3): error: no such name",
        ),
        (
            RuntimeError(f"\x1b[91m\x1b[1merror[X]:\x1b[0m in {tempfile.gettempdir()}/a.cu"),
            "RuntimeError: error[X]: in a.cu",
        ),
        (KeyError(), "KeyError"),
        (OSError("x" * 1000), "OSError: " + "x" * 291),
    ],
)
def test_an_error_is_one_line(error, line: str):
    assert told(error) == line
