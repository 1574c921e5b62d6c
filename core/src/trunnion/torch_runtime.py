"""`TorchRuntime`: torch's CUDA tensors, as a launcher sees them. Only this module of core imports torch by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trunnion.arguments import unallocatable
from trunnion.errors import BackendUnavailableError
from trunnion.model.interval import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.runtime import Runtime
    from trunnion.model.dtypes import DType

__all__ = ["TorchRuntime", "default_runtime"]


class TorchRuntime:
    """torch, on real devices.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed.
    """

    def __init__(self) -> None:
        try:
            import torch  # noqa: PLC0415 - importing trunnion must not import torch
        except ImportError as error:
            raise BackendUnavailableError(
                "torch", "torch", "torch is not installed; pip install torch"
            ) from error
        self._torch = torch
        self.tensor_type: type = torch.Tensor
        self.strided: Any = torch.strided
        # What torch's own launchers call; a CPU build lacks it.
        raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - no public name
        self._raw_stream = raw or self.current_stream

    def dtype(self, dtype: DType) -> Any:
        """Return torch's object for an element type; see `DType.in_torch`."""
        return dtype.in_torch(self._torch)

    def current_stream(self, device: int) -> int:
        """Return the handle of torch's current stream of a device."""
        return int(self._torch.cuda.current_stream(device).cuda_stream)

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return torch's own getter, which makes no stream object on the way."""
        return self._raw_stream

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        """Return an uninitialised tensor, allocated under ``stream``; see `Runtime.allocate`."""
        torch: Any = self._torch  # torch's streams have no annotations
        place = torch.device("cuda", device)
        try:
            if stream == self._raw_stream(device):
                return torch.empty(shape, dtype=dtype, device=place)
            with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
                return torch.empty(shape, dtype=dtype, device=place)
        except (RuntimeError, OverflowError, TypeError) as error:
            # torch counts bytes in 64 bits, and says so in three ways; running out of memory is its own error.
            if math.prod(shape) * dtype.itemsize <= INT64_MAX:
                raise
            raise unallocatable(shape) from error

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``call``: a real driver has nothing to add."""
        return call

    def presents_device(self, tensor: Any) -> bool:
        """Whether a tensor is a CUDA tensor."""
        return bool(tensor.is_cuda)

    def has_storage(self, tensor: Any) -> bool:
        """Whether there is memory behind a tensor, as it is: dense, no fake, no lazy conjugate or negative."""
        from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415 - torch has no public name for it

        lazy = isinstance(tensor, FakeTensor) or tensor.is_conj() or tensor.is_neg()
        return not lazy and tensor.layout is self.strided


def default_runtime() -> Runtime:
    """Return the runtime of this process: the simulator's if it runs, else torch's.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed.
    """
    from trunnion import sim  # noqa: PLC0415 - only a launch needs it

    simulator = sim.active()
    return TorchRuntime() if simulator is None else simulator.runtime
