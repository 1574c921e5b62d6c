"""Access-policy windows at run time: their lengths, their share of the L2 cache, and windows that a stream holds."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from trunnion.launcher.entered import within_primary
from trunnion.launcher.l2_persisting import known_length
from trunnion.model.plan import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from trunnion.launcher.facade import DriverFacade, LaunchSpec, WindowFacade, WindowSpec
    from trunnion.launcher.l2_persisting import LimitDriver, SetAside

__all__ = ["ProgramWindows", "StreamWindow", "stream_window"]

_MAX_PERSISTING_L2, _MAX_WINDOW = 108, 109  # CUdevice_attribute
_PERSISTING = 2  # CUaccessProperty


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """A window that a stream holds for one launch."""

    device: int
    """The device's ordinal."""

    stream: int
    """The stream's handle."""

    address: int
    """The address of its first byte."""

    nbytes: int
    """How many bytes."""

    persisting: int
    """The bytes of the cache that are set aside meanwhile."""


class _PrimaryLimit:
    """The limit of a device's primary context, whichever other one is current: one has an owner in the process."""

    def __init__(self, facade: Any, device: int) -> None:
        self._facade = facade
        self._device = device

    def persisting_limit(self) -> int | None:
        limit: LimitDriver = self._facade
        return within_primary(self._facade, self._device, limit.persisting_limit)

    def set_persisting_limit(self, nbytes: int) -> None:
        limit: LimitDriver = self._facade
        within_primary(self._facade, self._device, limit.set_persisting_limit, nbytes)


@contextmanager
def stream_window(
    driver: WindowFacade, set_aside: SetAside, spec: WindowSpec, window: StreamWindow
) -> Iterator[None]:
    """Set a stream's window for the body, and leave nothing of it: after an error too.

    The limit is raised, the window set; then the body launches; then the window is taken away, the kernel waited for,
    its persisting lines are made normal, and the limit is what it was.

    Parameters
    ----------
    driver
        The driver; a context of the device is current.
    set_aside
        Who owns the cache that is set aside; the limit is the primary context's.
    spec
        The window's constants.
    window
        The window.
    """
    owner, limit = object(), _PrimaryLimit(driver, window.device)
    with ExitStack() as undo:
        if window.nbytes:
            undo.callback(set_aside.release, window.device, owner, limit)
            set_aside.request(window.device, owner, window.persisting, limit)
            undo.callback(driver.reset_persisting, window.stream)
            undo.callback(driver.set_stream_window, window.stream, spec, window.address, 0)
            driver.set_stream_window(window.stream, spec, window.address, window.nbytes)
        yield


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
        """Give back what was set aside in the program's name, in the device's primary context."""
        self.facade.set_aside.release(device, self._name, _PrimaryLimit(self.facade, device))

    def on_stream(
        self, launch: int, device: int, stream: int, memory: tuple[int, int]
    ) -> AbstractContextManager[None]:
        """Return the context manager that holds a stream's window around a launch.

        Parameters
        ----------
        launch
            The launch, whose window has policy "stream".
        device
            The device's ordinal.
        stream
            The stream's handle.
        memory
            The window's address and length in bytes.
        """
        facade = self.facade
        spec: Any = self._launches[launch].stream_window  # the launcher names launches that have one
        address, nbytes = memory
        window = StreamWindow(device, stream, address, nbytes, self._share(device, nbytes))
        return stream_window(facade, facade.set_aside, spec, window)

    def _share(self, device: int, nbytes: int) -> int:
        return int(min(nbytes, self.facade.device_attribute(device, _MAX_PERSISTING_L2)))
