"""DLPack's C exchange API for simulated tensors: the device, the stream and the allocator that native code gets.

Source: dlpack.h, ``DLPackExchangeAPI``. Torch's own functions do the work on the host tensor behind; the
device is changed on the way out and on the way in.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import torch

from trunnion.dlpack import CPU, CUDA, Device, ExchangeApi, Tensor, Versioned, address_in
from trunnion.errors import DeviceRequirementError, LifecycleError
from trunnion.sim.process import running

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.sim.simulated_driver import SimulatedDriver

__all__ = ["Exchange"]

_CAPSULE_NAME: Final = ctypes.create_string_buffer(b"dlpack_exchange_api")
_FAILED: Final = -1


_ManagedPointer: Final = ctypes.POINTER(Versioned)


_INT: Final = ctypes.c_int
_FROM: Final = (_INT, ctypes.c_void_p, ctypes.POINTER(_ManagedPointer))
_VIEW: Final = (_INT, ctypes.c_void_p, ctypes.POINTER(Tensor))
_TO: Final = (_INT, _ManagedPointer, ctypes.POINTER(ctypes.c_void_p))


def _host_api() -> ExchangeApi:
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise DeviceRequirementError(
            "a torch with DLPack's C exchange API (2.10 or later)", torch.__version__, "upgrade torch"
        )
    return ExchangeApi.from_address(address_in(capsule, _CAPSULE_NAME.value))


class Exchange:
    """The functions of the API, and torch's functions that they call.

    Native code keeps the table's address: an exchange, once shown to it, must live as long as the process.

    Parameters
    ----------
    wrap
        Returns a tensor of torch's, over device memory, as one of a device: called with the two.
    allocate
        Allocates a tensor for a launcher: called with a simulator, shape, element type, device and stream.

    Raises
    ------
    DeviceRequirementError
        If torch has no exchange API.
    """

    def __init__(
        self, wrap: Callable[[Any, int], torch.Tensor], allocate: Callable[..., torch.Tensor]
    ) -> None:
        self._wrap, self._allocate = wrap, allocate
        host = _host_api()
        self._host_from = ctypes.PYFUNCTYPE(*_FROM)(host.from_object)
        self._host_view = ctypes.PYFUNCTYPE(*_VIEW)(host.view_object)
        self._host_to = ctypes.PYFUNCTYPE(*_TO)(host.to_object)
        self._increment = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
        self._decrement = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))
        # No view_object, which the format leaves free: consumers fall back to from_object.
        self._table = ExchangeApi(host.major, host.minor)
        self._viewing = ExchangeApi(host.major, host.minor)
        simulator = running()
        if simulator is not None:
            self.connect(simulator)

    def connect(self, simulator: SimulatedDriver) -> None:
        """Let the tables have functions, once a simulator runs: before that there is no tensor to be asked of."""
        shim = simulator.shim
        for entry in shim.exchange:
            shim.register(entry, getattr(self, entry.symbol))
            setattr(self._viewing, entry.symbol, entry.address)
        self._viewing.allocate = shim.allocator
        for name in ("allocate", "from_object", "to_object", "current_stream"):
            setattr(self._table, name, getattr(self._viewing, name))

    def capsule(self) -> Any:
        """Return a new capsule around the table, for ``__dlpack_c_exchange_api__``."""
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        table, name = ctypes.addressof(self._table), ctypes.addressof(_CAPSULE_NAME)
        return new(("PyCapsule_New", ctypes.pythonapi))(table, name, None)

    def viewing_api(self) -> int:
        """Return the address of the table with `view_object`.

        That refuses without an exception: it is for a consumer that asks in another way then.
        """
        return ctypes.addressof(self._viewing)

    # What native code calls: what one of these raises is pending, and the call returns an error -------------------

    def from_object(self, tensor: int, out: int) -> int:
        """Export a tensor, as one of its device."""
        ordinal = ctypes.cast(tensor, ctypes.py_object).value.get_device()
        made = _ManagedPointer.from_address(out)
        status = self._host_from(tensor, made)
        if status == 0:
            made.contents.tensor.device = Device(CUDA, ordinal)
        return int(status)

    def view_object(self, tensor: int, out: int) -> int:
        """Show where a tensor lies, as one of its device; what has no memory there is not shown."""
        found, simulator = ctypes.cast(tensor, ctypes.py_object).value, running()
        view = Tensor.from_address(out)
        try:
            status = int(self._host_view(tensor, view))
        except (RuntimeError, BufferError):
            return _FAILED
        place = simulator.memory.find(view.data) if simulator and view.data else None
        if found.numel() and (place is None or place.device != found.get_device()):
            return _FAILED
        view.device = Device(CUDA, found.get_device())
        return status

    def to_object(self, managed: int, out: int) -> int:
        """Import a tensor that was exported from a simulated device."""
        given, made = Versioned.from_address(managed), ctypes.c_void_p.from_address(out)
        ordinal = given.tensor.device.id
        given.tensor.device = Device(CPU, 0)
        status = self._host_to(given, made)
        if status != 0:
            return int(status)
        plain = ctypes.cast(made, ctypes.py_object).value
        wrapped = self._wrap(plain, ordinal)
        self._increment(wrapped)  # the caller takes over a reference to what is returned,
        self._decrement(plain)  # and nobody the one that torch returned
        made.value = id(wrapped)
        return 0

    def allocate(self, prototype: int, out: int) -> int:
        """Allocate a tensor for native code."""
        simulator = running()
        if simulator is None:
            raise LifecycleError("no simulator runs in this process; call trunnion.sim.start()")
        wanted = Tensor.from_address(prototype)
        kind = _torch_dtype((wanted.dtype.code, wanted.dtype.bits, wanted.dtype.lanes))
        shape = tuple(wanted.shape[axis] for axis in range(wanted.ndim))
        stream = simulator.state.current_stream(wanted.device.id)
        tensor = self._allocate(simulator, shape, kind, wanted.device.id, stream)
        return self.from_object(id(tensor), out)

    def current_stream(self, kind: int, ordinal: int, out: int) -> int:
        """Return the calling thread's current stream of a device."""
        simulator = running()
        found = simulator.state.current_stream(ordinal) if simulator and kind == CUDA else 0
        ctypes.c_void_p.from_address(out).value = found
        return 0


def _torch_dtype(dlpack: tuple[int, int, int]) -> torch.dtype:
    from trunnion.model.dtypes import DTYPES  # noqa: PLC0415 - needed by allocations only

    for row in DTYPES.values():
        if row.dlpack == dlpack:
            found: torch.dtype = getattr(torch, row.name)
            return found
    raise DeviceRequirementError("an element type that torch knows", f"DLPack (code, bits, lanes) {dlpack}")
