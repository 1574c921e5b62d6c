"""What one call of a Python launcher writes into, and who is using it."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.launcher.facade import ComputedAttributes, DriverFacade, EncodedMap, LaunchSpec

    Prepare = Callable[[LaunchSpec, Any, Any], tuple[Callable[..., int], tuple[Any, ...]]]

__all__ = ["Frame", "FramePool", "LaunchFrame"]


_LINE = 64  # bytes of a line of the cache


class LaunchFrame:
    """What one launch writes into: its parameters, their addresses, its configuration."""

    __slots__ = (
        "address",
        "arguments",
        "buffer",
        "computed",
        "config",
        "fire",
        "maps",
        "packed",
        "pointers",
        "shape",
        "spec",
        "stream",
        "window",
    )

    def __init__(self, spec: LaunchSpec, facade: DriverFacade, prepare: Prepare | None) -> None:
        self.spec = spec
        """What is launched, for the error of a launch that is refused."""
        self.buffer = _own_lines(ctypes.c_char * max(spec.nbytes, 1))
        """The parameters' bytes, but for tensor maps."""
        self.packed: tuple[int, ...] | None = None
        """The numbers that stand in `buffer`, if all are integers."""
        base = ctypes.addressof(self.buffer)
        self.pointers = _own_lines(ctypes.c_void_p * max(len(spec.offsets), 1))
        """The address of each parameter."""
        self.pointers[: len(spec.offsets)] = [
            None if offset is None else base + offset for offset in spec.offsets
        ]
        self.address = ctypes.addressof(self.pointers)
        """The address of `pointers`, which the driver is given."""
        self.maps: list[EncodedMap | None] = [None] * len(spec.offsets)
        """For each parameter the tensor map whose address stands in `pointers`: as long as it does, it lives."""
        self.config = facade.new_config(spec)
        """The driver's configuration, filled as far as it is known."""
        self.shape: tuple[int, ...] | None = None
        """The numbers of grid, block and shared memory that stand in `config`, as far as a call decides them."""
        self.computed: ComputedAttributes = ()
        """The attributes that a call decides, as they stand in `config`; none before the first."""
        self.stream: int | None = None
        """The stream that stands in `config`."""
        self.window: tuple[int, int] | None = None
        """The window's range that stands in `config`."""
        self.fire: Any = None
        """What launches, called with `arguments`, where the facade prepares that; it returns a status."""
        self.arguments: tuple[Any, ...] = ()
        """What `fire` is called with: made once, because to gather them takes as long as a small call."""
        if prepare is not None:
            self.fire, self.arguments = prepare(spec, self.config, self.pointers)


def _own_lines(kind: Any) -> Any:
    """Return a zeroed ctypes object that shares no line of the processor's cache with anything else."""
    storage = ctypes.create_string_buffer(-(-ctypes.sizeof(kind) // _LINE) * _LINE + _LINE)
    return kind.from_buffer(storage, -ctypes.addressof(storage) % _LINE)


class Frame:
    """Everything that one call writes into. A call takes one for itself, so calls may nest and run at once."""

    __slots__ = ("__weakref__", "launches", "passed")

    def __init__(self, specs: Sequence[LaunchSpec], facade: DriverFacade, prepare: Prepare | None) -> None:
        self.launches = tuple(LaunchFrame(spec, facade, prepare) for spec in specs)
        self.passed: tuple[int, ...] | None = None
        """The integers of the call whose launches stand here, where all else follows from them: by identity, as one of
        another layout may pass equal ones."""


class FramePool:
    """The frames of one program: those in `free` are in nobody's hands, every other one is in a call's.

    ``free.pop()`` and ``free.append()`` are one step each for every thread, so a launcher takes and gives back frames
    without a lock. A frame that is lost on the way (an interrupt between two instructions) is collected, at the latest
    with the exception that came of it.

    Parameters
    ----------
    specs
        The program's launches.
    facade
        The driver.
    prepare
        Returns what launches, and what it is called with, given a launch, its configuration and its parameters; None:
        the facade's own method does.
    """

    def __init__(
        self, specs: Sequence[LaunchSpec], facade: DriverFacade, prepare: Prepare | None = None
    ) -> None:
        self._specs = tuple(specs)
        self._facade = facade
        self._prepare = prepare
        # No lock: a finalizer, or a signal's handler, may ask for a frame in the middle of anything that is done here.
        self._all: dict[int, weakref.ref[Frame]] = {}
        self.free: list[Frame] = []

    def new(self) -> Frame:
        """Return a frame that is in the caller's hands."""
        frame, known = self.private(), self._all
        number = id(frame)
        known[number] = weakref.ref(frame, lambda _: known.pop(number, None))
        return frame

    def private(self) -> Frame:
        """Return a frame that never comes back to the pool, and that nobody waits for."""
        return Frame(self._specs, self._facade, self._prepare)

    def forsake(self, frame: Frame) -> None:
        """Take a frame out of use for good: a call that wrote into it did not come to its end."""
        self._all.pop(id(frame), None)

    def busy(self) -> bool:
        """Whether some call holds a frame."""
        free = {id(frame) for frame in list(self.free)}
        return any(id(frame) not in free for known in list(self._all.values()) if (frame := known()))
