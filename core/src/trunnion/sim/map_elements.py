"""The elements of a tensor map, as host tensors hold them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from trunnion.errors import ArgumentValueError, UnsupportedFeatureError
from trunnion.model.dtypes import DTYPES, DType, dtype
from trunnion.sim.tensormap import Interleave, OobFill, TensorMapDataType

if TYPE_CHECKING:
    import torch

    from trunnion.sim.tensormap import Im2colRequest, TiledRequest

__all__ = ["element_type", "outside"]

_DTYPES: Final = {
    TensorMapDataType.UINT8: "uint8",
    TensorMapDataType.UINT16: "uint16",
    TensorMapDataType.UINT32: "uint32",
    TensorMapDataType.INT32: "int32",
    TensorMapDataType.UINT64: "uint64",
    TensorMapDataType.INT64: "int64",
    TensorMapDataType.FLOAT16: "float16",
    TensorMapDataType.FLOAT32: "float32",
    TensorMapDataType.FLOAT64: "float64",
    TensorMapDataType.BFLOAT16: "bfloat16",
    TensorMapDataType.FLOAT32_FTZ: "float32",
    TensorMapDataType.TFLOAT32: "float32",
    TensorMapDataType.TFLOAT32_FTZ: "float32",
}


def element_type(request: TiledRequest | Im2colRequest, asked: DType | str | None) -> DType:
    """Return the element type as which a map is read.

    Parameters
    ----------
    request
        What the map was encoded from.
    asked
        A type of the same size, for types that the driver has no name for; None: the map's own.

    Raises
    ------
    ArgumentValueError
        If ``asked`` has another size.
    UnsupportedFeatureError
        If the map is interleaved or its elements are packed.
    """
    kind = request.data_type
    name = _DTYPES.get(kind)
    if name is None or request.interleave is not Interleave.NONE:
        what = kind.name if name is None else f"interleave {request.interleave.name}"
        raise UnsupportedFeatureError("the simulated tensor map", (what,))
    row = DTYPES[name] if asked is None else dtype(asked)
    if row.itemsize * 8 != kind.bits:
        got = f"{row.name} of {row.itemsize} bytes"
        raise ArgumentValueError("dtype_", got, f"a type of {kind.bits // 8} bytes, as {kind.name}")
    return row


def outside(request: TiledRequest | Im2colRequest, shape: tuple[int, ...], row: DType) -> torch.Tensor:
    """Return a new host tensor of what is loaded where a map has no elements: zeros, or NaN if it asks for it.

    Parameters
    ----------
    request
        What the map was encoded from.
    shape
        The tensor's.
    row
        The element type as which the map is read; the fill is of the map's own, whatever that is read as.
    """
    import torch  # noqa: PLC0415 - only a process that runs kernel bodies pays for it

    nan = request.oob_fill is OobFill.NAN_REQUEST_ZERO_FMA
    own = getattr(torch, element_type(request, None).name)
    return torch.full(shape, math.nan if nan else 0, dtype=own).view(getattr(torch, row.name))
