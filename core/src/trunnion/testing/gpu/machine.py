"""The GPUs of this machine, as laws see them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch

from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError
from trunnion.sim.abi import Limit
from trunnion.sim.trace import Allocated, Captured, Launched, MemoryCopied, MemorySet
from trunnion.testing.gpu.cupti import Subscription
from trunnion.testing.gpu.decoding import NAMES, Decoder
from trunnion.testing.gpu.probes import Probes, Record
from trunnion.testing.gpu.readback import ReadLaunch, read_graph
from trunnion.testing.machine import USED, shorten
from trunnion.testing.observed import is_work
from trunnion.testing.symbols import kernel_index
from trunnion.torch_runtime import TorchRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.model.program import KernelProgram
    from trunnion.sim.trace import Event
    from trunnion.testing.gpu.cupti import DriverCall
    from trunnion.testing.machine import Told

__all__ = ["GpuMachine", "start_gpu"]

_LEAST: Final = (9, 0)
_ONE_BLOCK = (1, 1, 1)
_HISTORY = 1 << 16


@functools.cache
def start_gpu() -> GpuMachine:
    """Return the GPUs of this machine, of which there is one at least: their driver calls are told of from now on.

    Raises
    ------
    DeviceRequirementError
        If the first is older than compute capability 9.0, or CUPTI is not there.
    """
    capability = torch.cuda.get_device_capability(0)
    if capability < _LEAST:
        raise DeviceRequirementError(
            "a GPU of compute capability 9.0 or more, which has all that laws are about",
            f"{capability[0]}.{capability[1]}",
            "leave the tier out to check the laws on the simulated driver",
        )
    return GpuMachine()


class GpuMachine:
    """What `trunnion.testing.machine.Machine` says, on devices; one of a process is enough: see `start_gpu`."""

    tier: Final = "gpu"
    kind: Final = "cuda"

    def __init__(self) -> None:
        torch.zeros(1, device="cuda")  # torch initialises CUDA
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._events: list[Event] = []
        self._cuda: Any = torch.cuda  # whose streams have no annotations
        self._streams: dict[int, Any] = {}
        self._capturing: int | None = None
        self._quiet = False
        self.runtime: Runtime = TorchRuntime()
        first = torch.cuda.get_device_capability(0)
        self.alike = tuple(
            device
            for device in range(min(torch.cuda.device_count(), 2))
            if torch.cuda.get_device_capability(device) == first
        )
        major, minor = first
        self._probes = Probes(Target("cuda", f"sm_{major}{minor}a"))
        self._decoder = Decoder(self._probes.sizes, _Limits(self), self._version())
        self._calls = Subscription(NAMES, self._hear)
        self.clear_trace()

    def _version(self) -> int:
        version = ctypes.c_int()
        self._driver.cuDriverGetVersion(ctypes.byref(version))
        return version.value

    def attribute(self, device: int, attribute: int) -> int:
        """See `Machine`."""
        value = ctypes.c_int()
        there = device if device < torch.cuda.device_count() else 0
        status = self._driver.cuDeviceGetAttribute(ctypes.byref(value), int(attribute), there)
        if status:
            raise AssertionError(f"cuDeviceGetAttribute({int(attribute)}) returned {status}")
        return value.value

    def set_aside(self, device: int, nbytes: int) -> int:
        """See `Machine`."""
        before = ctypes.c_size_t()
        limit = int(Limit.PERSISTING_L2_CACHE_SIZE)
        with torch.cuda.device(device), self._unheard():
            status = self._driver.cuCtxGetLimit(ctypes.byref(before), limit)
            status = status or self._driver.cuCtxSetLimit(limit, ctypes.c_size_t(nbytes))
        if status:
            raise AssertionError(f"the driver returned {status} for the limit of persisting L2 cache")
        return before.value

    # What is told of ----------------------------------------------------------------------------------------------

    def _hear(self, call: DriverCall) -> None:
        if self._quiet:
            return
        event = self._decoder.event(call)
        if event is None:
            return
        if is_work(event) and event.stream == self._capturing:
            event = Captured(event, 0)
        self._events.append(event)

    @property
    def trace(self) -> tuple[Told, ...]:
        """See `Machine`: what was allocated comes first."""
        if self._calls.raised:
            error, self._calls.raised[:] = self._calls.raised[0], []
            raise error
        traces = torch.cuda.memory._snapshot()["device_traces"]  # noqa: SLF001 - torch has no public name for it
        allocated = [
            Allocated(entry["addr"], entry["size"], device, entry["stream"])
            for device, entries in enumerate(traces)
            for entry in entries
            if entry["action"] == "alloc"
        ]
        return (*allocated, *self._events)

    def clear_trace(self) -> None:
        """See `Machine`."""
        torch.cuda.memory._record_memory_history(  # noqa: SLF001 - as above
            enabled="all", context=None, stacks="python", max_entries=_HISTORY, clear_history=True
        )
        self._events.clear()
        self._decoder.given.clear()

    def call(self, function: Callable[[], Any]) -> Any:
        """See `Machine`; what probes wrote is compared with what the driver was asked for.

        Raises
        ------
        AssertionError
            If a kernel received anything else.
        """
        try:
            return function()
        finally:
            if self._capturing is None:
                self._settle(self._decoder.given)

    def _settle(self, given: Sequence[tuple[Launched, tuple[bytes, ...]]]) -> None:
        """Wait for all launches, and compare the probes' records with them: dependent launches may overlap."""
        self._wait()
        records = self._probes.take()
        wanted = [_expected_records(event, parameters) for event, parameters in given]
        self._decoder.given.clear()
        left = list(records)
        for choices in wanted:
            found = next((record for record in left if record in choices), None)
            if found is None:
                break
            left.remove(found)
        else:
            if not left:
                return
        raise AssertionError(f"kernels received {records}, the driver was given {wanted}")

    def _wait(self) -> None:
        with self._unheard():
            for device in self.alike:
                torch.cuda.synchronize(device)

    @contextmanager
    def _unheard(self) -> Iterator[None]:
        """Make driver calls that no launcher made."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    # What launches need -------------------------------------------------------------------------------------------

    def image(self, program: KernelProgram) -> DeviceImage:
        """See `Machine`: of probes."""
        return self._probes.image(program)

    def shorten(self, tensor: torch.Tensor) -> None:
        """See `Machine`."""
        shorten(tensor)

    def variable(self, launched: Launched, symbol: str) -> int:
        """See `Machine`: where the driver said when a launcher last asked for it."""
        return self._decoder.variables[symbol, launched.device]

    def empty(self, nbytes: int, device: int) -> torch.Tensor:
        """See `Machine`."""
        return torch.full((nbytes,), USED, dtype=torch.uint8, device=torch.device("cuda", device))

    def new_stream(self, device: int) -> int:
        """See `Machine`."""
        made = self._cuda.Stream(device)
        self._streams[made.cuda_stream] = made
        return int(made.cuda_stream)

    def stream_object(self, handle: int) -> Any:
        """See `Machine`."""
        return self._stream(handle, torch.cuda.current_device()) if handle else self._cuda.default_stream()

    def _stream(self, handle: int, device: int) -> Any:
        known = self._streams.get(handle)
        return self._cuda.ExternalStream(handle, device=device) if known is None else known

    @contextmanager
    def stream(self, handle: int, device: int) -> Iterator[None]:
        """See `Machine`; the current device stays the same."""
        before = torch.cuda.current_stream(device)
        self._make_current(self._stream(handle, device))
        try:
            yield
        finally:
            self._make_current(before)

    def current(self) -> tuple[int, ...]:
        """See `Machine`."""
        streams = (int(self._cuda.current_stream(device).cuda_stream) for device in self.alike)
        return (torch.cuda.current_device(), *streams)

    @staticmethod
    def _make_current(stream: Any) -> None:
        device = torch.cuda.current_device()
        torch.cuda.set_stream(stream)
        torch.cuda.set_device(device)

    @contextmanager
    def capture(self, stream: int, device: int) -> Iterator[_Graph]:
        """See `Machine`."""
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        found = _Graph(self, graph)
        self._wait()
        with torch.cuda.stream(self._stream(stream, device)):
            graph.capture_begin(capture_error_mode="thread_local")
            self._capturing = stream
            collecting = gc.isenabled()
            gc.disable()  # an older graph that is destroyed now would end the capture
            try:
                yield found
            finally:
                self._capturing = None
                _end(graph)
                if collecting:
                    gc.enable()
        found.given = list(self._decoder.given)
        self._decoder.given.clear()
        found.events = [event.event for event in self._events if isinstance(event, Captured)]

    def replayed(self, graph: _Graph) -> None:
        """Take up what a graph ran."""
        self._events += graph.events
        self._settle(graph.given)


def _end(graph: torch.cuda.CUDAGraph) -> None:
    """End a capture; what ended it before shows when the graph is launched, and an empty graph is a good one."""
    with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
        warnings.filterwarnings("ignore", message="The CUDA Graph is empty", category=UserWarning)
        graph.capture_end()


class _Graph:
    """A captured call."""

    def __init__(self, machine: GpuMachine, graph: torch.cuda.CUDAGraph) -> None:
        self._machine, self._graph = machine, graph
        self.given: list[tuple[Launched, tuple[bytes, ...]]] = []
        self.events: list[Any] = []

    def launch(self) -> None:
        """Read the graph back, and run it.

        Raises
        ------
        AssertionError
            If the graph holds anything else than the driver was asked for.
        """
        nodes, _ = read_graph(self._graph)
        launches = [node for node in nodes if isinstance(node, ReadLaunch)]
        held = sorted(
            (node.symbol, (*node.grid, *node.block), node.dynamic_smem_bytes, node.parameters)
            for node in launches
        )
        asked = sorted(
            (event.kernel, (*event.grid, *event.block), event.dynamic_smem_bytes, parameters)
            for event, parameters in self.given
        )
        if held != asked:
            raise AssertionError(f"the graph holds {held}, the driver was given {asked}")
        sets = [event for event in self.events if isinstance(event, (MemorySet, MemoryCopied))]
        if len(nodes) - len(launches) != len(sets):
            raise AssertionError(f"the graph holds {nodes} besides launches, the driver was given {sets}")
        self._graph.instantiate()
        self._graph.replay()
        self._machine.replayed(self)


class _Limits:
    """Of a device, what `trunnion.sim.launch_attributes` asks of one."""

    def __init__(self, machine: GpuMachine) -> None:
        self._machine = machine
        self.compute_capability = torch.cuda.get_device_capability(0)

    def attribute(self, attribute: int) -> int:
        """Return a ``CUdevice_attribute``."""
        return self._machine.attribute(0, attribute)


def _expected_records(event: Launched, parameters: tuple[bytes, ...]) -> list[Record]:
    """Return what a probe may write: of two clusters that are asked for, the hardware chooses."""
    kernel = kernel_index(event.kernel)
    clusters = {
        event.cluster or _ONE_BLOCK,
        event.attributes.preferred_cluster or event.cluster or _ONE_BLOCK,
    }
    return [
        Record(kernel, (*event.grid, *event.block, *cluster, event.dynamic_smem_bytes), parameters)
        for cluster in clusters
    ]
