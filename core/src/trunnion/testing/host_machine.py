"""The CPU of this machine, as laws see it: no driver, no streams, and kernels that tell what each block is given."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NoReturn

from trunnion.contract.spec import Target
from trunnion.errors import LifecycleError
from trunnion.testing.host_memory import WatchedMemory, WatchedRuntime
from trunnion.testing.host_recorder import (
    image_number,
    launches_of,
    process_log,
    read_records,
    recorder_source,
)
from trunnion.testing.probe_compiler import ProbeImages, compile_probes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    import torch

    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.model.program import KernelProgram
    from trunnion.sim.trace import Launched
    from trunnion.testing.machine import MemorySeen, Told
    from trunnion.testing.probe_compiler import Layout

__all__ = ["HostMachine"]


@functools.cache
def _process_memory() -> WatchedMemory:
    """Return the memory of this process: torch has one table of functions for all of it."""
    return WatchedMemory()


class HostMachine:
    """What `trunnion.testing.machine.Machine` says, on the CPU; programs of one machine are called one after another.

    Parameters
    ----------
    options
        More options of the device compiler that compiles the kernels.
    within
        Whether the first kernel of a call has Python see what memory holds. Else that is seen before the call: for
        programs that allocate and fill nothing, in launches that may keep Python's lock from their threads.
    """

    tier: Final = "cpu"
    kind: Final = "cpu"
    alike: Final = (0,)

    def __init__(self, options: Mapping[str, Any] | None = None, *, within: bool = True) -> None:
        self._options, self._within = dict(options or {}), within
        self._memory, self._log = _process_memory(), process_log()
        self.runtime: Runtime = WatchedRuntime(self._memory)
        self._before: tuple[MemorySeen, ...] | None = None
        self._images = ProbeImages(self._compiled)
        self._layouts: dict[int, tuple[Layout, ...]] = {}
        self.clear_trace()

    def apart(self, **options: Any) -> HostMachine:
        """Return a machine whose kernels never call Python, compiled with more options: see ``within``."""
        return HostMachine({**self._options, **options}, within=False)

    @property
    def trace(self) -> tuple[Told, ...]:
        """See `Machine`: what was allocated, what memory held when the first kernel began, the launches, what it holds.

        Raises
        ------
        AssertionError
            If the blocks of a launch are not those of its grid, or were told different things.
        """
        allocated = tuple(self._memory.allocated)
        now = self._memory.seen()
        launches = launches_of(read_records(self._log.data), self._sizes)
        if self._before is None:
            return (*allocated, *now)
        return (*allocated, *self._before, *launches, *now)

    def clear_trace(self) -> None:
        """See `Machine`."""
        self._log.clear()
        self._before = None
        self._memory.reset()

    def call(self, function: Callable[[], Any]) -> Any:
        """See `Machine`; a call returns when its last launch has."""
        self._log.begins = self._begin if self._within else None
        if not self._within and self._before is None:
            self._begin()
        with self._memory.watching():
            result = function()
        if self._before is None:
            self._memory.forget_dropped()
        return result

    def blocks(self, function: Callable[[], Any], pause: float) -> list[int]:
        """Call a function, and return which block of its launch each was that ran, in order.

        Parameters
        ----------
        function
            The function.
        pause
            How long the first block of each launch goes on, in seconds, once it has told.
        """
        self.clear_trace()
        self._log.pause = pause
        try:
            self.call(function)
            told = read_records(self._log.data)
        finally:
            self._log.pause = 0
            self.clear_trace()
        return [block for one in told for block in range(one.first, one.first + one.count)]

    def _begin(self) -> None:
        self._memory.forget_dropped()
        self._before = self._memory.seen()

    def _sizes(self, image: int, kernel: int) -> tuple[int, ...]:
        return tuple(size for size, _ in self._layouts[image][kernel])

    def attribute(self, device: int, attribute: int) -> int:  # noqa: ARG002 - the protocol's names
        """Return 0: a CPU has nothing of what is counted there."""
        return 0

    def image(self, program: KernelProgram) -> DeviceImage:
        """See `Machine`: of kernels that tell what they are given."""
        return self._images.of(program)

    def _compiled(self, layouts: tuple[Layout, ...], _: tuple[int, ...]) -> DeviceImage:
        self._layouts[image_number(layouts)] = layouts
        return compile_probes(recorder_source(layouts), layouts, Target("cpu"), options=self._options)

    def shorten(self, tensor: torch.Tensor) -> None:
        """Do nothing: what is watched lies in pieces of one storage, which torch does not resize."""

    def variable(self, launched: Launched, symbol: str) -> NoReturn:  # noqa: ARG002 - the protocol's names
        """Refuse: no program for the CPU has a module variable.

        Raises
        ------
        LifecycleError
            Always.
        """
        raise LifecycleError("backends launch no programs with module variables on the CPU")

    def empty(self, nbytes: int, device: int) -> torch.Tensor:  # noqa: ARG002 - there is one
        """See `Machine`."""
        return self._memory.empty(nbytes)

    def set_aside(self, device: int, nbytes: int) -> NoReturn:
        """Refuse: see `stream`."""
        self.stream(nbytes, device)

    def new_stream(self, device: int) -> NoReturn:
        """Refuse: see `stream`."""
        self.stream(0, device)

    def stream_object(self, handle: int) -> NoReturn:
        """Refuse: see `stream`."""
        self.stream(handle, 0)

    def stream(self, handle: int, device: int) -> NoReturn:  # noqa: ARG002 - the protocol's names
        """Refuse: no law of the tier asks for a stream, or for what is set aside for one.

        Raises
        ------
        LifecycleError
            Always.
        """
        raise LifecycleError("the CPU has no streams: laws that ask for one are for devices with a driver")

    def current(self) -> tuple[int, ...]:
        """Return nothing: the CPU is the one device, and has no streams."""
        return ()

    def capture(self, stream: int, device: int) -> AbstractContextManager[Any]:
        """Refuse: see `stream`."""
        self.stream(stream, device)
