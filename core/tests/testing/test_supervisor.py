"""Laws in processes of their own: what ends one is a verdict of its law, and the others are checked all the same."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from leak_reading.processes import children

from trunnion.errors import BackendUnavailableError
from trunnion.testing.laws import catalogue
from trunnion.testing.runner import Options
from trunnion.testing.supervisor import PATIENCE, _innermost, _without_outer_frames, supervised

FAULTY = Path(__file__).parents[1] / "faulty_backend"
QUICK = Options(examples=2, shrink=False)


@pytest.fixture
def _faulty(monkeypatch):
    """Have the faulty backend installed in processes that start now."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAULTY), os.environ.get("PYTHONPATH", "")]))


def laws(*ids):
    return [catalogue()[law_id] for law_id in ids]


@pytest.mark.usefixtures("_faulty")
def test_each_law_has_its_verdict_whatever_becomes_of_its_process():
    held, crashed, failed, refused = supervised("faulty", laws("V1", "L5", "L9", "W1"), QUICK)
    assert [one.status for one in (held, crashed, failed, refused)] == [
        "held",
        "crashed",
        "failed",
        "refused",
    ]
    assert held.examples >= 2
    assert held.calls["bind"] >= 2
    assert held.digest
    assert not held.text
    assert held.sentence == catalogue()["V1"].sentence
    assert crashed.text.startswith("crashed in law L5 (SIGSEGV)\nabout to crash\n")
    assert crashed.sentence
    assert crashed.requires == ("cluster",)
    assert failed.text.startswith("L9 on faulty, by way of ")
    assert failed.digest


@pytest.mark.usefixtures("_faulty")
def test_a_law_that_does_not_go_on_hangs(monkeypatch):
    monkeypatch.setenv("TRUNNION_FAULTY_HANGS", "1")
    (hung,) = supervised("faulty", laws("L10"), QUICK, patience=5.0)
    assert hung.status == "hung"
    first, *stacks = hung.text.splitlines()
    assert first == "hung in law L10: no example, nor a step of one, was done in 5 seconds"
    assert "trunnion_faulty.py" in hung.text
    assert any(line.endswith(" in emit") for line in stacks)
    assert stacks[-1] == "  …"


def test_of_deep_stacks_the_inner_frames_are_told():
    stack = "\n".join(
        ["Thread 0x1 (most recent call first):", *(f'  File "{n}.py", line 1 in f' for n in range(90))]
    )
    told = _innermost("\n\n".join([stack] * 9)).splitlines()
    assert told[:3] == [
        "Thread 0x1 (most recent call first):",
        '  File "0.py", line 1 in f',
        '  File "1.py", line 1 in f',
    ]
    assert len(told) == 6 * 17
    assert told[16] == "  …"
    assert _innermost("") == ""


def test_of_a_crash_the_inner_frames_are_told_and_every_other_line():
    frames = [f'  File "{n}.py", line 1 in f' for n in range(90)]
    text = "\n".join(
        ["about to crash", "Current thread 0x1:", *frames, "", "Thread 0x2:", *frames, "the end"]
    )
    stack = [*frames[:16], "  …"]
    assert _without_outer_frames(text).splitlines() == [
        "about to crash", "Current thread 0x1:", *stack, "", "Thread 0x2:", *stack, "the end",
    ]  # fmt: skip


def test_equal_seeds_draw_the_same_in_every_process_and_others_do_not():
    digests = [
        [one.digest for one in supervised("nvrtc", laws("S4", "V1"), Options(examples=3, seed=seed))]
        for seed in (0, 0, 1)
    ]
    assert digests[0] == digests[1]
    assert not set(digests[0]) & set(digests[2])


def test_a_process_that_checks_nothing_is_an_error_and_no_verdict():
    with pytest.raises(BackendUnavailableError, match="unknown backend 'nowhere'"):
        next(supervised("nowhere", laws("L1"), QUICK))


@pytest.mark.usefixtures("_faulty")
def test_several_processes_at_once_tell_the_same():
    chosen = laws("V1", "L5", "L9", "W1", "S4")
    alone, together = ({one.id: one for one in supervised("faulty", chosen, QUICK, jobs=n)} for n in (1, 3))
    assert [*alone] == [law.id for law in chosen]
    assert alone.keys() == together.keys()
    for law_id, one in alone.items():
        other = together[law_id]
        assert (one.status, one.digest, one.calls) == (other.status, other.digest, other.calls)


@pytest.mark.usefixtures("_faulty")
def test_who_does_not_wait_leaves_no_process(monkeypatch):
    monkeypatch.setenv("TRUNNION_FAULTY_HANGS", "1")
    before = children()
    found = supervised("faulty", laws("W1", "L10"), QUICK, jobs=2)
    assert next(found).id == "W1"
    started = time.monotonic()
    found.close()
    assert time.monotonic() - started < PATIENCE / 2
    assert not children() - before


def test_of_several_that_check_nothing_the_error_is_told():
    with pytest.raises(BackendUnavailableError, match="unknown backend 'nowhere'"):
        next(supervised("nowhere", laws("L1", "L2", "L3"), QUICK, jobs=3))
