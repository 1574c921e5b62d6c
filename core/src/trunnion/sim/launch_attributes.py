"""Launch attributes, decoded from the array that a launch passes.

Source: CUDA Driver API, ``CUlaunchAttributeID`` and ``CUlaunchAttributeValue``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute, LaunchAttributeId, LaunchAttributeStruct, LaunchAttributeValue
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.sim.devices import Device

__all__ = ["AccessPolicyWindow", "AccessProperty", "LaunchAttributes", "decode_attributes"]


class AccessProperty(enum.IntEnum):
    """``CUaccessProperty``."""

    NORMAL = 0
    STREAMING = 1
    PERSISTING = 2


@dataclass(frozen=True, slots=True)
class AccessPolicyWindow:
    """``CUaccessPolicyWindow``."""

    address: int
    """The window's first byte."""

    nbytes: int
    """The window's size in bytes."""

    hit_ratio: float
    """The share of accesses that get the hit property, 0 to 1."""

    hit_property: AccessProperty
    """How hits are cached."""

    miss_property: AccessProperty
    """How misses are cached: normal or streaming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAttributes:
    """The attributes of one launch; None is an attribute that the launch does not have."""

    cluster: tuple[int, int, int] | None = None
    """Blocks of one cluster along x, y, z."""

    cooperative: bool | None = None
    """Whether all blocks must be resident at once."""

    programmatic_stream_serialization: bool | None = None
    """Whether the kernel may start before the one ahead of it has ended (programmatic dependent launch)."""

    priority: int | None = None
    """The launch's priority; a lower number is more urgent."""

    window: AccessPolicyWindow | None = None
    """The access-policy window."""


def _cluster(value: LaunchAttributeValue, _: Device, found: LaunchAttributes) -> LaunchAttributes:
    dims = value.clusterDim
    return replace(found, cluster=(dims.x, dims.y, dims.z))


def _cooperative(value: LaunchAttributeValue, _: Device, found: LaunchAttributes) -> LaunchAttributes:
    return replace(found, cooperative=value.cooperative != 0)


def _programmatic(value: LaunchAttributeValue, _: Device, found: LaunchAttributes) -> LaunchAttributes:
    return replace(found, programmatic_stream_serialization=value.programmaticStreamSerializationAllowed != 0)


def _priority(value: LaunchAttributeValue, _: Device, found: LaunchAttributes) -> LaunchAttributes:
    return replace(found, priority=value.priority)


def _window(value: LaunchAttributeValue, device: Device, found: LaunchAttributes) -> LaunchAttributes:
    raw = value.accessPolicyWindow
    limit = device.attribute(DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE)
    if not 0.0 <= raw.hitRatio <= 1.0:
        raise Refusal(Status.INVALID_VALUE, f"hitRatio is {raw.hitRatio}, from 0 to 1 is allowed")
    if raw.num_bytes > limit:
        raise Refusal(Status.INVALID_VALUE, f"num_bytes is {raw.num_bytes}, at most {limit} are allowed")
    if raw.hitProp not in tuple(AccessProperty):
        raise Refusal(Status.INVALID_VALUE, f"hitProp is {raw.hitProp}, no CUaccessProperty")
    if raw.missProp not in (AccessProperty.NORMAL, AccessProperty.STREAMING):
        raise Refusal(Status.INVALID_VALUE, f"missProp is {raw.missProp}, normal and streaming are allowed")
    window = AccessPolicyWindow(
        raw.base_ptr or 0,
        raw.num_bytes,
        raw.hitRatio,
        AccessProperty(raw.hitProp),
        AccessProperty(raw.missProp),
    )
    return replace(found, window=window)


def _ignore(_: LaunchAttributeValue, __: Device, found: LaunchAttributes) -> LaunchAttributes:
    return found


_DECODERS: Final[
    Mapping[int, Callable[[LaunchAttributeValue, Device, LaunchAttributes], LaunchAttributes]]
] = {
    LaunchAttributeId.IGNORE: _ignore,
    LaunchAttributeId.ACCESS_POLICY_WINDOW: _window,
    LaunchAttributeId.COOPERATIVE: _cooperative,
    LaunchAttributeId.CLUSTER_DIMENSION: _cluster,
    LaunchAttributeId.PROGRAMMATIC_STREAM_SERIALIZATION: _programmatic,
    LaunchAttributeId.PRIORITY: _priority,
}


def decode_attributes(attributes: Sequence[LaunchAttributeStruct], device: Device) -> LaunchAttributes:
    """Decode and check a launch's attributes.

    Parameters
    ----------
    attributes
        The array, as the launch passes it. The last of several equal attributes wins, as on the hardware.
    device
        The device that the launch runs on.

    Returns
    -------
    LaunchAttributes
        The values.

    Raises
    ------
    Refusal
        If a value breaks a rule, or the simulator does not know an attribute: dropping it would hide a bug.
    """
    found = LaunchAttributes()
    for attribute in attributes:
        decode = _DECODERS.get(attribute.id)
        if decode is None:
            known = attribute.id in tuple(LaunchAttributeId)
            status = Status.NOT_SUPPORTED if known else Status.INVALID_VALUE
            raise Refusal(status, f"launch attribute {attribute.id} is not simulated")
        found = decode(attribute.value, device, found)
    return found
