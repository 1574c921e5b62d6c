"""The driver's structures for a launch, filled from what core's launchers know."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cuda.bindings.driver as cu

from trunnion.model.launch_attributes import attribute_row

if TYPE_CHECKING:
    from trunnion.launcher.facade import ComputedAttributes, LaunchSpec, WindowSpec
    from trunnion.launcher.frames import LaunchFrame

__all__ = [
    "Attempt",
    "LaunchConfig",
    "by_reference",
    "config_of",
    "set_attributes",
    "set_window",
    "window_of",
]


class LaunchConfig:
    """A ``CUlaunchConfig``, and its address."""

    __slots__ = ("address", "fields")

    def __init__(self, fields: Any) -> None:
        self.fields = fields
        """The ``CUlaunchConfig``."""
        self.address = int(fields.getPtr())
        """Its address, as long as `fields` lives."""


def by_reference(address: int) -> Any:
    """Return an address in the form that a call through `ctypes` takes as it is.

    Of every other object, a ``c_void_p`` too, the call makes one like this first, which takes 40 ns.

    Parameters
    ----------
    address
        Any address, a handle too: nothing is read there.
    """
    return ctypes.byref(ctypes.c_char.from_address(address))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A launch that the driver refused."""

    status: int
    """What it said, a ``CUresult``."""

    device: int
    """The device's ordinal."""

    frame: LaunchFrame
    """What was launched."""

    kernel: str
    """The kernel's name, as the program spells it."""


def config_of(spec: LaunchSpec) -> LaunchConfig:
    """Return a configuration with what is known before a call."""
    config = cu.CUlaunchConfig()
    for axis, grid, block in zip("XYZ", spec.grid, spec.block, strict=True):
        setattr(config, f"gridDim{axis}", grid or 0)
        setattr(config, f"blockDim{axis}", block or 0)
    config.sharedMemBytes = spec.dynamic_smem_bytes or 0
    attributes = [_attribute(number, values) for number, values in spec.attributes]
    if spec.window is not None:
        window = cu.CUlaunchAttribute()
        window.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
        window_of(window.value.accessPolicyWindow, spec.window, (0, 0))
        attributes.append(window)
    config.attrs = attributes  # copies: whatever is filled in later is not seen
    config.numAttrs = len(attributes)
    return LaunchConfig(config)


def _attribute(number: int, values: tuple[int | None, ...]) -> Any:
    """Return an attribute; what only a call knows is filled in by it."""
    attribute = cu.CUlaunchAttribute()
    attribute.id = cu.CUlaunchAttributeID(number)
    if None not in values:
        _fill(attribute, values)
    return attribute


def _fill(attribute: Any, values: tuple[Any, ...]) -> None:
    row = attribute_row(int(attribute.id))
    if len(values) > 1:
        extents = getattr(attribute.value, row.member)
        extents.x, extents.y, extents.z = values
    else:
        kind = getattr(cu, row.driver_type) if row.driver_type else int
        setattr(attribute.value, row.member, kind(values[0]))


def set_attributes(config: LaunchConfig, computed: ComputedAttributes) -> None:
    """Give a launch the attributes that its call decides.

    Parameters
    ----------
    config
        The launch's.
    computed
        ``CUlaunchAttributeID``, and the driver's numbers.
    """
    attributes, numbers = config.fields.attrs, dict(computed)
    for attribute in attributes:
        values = numbers.get(int(attribute.id))
        if values is not None:
            _fill(attribute, values)
    config.fields.attrs = attributes  # copies


def window_of(window: Any, spec: WindowSpec, memory: tuple[int, int]) -> None:
    """Fill a ``CUaccessPolicyWindow``.

    Parameters
    ----------
    window
        The structure.
    spec
        Its constants.
    memory
        The address and the length of its range, in bytes.
    """
    window.base_ptr, window.num_bytes = memory
    window.hitRatio = spec.hit_ratio
    window.hitProp = cu.CUaccessProperty(spec.hit_property)
    window.missProp = cu.CUaccessProperty(spec.miss_property)


def set_window(config: LaunchConfig, memory: tuple[int, int]) -> None:
    """Give the window of a launch, its last attribute, another range."""
    attributes = config.fields.attrs
    window = attributes[-1].value.accessPolicyWindow
    window.base_ptr, window.num_bytes = memory
    config.fields.attrs = attributes  # copies
