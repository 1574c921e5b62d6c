"""What is done in the processes, here on the host in the place of a device; and what is done when one of them ends."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import torch

import tilelang_kernels
from launching.timing import Rounds, Summary
from tilelang_runs import work
from tilelang_runs.isolation import Outcome
from tilelang_runs.judging import Judgement, Place
from tilelang_runs.results import Kernel
from tilelang_runs.work import Timed, judged, time_on_host

FOLDER = Path("nowhere")
RIGHT = Judgement("right")


class Doubling:
    """An entry of a corpus."""

    tolerance = 0.0

    def arguments(self, seed):
        return (torch.arange(float(seed + 1)),)

    def reference(self, x):
        return (x * 2,)

    def passed(self, given):
        return given

    def results(self, given, returned):
        return (returned,)


class Fake:
    """A launcher that does what it is told."""

    def __init__(self, call, *, compiles: bool = True) -> None:
        self.call = call
        self.compiles = compiles

    def made(self, entry, folder):
        if not self.compiles:
            raise RuntimeError("text\nk.cu(1): error: no")
        return self.call


@pytest.fixture
def launchers(monkeypatch):
    """Launchers of all kinds, and one entry, on the host."""
    found = {
        "right": Fake(lambda x: x * 2),
        "other": Fake(lambda x: x + x),
        "wrong": Fake(lambda x: x),
        "broken": Fake(None, compiles=False),
    }
    monkeypatch.setattr(work, "LAUNCHERS", found)
    monkeypatch.setattr(work, "corpus_entry", lambda name: Doubling())
    monkeypatch.setattr(work, "Place", lambda device: Place("cpu"))
    return found


def test_verdicts(launchers):
    assert judged("double", "right", FOLDER) == RIGHT
    assert judged("double", "wrong", FOLDER).verdict == "wrong"
    assert judged("double", "broken", FOLDER) == Judgement(
        "refused", "compiling: RuntimeError: k.cu(1): error: no"
    )


def test_times_are_of_those_that_are_still_right(launchers):
    found = time_on_host({"double": tuple(launchers), "again": ("right",)}, FOLDER, Rounds(3, 5))
    double = found["double"]
    assert {name for name, one in double.items() if one.time} == {"right", "other"}
    assert double["right"].time.median > 0
    assert double["wrong"].absent.startswith("wrong when it was taken up again: result 0 differs")
    assert double["broken"].absent.startswith("taking up what was compiled: RuntimeError")
    assert set(found["again"]) == {"right"}


def run_of(*names: str):
    options = argparse.Namespace(seconds=60, workers=2)
    run = tilelang_kernels._Run(options, Rounds(3, 5), FOLDER)
    run.kernels = {name: Kernel(name, "", verdicts={"a": RIGHT, "b": Judgement("wrong")}) for name in names}
    return run


def test_a_group_whose_process_ended_is_measured_one_by_one(monkeypatch):
    groups = []

    def outcomes(jobs, workers, until, tell):
        found = {}
        for job in jobs:
            kernels = job.arguments[0]
            groups.append(dict(kernels))
            dies = "bad" in kernels
            value = {name: {"a": Timed(Summary(1, 1, 1, 1))} for name in kernels}
            found[job.name] = Outcome(
                job.name,
                "crashed" if dies else "returned",
                None if dies else value,
                "ended with status 1" * dies,
            )
        return found

    monkeypatch.setattr(tilelang_kernels, "run_jobs", outcomes)
    run = run_of(*(f"k{index}" for index in range(7)), "bad")
    tilelang_kernels.time_small(run)
    assert [len(group) for group in groups] == [6, 2, 1, 1]
    assert all(set(launchers) == {"a"} for group in groups for launchers in group.values())
    absent = {
        name: kernel.host["a"].absent for name, kernel in run.kernels.items() if kernel.host["a"].absent
    }
    assert absent == {"bad": "crashed: ended with status 1"}


def test_a_verdict_of_a_process_that_ended_is_how_it_ended(monkeypatch):
    ways = {
        "returned": (Judgement("wrong", "x"), "", Judgement("wrong", "x")),
        "crashed": (None, "by a signal", Judgement("crashed", "by a signal")),
        "hung": (None, "late", Judgement("hung", "late")),
        "raised": (None, "an error", Judgement("not run", "an error")),
        "not run": (None, "out of time", Judgement("not run", "out of time")),
    }
    for how, (value, reason, expected) in ways.items():
        monkeypatch.setattr(
            tilelang_kernels,
            "run_jobs",
            lambda jobs, *_, how=how, value=value, reason=reason: {
                job.name: Outcome(job.name, how, value, reason) for job in jobs
            },
        )
        run = run_of("one")
        tilelang_kernels.judge_all(run)
        assert run.kernels["one"].verdicts["TileLang nvrtc"] == expected
