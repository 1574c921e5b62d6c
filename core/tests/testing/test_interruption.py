"""Interruptions strike where a signal's handler may raise, and nowhere else."""

from __future__ import annotations

import sys

import pytest

from trunnion.testing.interruption import interrupting, some_places


def fail():
    raise ValueError("said")


def shout(text):
    return text.upper()


def handling():
    try:
        fail()
    except ValueError as error:
        return shout(str(error))


def cleaning():
    try:
        fail()
    except ValueError:
        pass
    finally:
        shout("said")
    return "SAID"


def mine(frame):
    return frame.f_code in (handling.__code__, cleaning.__code__, shout.__code__)


@pytest.mark.parametrize("call", [handling, cleaning])
def test_every_place_is_met_and_no_exception_stays_behind(call):
    with interrupting(mine) as counted:
        assert call() == "SAID"
    assert counted.places > 3
    for place in range(1, counted.places + 1):
        with pytest.raises(KeyboardInterrupt), interrupting(mine, place) as interruption:
            call()
        assert interruption.struck
        assert sys.exc_info() == (None, None, None), place


@pytest.mark.parametrize("places", [0, 1, 5, 6, 23])
@pytest.mark.parametrize("most", [1, 5, 6])
def test_all_picks_together_reach_each_place_once(places, most):
    apart = max(1, -(-places // most))
    reached = [place for pick in range(apart) for place in some_places(places, most, pick)]
    assert sorted(reached) == list(range(1, places + 1))
    assert all(len(some_places(places, most, pick)) <= most for pick in range(30))


def test_all_places_are_reached_where_all_are_wanted():
    assert list(some_places(7, 7, 29)) == [1, 2, 3, 4, 5, 6, 7]
