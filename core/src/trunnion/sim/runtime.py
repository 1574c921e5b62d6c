"""The tensor library's side of a launch, with simulated tensors."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from trunnion.call_helper import HelpedRuntime, installed_helper
from trunnion.errors import LifecycleError
from trunnion.sim.interception import ALLOCATE
from trunnion.sim.objects import LEGACY_STREAM
from trunnion.sim.tensor import SimTensor, allocate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.contract.call_helper import CallHelper
    from trunnion.model.dtypes import DType
    from trunnion.sim.simulated_driver import SimulatedDriver

__all__ = ["SimRuntime", "SimStream"]


@dataclass(frozen=True, slots=True)
class SimStream:
    """A stream, as ``torch.cuda.Stream`` shows one: torch for the CPU has none."""

    cuda_stream: int
    """The driver's handle."""

    @property
    def stream_id(self) -> int:
        """The tensor library's own number, which may be the handle of another stream."""
        return LEGACY_STREAM


class SimRuntime(HelpedRuntime):
    """A `trunnion.contract.runtime.Runtime` over a simulator.

    Parameters
    ----------
    simulator
        Whose streams and memory.
    find_helper
        Returns the call helper that launchers are to use, or None; called when one is first wanted.
    alone
        Whether launchers are told, by `quick_allocator`, that the first device is the only one: all calls are for it.
    """

    tensor_type: type
    strided: Any

    def __init__(
        self,
        simulator: SimulatedDriver,
        find_helper: Callable[[], CallHelper | None] = installed_helper,
        *,
        alone: bool = False,
    ) -> None:
        super().__init__(find_helper)
        self._simulator = simulator
        self._alone = alone or simulator.devices == 1
        self.tensor_type = torch.Tensor
        self.strided = torch.strided
        self.only_device: int | None = None
        self.exchanged_types: tuple[type, type] = (SimTensor, SimTensor)
        self.stream_type: type = SimStream

    def dtype(self, dtype: DType) -> Any:
        """Return torch's object for an element type; see `DType.in_torch`."""
        return dtype.in_torch(torch)

    def current_stream(self, device: int) -> int:
        """Return the calling thread's current stream of a device."""
        return self._simulator.state.current_stream(device)

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return the callable behind `current_stream`."""
        return self._simulator.state.current_stream

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> SimTensor:
        """Return a new tensor of device memory, every byte of it 0xFF, and trace it with its stream.

        Parameters
        ----------
        shape
            Elements along each dimension.
        dtype
            A torch dtype.
        device
            The ordinal of the device.
        stream
            The stream that will use it first.

        Raises
        ------
        ArgumentValueError
            If there is no such device, or no memory is that large.
        torch.OutOfMemoryError
            If the device has too little memory, or a planted fault says so.
        """
        return allocate(self._simulator, shape, dtype, device, stream)

    def quick_allocator(self) -> Callable[[tuple[int, ...], tuple[int, ...], Any], Any] | None:
        """Return what allocates under the current stream, if there is one device; see `Runtime.quick_allocator`."""
        return self._quickly if self._alone else None

    def _quickly(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> SimTensor:
        """Return a new tensor of the only device, and trace it with that device's current stream.

        Raises
        ------
        LifecycleError
            If somebody intercepts allocations: `allocate` is asked then, and each is seen once.
        """
        state = self._simulator.state
        if ALLOCATE in state.interceptions.standing:
            raise LifecycleError("allocations are intercepted")
        return allocate(self._simulator, shape, dtype, 0, state.current_stream(0), strides)

    @contextmanager
    def on_stream(self, device: int, stream: int) -> Iterator[None]:
        """Make a device and a stream the calling thread's current ones; see `Runtime.on_stream`.

        Raises
        ------
        ArgumentValueError
            If there is no such device.
        RuntimeError
            In a forked child, as torch says it.
        """
        if self._simulator.state.is_forked:
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        with self._simulator.current(device), self._simulator.stream(stream, device):
            yield

    def memory_error(self, message: str) -> Exception:
        """Return torch's own error."""
        return torch.OutOfMemoryError(message)

    def exchange_api(self) -> int:
        """Return the address of the functions that show simulated tensors; see `Runtime.exchange_api`."""
        address: int = SimTensor._exchange.viewing_api()  # noqa: SLF001 - this package's own class
        return address

    def guard(self, tensors: tuple[Any, ...]) -> Callable[..., bool] | None:
        """Return a function that compares every fact a launcher checks; see `Runtime.guard`.

        As torch's guard it knows no call that has one tensor twice.
        """
        models = [_facts(tensor) for tensor in tensors]

        def same(*others: Any) -> bool:
            distinct = len({id(other) for other in others}) == len(others)
            alike = distinct and [_facts(other) for other in others] == models
            return alike and all(map(self.has_storage, others))

        return same

    def reader(self, tensors: tuple[Any, ...]) -> Callable[..., tuple[int, ...] | None] | None:
        """Return the call helper's reader over the exchange API of simulated tensors; see `Runtime.reader`."""
        if any(type(tensor) is not SimTensor for tensor in tensors):
            return None
        return self._reader(self.exchange_api(), SimTensor, tensors)

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls ``call`` and raises what handlers and kernel bodies raised inside."""
        return functools.partial(self._simulator.call, call)

    def presents_device(self, tensor: Any) -> bool:
        """Whether a tensor is a simulated one; a CUDA tensor of another library is not."""
        return isinstance(tensor, SimTensor)

    def has_storage(self, tensor: Any) -> bool:
        """Whether there is live memory behind a tensor, as it is: no fake, no lazy conjugate or negation."""
        if tensor.is_conj() or tensor.is_neg():
            return False
        if not isinstance(tensor, SimTensor):  # one of the host's, which launchers refuse for where it lies
            return type(tensor) is torch.Tensor and tensor.layout is torch.strided
        if tensor.numel() == 0:
            return True
        found = self._simulator.memory.find(tensor.data_ptr())
        return found is not None and found.device == tensor.get_device()

    def room(self, tensor: Any) -> int:
        """Return the bytes from a tensor's first element to the end of its allocation."""
        address = tensor.data_ptr()
        found = self._simulator.memory.find(address)
        return 0 if found is None else found.address + found.nbytes - address


def _facts(tensor: Any) -> tuple[object, ...]:
    if type(tensor) is not SimTensor:
        return (type(tensor),)
    return (SimTensor, tensor.dtype, tensor.get_device(), tensor.shape, tensor.stride())
