"""The tensors of a call, torch's and everybody else's, as one sort of thing that can be checked and handed over.

A torch tensor is taken as it is. Any other array comes through DLPack (NumPy, CuPy, JAX, ``tvm_ffi.Tensor``): it is
described by its capsule, and becomes a ``tvm_ffi.Tensor``, for which no current stream is known.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.dlpack import CPU, CUDA
from trunnion.errors import BackendUnavailableError
from trunnion.launcher import refusals
from trunnion.messages import first_line, type_name
from trunnion.model.dtypes import DTYPES
from trunnion.model.plan import refusals as rows
from trunnion.plain import ForeignError, asked, is_a
from trunnion.torch_runtime import HostRuntime, default_runtime
from trunnion_tvm_ffi.foreign.dlpack import MAX_VERSION, Description, device_name, read_capsule
from trunnion_tvm_ffi.foreign.functions import import_capsule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.contract.runtime import Runtime
    from trunnion.errors import ArgumentTypeError
    from trunnion.model.dtypes import DType

__all__ = ["Arrays", "ForeignArray", "Purpose", "is_producer", "library_of", "placed"]

_BITS: Final = 8
_LEGACY: Final = 1  # what DLPack calls CUDA's stream 0
_UNORDERED: Final = -1  # DLPack: the producer need not wait for anything
_IMMUTABLE: Final = frozenset(
    {"jax", "jaxlib"}
)  # arrays that nobody may write, and whose capsules do not say so
_EXCHANGE = "__dlpack_c_exchange_api__"
_NAMES: Final = {row.dlpack: row.name for row in DTYPES.values()}
_REFUSALS = (BufferError, TypeError, ValueError, RuntimeError)
"""What arrays raise that do not let themselves be exported."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Who is to be given an array, and what for."""

    name: str
    """The parameter, for messages."""

    written: bool = False
    """Whether it is written."""

    stream: int | None = None
    """The stream that the caller named, on which it is used."""

    looks: bool = False
    """Whether nothing is done with its elements."""


@dataclass(frozen=True, slots=True)
class ForeignArray:
    """An array that is not torch's; it answers what a launcher asks of a tensor."""

    value: Any
    """What the caller passed."""

    handed: Any
    """What a function is given for it."""

    facts: Description
    """What its capsule says."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return self.facts.shape

    @property
    def dtype(self) -> str:
        """The element type's name, or what DLPack says if it has none here."""
        return _NAMES.get(self.facts.dtype, f"DLPack type {self.facts.dtype}")

    def stride(self) -> tuple[int, ...]:
        """Return the elements between neighbours along each dimension."""
        return self.facts.strides

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.facts.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.facts.shape)

    def element_size(self) -> int:
        """Return the bytes of one element."""
        _, bits, lanes = self.facts.dtype
        return (bits * lanes + _BITS - 1) // _BITS

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self.facts.address

    def is_contiguous(self) -> bool:
        """Whether it is row-major without gaps; extents of 1 do not care."""
        step = 1
        for extent, stride in zip(reversed(self.facts.shape), reversed(self.facts.strides), strict=True):
            if extent != 1 and stride != step:
                return not self.numel()
            step *= extent
        return True


class Arrays:
    """How the arrays of calls are read in this process."""

    def __init__(self) -> None:
        try:
            runtime: Runtime | None = default_runtime()
        except BackendUnavailableError:  # then no argument is torch's
            runtime = None
        self._runtime = runtime
        self._host = None if runtime is None else HostRuntime()
        self._torch: type = type(None) if runtime is None else runtime.tensor_type
        self._process = 0

    @property
    def runtime(self) -> Runtime:
        """The tensor library on CUDA devices: torch, or the simulator.

        Raises
        ------
        BackendUnavailableError
            If torch is not installed.
        """
        return default_runtime() if self._runtime is None else self._runtime

    @property
    def host(self) -> Runtime:
        """The tensor library on the host.

        Raises
        ------
        BackendUnavailableError
            If torch is not installed.
        """
        return HostRuntime() if self._host is None else self._host

    def of_device(self, device: tuple[int, int]) -> Runtime:
        """Return the tensor library's side of a device."""
        return self.host if device[0] == CPU else self.runtime

    @property
    def byte(self) -> Any:
        """Torch's object for bytes."""
        return self.host.dtype(DTYPES["uint8"])

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is to be called in place of a call; see `Runtime.guarded`."""
        return call if self._runtime is None else self._runtime.guarded(call)

    def check_process(self, device: tuple[int, int] | None) -> None:
        """Refuse to use a CUDA device in a process that forked since one was used: a context does not survive that.

        Raises
        ------
        LifecycleError
            If it did.
        """
        if device is None or device[0] != CUDA:
            return
        self._process = self._process or os.getpid()
        if self._process != os.getpid():
            raise rows.FORKED_MODULE()

    def is_torch(self, value: Any) -> bool:
        """Whether something is a torch tensor."""
        return self._runtime is not None and is_a(value, self._torch)

    def read(self, value: Any, purpose: Purpose) -> Any:
        """Return a torch tensor that has memory behind it, or a `ForeignArray`.

        Raises
        ------
        ArgumentTypeError
            If it is no array, or one without memory of its own.
        ArgumentValueError
            If it is read-only and would be written, lies where nothing is launched, or needs a stream that the caller
            did not name.
        """
        if not self.is_torch(value):
            return self._foreign(value, purpose)
        runtime = self._home(value)
        if runtime is None:
            raise rows.NO_PLACE(purpose.name, "a tensor", value.device)
        if not runtime.has_storage(value):
            raise rows.NO_MEMORY(purpose.name, type_name(value))
        return value

    def device_of(self, array: Any) -> tuple[int, int]:
        """Return DLPack's device type and the ordinal of what `read` returned, or of any torch tensor."""
        if type(array) is ForeignArray:
            return array.facts.device
        home = self._home(array)
        if home is self._host:
            return CPU, 0
        return (0, 0) if home is None else (CUDA, array.get_device())

    def _home(self, tensor: Any) -> Runtime | None:
        """Return the tensor library's side of a torch tensor's device; None if nothing is launched there."""
        for runtime in (self._host, self._runtime):
            if runtime is not None and runtime.presents_device(tensor):
                return runtime
        return None

    def check_type(self, name: str, array: Any, dtype: DType) -> None:
        """Accept an array of an element type.

        Raises
        ------
        ArgumentTypeError
            If it is of another one.
        """
        if type(array) is ForeignArray:
            same = array.facts.dtype == dtype.dlpack
        else:
            same = array.dtype is self.host.dtype(dtype)
        if not same:
            raise refusals.dtype_error(name, array, dtype.name)

    def room(self, array: Any, device: tuple[int, int]) -> int | None:
        """Return the bytes from an array's first element to the end of its storage; None: nobody knows."""
        return None if type(array) is ForeignArray else self.of_device(device).room(array)

    # Arrays of others ------------------------------------------------------------------------------------------

    def _foreign(self, value: Any, purpose: Purpose) -> ForeignArray:
        if not is_producer(value):
            raise rows.NO_TENSOR(purpose.name, type_name(value))
        knows, arguments = _stream_arguments(value, placed(value, purpose.name), purpose)
        try:
            capsule = _export(value, arguments)
            facts = read_capsule(capsule)
            handed = value if knows else import_capsule(capsule)
        except _REFUSALS as error:
            raise _unexportable(value, purpose.name, error) from error
        _check_writing(value, facts, purpose)
        return ForeignArray(value, handed, facts)


def is_producer(value: Any) -> bool:
    """Whether something exports itself through DLPack, the protocol of arrays."""
    if is_a(value, type):
        return False
    try:
        return asked(lambda: hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"))
    except ForeignError:
        return False


def placed(value: Any, name: str) -> tuple[int, int]:
    """Return DLPack's device type and the ordinal of an array of any library.

    Raises
    ------
    ArgumentTypeError
        If it does not say; the argument is called ``name``.
    """
    try:
        kind, ordinal = value.__dlpack_device__()
        return int(kind), int(ordinal)
    except _REFUSALS as error:
        raise _unexportable(value, name, error) from error


def _unexportable(value: Any, name: str, error: Exception) -> ArgumentTypeError:
    return rows.UNEXPORTABLE(name, type_name(value), first_line(error))


def library_of(array: Any) -> int | None:
    """Return what tells apart the libraries whose current stream TVM-FFI takes; None if it takes none of this one.

    Parameters
    ----------
    array
        Anything that a function is handed.
    """
    exchange = getattr(type(array), _EXCHANGE, None)
    return None if exchange is None else id(exchange)


def _stream_arguments(
    value: Any, device: tuple[int, int], purpose: Purpose
) -> tuple[bool, Mapping[str, int]]:
    """Return whether TVM-FFI asks the library for its stream, and what ``__dlpack__`` is told about streams.

    Raises
    ------
    ArgumentValueError
        If nobody knows the stream, or nothing is launched on such a device.
    """
    if device[0] == CPU:
        return False, {}
    if device[0] != CUDA:
        raise rows.NO_PLACE(purpose.name, type_name(value), device_name(device))
    if purpose.stream is not None:
        return False, {"stream": purpose.stream or _LEGACY}
    if purpose.looks or library_of(value) is not None:
        return True, {"stream": _UNORDERED}
    raise rows.UNKNOWN_STREAM(type_name(value), purpose.name)


def _export(value: Any, arguments: Mapping[str, int]) -> Any:
    """Return the capsule of an array, over its own memory; older producers do not know all that can be said."""
    for extra in ({"max_version": MAX_VERSION, "copy": False}, {"max_version": MAX_VERSION}):
        try:
            return value.__dlpack__(**arguments, **extra)
        except TypeError:
            continue
    return value.__dlpack__(**arguments)


def _check_writing(value: Any, facts: Description, purpose: Purpose) -> None:
    if not purpose.written:
        return
    root = type(value).__module__.partition(".")[0]
    reasons = (
        (root in _IMMUTABLE, f"{type_name(value)} of {root}, whose arrays never change"),
        (facts.read_only, f"a read-only {type_name(value)}"),
        (facts.copied, f"{type_name(value)} that exports a copy"),
    )
    for wrong, got in reasons:
        if wrong:
            raise rows.UNWRITABLE(purpose.name, got)
