"""Ctrl-C waits for the end of a block that must be whole."""

from __future__ import annotations

import signal
import threading

import pytest

from trunnion.storage.interrupts import Uninterrupted


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted():  # noqa: PT012 - what follows it in the block counts
        signal.raise_signal(signal.SIGINT)
        done.append("whole")
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_may_lie_in_each_other() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted():  # noqa: PT012 - the same
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_no_handler_of_python_s_stays(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with Uninterrupted():
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_changes_nothing() -> None:
    seen = []

    def look() -> None:
        with Uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_in_a_part_that_may_last_interrupts_come_as_ever() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as held:  # noqa: PT012 - the same
        try:
            with held.interruptible():
                signal.raise_signal(signal.SIGINT)
                done.append("behind it")
        finally:
            done.append("removed")
    assert done == ["removed"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_that_waits_comes_before_the_part_that_may_last() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as held:  # noqa: PT012 - the same
        signal.raise_signal(signal.SIGINT)
        with held.interruptible():
            done.append("entered")
    assert done == []


def test_a_handler_that_the_part_sets_stays() -> None:
    def other(*_: object) -> None:
        """Do nothing."""

    try:
        with Uninterrupted() as held, held.interruptible():
            signal.signal(signal.SIGINT, other)
        assert signal.getsignal(signal.SIGINT) is other
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
