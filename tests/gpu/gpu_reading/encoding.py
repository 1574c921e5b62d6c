"""What the installed driver says to a request for a tensor map.

Through ctypes, because that takes every number: bindings with enumerations refuse some before the driver sees them.
Source: CUDA Driver API, "Tensor Map Object Managment".
"""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_int32, c_uint32, c_uint64, c_void_p

from trunnion.model.tensormap.rules import Im2colFields, TiledFields

_TILED = [c_void_p, c_int, c_uint32, c_uint64, *[c_void_p] * 4, *[c_int] * 4]
_IM2COL = [c_void_p, c_int, c_uint32, c_uint64, *[c_void_p] * 4, c_uint32, c_uint32, c_void_p, *[c_int] * 4]
_INVALID_VALUE = 1
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76


def _array(kind, values):
    return (kind * max(len(values), 1))(*values)


class Driver:
    """The driver of this machine, with device 0's primary context current."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._check(self._cuda.cuInit(0))
        device, context = c_int(), c_void_p()
        self._check(self._cuda.cuDeviceGet(ctypes.byref(device), 0))
        self._check(self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self._check(self._cuda.cuCtxSetCurrent(context))
        self._cuda.cuTensorMapEncodeTiled.argtypes = _TILED
        self._cuda.cuTensorMapEncodeIm2col.argtypes = _IM2COL
        self._buffer = ctypes.create_string_buffer(192)
        self._map = -(-ctypes.addressof(self._buffer) // 64) * 64
        self.compute_capability = (
            self._attribute(device, _CAPABILITY_MAJOR),
            self._attribute(device, _CAPABILITY_MINOR),
        )
        version = c_int()
        self._check(self._cuda.cuDriverGetVersion(ctypes.byref(version)))
        self.version = version.value

    def accepts(self, fields: TiledFields | Im2colFields, l2_promotion: int = 0) -> bool:
        """Whether the driver encodes a request."""
        rank = len(fields.dims)
        start = (self._map, fields.data_type, rank, fields.address)
        layout = (_array(c_uint64, fields.dims), _array(c_uint64, fields.strides))
        steps = _array(c_uint32, fields.element_strides)
        modes = (fields.interleave, fields.swizzle, l2_promotion, fields.oob_fill)
        if isinstance(fields, TiledFields):
            box = _array(c_uint32, fields.box)
            status = self._cuda.cuTensorMapEncodeTiled(*start, *layout, box, steps, *modes)
        else:
            corners = (_array(c_int32, fields.lower), _array(c_int32, fields.upper))
            column = (fields.channels_per_pixel, fields.pixels_per_column)
            status = self._cuda.cuTensorMapEncodeIm2col(*start, *layout, *corners, *column, steps, *modes)
        assert status in (0, _INVALID_VALUE), (status, fields)
        return status == 0

    def _attribute(self, device: c_int, number: int) -> int:
        value = c_int()
        self._check(self._cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device))
        return value.value

    @staticmethod
    def _check(status: int) -> None:
        assert status == 0, status
