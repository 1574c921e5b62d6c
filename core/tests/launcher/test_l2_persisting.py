"""The one owner of the cache that is set aside, over drivers whose limits are recorded."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import DriverError
from trunnion.launcher.l2_persisting import (
    PassingOwner,
    SetAside,
    captured_window,
    known_length,
    process_set_aside,
)

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = DriverError("cuCtxSetLimit", 2, "CUDA_ERROR_OUT_OF_MEMORY")


class Driver:
    """A limit that is 7, and that the next calls of `refusals` do not change; drivers may share one."""

    def __init__(self, limits: list[int] | None = None) -> None:
        self.limits = [7] if limits is None else limits
        self.refusals = 0
        self.made: list[int] = []

    def persisting_limit(self) -> int:
        return self.limits[-1]

    def set_persisting_limit(self, nbytes: int) -> None:
        if self.refusals:
            self.refusals -= 1
            raise REFUSED
        self.limits.append(nbytes)
        self.made.append(nbytes)


def test_a_request_that_the_driver_refuses_is_none() -> None:
    driver, one, two = Driver(), object(), object()
    share = SetAside()
    driver.refusals = 1
    with pytest.raises(DriverError):
        share.request(0, one, 10, driver)
    share.request(0, one, 10, driver)
    assert driver.limits == [7, 10]
    driver.refusals = 1
    with pytest.raises(DriverError):
        share.request(0, two, 20, driver)
    share.release(0, two, driver)
    assert driver.limits == [7, 10]
    share.release(0, one, driver)
    assert driver.limits == [7, 10, 7]


def test_a_limit_that_could_not_be_restored_is_restored_by_whoever_comes_next() -> None:
    driver, one, two = Driver(), object(), object()
    share = SetAside()
    share.request(0, one, 10, driver)
    driver.refusals = 2
    for _ in range(2):
        with pytest.raises(DriverError):
            share.release(0, one, driver)
    share.release(0, one, driver)
    assert driver.limits == [7, 10, 7]
    share.request(0, one, 10, driver)
    driver.refusals = 1
    with pytest.raises(DriverError):
        share.release(0, one, driver)
    share.request(0, two, 5, driver)
    share.release(0, two, driver)
    assert driver.limits[3:] == [10, 5, 7], "what it was before the first request, not what was left of it"


def test_a_limit_is_asked_for_once_and_restored_for_each_device() -> None:
    driver, one, two = Driver(), object(), object()
    share = SetAside()
    share.request(0, one, 10, driver)
    share.request(0, one, 5, driver)
    share.request(0, two, 10, driver)
    share.request(1, two, 30, driver)
    share.release(0, one, driver)
    share.release(0, one, driver)
    share.release(0, two, driver)
    share.release(1, one, driver)
    assert driver.limits[1:] == [10, 30, 7]


def test_nobody_is_taken_for_an_owner_that_was_forgotten() -> None:
    driver, share = Driver(), SetAside()
    share.request(0, object(), 10, driver)
    for _ in range(100):  # one of which lies where that one lay, if it is gone
        share.release(0, object(), driver)
        share.request(0, other := object(), 5, driver)
        share.release(0, other, driver)
    assert driver.limits == [7, 10]


def test_what_is_asked_on_an_owners_behalf_goes_with_it_at_the_latest() -> None:
    driver, one, two = Driver(), object(), object()
    share, first, second = SetAside(), PassingOwner(one), PassingOwner(one)
    share.request(0, one, 10, driver)
    share.request(0, two, 20, driver)
    share.request(0, first, 40, driver)
    share.request(0, second, 30, driver)
    share.release(0, first, driver)
    share.release(0, one, driver)
    share.release(0, second, driver)
    share.release(0, two, driver)
    assert driver.limits == [7, 10, 20, 40, 30, 20, 7]


def test_two_drivers_of_one_device_share_its_limit() -> None:
    first, one, two = Driver(), object(), object()
    second = Driver(first.limits)
    share = SetAside()
    share.request(0, one, 10, first)
    share.request(0, two, 20, second)
    share.release(0, one, first)
    share.release(0, two, second)
    assert first.limits == [7, 10, 20, 7]
    assert (first.made, second.made) == ([10], [20, 7]), "each call is made by whoever asks"


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_what_it_was_is_restored_behind_an_interrupt(held: bool, before: bool) -> None:
    """Ctrl-C may come before the limit is set, or when it is and nobody has noted it yet."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    driver, one, two = Interrupted(interrupt, before=before), object(), object()
    share = SetAside()
    if held:
        share.request(0, two, 5, Driver(driver.limits))
    with pytest.raises(KeyboardInterrupt):
        share.request(0, one, 10, driver)
    share.release(0, one, driver)
    assert driver.limits[-1] == (5 if held else 7)
    share.request(0, one, 20, driver)
    share.release(0, one, driver)
    share.release(0, two, driver)
    assert driver.limits[-1] == 7


class Interrupted(Driver):
    """A driver in the middle of whose next call somebody else asks for something, in the same thread."""

    def __init__(self, meanwhile: Callable[[], None], *, before: bool) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = meanwhile
        self.before = before

    def set_persisting_limit(self, nbytes: int) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile and self.before:
            meanwhile()
        super().set_persisting_limit(nbytes)
        if meanwhile and not self.before:
            meanwhile()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("other", [5, 20])
def test_a_request_within_a_request_is_heard(other: int, *, before: bool) -> None:
    share, one, two = SetAside(), object(), object()
    driver = Interrupted(lambda: share.request(0, two, other, driver), before=before)
    share.request(0, one, 10, driver)
    assert driver.limits[-1] == max(10, other)
    share.release(0, one, driver)
    assert driver.limits[-1] == other
    share.release(0, two, driver)
    assert driver.limits[-1] == 7


@pytest.mark.parametrize("before", [True, False])
def test_a_request_or_a_release_within_a_release_is_heard(*, before: bool) -> None:
    share, one, two = SetAside(), object(), object()
    driver = Interrupted(lambda: share.request(0, two, 20, driver), before=before)
    meanwhile, driver.meanwhile = driver.meanwhile, None
    share.request(0, one, 10, driver)
    driver.meanwhile = meanwhile
    share.release(0, one, driver)
    assert driver.limits[-1] == 20
    driver.meanwhile = lambda: share.release(0, two, driver)
    share.release(0, two, driver)
    assert driver.limits[-1] == 7
    share.request(0, one, 10, driver)
    share.release(0, one, driver)
    assert driver.limits[-2:] == [10, 7]


def test_without_such_a_limit_nothing_is_set() -> None:
    driver, share = Driver(), SetAside()
    driver.persisting_limit = lambda: None
    share.request(0, driver, 10, driver)
    share.release(0, driver, driver)
    assert driver.made == []


def test_who_forgets_asks_the_driver_nothing_even_if_somebody_was_asking() -> None:
    driver, one = Driver(), object()
    share = SetAside()
    share.request(0, one, 10, driver)
    with share._asking.turn():
        share.forget()
        share.release(0, one, driver)
    assert driver.limits == [7, 10]
    share.request(0, one, 5, driver)
    share.release(0, one, driver)
    assert driver.limits == [7, 10, 5, 10]


_FORKS = """
import os
from trunnion.launcher.l2_persisting import process_set_aside

class Driver:
    limit = 7
    def persisting_limit(self):
        return self.limit
    def set_persisting_limit(self, nbytes):
        self.limit = nbytes

driver, owner = Driver(), object()
process_set_aside().request(0, owner, 10, driver)
child = os.fork()
process_set_aside().release(0, owner, driver)
if child == 0:
    os._exit(driver.limit)
print(driver.limit, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_leaves_what_its_parent_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("7 10\n", "")


def test_a_process_has_one_owner() -> None:
    assert process_set_aside() is process_set_aside()


@pytest.mark.parametrize(
    ("windows", "most", "most_persisting", "known"),
    [
        ([], 100, 100, 0),
        ([(10, 10), (30, 30)], 100, 100, 30),
        ([(10, 20)], 100, 100, 0),
        ([(10, 20)], 10, 100, 10),
        ([(10, 20), (5, 5)], 100, 100, 5),
        ([(10, 20)], 100, 10, 20),
        ([(10, 20)], 100, 11, 0),
        ([(0, 0)], 100, 100, 0),
    ],
)
def test_a_length_is_known_if_every_call_has_the_same_share(
    windows: list[tuple[int, int]], most: int, most_persisting: int, known: int
) -> None:
    assert known_length(windows, most, most_persisting) == known


def test_the_warning_says_what_to_do() -> None:
    said = str(captured_window("k", 100, 40))
    assert said.startswith("no cache was set aside for a window of 100 bytes of kernel 'k', because ")
    assert said.endswith("(this program asked for 40); call it once before")
