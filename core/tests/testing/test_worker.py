"""What a process that checks laws says."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from trunnion.testing import worker
from trunnion.testing.faults import CALL_STATUSES
from trunnion.testing.runner import harness_of


def leave_faults(monkeypatch):
    """Let the worker, which runs in this process, change nothing of how this one tells of faults."""
    monkeypatch.setattr(worker.faulthandler, "enable", lambda: None)
    monkeypatch.setattr(worker.faulthandler, "register", lambda *_, **__: None)


def test_it_tells_of_each_step(monkeypatch, simulator):
    reading, writing = os.pipe()
    leave_faults(monkeypatch)
    assert worker.main("nvrtc", "S4", '{"examples": 3}', str(writing)) == 0
    os.close(writing)
    with os.fdopen(reading) as pipe:
        began, *examples, verdict = map(json.loads, pipe)
    assert began == {"law": "S4"}
    assert examples == [{}] * 3
    assert verdict["verdict"]["status"] == "held"
    assert verdict["verdict"]["examples"] == 3


@pytest.mark.parametrize("law_id", ["F1", "F3", "F4"])
def test_a_long_example_says_that_it_goes_on(simulator, law_id):
    """Each driver call of an example fails in turn, when thorough by each status: that may take minutes."""
    words, examples = [], []
    law = worker.catalogue()[law_id]

    def counted(harness, example):
        before = len(words)
        law.body(harness, example)
        examples.append(len(words) - before)

    harness = harness_of("nvrtc")
    replace(law, body=counted, ways=("call",)).check(
        harness, examples=2, thorough=True, told=lambda: words.append(1)
    )
    assert len(examples) >= 2
    assert min(examples) >= len(CALL_STATUSES), (
        "each call fails by each status, and a word is said after each"
    )


def test_a_backend_that_is_not_there_is_told(monkeypatch):
    reading, writing = os.pipe()
    leave_faults(monkeypatch)
    assert worker.main("nowhere", "S4", "{}", str(writing)) == 1
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert json.loads(pipe.read())["error"].startswith("UnknownBackendError: unknown backend 'nowhere'")


def test_a_law_that_fails_says_what_was_checked(simulator, monkeypatch):
    law = worker.catalogue()["S4"]

    def fails(law, harness, options, told):
        raise worker.LawViolation("S4", "red")

    monkeypatch.setattr(worker, "check", fails)
    report = worker.law_report(law, harness_of("nvrtc"), worker.Options())
    assert (report.status, report.examples, report.sentence) == ("failed", 0, law.sentence)
