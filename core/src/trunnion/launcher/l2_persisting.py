"""The set-aside of the L2 cache for persisting accesses: one owner in a whole process, whatever launches."""

from __future__ import annotations

import functools
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Protocol

from trunnion.errors import TrunnionError, shorten
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "LimitDriver",
    "PassingOwner",
    "SetAside",
    "SetAsideWarning",
    "captured_window",
    "known_length",
    "process_set_aside",
]


_UNKNOWN: Final = -1
"""What a limit was last set to, where somebody was interrupted while it was."""


class LimitDriver(Protocol):
    """Who reads and sets the limit of a device; both raise `DriverError` if the driver refuses."""

    def persisting_limit(self) -> int | None:
        """Return ``CU_LIMIT_PERSISTING_L2_CACHE_SIZE``, in bytes (``cuCtxGetLimit``); None: there is no such limit."""

    def set_persisting_limit(self, nbytes: int) -> None:
        """Set it (``cuCtxSetLimit``); nothing happens where the driver has no such limit (MIG, MPS).

        It would break captures of other streams: the mode of the thread is relaxed meanwhile
        (``cuThreadExchangeStreamCaptureMode``).
        """


class PassingOwner:
    """Who asks for a while, on behalf of another owner: what it asked for goes with that one's at the latest.

    Parameters
    ----------
    lasting
        That owner.
    """

    __slots__ = ("lasting",)

    def __init__(self, lasting: object) -> None:
        self.lasting = lasting


class SetAside:
    """The share of the L2 cache that persisting accesses may take: what all launchers of a process ask for.

    ``CU_LIMIT_PERSISTING_L2_CACHE_SIZE`` belongs to a device's context, and every program of a process shares it, of
    whichever backend. It is the largest of the live requests, and what it was before the first of them once the last is
    gone. Where the driver has no such limit (MIG, MPS) nothing is set, and windows still are.

    A process has one owner, `process_set_aside`; tests make their own.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget every request and ask the driver nothing, in a forked child: its parent's contexts are not its own."""
        # A signal's handler or a finalizer may launch a program in the middle of a request.
        self._asking = Turns("cache is being set aside", nests=True)
        self._requests: dict[int, dict[object, int]] = {}
        """By device what each owner asks for. An owner is held, so that none after it is taken for it."""
        self._original: dict[int, int] = {}
        """What the limit was before the first request, until it is that again."""
        self._applied: dict[int, int] = {}
        """What the limit was last set to."""

    def request(self, device: int, owner: object, nbytes: int, driver: LimitDriver) -> None:
        """Ask for a share on behalf of an owner, who has one request for each device.

        Parameters
        ----------
        device
            The device's ordinal.
        owner
            In whose name, by identity: an ``object()`` that stands for who asks, or a `PassingOwner`. It is held until
            `release`.
        nbytes
            What is asked for.
        driver
            Who makes the calls, in a context of the device.

        Raises
        ------
        DriverError
            If the driver refuses; then nothing was asked for.
        """
        with self._asking.turn():
            if device not in self._original:
                original = driver.persisting_limit()
                if original is None:
                    return
                self._original.setdefault(device, original)
            requests = self._requests.setdefault(device, {})
            before = requests.get(owner, 0)
            requests[owner] = max(nbytes, before)
            with ExitStack() as refused:  # what the driver refuses was never asked for
                refused.callback(self._withdraw, device, owner, before)
                self._apply(device, driver)
                refused.pop_all()

    def _withdraw(self, device: int, owner: object, before: int) -> None:
        requests = self._requests[device]
        requests.pop(owner, None)
        if before:
            requests[owner] = before
        if device not in self._applied:
            self._original.pop(device, None)

    def release(self, device: int, owner: object, driver: LimitDriver) -> None:
        """Take an owner's request back, and those of all who asked on its behalf; parameters are those of `request`.

        If the driver refuses, the request is gone nevertheless, and the next `release` or `request` of anybody tries
        again. Nothing happens where nothing is left to do.

        Raises
        ------
        DriverError
            If the driver refuses.
        """
        with self._asking.turn():
            requests = self._requests.get(device, {})
            for one in tuple(requests):
                if owner in (one, getattr(one, "lasting", None)):
                    requests.pop(one, None)
            self._apply(device, driver)
            if not requests:
                self._original.pop(device, None)
                self._applied.pop(device, None)

    def _apply(self, device: int, driver: LimitDriver) -> None:
        """Set what is wanted, again if somebody asked for something else meanwhile."""
        while device in self._original:
            wanted = max(self._requests.get(device, {}).values(), default=self._original[device])
            applied = {one: limit for one, limit in self._applied.items() if one == device}
            if wanted == applied.get(device):
                break
            # An interrupt may come behind the driver's call: it is set then, and what it was before is to be known.
            self._applied[device] = _UNKNOWN
            try:
                driver.set_persisting_limit(wanted)
            except TrunnionError:
                if self._applied[device] == _UNKNOWN:  # nobody has set it meanwhile
                    del self._applied[device]
                    self._applied |= applied
                raise
            self._applied[device] = wanted


@functools.cache
def process_set_aside() -> SetAside:
    """Return the owner of this process."""
    return SetAside()


# Made here, while the import's lock is held: two threads that ask at once get the same.
os.register_at_fork(after_in_child=process_set_aside().forget)


def known_length(windows: Iterable[tuple[int, int]], most: int, most_persisting: int) -> int:
    """Return the longest of those windows that have the same share of a device's cache in every call, in bytes.

    That is so of a constant length, and of one that is never below what the device allows. Only hits that persist
    have a share.

    Parameters
    ----------
    windows
        For each window whose hits persist the least and the greatest length that it can have, in bytes.
    most
        The longest window that the device allows, in bytes.
    most_persisting
        The bytes of its cache that can be set aside.
    """
    found = 0
    for bounds in windows:
        least, greatest = (min(nbytes, most) for nbytes in bounds)
        if min(least, most_persisting) == min(greatest, most_persisting):
            found = max(found, greatest)
    return found


class SetAsideWarning(UserWarning):
    """A window was captured for which no cache could be set aside, because its stream was being captured."""


def captured_window(kernel: str, nbytes: int, asked: int) -> str:
    """Return what a `SetAsideWarning` says: that a window is captured for which no cache is set aside.

    Parameters
    ----------
    kernel
        The exact name of the kernel that is launched.
    nbytes
        The window's length.
    asked
        The bytes that the program asked for before.
    """
    return (
        f"no cache was set aside for a window of {nbytes} bytes of kernel {shorten(kernel)}, because its stream "
        f"is being captured (this program asked for {asked}); call it once before"
    )
