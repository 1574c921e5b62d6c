"""`TorchRuntime`: torch's CUDA tensors, as a launcher sees them. Only this module of core imports torch by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import BackendUnavailableError, DeviceRequirementError

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

    def dtype(self, dtype: DType) -> Any:
        """Return torch's object for an element type; see `Runtime.dtype`."""
        found = getattr(self._torch, dtype.name, None)
        if found is None:
            have = f"torch {self._torch.__version__}"
            raise DeviceRequirementError(
                f"a torch that has the dtype {dtype.name}", have, "install a newer torch"
            )
        return found

    def current_stream(self, device: int) -> int:
        """Return the handle of torch's current stream of a device."""
        return int(self._torch.cuda.current_stream(device).cuda_stream)

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return torch's own raw getter, which a CPU build of torch lacks."""
        raw = getattr(self._torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - what torch's own launchers call
        return raw if raw is not None else self.current_stream

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        """Return an uninitialised tensor, allocated under ``stream``; see `Runtime.allocate`."""
        torch = self._torch
        if stream == self.current_stream_getter()(device):
            return torch.empty(shape, dtype=dtype, device=f"cuda:{device}")
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
            return torch.empty(shape, dtype=dtype, device=f"cuda:{device}")

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
