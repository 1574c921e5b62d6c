"""DLPack's C exchange API for simulated tensors: the device, the stream and the allocator that native code gets.

Source: dlpack.h, ``DLPackExchangeAPI``. Torch's own functions do the work on the host tensor behind; the
device is changed on the way out and on the way in.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import torch

from trunnion.dlpack import CPU, CUDA, Device, Tensor, Versioned, address_in
from trunnion.errors import DeviceRequirementError, LifecycleError
from trunnion.sim import active

__all__ = ["Exchange"]

_CAPSULE_NAME: Final = ctypes.create_string_buffer(b"dlpack_exchange_api")
_FAILED: Final = -1


_ManagedPointer: Final = ctypes.POINTER(Versioned)


class _Api(ctypes.Structure):  # DLPackExchangeAPIHeader, then DLPackExchangeAPI's functions
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("view_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    )


_INT: Final = ctypes.c_int
_ALLOCATE: Final = (
    _INT,
    ctypes.POINTER(Tensor),
    ctypes.POINTER(_ManagedPointer),
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_FROM: Final = (_INT, ctypes.c_void_p, ctypes.POINTER(_ManagedPointer))
_VIEW: Final = (_INT, ctypes.c_void_p, ctypes.POINTER(Tensor))
_TO: Final = (_INT, _ManagedPointer, ctypes.POINTER(ctypes.c_void_p))
_STREAM: Final = (_INT, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
_SET_ERROR: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


def _host_api() -> _Api:
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise DeviceRequirementError(
            "a torch with DLPack's C exchange API (2.10 or later)", torch.__version__, "upgrade torch"
        )
    return _Api.from_address(address_in(capsule, _CAPSULE_NAME.value))


class Exchange:
    """The functions of the API, and torch's functions that they call.

    Native code keeps the table's address: an exchange, once shown to it, must live as long as the process.

    Raises
    ------
    DeviceRequirementError
        If torch has no exchange API.
    """

    def __init__(self) -> None:
        host = _host_api()
        self._host_from = ctypes.PYFUNCTYPE(*_FROM)(host.from_object)
        self._host_view = ctypes.PYFUNCTYPE(*_VIEW)(host.view_object)
        self._host_to = ctypes.PYFUNCTYPE(*_TO)(host.to_object)
        self._increment = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
        self._decrement = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))
        # Native code calls these without a way for an exception: each is guarded. Without the GIL, hence
        # CFUNCTYPE.
        self._callbacks = (
            ctypes.CFUNCTYPE(*_ALLOCATE)(self.allocate),
            ctypes.CFUNCTYPE(*_FROM)(self.from_object),
            ctypes.CFUNCTYPE(*_TO)(self.to_object),
            ctypes.CFUNCTYPE(*_STREAM)(self.current_stream),
            ctypes.CFUNCTYPE(*_VIEW)(self.view_object),
        )
        allocate, export, import_, stream, view = (
            ctypes.cast(callback, ctypes.c_void_p).value for callback in self._callbacks
        )
        # No view_object, which the format leaves free: consumers fall back to from_object.
        self._table = _Api(host.major, host.minor, None, allocate, export, import_, None, stream)
        self._viewing = _Api(host.major, host.minor, None, allocate, export, import_, view, stream)

    def capsule(self) -> Any:
        """Return a new capsule around the table, for ``__dlpack_c_exchange_api__``."""
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        table, name = ctypes.addressof(self._table), ctypes.addressof(_CAPSULE_NAME)
        return new(("PyCapsule_New", ctypes.pythonapi))(table, name, None)

    def from_object(self, tensor: int, out: Any) -> int:
        """Export a tensor, as one of its device."""
        return self._guarded(self._from_object, tensor, out)

    def _from_object(self, tensor: int, out: Any) -> int:
        ordinal = ctypes.cast(tensor, ctypes.py_object).value.get_device()
        status = self._host_from(tensor, out)
        if status == 0:
            out[0].contents.tensor.device = Device(CUDA, ordinal)
        return int(status)

    def viewing_api(self) -> int:
        """Return the address of the table with `view_object`.

        That refuses without an exception, because a callback through ctypes can raise none: it is for a consumer that
        asks in another way then.
        """
        return ctypes.addressof(self._viewing)

    def view_object(self, tensor: int, out: Any) -> int:
        """Show where a tensor lies, as one of its device; what has no memory there is not shown."""
        return self._guarded(self._view_object, tensor, out)

    def _view_object(self, tensor: int, out: Any) -> int:
        found, simulator = ctypes.cast(tensor, ctypes.py_object).value, active()
        try:
            status = int(self._host_view(tensor, out))
        except (RuntimeError, BufferError):
            return _FAILED
        view = out.contents
        place = simulator.memory.find(view.data) if simulator and view.data else None
        if found.numel() and (place is None or place.device != found.get_device()):
            return _FAILED
        view.device = Device(CUDA, found.get_device())
        return status

    def to_object(self, managed: Any, out: Any) -> int:
        """Import a tensor that was exported from a simulated device."""
        return self._guarded(self._to_object, managed, out)

    def _to_object(self, managed: Any, out: Any) -> int:
        from trunnion.sim.tensor import _wrap  # noqa: PLC0415 - that module imports this one

        ordinal = managed.contents.tensor.device.id
        managed.contents.tensor.device = Device(CPU, 0)
        status = self._host_to(managed, out)
        if status != 0:
            return int(status)
        plain = ctypes.cast(out[0], ctypes.py_object).value
        wrapped = _wrap(plain, ordinal)
        self._increment(wrapped)  # the caller takes over a reference to what is returned,
        self._decrement(plain)  # and nobody the one that torch returned
        out[0] = id(wrapped)
        return 0

    def allocate(self, prototype: Any, out: Any, context: int | None, set_error: int | None) -> int:
        """Allocate a tensor for native code."""
        status = self._guarded(self._allocate, prototype, out)
        if status != 0 and set_error:
            _SET_ERROR(set_error)(context, b"RuntimeError", b"the simulated allocation failed")
        return status

    def _allocate(self, prototype: Any, out: Any) -> int:
        from trunnion.sim.allocation import allocate  # noqa: PLC0415 - that module needs this one

        simulator = active()
        if simulator is None:
            raise LifecycleError("no simulator runs in this process; call trunnion.sim.start()")
        wanted = prototype.contents
        kind = _torch_dtype((wanted.dtype.code, wanted.dtype.bits, wanted.dtype.lanes))
        shape = tuple(wanted.shape[axis] for axis in range(wanted.ndim))
        stream = simulator.state.current_stream(wanted.device.id)
        tensor = allocate(simulator, shape, kind, wanted.device.id, stream)
        return self._from_object(id(tensor), out)

    def current_stream(self, kind: int, ordinal: int, out: Any) -> int:
        """Return the calling thread's current stream of a device."""
        return self._guarded(self._current_stream, kind, ordinal, out)

    def _current_stream(self, kind: int, ordinal: int, out: Any) -> int:
        simulator = active()
        out[0] = simulator.state.current_stream(ordinal) if simulator and kind == CUDA else 0
        return 0

    def _guarded(self, function: Any, *arguments: Any) -> int:
        try:
            return int(function(*arguments))
        except BaseException as error:  # noqa: BLE001 - native code called this: nothing may pass through it
            simulator = active()
            if simulator is not None:
                simulator.keep_pending(error)
            return _FAILED


def _torch_dtype(dlpack: tuple[int, int, int]) -> torch.dtype:
    from trunnion.model.dtypes import DTYPES  # noqa: PLC0415 - needed by allocations only

    for row in DTYPES.values():
        if row.dlpack == dlpack:
            found: torch.dtype = getattr(torch, row.name)
            return found
    raise DeviceRequirementError("an element type that torch knows", f"DLPack (code, bits, lanes) {dlpack}")
