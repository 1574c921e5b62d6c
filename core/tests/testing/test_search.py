"""The search for an example that breaks a law: it ends in time, keeps the smallest, and says what was drawn."""

from __future__ import annotations

import pytest

from trunnion.testing import search
from trunnion.testing.laws import LawViolation
from trunnion.testing.search import Search, SearchEndedError


@pytest.fixture
def clock(monkeypatch):
    """Return what to set the time to, in seconds; it stands still otherwise."""
    time = [0.0]
    monkeypatch.setattr(search, "monotonic", lambda: time[0])
    return time


def fail():
    raise LawViolation("X1", "wrong")


def searching():
    return Search(lambda: None, tuple)


def test_the_smallest_example_is_kept(clock):
    found = searching()
    for example in ("abc", "ab", "abcd"):
        with pytest.raises(LawViolation):
            found.check("call", example, fail)
    assert found.found.example == "ab"


def test_the_search_ends_some_seconds_after_the_first(clock):
    found = searching()
    clock[0] = 1000.0
    with pytest.raises(LawViolation):
        found.check("call", 1, fail)
    clock[0] += 14.9
    found.check("call", 2, lambda: None)
    clock[0] += 0.2
    with pytest.raises(SearchEndedError):
        found.check("call", 3, lambda: pytest.fail("was checked"))


def test_equal_draws_have_equal_digests(clock):
    first, again, other, otherwise = (searching() for _ in range(4))
    for one, way, example in (
        (first, "call", 1),
        (again, "call", 1),
        (other, "call", 2),
        (otherwise, "bind", 1),
    ):
        one.check(way, example, lambda: None)
    assert first.digest == again.digest
    assert len({first.digest, other.digest, otherwise.digest}) == 3
