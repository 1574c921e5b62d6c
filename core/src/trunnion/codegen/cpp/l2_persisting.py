"""`SetAsideHook`: whom a loaded launcher asks to set cache aside: the other half of ``l2_persisting.hpp``.

A launcher touches no limit of a device by itself: what is set aside has one owner in a process. The launcher asks this
hook; the hook asks the owner; and the owner has the launcher make the driver's calls.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from trunnion.callers import warn
from trunnion.errors import LifecycleError
from trunnion.launcher.l2_persisting import PassingOwner, SetAsideWarning, captured_window, known_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.codegen.cpp.call_signature import CallSignature
    from trunnion.launcher.l2_persisting import SetAside

    Run = Callable[..., Any]
    """Calls an export of the launcher by its name, and raises the typed error that it means."""

__all__ = ["SetAsideHook"]


class _LauncherLimit:
    """The limit of one device, through the launcher's own driver: a `trunnion.launcher.l2_persisting.LimitDriver`."""

    def __init__(self, run: Run, device: int) -> None:
        self._run = run
        self._device = device

    def persisting_limit(self) -> int | None:
        """Return the limit, in bytes; None: there is no such limit."""
        nbytes: int | None = self._run("persisting_limit", self._device)
        return nbytes

    def set_persisting_limit(self, nbytes: int) -> None:
        """Set it."""
        self._run("set_persisting_limit", self._device, nbytes)


class SetAsideHook:
    """What one loaded program asks of the set-aside's owner.

    Parameters
    ----------
    facts
        What is known of the program's calls.
    run
        Calls an export of the launcher by its name, and raises the typed error that it means.
    owner
        Who owns the set-aside in this process.
    """

    def __init__(self, facts: CallSignature, run: Run, owner: SetAside) -> None:
        self._windows = facts.persisting
        self._run = run
        self._owner = owner
        self._name = object()
        """In whose name cache is set aside for the program."""
        self._numbers = itertools.count(1)
        self._held: dict[int, PassingOwner] = {}
        """In whose name cache is set aside for a window that a stream holds, by ticket."""
        self._kept: dict[int, BaseException] = {}
        """What was raised on the way, until the call that asked has come back."""
        self._devices: set[int] = set()
        """Where something may be set aside for the program."""
        self._steps: dict[str, Callable[..., int]] = {
            "preload": self._preload,
            "launch": self._launch,
            "captured": self._captured,
            "stream": self._stream,
            "restore": self._restore,
        }
        self._windowed = facts.windowed

    def attach(self) -> None:
        """Have the launcher ask this hook, if it has windows; it holds a reference until it is closed."""
        if self._windowed:
            self._run("set_hook", self.answer)

    # What a launcher asks ------------------------------------------------------------------------------------------

    def answer(self, step: str, device: int, *given: Any) -> int:
        """Answer a launcher; ``l2_persisting.hpp`` lists the steps. A negative number: minus that of an error, kept."""
        try:
            return self._steps[step](device, *given)
        except BaseException as error:  # noqa: BLE001 - across TVM-FFI's ABI it would become another error
            number = next(self._numbers)
            self._kept[number] = error
            return -number

    def raise_kept(self, fields: tuple[str, ...]) -> None:
        """Raise the error that a launcher's own error stands for, if it stands for one that was kept.

        Parameters
        ----------
        fields
            What the launcher's error brought along.
        """
        if fields and fields[0] == "Kept":
            raise self._kept.pop(int(fields[1]))

    def _preload(self, device: int, most: int, most_persisting: int) -> int:
        nbytes = known_length(self._windows, most, most_persisting)
        if nbytes:
            self._launch(device, nbytes, most_persisting)
        return nbytes

    def _launch(self, device: int, nbytes: int, most_persisting: int) -> int:
        self._request(device, self._name, min(nbytes, most_persisting))
        return nbytes

    def _captured(self, device: int, nbytes: int, asked: int, kernel: str) -> int:
        del device
        warn(captured_window(kernel, nbytes, asked), SetAsideWarning)
        return asked

    def _stream(self, device: int, nbytes: int, most_persisting: int) -> int:
        ticket = next(self._numbers)
        self._held[ticket] = PassingOwner(self._name)
        with ExitStack() as undo:
            undo.callback(self._held.pop, ticket)
            self._request(device, self._held[ticket], min(nbytes, most_persisting))
            undo.pop_all()
        return ticket

    def _restore(self, device: int, ticket: int, failed: int) -> int:
        try:
            self._owner.release(device, self._held.pop(ticket), _LauncherLimit(self._run, device))
        except BaseException:  # an interrupt too: where the call failed, it raises what went wrong before
            if not failed:
                raise
        return 0

    def _request(self, device: int, owner: object, nbytes: int) -> None:
        self._devices.add(device)
        self._owner.request(device, owner, nbytes, _LauncherLimit(self._run, device))

    # The end -------------------------------------------------------------------------------------------------------

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Give back what was set aside once the body has closed the program, even if it raised.

        Where the driver refuses, another time tries again. Nothing is given back where the program is not closed,
        because it was asked for within a launch of its own (`LifecycleError`).
        """
        with ExitStack() as steps:
            steps.callback(self._give_back)
            try:
                yield
            except LifecycleError:
                steps.pop_all()
                raise

    def _give_back(self) -> None:
        with ExitStack() as steps:
            for device in sorted(self._devices, reverse=True):  # the last step comes first
                steps.callback(self._release, device)

    def _release(self, device: int) -> None:
        self._owner.release(device, self._name, _LauncherLimit(self._run, device))
        self._devices.discard(device)
