"""What makes the simulated driver go wrong, or be another: faults, interceptors, limits, other devices."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from trunnion.arguments import expect
from trunnion.errors import ArgumentValueError
from trunnion.sim.devices import architecture, check_integer, check_version, variant
from trunnion.sim.interception import ALLOCATE, Fault, call_numbers, check_interceptor
from trunnion.sim.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from trunnion.sim.devices import Architecture
    from trunnion.sim.interception import Interceptor
    from trunnion.sim.state import DriverState

__all__ = ["Controls"]


class Controls:
    """The part of a `trunnion.sim.simulator.Simulator` that plants faults and changes devices.

    Parameters
    ----------
    state
        What the driver remembers.
    """

    def __init__(self, state: DriverState) -> None:
        self._state = state

    def intercept(self, call: str, interceptor: Interceptor) -> AbstractContextManager[None]:
        """Return a context in which somebody stands between a call and the driver, in every thread.

        Parameters
        ----------
        call
            The call's name without version or suffix, for example ``"cuLaunchKernelEx"``, or ``"allocate"`` for
            what a launcher allocates (its arguments are bytes, device and stream).
        interceptor
            Called as ``interceptor(proceed, *arguments)`` with the call's own arguments, pointers as integers and
            null ones as None. ``proceed(*arguments)`` makes the call; not to call it means that nothing happens and
            the call succeeds; to raise a `trunnion.sim.status.Refusal` fails it. Who came last is asked first.

        Raises
        ------
        ArgumentTypeError
            If the call is named by no text, or the interceptor cannot be called.
        ArgumentValueError
            If there is no such call.
        """
        return self._state.interceptions.installed(call, interceptor)

    @contextmanager
    def intercept_every(self, interceptor: Callable[..., None]) -> Iterator[None]:
        """Have somebody stand between every call and the driver until the block ends, in every thread.

        Parameters
        ----------
        interceptor
            As for `intercept`, but called with the call's name first: ``interceptor(name, proceed, *arguments)``.

        Raises
        ------
        ArgumentTypeError
            If it cannot be called.
        """
        check_interceptor(interceptor)
        with ExitStack() as before:
            for name in sorted(self._state.interceptions.names):
                before.enter_context(self.intercept(name, partial(interceptor, name)))
            yield

    @contextmanager
    def reusing_handles(self) -> Iterator[None]:
        """Have the handles of what is unloaded given again, the last first, until the block ends: as drivers do."""
        state = self._state
        before, state.freed = state.freed, []
        try:
            yield
        finally:
            state.freed = before

    @contextmanager
    def fault(
        self,
        call: str,
        status: Status | None = Status.UNKNOWN,
        *,
        nth: int | Collection[int] | None = None,
        when: Callable[..., bool] | None = None,
        delay: float = 0.0,
    ) -> Iterator[Fault]:
        """Let calls fail, or be slow, until the block ends, in every thread.

        Parameters
        ----------
        call
            As for `intercept`.
        status
            What the call returns, with no other effect; None: it is only slow. For ``"allocate"``, the default
            means ``OUT_OF_MEMORY``, which raises what the tensor library raises; any other raises a `DriverError`.
        nth
            Which of the calls fail, counted from 1 since here; None: every one.
        when
            Asked with the call's arguments; calls for which it says no pass, and are not counted.
        delay
            Seconds that the call takes before.

        Returns
        -------
        context manager of Fault
            It counts ``calls`` and ``hits``.

        Raises
        ------
        ArgumentTypeError
            If an argument is of another type.
        ArgumentValueError
            If there is no such call or status, a number of ``nth`` is below 1, or the delay is negative.
        """
        if call == ALLOCATE and status is Status.UNKNOWN:
            status = Status.OUT_OF_MEMORY
        fault = Fault(status=status, nth=call_numbers(nth), when=when, delay=delay)
        with self.intercept(call, fault):
            yield fault

    @contextmanager
    def memory_limit(self, nbytes: int, device: int = 0) -> Iterator[None]:
        """Let a device have so many bytes of memory, those in use included, until the block ends.

        Raises
        ------
        ArgumentTypeError
            If ``nbytes`` or the device is no integer.
        ArgumentValueError
            If there is no such device, or ``nbytes`` is negative.
        """
        self._check_ordinal(device)
        before = self._state.memory.limit(device, check_integer("nbytes", nbytes, 0))
        try:
            yield
        finally:
            self._state.memory.limit(device, before)

    @contextmanager
    def configured(
        self,
        *,
        arch: str | None = None,
        driver_version: int | None = None,
        mode: str = "whole",
        attributes: Mapping[int, int] | None = None,
    ) -> Iterator[None]:
        """Let the driver and all of its devices be others until the block ends, in every thread.

        Who asked for a device's attributes before keeps the answers; start another process where that matters.

        Parameters
        ----------
        arch
            That of all devices; None: each as it was.
        driver_version
            As for `trunnion.sim.start`; None: as it was.
        mode
            As for `trunnion.sim.start`.
        attributes
            What every device answers in place of its architecture's own values, by number.

        Raises
        ------
        ArgumentTypeError
            If an argument is of another type.
        ArgumentValueError
            If there is no such mode, attribute, value of an attribute or driver's version.
        DeviceRequirementError
            If ``arch`` cannot be simulated.
        """
        state = self._state
        before = [device.arch for device in state.devices], state.driver_version
        bases = before[0] if arch is None else [architecture(arch)] * len(before[0])
        changed = [variant(base, mode, attributes) for base in bases]
        self._become(changed, before[1] if driver_version is None else check_version(driver_version))
        try:
            yield
        finally:
            self._become(*before)

    def _check_ordinal(self, device: int) -> None:
        expect(device, int, "device", "the ordinal of a simulated device")
        last = len(self._state.devices) - 1
        if not 0 <= device <= last:
            raise ArgumentValueError("device", f"{device}", f"an integer, 0 to {last}")

    def _become(self, archs: Sequence[Architecture], driver_version: int) -> None:
        for device, arch in zip(self._state.devices, archs, strict=True):
            device.arch = arch
        self._state.driver_version = driver_version
