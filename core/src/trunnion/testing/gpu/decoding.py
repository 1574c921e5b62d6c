"""Driver calls as events of a trace: the same ones that the simulated driver records.

The arguments of a call lie in a structure in their order (``generated_cuda_meta.h`` of CUPTI).
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.plan.launch_plan import TENSOR_MAP_ALIGNMENT
from trunnion.sim.abi import (
    TENSOR_MAP_BYTES,
    AccessPolicyWindowStruct,
    LaunchAttributeId,
    LaunchAttributeStruct,
    LaunchConfigStruct,
)
from trunnion.sim.launch_attributes import WindowAttribute, check_window, decode_attributes
from trunnion.sim.status import Refusal, Status
from trunnion.sim.tensormap import (
    Im2colRequest,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
    encode,
)
from trunnion.sim.trace import (
    CallRefused,
    Launched,
    LimitSet,
    MemoryCopied,
    MemorySet,
    PersistingLinesReset,
    StreamAttributeSet,
    Synchronized,
    TensorMapEncoded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.sim.trace import Event
    from trunnion.testing.gpu.cupti import DriverCall

__all__ = ["NAMES", "Decoder"]

_PER_THREAD: Final = 2
_ORDINARY: Final = "QBQQ", "QHQQ", "QIQQ"
_PITCHED: Final = "QQBQQQ", "QQHQQQ", "QQIQQQ"
_TILED: Final = "QiIQQQQQiiii"
_IM2COL: Final = "QiIQQQQQIIQiiii"


class Decoder:
    """Makes events of driver calls.

    Parameters
    ----------
    sizes
        Returns the sizes of a probe's parameters in bytes by ordinal, by its symbol; None for any other kernel.
    device
        What the limits of launch attributes are asked of: `trunnion.sim.devices.Device.attribute` is enough of it.
    driver_version
        The driver's CUDA version.
    """

    def __init__(
        self, sizes: Callable[[str], Sequence[int] | None], device: Any, driver_version: int
    ) -> None:
        self._sizes, self._device, self._version = sizes, device, driver_version
        self._maps: dict[bytes, bytes] = {}
        self._windows: dict[int, WindowAttribute] = {}
        self.variables: dict[tuple[str, int], int] = {}
        """Where a module variable of an exact name lies on a device, as the driver said it last."""
        self.given: list[tuple[Launched, tuple[bytes, ...]]] = []
        """Each launch, and the parameters that it was given; in the event, maps are as the simulator writes them."""

    def event(self, call: DriverCall) -> Event | None:
        """Return what a call did; None if that is none of a launcher's business, such as a launch of torch's."""
        make, layout = _CALLS[call.name]
        arguments = struct.unpack(layout, ctypes.string_at(call.arguments, struct.calcsize(layout)))
        try:
            event: Event | None = make(self, call, *arguments)
        except Refusal as refusal:
            if call.status:
                return CallRefused(call.name, _status(call.status), str(refusal))
            raise AssertionError(f"{call.name} succeeded, although {refusal}") from refusal
        if call.status and event is not None:
            return CallRefused(call.name, _status(call.status), f"the driver refused {event}")
        return event

    def _stream(self, call: DriverCall, handle: int) -> int:
        return _PER_THREAD if call.per_thread and not handle else handle

    # Launches ---------------------------------------------------------------------------------------------------

    def launch_ex(self, call: DriverCall, config: int, _: int, parameters: int, extra: int) -> Event | None:
        """``cuLaunchKernelEx``."""
        raw = LaunchConfigStruct.from_address(config)
        attributes = (LaunchAttributeStruct * raw.numAttrs).from_address(raw.attrs) if raw.numAttrs else ()
        grid = raw.gridDimX, raw.gridDimY, raw.gridDimZ
        block = raw.blockDimX, raw.blockDimY, raw.blockDimZ
        geometry = grid, block, raw.sharedMemBytes, raw.hStream or 0
        return self._launched(call, geometry, (parameters, extra), tuple(attributes))

    def launch(self, call: DriverCall, _: int, *rest: int) -> Event | None:
        """``cuLaunchKernel``."""
        geometry = rest[0:3], rest[3:6], rest[6], rest[7]
        return self._launched(call, geometry, (rest[8], rest[9]), ())

    def _launched(
        self, call: DriverCall, geometry: Any, given: tuple[int, int], raw: Sequence[LaunchAttributeStruct]
    ) -> Event | None:
        sizes = self._sizes(call.symbol)
        if sizes is None:
            return None
        grid, block, smem, handle = geometry
        attributes = decode_attributes(raw, self._device, self._version)
        parameters = _parameters(given, sizes)
        stream = self._stream(call, handle)
        window = attributes.window or self._windows.get(stream)
        event = Launched(
            kernel=call.symbol,
            library=0,
            device=call.device,
            stream=stream,
            grid=tuple(grid),
            block=tuple(block),
            cluster=attributes.cluster,
            dynamic_smem_bytes=smem,
            parameters=tuple(map(self._simulated, parameters)),
            attributes=attributes,
            window=window if window is not None and window.nbytes else None,
            priority=attributes.priority or 0,
        )
        if not call.status:
            self.given.append((event, parameters))
        return event

    # Tensor maps ------------------------------------------------------------------------------------------------

    def _simulated(self, data: bytes) -> bytes:
        """Return a parameter with each map, the fields of a struct included, as the simulator would have written it."""
        shown = bytearray(data)
        for start in range(0, len(data) - TENSOR_MAP_BYTES + 1, TENSOR_MAP_ALIGNMENT):
            known = self._maps.get(data[start : start + TENSOR_MAP_BYTES])
            if known is not None:
                shown[start : start + TENSOR_MAP_BYTES] = known
        return bytes(shown)

    def encode_tiled(self, call: DriverCall, to: int, *given: int) -> Event:
        """``cuTensorMapEncodeTiled``."""
        kind, rank, address, dims, strides, box, steps, *modes = given
        request = TiledRequest(
            **_common(kind, rank, address, (dims, strides, steps), modes),
            box=_array(ctypes.c_uint32, box, rank),
        )
        return self._encoded(call, to, request)

    def encode_im2col(self, call: DriverCall, to: int, *given: int) -> Event:
        """``cuTensorMapEncodeIm2col``."""
        kind, rank, address, dims, strides, lower, upper, channels, pixels, steps, *modes = given
        request = Im2colRequest(
            **_common(kind, rank, address, (dims, strides, steps), modes),
            lower=_array(ctypes.c_int32, lower, rank - 2),
            upper=_array(ctypes.c_int32, upper, rank - 2),
            channels=channels,
            pixels=pixels,
        )
        return self._encoded(call, to, request)

    def _encoded(self, call: DriverCall, to: int, request: TiledRequest | Im2colRequest) -> Event:
        """Remember what the driver made of a request: a launch shows it as the simulator would have written it."""
        if not call.status:
            self._maps[ctypes.string_at(to, TENSOR_MAP_BYTES)] = encode(request)
        return TensorMapEncoded(request)

    # Memory, streams, limits ------------------------------------------------------------------------------------

    def fill(self, call: DriverCall, address: int, value: int, count: int, handle: int) -> Event:
        """``cuMemsetD8Async`` and its kin."""
        return MemorySet(address, value, _ITEMSIZE[call.name], count, call.device, self._stream(call, handle))

    def fill_pitched(  # noqa: PLR0913, PLR0917 - the driver's own parameters
        self, call: DriverCall, address: int, pitch: int, value: int, width: int, height: int, handle: int
    ) -> Event:
        """``cuMemsetD2D8Async`` and its kin."""
        stream = self._stream(call, handle)
        size = _ITEMSIZE[call.name]
        return MemorySet(address, value, size, width, call.device, stream, rows=height, pitch=pitch)

    def copy(self, call: DriverCall, target: int, source: int, nbytes: int, handle: int) -> Event:
        """``cuMemcpyDtoDAsync``."""
        return MemoryCopied(source, target, nbytes, "DtoD", call.device, self._stream(call, handle))

    def variable(self, call: DriverCall, result: int, _size: int, _library: int, name: int) -> None:
        """``cuLibraryGetGlobal``: no event, but what addresses mean."""
        if not call.status and result:
            symbol = ctypes.string_at(name).decode()
            self.variables[symbol, call.device] = ctypes.c_uint64.from_address(result).value

    def stream_attribute(self, call: DriverCall, handle: int, attribute: int, value: int) -> Event | None:
        """``cuStreamSetAttribute``."""
        if attribute != LaunchAttributeId.ACCESS_POLICY_WINDOW:
            return None
        window = check_window(AccessPolicyWindowStruct.from_address(value), self._device)
        stream = self._stream(call, handle)
        if not call.status:
            self._windows[stream] = window
        return StreamAttributeSet(attribute, window, call.device, stream)

    def limit(self, call: DriverCall, limit: int, value: int) -> Event:
        """``cuCtxSetLimit``."""
        return LimitSet(limit, value, value, call.device)

    def reset(self, call: DriverCall) -> Event:
        """``cuCtxResetPersistingL2Cache``."""
        return PersistingLinesReset(call.device)

    def synchronize(self, call: DriverCall, handle: int) -> Event:
        """``cuStreamSynchronize``."""
        return Synchronized(call.device, self._stream(call, handle))


_CALLS: Final[Mapping[str, tuple[Callable[..., Any], str]]] = {
    "cuLaunchKernelEx": (Decoder.launch_ex, "QQQQ"),
    "cuLaunchKernel": (Decoder.launch, "QIIIIIIIQQQ"),
    "cuTensorMapEncodeTiled": (Decoder.encode_tiled, _TILED),
    "cuTensorMapEncodeIm2col": (Decoder.encode_im2col, _IM2COL),
    **{f"cuMemsetD{8 << i}Async": (Decoder.fill, code) for i, code in enumerate(_ORDINARY)},
    **{f"cuMemsetD2D{8 << i}Async": (Decoder.fill_pitched, code) for i, code in enumerate(_PITCHED)},
    "cuMemcpyDtoDAsync": (Decoder.copy, "QQQQ"),
    "cuLibraryGetGlobal": (Decoder.variable, "QQQQ"),
    "cuStreamSetAttribute": (Decoder.stream_attribute, "QiQ"),
    "cuCtxSetLimit": (Decoder.limit, "iQ"),
    "cuCtxResetPersistingL2Cache": (Decoder.reset, ""),
    "cuStreamSynchronize": (Decoder.synchronize, "Q"),
}
_ITEMSIZE: Final = {f"cuMemset{rows}D{8 << i}Async": 1 << i for rows in ("", "D2") for i in range(3)}
NAMES: Final = tuple(_CALLS)
"""The driver calls of which events are made."""


def _status(number: int) -> Status:
    return Status(number) if number in tuple(Status) else Status.UNKNOWN


def _array(kind: Any, address: int, count: int) -> tuple[int, ...]:
    return tuple((kind * count).from_address(address)) if count else ()


def _common(
    kind: int, rank: int, address: int, arrays: tuple[int, int, int], modes: Sequence[int]
) -> dict[str, Any]:
    dims, strides, steps = arrays
    interleave, swizzle, promotion, fill = modes
    return {
        "address": address,
        "data_type": TensorMapDataType(kind),
        "dims": _array(ctypes.c_uint64, dims, rank),
        "strides": _array(ctypes.c_uint64, strides, rank - 1),
        "element_strides": _array(ctypes.c_uint32, steps, rank),
        "interleave": Interleave(interleave),
        "swizzle": Swizzle(swizzle),
        "l2_promotion": L2Promotion(promotion),
        "oob_fill": OobFill(fill),
    }


def _parameters(given: tuple[int, int], sizes: Sequence[int]) -> tuple[bytes, ...]:
    pointers, extra = given
    if extra:
        raise AssertionError("a launch by CU_LAUNCH_PARAM_BUFFER_POINTER cannot be read here")
    addresses = _array(ctypes.c_uint64, pointers, len(sizes))
    return tuple(ctypes.string_at(address, size) for address, size in zip(addresses, sizes, strict=True))
