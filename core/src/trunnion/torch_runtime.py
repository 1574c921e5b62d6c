"""`TorchRuntime`: torch's CUDA tensors, as a launcher sees them. Only this module of core imports torch by itself."""

from __future__ import annotations

import ctypes
import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from trunnion.arguments import unallocatable
from trunnion.call_helper import HelpedRuntime, installed_helper
from trunnion.errors import ArgumentTypeError, ArgumentValueError, BackendUnavailableError, CaptureError
from trunnion.messages import type_name
from trunnion.model.interval import INT64_MAX
from trunnion.plain import is_a, is_exactly

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from trunnion.contract.call_helper import CallHelper
    from trunnion.contract.runtime import Runtime
    from trunnion.model.dtypes import DType

__all__ = ["HostRuntime", "TorchRuntime", "default_runtime"]

_LEGACY, _PER_THREAD = 1, 2  # CU_STREAM_LEGACY, which 0 is too, and CU_STREAM_PER_THREAD


class TorchRuntime(HelpedRuntime):
    """torch, on real devices.

    Parameters
    ----------
    find_helper
        Returns the call helper that launchers are to use, or None; called when one is first wanted.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed.
    """

    def __init__(self, find_helper: Callable[[], CallHelper | None] = installed_helper) -> None:
        super().__init__(find_helper)
        try:
            import torch  # noqa: PLC0415 - importing trunnion must not import torch
        except ImportError as error:
            raise BackendUnavailableError("torch", "", "it is not installed; pip install torch") from error
        self._torch = torch
        self.tensor_type: type = torch.Tensor
        self.strided: Any = torch.strided
        self.only_device: int | None = None
        self.exchanged_types: tuple[type, type] = (torch.Tensor, torch.nn.Parameter)
        self.stream_type: type = torch.cuda.Stream
        # What torch's own launchers call; a CPU build lacks it.
        raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - no public name
        self._built_with_cuda = raw is not None
        self._raw_stream = raw or self.current_stream
        self._guards = _tensor_guards(torch)
        self._strided_on_current = _allocator(torch, "cuda")
        self._several: bool | None = None

    def dtype(self, dtype: DType) -> Any:
        """Return torch's object for an element type; see `DType.in_torch`."""
        return dtype.in_torch(self._torch)

    def current_stream(self, device: int) -> int:
        """Return the handle of torch's current stream of a device; the legacy stream's if torch has no streams."""
        if not self._built_with_cuda:
            return 0
        return int(self._torch.cuda.current_stream(device).cuda_stream)

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return torch's own getter, which makes no stream object on the way."""
        return self._raw_stream

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        """Return an uninitialised tensor, allocated under ``stream``; see `Runtime.allocate`.

        Raises
        ------
        ArgumentTypeError
            If torch is in a mode in which it allocates no memory.
        CaptureError
            If the stream is being captured, and torch has no memory at hand.
        BackendUnavailableError
            If torch was built without CUDA.
        """
        try:
            if stream == self._raw_stream(device):
                return self._on_current_stream(shape, dtype, device)
            return self._on_stream(shape, dtype, device, stream)
        except ArgumentTypeError:
            raise
        except (RuntimeError, OverflowError, TypeError, AssertionError) as error:
            self._explain(error, shape, dtype, device, stream)
            raise

    def quick_allocator(self) -> Callable[[tuple[int, ...], tuple[int, ...], Any], Any] | None:
        """Return what torch's compiler allocates with, if there is one device; see `Runtime.quick_allocator`."""
        return None if self._has_several() else self._strided_on_current

    def _has_several(self) -> bool:
        several = self._several
        if several is None:
            several = self._several = self._torch.cuda.device_count() > 1
        return several

    def _on_current_stream(self, shape: tuple[int, ...], dtype: Any, device: int) -> Any:
        quick = self._strided_on_current
        # It allocates on torch's current device; of several, only that one may be asked so.
        if quick is not None and (not self._has_several() or self._torch.cuda.current_device() == device):
            return quick(shape, _contiguous(shape), dtype)
        return self._empty(shape, dtype, device)

    def _on_stream(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        cuda: Any = self._torch.cuda  # torch's streams have no annotations
        if stream > _PER_THREAD:
            with cuda.stream(cuda.ExternalStream(stream, device=device)):
                return self._empty(shape, dtype, device)
        # To torch 1 is no handle, and 2 would be one stream, though it is another one in each thread. Both are ordered
        # with the legacy stream, which is torch's default stream.
        with cuda.stream(cuda.default_stream(device)):
            made = self._empty(shape, dtype, device)
        if stream == _PER_THREAD:
            # Another thread may be given the memory next, but not before this thread's stream is done with it.
            made.record_stream(cuda.ExternalStream(stream, device=device))
        return made

    def _empty(self, shape: tuple[int, ...], dtype: Any, device: int) -> Any:
        """Allocate by torch's public function, which the mode that torch is in may keep from allocating.

        Raises
        ------
        ArgumentTypeError
            If it did.
        """
        return self._real(self._torch.empty(shape, dtype=dtype, device=self._torch.device("cuda", device)))

    def _real(self, made: Any) -> Any:
        """Return what torch allocated, if it did.

        Raises
        ------
        ArgumentTypeError
            If it has no memory of its own.
        """
        try:
            kind: type = type(made)
            real = kind is self.tensor_type and (made.numel() == 0 or made.data_ptr() != 0)
        except RuntimeError:  # a tensor that will not say where it lies
            real = False
        if not real:
            raise ArgumentTypeError(
                "out",
                f"None, and torch allocates a {type_name(made)} without memory of its own",
                "a call outside of FakeTensorMode and its like",
            )
        return made

    def _explain(
        self, error: Exception, shape: tuple[int, ...], dtype: Any, device: int, stream: int
    ) -> None:
        # torch counts bytes in 64 bits, and says so in three ways; running out of memory is its own error.
        if math.prod(extent or 1 for extent in shape) * dtype.itemsize > INT64_MAX:
            raise unallocatable(shape) from error
        if is_a(error, self._torch.OutOfMemoryError):
            return
        if self._is_captured(device, stream):
            raise CaptureError(
                f"torch cannot allocate {shape} while the stream is being captured: "
                "capture inside of torch.cuda.graph, or pass out="
            ) from error
        if not self._built_with_cuda and is_exactly(
            error, AssertionError, RuntimeError
        ):  # as it answers anything
            reason = "it was built without CUDA; install a build with it"
            raise BackendUnavailableError("torch", "", reason) from error

    def _is_captured(self, device: int, stream: int) -> bool:
        """Whether a stream is being captured; torch asks of its current one."""
        cuda: Any = self._torch.cuda  # without annotations
        if not cuda.is_initialized():
            return False
        try:
            with cuda.stream(self._stream(device, stream)):
                return bool(cuda.is_current_stream_capturing())
        except (
            RuntimeError
        ):  # another stream's capture, on which the legacy one would wait; or a device that failed
            return False

    def _stream(self, device: int, stream: int) -> Any:
        cuda: Any = self._torch.cuda  # without annotations
        if stream in (0, _LEGACY):
            return cuda.default_stream(device)
        return cuda.ExternalStream(stream, device=device)

    def on_stream(self, device: int, stream: int) -> AbstractContextManager[None]:
        """Return a context in which a device, and that stream of it, are torch's current ones.

        Raises
        ------
        ArgumentValueError
            If the stream is the driver's 1 or 2: to torch these are no streams that could be current.
        """
        cuda: Any = self._torch.cuda  # without annotations
        entered: AbstractContextManager[None] = nullcontext()
        if stream == self._raw_stream(device):
            if cuda.current_device() != device:
                entered = cuda.device(device)
        elif stream in (_LEGACY, _PER_THREAD):
            expected = (
                "None, 0 or a stream's own handle: torch cannot make the driver's 1 and 2 its current stream"
            )
            raise ArgumentValueError("stream", str(stream), expected)
        else:
            entered = cuda.stream(self._stream(device, stream))
        return entered

    def memory_error(self, message: str) -> Exception:
        """Return torch's own error."""
        made: Exception = self._torch.OutOfMemoryError(message)
        return made

    def exchange_api(self) -> int:
        """Return the address of torch's ``DLPackExchangeAPI``; see `Runtime.exchange_api`."""
        capsule = getattr(self.tensor_type, "__dlpack_c_exchange_api__", None)
        if capsule is None:
            return 0
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        address = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dlpack_exchange_api")
        return int(address or 0)

    def guard(self, tensors: tuple[Any, ...]) -> Callable[..., bool] | None:
        """Return a guard of torch's own (`torch._dynamo` compiles with them); see `Runtime.guard`.

        Asked about a nested tensor it would end the process, because a C++ exception leaves it.
        """
        make = self._guards
        if make is None:
            return None
        sizes = [list(tensor.shape) for tensor in tensors]
        strides = [list(tensor.stride()) for tensor in tensors]
        guard: Callable[..., bool] = make(
            *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
        ).check
        return guard

    def reader(self, tensors: tuple[Any, ...]) -> Callable[..., tuple[int, ...] | None] | None:
        """Return the call helper's reader over torch's exchange API; see `Runtime.reader`."""
        return self._reader(self.exchange_api(), self.tensor_type, tensors)

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

    def room(self, tensor: Any) -> int:
        """Return the bytes from a tensor's first element to the end of its storage."""
        return int(tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size())


class HostRuntime(TorchRuntime):
    """torch, on the host: one device, ordinal 0, with no streams.

    Parameters
    ----------
    find_helper
        As `TorchRuntime` takes it.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed.
    """

    def __init__(self, find_helper: Callable[[], CallHelper | None] = installed_helper) -> None:
        super().__init__(find_helper)
        self.only_device = 0
        self._strided_on_current = _allocator(self._torch, "cpu")

    def current_stream(self, device: int) -> int:  # noqa: ARG002 - there is one
        """Return 0: the host has no streams."""
        return 0

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return `current_stream`."""
        return self.current_stream

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:  # noqa: ARG002 - as above
        """Return an uninitialised tensor in the host's memory; see `Runtime.allocate`.

        Raises
        ------
        ArgumentTypeError
            If torch is in a mode in which it allocates no memory.
        ArgumentValueError
            If no memory is that large.
        """
        try:
            made = self._torch.empty(shape, dtype=dtype, device="cpu")
        except (RuntimeError, OverflowError, TypeError) as error:
            if math.prod(extent or 1 for extent in shape) * dtype.itemsize > INT64_MAX:
                raise unallocatable(shape) from error
            raise
        return self._real(made)

    def quick_allocator(self) -> Callable[[tuple[int, ...], tuple[int, ...], Any], Any] | None:
        """Return what torch's compiler allocates with on the host."""
        quick: Callable[..., Any] | None = self._strided_on_current
        return quick

    def on_stream(self, device: int, stream: int) -> AbstractContextManager[None]:  # noqa: ARG002 - as above
        """Return a context that changes nothing."""
        return nullcontext()

    def presents_device(self, tensor: Any) -> bool:
        """Whether a tensor lies in the host's memory."""
        return bool(tensor.is_cpu)


def _tensor_guards(torch: Any) -> Any:
    """Return torch's class of tensor guards, if it is there and does what is wanted of it.

    It compares class, dispatch keys (which hold device type, layout, and lazy conjugates and negatives), element type,
    device, extents and strides. It has no public name, so it is tried out first.
    """
    try:
        make = torch._C._dynamo.guards.TensorGuards  # noqa: SLF001 - no public name
        first, other = torch.zeros(2, 3), torch.zeros(2, 3)
        guard = make(first, dynamic_dims_sizes=[[2, 3]], dynamic_dims_strides=[[3, 1]]).check
        others = (
            torch.zeros(3, 2),
            torch.zeros(2, 3, dtype=torch.float64),
            torch.zeros(3, 2).t(),
            torch.zeros(2, 3, device="meta"),
            torch._neg_view(first),  # noqa: SLF001 - no public name
            first.to_sparse(),
        )
        works = guard(other) is True and not any(guard(tensor) for tensor in others)
    except (AttributeError, TypeError, RuntimeError):
        return None
    return make if works else None


def _allocator(torch: Any, kind: str) -> Any:
    """Return what torch's compiler allocates with: a function of shape, strides and type; None if it has none."""
    try:
        return getattr(torch._C._dynamo.guards, f"_empty_strided_{kind}")  # noqa: SLF001 - no public name
    except AttributeError:
        return None


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return torch's strides of a new contiguous tensor."""
    if len(shape) == 1:
        return (1,)
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent or 1
    return tuple(reversed(strides))


def default_runtime(
    target_kind: str = "cuda", find_helper: Callable[[], CallHelper | None] = installed_helper
) -> Runtime:
    """Return the runtime of this process: for CUDA the simulator's if it runs, else torch's; for the CPU torch's.

    Parameters
    ----------
    target_kind
        The kind of device that is launched on. What runs on the CPU runs there beside a simulated GPU too.
    find_helper
        Returns the call helper that launchers are to use, or None: `trunnion.call_helper.no_helper` is one without.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed.
    """
    if target_kind == "cpu":
        return HostRuntime(find_helper)
    from trunnion import sim  # noqa: PLC0415 - only a launch needs it

    simulator = sim.active()
    if simulator is None:
        return TorchRuntime(find_helper)
    return simulator.runtime if find_helper is installed_helper else simulator.runtime_with(find_helper)
