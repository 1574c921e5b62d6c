"""The search for an example that breaks a law: it ends in time, keeps the smallest, and says what was drawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

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


def found_at(clock, began, seconds):
    """Return a search that began at one time, and found something so many seconds later."""
    clock[0] = began
    found = searching()
    clock[0] += seconds
    with pytest.raises(LawViolation):
        found.check("call", 1, fail)
    return found


@pytest.mark.parametrize(("seconds", "more"), [(0, 15), (10, 5), (100, 2)])
def test_the_search_ends_in_time_for_its_law(clock, seconds, more):
    found = found_at(clock, 1000.0, seconds)
    clock[0] += more - 0.1
    found.check("call", 2, lambda: None)
    clock[0] += 0.2
    with pytest.raises(SearchEndedError):
        found.check("call", 3, lambda: pytest.fail("was checked"))


def test_it_ends_within_an_example_and_keeps_nothing_that_its_end_broke(clock):
    found = found_at(clock, 1000.0, 0)

    def long():
        clock[0] += 20
        try:
            found.enough()
        except SearchEndedError:
            fail()  # as a foreign library does that swallows what a callback raises

    with pytest.raises(LawViolation):
        found.check("call", 0, long)
    assert found.found.example == 1


def test_it_ends_in_its_own_thread_alone(clock):
    found = found_at(clock, 1000.0, 0)
    clock[0] += 20
    with ThreadPoolExecutor() as pool:
        pool.submit(found.enough).result()
    with pytest.raises(SearchEndedError):
        found.enough()


def test_while_nothing_is_found_no_time_is_too_long(clock):
    found = searching()
    clock[0] = 10_000.0
    found.enough()
    found.check("call", 1, found.enough)


def raises_at(*wrong):
    def check(value):
        if value in wrong:
            raise LawViolation("X1", f"{value}")

    return check


def test_of_what_was_found_the_first_part_that_breaks_the_law_is_told(clock):
    search = found_at(clock, 0.0, 0)
    whole = partial(pytest.fail, "a part was enough")
    part = search.alone(search.found, (1, 2, 3), raises_at(2, 3), whole)
    assert (part.example, part.error.message, part.repeats) == (2, "2", True)


def test_what_was_found_is_checked_alone(clock):
    search = found_at(clock, 0.0, 0)
    assert search.alone(search.found, (1,), raises_at(), fail) == search.found
    assert not search.alone(search.found, (), raises_at(), lambda: None).repeats


def test_what_cannot_be_checked_alone_in_time_is_believed(clock):
    search = found_at(clock, 0.0, 0)

    def long(_=None):
        clock[0] += 20
        search.enough()

    assert search.alone(search.found, (1, 2), long, long).repeats


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


def test_a_step_is_told_of_its_own_thread_alone():
    told = []
    found = Search(lambda: told.append(1), tuple)
    found.step()
    assert told == [1]
    with ThreadPoolExecutor() as pool:
        pool.submit(found.step).result()
    assert told == [1], "a thread that goes on hid a law that hangs"
