"""A caller calls a C function with fixed addresses, without the interpreter's lock."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import weakref

import pytest

from trunnion_fastcall import caller

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)


def address(function: object) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found
    return found


def test_it_calls_with_its_addresses_and_returns_the_status() -> None:
    seen = []

    @FUNCTION
    def function(*given: int | None) -> int:
        seen.append(given)
        return -len(seen)

    call = caller(address(function), (1, (1 << 64) - 1, 3, 0), function)
    assert [call(), call()] == [-1, -2]
    assert seen == [(1, (1 << 64) - 1, 3, None)] * 2


def test_it_keeps_what_it_is_given() -> None:
    class Kept:
        pass

    kept = Kept()
    gone = weakref.ref(kept)
    call = caller(address(FUNCTION(lambda *_: 0)), (0, 0, 0, 0), kept)
    del kept
    assert gone() is not None
    del call
    assert gone() is None


def test_several_threads_call_at_once() -> None:
    """Each waits in the function for all the others."""
    barrier = threading.Barrier(4, timeout=60)

    @FUNCTION
    def function(*_: object) -> int:
        barrier.wait()
        return 7

    call = caller(address(function), (0, 0, 0, 0), None)
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(call())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [7] * 4


WAITING = """
import ctypes, threading
from trunnion_fastcall import caller
libc = ctypes.CDLL(None)
semaphore = ctypes.create_string_buffer(64)
assert libc.sem_init(semaphore, 0, 0) == 0
wait = caller(ctypes.cast(libc.sem_wait, ctypes.c_void_p).value, (ctypes.addressof(semaphore), 0, 0, 0), None)
thread = threading.Thread(target=wait)
thread.start()
libc.sem_post(semaphore)
thread.join()
print("done")
"""


def test_it_gives_up_the_lock() -> None:
    """A launch that waits, and what ends its waiting needs the lock: with the lock held this never ends."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "done\n", done.stderr


def test_it_takes_no_arguments() -> None:
    call = caller(address(FUNCTION(lambda *_: 0)), (0, 0, 0, 0), None)
    with pytest.raises(TypeError, match="no arguments"):
        call(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, (0, 0, 0, 0)), "caller: got 2 arguments, expected 3"),
        (("1", (0, 0, 0, 0), None), "function: got '1', expected an address as an int"),
        ((-1, (0, 0, 0, 0), None), "function: got -1, expected an address, 0 to 2"),
        ((0, (0, 0, 0, 0), None), "function: got 0, expected the address of a function"),
        ((1, [0, 0, 0, 0], None), "addresses: got <class 'list'>, expected a tuple"),
        ((1, (0, 0, 0), None), "addresses: got 3, expected 4"),
        ((1, (0, 0, 0, None), None), r"addresses\[3\]: got None, expected an address as an int"),
        ((1, (0, 1 << 64, 0, 0), None), r"addresses\[1\]: got 18446744073709551616, expected an address"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        caller(*arguments)
