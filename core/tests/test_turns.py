"""Turns: one thread after another, and never a wait that has no end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from trunnion import turns as turns_module
from trunnion.errors import LifecycleError
from trunnion.testing.forked import told_by_a_child
from trunnion.turns import Turns, kept_property

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def taken(turns: Turns) -> str:
    with turns.turn():
        return "taken"


def take_until_a_signal(turns: Turns, seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        taken(turns)


def test_threads_take_turns_one_after_the_other() -> None:
    turns, inside, most = Turns("it is being made"), [], []

    def work() -> None:
        for _ in range(50):
            with turns.turn():
                inside.append(None)
                most.append(len(inside))
                time.sleep(0)
                inside.pop()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result()
    assert most == [1] * 400
    assert not turns.is_mine()


def test_a_failure_ends_the_turn() -> None:
    turns = Turns("it is being made")

    def fail() -> None:
        with turns.turn():
            assert turns.is_mine()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert taken(turns) == "taken"


def test_a_thread_in_its_turn_is_refused_another_and_told_what_to_do() -> None:
    turns = Turns("it is being made")
    with turns.turn():
        with pytest.raises(LifecycleError, match=r"^it is being made further up in this thread.*preload\(\)"):
            taken(turns)
        assert turns.is_mine(), "the refused one did not end it"
    assert taken(turns) == "taken"


def test_where_turns_nest_the_outermost_counts() -> None:
    turns = Turns("it is being made", nests=True)
    with ThreadPoolExecutor(1) as pool:
        with turns.turn():
            assert taken(turns) == "taken"
            assert turns.is_mine()
            other = pool.submit(taken, turns)
            with pytest.raises(TimeoutError):
                other.result(0.05)
        assert other.result(60) == "taken"


def test_threads_that_wait_for_each_other_are_told() -> None:
    """Three of them, in a circle: at least one is refused, and then all go on."""
    all_turns = [Turns(f"{name} is being made") for name in "abc"]
    inside = threading.Barrier(3)

    def work(first: int) -> str:
        with all_turns[first].turn():
            inside.wait(60)
            try:
                return taken(all_turns[(first + 1) % 3])
            except LifecycleError as error:
                return str(error)

    with ThreadPoolExecutor(3) as pool:
        said = [done.result(60) for done in [pool.submit(work, first) for first in range(3)]]
    refused = [one for one in said if one != "taken"]
    assert refused
    assert all("by another thread, which waits for this one" in one for one in refused)
    assert [taken(turns) for turns in all_turns] == ["taken"] * 3


class _MovedClock:
    """A clock on which every pause takes ten seconds."""

    def __init__(self, meanwhile: Callable[[float], None]) -> None:
        self.now = 0.0
        self._meanwhile = meanwhile

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds < 1
        self.now += 10
        self._meanwhile(self.now)


@pytest.mark.parametrize(("over", "said"), [(590, "taken"), (None, "for more than 600 s; call again later")])
def test_another_thread_is_waited_for_ten_minutes_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, over: float | None, said: str
) -> None:
    turns, leave, left = Turns("it is being made"), threading.Event(), threading.Event()
    inside = threading.Event()

    def hold() -> None:
        with turns.turn():
            inside.set()
            assert leave.wait(60)
        left.set()

    def meanwhile(now: float) -> None:
        assert now < 700
        if over is not None and now >= over:
            leave.set()
            assert left.wait(60)

    clock = _MovedClock(meanwhile)
    monkeypatch.setattr(turns_module, "time", clock)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert inside.wait(60)
        try:
            got = taken(turns)
        except LifecycleError as error:
            got = str(error)
        leave.set()
        held.result(60)
    assert got.endswith(said)
    assert clock.now == (over or 610)
    assert taken(turns) == "taken"


def test_who_imports_a_module_for_which_the_turns_thread_waits_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python holds a lock over a module's import, and what is imported here asks for the turn."""
    (tmp_path / "slow_module_of_turns.py").write_text("import sys\nsaid = sys.import_of_turns()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    turns, importing = Turns("it is being made"), threading.Event()

    def imported() -> str:
        importing.set()
        try:
            return taken(turns)
        except LifecycleError as error:
            return str(error)

    monkeypatch.setattr(sys, "import_of_turns", imported, raising=False)

    def work() -> str:
        with turns.turn():
            other.start()
            assert importing.wait(60)
            return __import__("slow_module_of_turns").said  # type: ignore[no-any-return]  # a module of the test

    other = threading.Thread(target=__import__, args=("slow_module_of_turns",))
    assert "waits for this one" in work()
    other.join(60)
    assert not other.is_alive()


def test_a_turn_of_a_thread_that_a_fork_left_behind_is_over() -> None:
    turns, inside, leave = Turns("it is being made"), threading.Event(), threading.Event()

    def work() -> None:
        with turns.turn():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    try:
        assert told_by_a_child(lambda: taken(turns)) == "taken"
    finally:
        leave.set()
        thread.join(60)


def test_a_turn_that_forked_is_its_threads_in_the_child_too() -> None:
    turns = Turns("it is being made")

    with turns.turn():
        told = told_by_a_child(lambda: str(turns.is_mine()))
    assert told == "True"
    assert taken(turns) == "taken"


class HandlerError(Exception):
    """What the handler of a signal raises."""


def test_whatever_a_handler_interrupts_no_turn_stays_taken() -> None:
    turns = Turns("it is being made", nests=True)

    def interrupt(*_: object) -> None:
        taken(turns)
        raise HandlerError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(200):
            with pytest.raises(HandlerError):
                take_until_a_signal(turns, 0.0001 + number * 0.000003)
            assert not turns.is_mine()
    finally:
        signal.signal(signal.SIGALRM, before)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(taken, turns).result(60) == "taken"


class Thing:
    made = 0

    @kept_property
    def part(self) -> object:
        """A part."""
        self.made += 1
        return object()


def test_a_kept_property_is_made_once() -> None:
    thing = Thing()
    assert thing.part is thing.part
    assert thing.made == 1
    assert Thing.part.__doc__ == "A part."


def test_threads_that_make_a_kept_property_at_once_keep_one() -> None:
    both = threading.Barrier(2)

    class Slow:
        @kept_property
        def part(self) -> object:
            both.wait(60)  # a lock over this would never let the second in
            return object()

    slow = Slow()
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(lambda: slow.part) for _ in range(2))
        assert first.result(60) is second.result(60)
