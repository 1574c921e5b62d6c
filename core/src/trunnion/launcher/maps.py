"""Tensor maps of a Python launcher: checked against the rules, encoded once, and kept under their full key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import DeviceRequirementError, DriverError, TensorMapError, shorten
from trunnion.model.plan.refusals import MAP_OUTSIDE
from trunnion.model.tensormap.rules import broken_rules
from trunnion.model.tensormap.shared_rules import LEAST_CAPABILITY

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.launcher.facade import DriverFacade, EncodedMap
    from trunnion.model.tensormap.fields import MapFields

__all__ = ["MapEncoder", "MapLayout", "MapSpec"]

_MOST_LAYOUTS = 16
_MOST_KEPT = 64
"""Encoded maps kept for one layout of one map; 64 of them take 8 KiB."""
_BITS_OF_BYTE = 8


@dataclass(frozen=True, slots=True)
class MapSpec:
    """What is known of a tensor map before any call."""

    name: str
    """The name of its memory, for messages."""

    fields: MapFields
    """What the driver is told, but for what a call decides."""

    @property
    def place(self) -> str:
        """What a message calls the map."""
        return f"tensor map over {shorten(self.name)}"

    def refusal(
        self, fields: MapFields, capability: tuple[int, int]
    ) -> TensorMapError | DeviceRequirementError | None:
        """Return what is wrong with a call's numbers on a device of that compute capability; None: nothing is."""
        if capability < LEAST_CAPABILITY:
            return DeviceRequirementError(
                "compute capability {}.{} for a {}".format(*LEAST_CAPABILITY, self.place),
                "a device of compute capability {}.{}".format(*capability),
                "launch on a device that has it, or leave the map out",
            )
        broken = broken_rules(fields, capability)
        return TensorMapError(broken, field=self.place) if broken else None

    def note(self, fields: MapFields) -> str:
        """Return the note on an error of the driver's that says what it was to encode."""
        return f"{self.place}: {fields}"


class MapLayout:
    """One layout of a map on one device, and the maps that were encoded for it, by address."""

    __slots__ = ("device", "dims", "innermost_stride", "kept", "strides")

    def __init__(
        self, device: int, dims: tuple[int, ...], strides: tuple[int, ...], innermost_stride: int
    ) -> None:
        self.device = device
        self.dims = dims
        self.strides = strides
        self.innermost_stride = innermost_stride
        self.kept: dict[int, EncodedMap] = {}


class MapEncoder:
    """Encode one map of a program, for any address and any extents.

    An encoded map depends on nothing but its arguments, so it is kept under all of them, the device included; it
    holds no tensor. What is kept is bounded.

    Parameters
    ----------
    spec
        What is the same in every call.
    facade
        The driver.
    capability
        Returns the compute capability of a device: some rules depend on it.
    """

    __slots__ = ("_capability", "_facade", "_layouts", "_spec")

    def __init__(
        self, spec: MapSpec, facade: DriverFacade, capability: Callable[[int], tuple[int, int]]
    ) -> None:
        self._spec = spec
        self._facade = facade
        self._capability = capability
        self._layouts: dict[tuple[object, ...], MapLayout] = {}

    def layout(
        self, device: int, dims: tuple[int, ...], strides: tuple[int, ...], innermost_stride: int
    ) -> MapLayout:
        """Return the place where the maps of one layout are kept.

        Parameters
        ----------
        device
            The device's ordinal.
        dims
            Elements along each dimension, innermost first.
        strides
            Bytes between neighbours along each dimension but the innermost.
        innermost_stride
            Elements between neighbours along the innermost dimension.
        """
        key = (device, dims, strides, innermost_stride)
        found = self._layouts.get(key)
        if found is None:
            found = MapLayout(device, dims, strides, innermost_stride)
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = found
        return found

    def within(self, layout: MapLayout, offset: int, limit: int) -> None:
        """Check that a map lies in its memory.

        Parameters
        ----------
        layout
            The map's extents and strides.
        offset
            Bytes between the memory's first element and the map's.
        limit
            Bytes that the memory spans.

        Raises
        ------
        TensorMapError
            If it reaches beyond.
        """
        if 0 in layout.dims:
            return  # a rule of its own refuses it
        bits = self._spec.fields.element_bits
        last = (layout.dims[0] - 1) * layout.innermost_stride * bits
        end = offset + -(-(last + bits) // _BITS_OF_BYTE)
        end += sum(
            (extent - 1) * stride for extent, stride in zip(layout.dims[1:], layout.strides, strict=True)
        )
        if offset < 0 or end > limit:
            raise MAP_OUTSIDE(self._spec.name, offset, end, limit)

    def __call__(self, layout: MapLayout, address: int) -> EncodedMap:
        """Encode the map, and keep it.

        Parameters
        ----------
        layout
            What `layout` returned.
        address
            The address of the map's first element, in bytes.

        Raises
        ------
        TensorMapError
            If rules are broken; all of them are named.
        DeviceRequirementError
            If the device has no tensor maps.
        DriverError
            If the driver refuses for a reason that no rule states.
        """
        known = self._spec.fields
        fields = known.at(address, layout.dims, layout.strides, layout.innermost_stride)
        refusal = self._spec.refusal(fields, self._capability(layout.device))
        if refusal is not None:
            try:
                raise refusal
            finally:
                del refusal  # of an error that its own frame holds, the call's tensors are not free with it
        try:
            encoded = self._encode(layout.device, fields)
        except DriverError as error:
            error.add_note(self._spec.note(fields))
            raise
        if len(layout.kept) >= _MOST_KEPT:
            layout.kept.clear()
        layout.kept[address] = encoded
        return encoded

    def _encode(self, device: int, fields: MapFields) -> EncodedMap:
        entered = self._facade.enter(device)
        try:
            return self._facade.encode(fields)
        finally:
            if entered:
                self._facade.leave()
