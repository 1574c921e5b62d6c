"""What a process that checks laws says."""

from __future__ import annotations

import json
import os

from trunnion.testing import worker
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
