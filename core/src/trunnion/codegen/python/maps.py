"""Tensor maps of a Python launcher: checked against the rules, encoded once, and kept under their full key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import DriverError, TensorMapError, shorten
from trunnion.model.tensormap_rules import TiledFields, broken_rules

if TYPE_CHECKING:
    from trunnion.codegen.python.facade import DriverFacade, EncodedMap

__all__ = ["MapSpec", "TiledEncoder"]

_MOST_KEPT = 64
"""Encoded maps kept for one map of a program; 64 of them take 8 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSpec:
    """What is known of a tensor map before any call, in the driver's order."""

    itemsize: int
    """Bytes of one element."""

    dtype_code: int
    """``CUtensorMapDataType``."""

    box: tuple[int, ...]
    """Elements of the box along each dimension."""

    element_strides: tuple[int, ...]
    """Every how many elements one is taken."""

    interleave: int
    """``CUtensorMapInterleave``."""

    swizzle: int
    """``CUtensorMapSwizzle``."""

    l2_promotion: int
    """``CUtensorMapL2promotion``."""

    oob_fill: int
    """``CUtensorMapFloatOOBfill``."""

    name: str
    """The tensor's name, for messages."""


class TiledEncoder:
    """Encode one map of a program, for any address and any extents.

    An encoded map depends on nothing but its arguments, so it is kept under all of them, the device included; it
    holds no tensor. What is kept is bounded.

    Parameters
    ----------
    spec
        What is the same in every call.
    facade
        The driver.
    """

    __slots__ = ("_facade", "_kept", "_spec")

    def __init__(self, spec: MapSpec, facade: DriverFacade) -> None:
        self._spec = spec
        self._facade = facade
        self._kept: dict[tuple[object, ...], EncodedMap] = {}

    def __call__(
        self,
        device: int,
        address: int,
        dims: tuple[int, ...],
        strides: tuple[int, ...],
        innermost_stride: int,
    ) -> EncodedMap:
        """Return the map.

        Parameters
        ----------
        device
            The device's ordinal.
        address
            The address of the map's first element, in bytes.
        dims
            Elements along each dimension, innermost first.
        strides
            Bytes between neighbours along each dimension but the innermost.
        innermost_stride
            Elements between neighbours along the innermost dimension.

        Raises
        ------
        TensorMapError
            If rules are broken; all of them are named.
        DriverError
            If the driver refuses for a reason that no rule states.
        """
        key = (device, address, dims, strides, innermost_stride)
        found = self._kept.get(key)
        if found is None:
            found = self._encode(address, dims, strides, innermost_stride)
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def _encode(
        self, address: int, dims: tuple[int, ...], strides: tuple[int, ...], innermost_stride: int
    ) -> EncodedMap:
        spec = self._spec
        fields = TiledFields(
            address=address,
            itemsize=spec.itemsize,
            dtype_code=spec.dtype_code,
            dims=dims,
            strides=strides,
            innermost_stride=innermost_stride,
            box=spec.box,
            element_strides=spec.element_strides,
            interleave=spec.interleave,
            swizzle=spec.swizzle,
            oob_fill=spec.oob_fill,
        )
        broken = broken_rules(fields)
        if broken:
            raise TensorMapError(broken, field=f"tensor map over {shorten(spec.name)}")
        try:
            return self._facade.encode_tiled(fields, spec.l2_promotion)
        except DriverError as error:
            error.add_note(f"tensor map over {shorten(spec.name)}: {fields}")
            raise
