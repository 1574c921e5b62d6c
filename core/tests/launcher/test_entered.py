"""What a call entered and did not leave is taken back, and nothing of those around it."""

from __future__ import annotations

import sys
import threading

import pytest

from trunnion.launcher.entered import EnteredContexts


class Driver:
    """A stack of contexts."""

    def __init__(self) -> None:
        self.stack: list[int] = []
        self.entered = EnteredContexts(lambda: self.stack[-1] if self.stack else None, self.stack.pop)

    def push(self, context: int, *, before: bool = False) -> None:
        self.entered.note(sys._getframe(1))
        if before:
            raise KeyboardInterrupt
        self.stack.append(context)

    def recover(self) -> None:
        self.entered.recover()


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_nothing_entered_is_nothing_taken_back(driver: Driver) -> None:
    driver.stack.append(1)
    driver.recover()
    assert driver.stack == [1]


def test_what_was_pushed_is_popped_once(driver: Driver) -> None:
    driver.stack.append(1)
    driver.push(2)
    driver.recover()
    driver.recover()
    assert driver.stack == [1]


def test_an_interrupt_before_the_push_pops_nothing(driver: Driver) -> None:
    driver.stack.append(1)
    with pytest.raises(KeyboardInterrupt):
        driver.push(2, before=True)
    driver.recover()
    assert driver.stack == [1]


def test_an_interrupt_after_the_pop_pops_nothing_more(driver: Driver) -> None:
    driver.stack.append(1)
    driver.push(2)
    driver.stack.pop()
    driver.recover()
    assert driver.stack == [1]


def test_what_was_left_is_forgotten(driver: Driver) -> None:
    driver.push(1)
    driver.stack.pop()
    driver.entered.left()
    driver.stack.append(2)
    driver.recover()
    assert driver.stack == [2]


def test_a_call_within_another_takes_back_its_own_alone(driver: Driver) -> None:
    def inner() -> None:
        driver.push(2)
        driver.recover()

    driver.push(1)
    inner()
    assert driver.stack == [1]
    driver.recover()
    assert driver.stack == []


def test_what_a_function_that_is_gone_entered_is_taken_back(driver: Driver) -> None:
    def enter() -> None:
        driver.push(1)
        driver.push(2)

    enter()
    driver.recover()
    assert driver.stack == []


def test_each_thread_has_its_own(driver: Driver) -> None:
    driver.push(1)
    other = threading.Thread(target=driver.recover)
    other.start()
    other.join()
    assert driver.stack == [1]
