"""What a Python launcher asks about tensors; the slow halves of its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.codegen.python import support
from trunnion.errors import ArgumentTypeError, ArgumentValueError, DeviceRequirementError
from trunnion.model.dtypes import dtype

if TYPE_CHECKING:
    from trunnion.contract.runtime import Runtime

__all__ = ["TensorChecks"]


class TensorChecks:
    """Checks over one tensor library.

    Parameters
    ----------
    runtime
        The tensor library.
    device_count
        The number of devices.
    """

    def __init__(self, runtime: Runtime, device_count: int) -> None:
        self.runtime = runtime
        self.device_count = device_count
        self.tensor_type = runtime.tensor_type
        self.strided = runtime.strided
        self.current_stream = runtime.current_stream_getter()
        self.allocate = runtime.allocate

    def dtype(self, name: str) -> Any:
        """Return the library's object for an element type."""
        return self.runtime.dtype(dtype(name))

    def check_tensor(self, name: str, value: Any) -> None:
        """Accept a tensor of a subclass, if there is memory behind it.

        Raises
        ------
        ArgumentTypeError
            If ``value`` is no tensor, or one with no memory of its own.
        """
        if not isinstance(value, self.tensor_type):
            raise ArgumentTypeError(name, type(value).__name__, "a tensor")
        if not self.runtime.has_storage(value):
            expected = (
                "a dense tensor in memory; call .resolve_conj(), .resolve_neg() or .to_dense() if it is lazy"
            )
            raise ArgumentTypeError(name, f"{type(value).__name__} with no memory of its own", expected)

    def check_device(self, names: tuple[str, ...], tensors: tuple[Any, ...], given: int | None) -> int:
        """Return the ordinal of the device that a call runs on.

        Raises
        ------
        ArgumentValueError
            If a tensor lies elsewhere than the first one, or than ``device=`` says.
        DeviceRequirementError
            If there is neither a tensor nor a ``device=``.
        """
        if not tensors:
            if given is None:
                raise DeviceRequirementError("a device", "a call with no tensor", "pass device=")
            return self.check_ordinal(given)
        for name, tensor in zip(names, tensors, strict=True):
            if not self.runtime.presents_device(tensor):
                raise ArgumentValueError(name, f"a tensor on {tensor.device}", "a tensor on a CUDA device")
        first = tensors[0].get_device()
        for name, tensor in zip(names, tensors, strict=True):
            if tensor.get_device() != first:
                raise ArgumentValueError(
                    name,
                    f"a tensor on device {tensor.get_device()}",
                    f"device {first}, where {names[0]!a} lies",
                )
        if given is not None and given != first:
            raise ArgumentValueError("device", str(given), f"{first}, where the tensors lie")
        return int(first)

    def check_ordinal(self, device: Any) -> int:
        """Return a device's ordinal.

        Raises
        ------
        ArgumentValueError
            If there is no such device.
        """
        return support.integer("device", device, 0, self.device_count - 1)

    def check_pointer(self, name: str, tensor: Any, address: int, alignment: int) -> None:
        """Accept an address that looked wrong, if the tensor has no elements.

        Raises
        ------
        ArgumentValueError
            If it has.
        """
        if tensor.numel() == 0:
            return
        if not address:
            raise ArgumentTypeError(name, "a tensor with a null address", "a tensor in memory")
        raise support.alignment_error(name, address, alignment)

    def check_output(self, name: str, tensor: Any, wanted: OutputWanted) -> None:
        """Accept a tensor that the caller gives for an output.

        Raises
        ------
        ArgumentError
            If it does not fit; the output is named.
        """
        shape, kind, alignment, device = wanted
        elsewhere = isinstance(tensor, self.tensor_type) and not self.runtime.presents_device(tensor)
        if elsewhere:
            raise ArgumentValueError(name, f"a tensor on {tensor.device}", f"CUDA device {device}")
        self.check_tensor(name, tensor)
        if tensor.dtype is not kind:
            raise support.dtype_error(name, tensor, str(kind).removeprefix("torch."))
        if tensor.dim() != len(shape):
            raise support.rank_error(name, tensor, len(shape))
        for axis, (got, extent) in enumerate(zip(tensor.shape, shape, strict=True)):
            if got != extent:
                raise support.extent_error(name, axis, got, extent, str(extent))
        if tensor.get_device() != device:
            raise ArgumentValueError(name, f"a tensor on {tensor.device}", f"CUDA device {device}")
        if not tensor.is_contiguous():
            raise support.layout_error(name, tensor)
        address = tensor.data_ptr()
        if not address or address % alignment:
            self.check_pointer(name, tensor, address, alignment)


OutputWanted = tuple[tuple[int, ...], Any, int, int]
"""Shape, element type, alignment in bytes, device."""
