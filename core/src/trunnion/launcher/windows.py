"""Access-policy windows at run time: their lengths, their share of the L2 cache, and windows that a stream holds."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from trunnion.errors import TrunnionError
from trunnion.launcher.entered import within_primary
from trunnion.launcher.l2_persisting import PassingOwner, known_length
from trunnion.model.plan import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.launcher.facade import DriverFacade, LaunchSpec
    from trunnion.launcher.l2_persisting import LimitDriver

__all__ = ["ProgramWindows"]

_MAX_PERSISTING_L2, _MAX_WINDOW = 108, 109  # CUdevice_attribute
_PERSISTING = 2  # CUaccessProperty


def _noting(failures: list[TrunnionError], step: Callable[..., object], *args: object) -> None:
    """Do a step, and note how it fails."""
    try:
        step(*args)
    except TrunnionError as error:
        failures.append(error)


class _PrimaryLimit:
    """The limit of a device's primary context, whichever other one is current: one has an owner in the process."""

    def __init__(self, facade: Any, device: int) -> None:
        self._facade, self._device = facade, device
        self._limit: LimitDriver = facade

    def persisting_limit(self) -> int | None:
        return within_primary(self._facade, self._device, self._limit.persisting_limit)

    def set_persisting_limit(self, nbytes: int) -> None:
        within_primary(self._facade, self._device, self._limit.set_persisting_limit, nbytes)


class ProgramWindows:
    """The windows of one program.

    Parameters
    ----------
    launches
        The program's launches.
    facade
        The driver; it has the methods of `WindowFacade` if some launch has a window.
    """

    __slots__ = ("_launches", "_name", "facade")

    def __init__(self, launches: Sequence[LaunchSpec], facade: DriverFacade) -> None:
        self._launches = launches
        self._name = object()
        self.facade: Any = facade
        """The driver; another one in a forked child."""

    def length(self, device: int, name: str, numbers: tuple[int, int | None, int]) -> int:
        """Return the length of a window; of one that the author named, whether or not a device allows it.

        Parameters
        ----------
        device
            The device's ordinal.
        name
            The memory's name, for messages.
        numbers
            The window's offset, its length if the author named one, and the memory's length, in bytes.

        Raises
        ------
        ArgumentValueError
            If the window does not lie within its memory.
        """
        offset, nbytes, limit = numbers
        left = limit - offset
        if offset < 0 or left < 0 or (nbytes is not None and not 0 <= nbytes <= left):
            raise refusals.WINDOW_OUTSIDE(name, "all" if nbytes is None else nbytes, offset, limit)
        return int(min(left, self.longest(device))) if nbytes is None else nbytes

    def longest(self, device: int) -> int:
        """Return the bytes of the longest window that a device allows."""
        return int(self.facade.device_attribute(device, _MAX_WINDOW))

    def refuse_length(self, device: int, name: str, nbytes: int) -> NoReturn:
        """Refuse a window of a length that the author named and the device does not allow.

        Raises
        ------
        DeviceRequirementError
            Always.
        """
        raise refusals.LONG_WINDOW(nbytes, name, device, self.longest(device))

    def known(self, device: int) -> int:
        """Return the longest of those windows that have the same share of a device's cache in every call, in bytes."""
        attribute = self.facade.device_attribute
        bounds = [
            spec.window_bytes
            for spec in self._launches
            if spec.window is not None and spec.window.hit_property == _PERSISTING
        ]
        if not bounds:
            return 0
        return known_length(bounds, attribute(device, _MAX_WINDOW), attribute(device, _MAX_PERSISTING_L2))

    def request(self, device: int, nbytes: int) -> None:
        """Set cache aside for a window of that length, in the program's name, in the device's primary context."""
        facade = self.facade
        facade.set_aside.request(
            device, self._name, self._share(device, nbytes), _PrimaryLimit(facade, device)
        )

    def release(self, device: int) -> None:
        """Give back what was set aside in the program's name, in the device's primary context.

        That of a stream's window too, which an interrupt kept from being given back behind its launch.
        """
        self.facade.set_aside.release(device, self._name, _PrimaryLimit(self.facade, device))

    @contextmanager
    def on_stream(self, launch: int, device: int, stream: int, memory: tuple[int, int]) -> Iterator[None]:
        """Set a stream's window for the body, and leave nothing of it: after an error too, of several the first.

        The limit is raised, the window set; then the body launches; then the window is taken away, the kernel waited
        for, its persisting lines are made normal, and the limit is what it was.

        Parameters
        ----------
        launch
            The launch, whose window has policy "stream".
        device
            The device's ordinal; a context of it is current. The limit is the primary context's.
        stream
            The stream's handle.
        memory
            The window's address and length in bytes.
        """
        facade, (address, nbytes) = self.facade, memory
        spec: Any = self._launches[launch].stream_window  # the launcher names launches that have one
        owner, limit = PassingOwner(self._name), _PrimaryLimit(facade, device)
        failures: list[TrunnionError] = []
        with ExitStack() as undo:
            if nbytes:
                undo.callback(_noting, failures, facade.set_aside.release, device, owner, limit)
                facade.set_aside.request(device, owner, self._share(device, nbytes), limit)
                undo.callback(_noting, failures, facade.reset_persisting, stream)
                undo.callback(_noting, failures, facade.set_stream_window, stream, spec, address, 0)
                facade.set_stream_window(stream, spec, address, nbytes)
            yield
        if failures:
            raise failures[0]

    def _share(self, device: int, nbytes: int) -> int:
        return int(min(nbytes, self.facade.device_attribute(device, _MAX_PERSISTING_L2)))
