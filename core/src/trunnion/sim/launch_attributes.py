"""Launch attributes: decoded from the array that a launch passes, checked, and encoded again for graph queries.

Source: CUDA Driver API, ``CUlaunchAttributeID``, ``CUlaunchAttributeValue`` and ``cuLaunchKernelEx``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.sim.abi import (
    AccessPolicyWindowStruct,
    DeviceAttribute,
    LaunchAttributeId,
    LaunchAttributeStruct,
    LaunchAttributeValue,
)
from trunnion.sim.parameters import brief
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.sim.devices import Device

__all__ = [
    "ONE_BLOCK",
    "PRIORITIES",
    "AccessProperty",
    "LaunchAttributes",
    "WindowAttribute",
    "check_window",
    "decode_attributes",
    "encode_attribute",
]

PRIORITIES: Final = range(-5, 1)
"""What ``cuCtxGetStreamPriorityRange`` gives: the greatest priority is the least number."""

ONE_BLOCK: Final = (1, 1, 1)
"""A cluster that is none but in name: it needs no device with clusters."""

_CARVEOUTS: Final = range(101)  # measured on an H200: -1, the default of the function attribute, is refused


class AccessProperty(enum.IntEnum):
    """``CUaccessProperty``."""

    NORMAL = 0
    STREAMING = 1
    PERSISTING = 2


@dataclass(frozen=True, slots=True)
class WindowAttribute:
    """``CUaccessPolicyWindow``: a window as the driver gets it, all numbers known."""

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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

    window: WindowAttribute | None = None
    """The access-policy window."""

    scheduling_policy: int | None = None
    """How a cluster's blocks are placed (``CUclusterSchedulingPolicy``): 0 default, 1 spread, 2 load balancing."""

    mem_sync_domain: int | None = None
    """The memory synchronisation domain: 0 default, 1 remote."""

    preferred_cluster: tuple[int, int, int] | None = None
    """Blocks along x, y, z of the cluster that is preferred where it fits."""

    carveout: int | None = None
    """The preferred share of shared memory, in percent."""

    __repr__ = brief


def check_window(raw: AccessPolicyWindowStruct, device: Device) -> WindowAttribute:
    """Decode and check an access-policy window.

    Raises
    ------
    Refusal
        If a value breaks a rule.
    """
    limit = device.attribute(DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE)
    if not 0.0 <= raw.hitRatio <= 1.0:
        raise Refusal(Status.INVALID_VALUE, f"hitRatio is {raw.hitRatio}, from 0 to 1 is allowed")
    if raw.num_bytes > limit:
        raise Refusal(Status.INVALID_VALUE, f"num_bytes is {raw.num_bytes}, at most {limit} are allowed")
    if raw.hitProp not in tuple(AccessProperty):
        raise Refusal(Status.INVALID_VALUE, f"hitProp is {raw.hitProp}, no CUaccessProperty")
    if raw.missProp not in (AccessProperty.NORMAL, AccessProperty.STREAMING):
        raise Refusal(Status.INVALID_VALUE, f"missProp is {raw.missProp}, normal and streaming are allowed")
    return WindowAttribute(
        raw.base_ptr or 0,
        raw.num_bytes,
        raw.hitRatio,
        AccessProperty(raw.hitProp),
        AccessProperty(raw.missProp),
    )


def _one_of(value: int, allowed: range, what: str) -> int:
    if value not in allowed:
        reason = f"{what} is {value}, from {allowed.start} to {allowed.stop - 1} is allowed"
        raise Refusal(Status.INVALID_VALUE, reason)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One attribute that launches may have."""

    field: str
    since: int
    """The least CUDA version of the driver."""
    decode: Callable[[LaunchAttributeValue, Device], object]
    needs_clusters: bool = False


def _dims(member: str) -> Callable[[LaunchAttributeValue, Device], tuple[int, int, int]]:
    def decode(value: LaunchAttributeValue, _: Device) -> tuple[int, int, int]:
        dims = getattr(value, member)
        return dims.x, dims.y, dims.z

    return decode


_ROWS: Final[Mapping[int, _Row]] = {
    LaunchAttributeId.ACCESS_POLICY_WINDOW: _Row(
        field="window",
        since=11080,
        decode=lambda value, device: check_window(value.accessPolicyWindow, device),
    ),
    LaunchAttributeId.COOPERATIVE: _Row(
        field="cooperative", since=11080, decode=lambda value, _: value.cooperative != 0
    ),
    LaunchAttributeId.CLUSTER_DIMENSION: _Row(
        field="cluster", since=11080, decode=_dims("clusterDim"), needs_clusters=True
    ),
    LaunchAttributeId.CLUSTER_SCHEDULING_POLICY_PREFERENCE: _Row(
        field="scheduling_policy",
        since=11080,
        decode=lambda value, _: _one_of(
            value.clusterSchedulingPolicyPreference, range(3), "clusterSchedulingPolicyPreference"
        ),
        needs_clusters=True,
    ),
    LaunchAttributeId.PROGRAMMATIC_STREAM_SERIALIZATION: _Row(
        field="programmatic_stream_serialization",
        since=11080,
        decode=lambda value, _: value.programmaticStreamSerializationAllowed != 0,
    ),
    LaunchAttributeId.PRIORITY: _Row(
        field="priority",
        since=11080,
        decode=lambda value, _: _one_of(value.priority, PRIORITIES, "priority"),
    ),
    LaunchAttributeId.MEM_SYNC_DOMAIN: _Row(
        field="mem_sync_domain",
        since=12000,
        decode=lambda value, _: _one_of(value.memSyncDomain, range(2), "memSyncDomain"),
    ),
    LaunchAttributeId.PREFERRED_CLUSTER_DIMENSION: _Row(
        field="preferred_cluster", since=12080, decode=_dims("preferredClusterDim"), needs_clusters=True
    ),
    LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT: _Row(
        field="carveout",
        since=12050,
        decode=lambda value, _: _one_of(value.sharedMemCarveout, _CARVEOUTS, "sharedMemCarveout"),
    ),
}
"""Every attribute that a launch may have here, by its number."""


def decode_attributes(
    attributes: Sequence[LaunchAttributeStruct], device: Device, driver_version: int
) -> LaunchAttributes:
    """Decode and check a launch's attributes.

    Parameters
    ----------
    attributes
        The array, as the launch passes it. The last of several equal attributes wins, as on the hardware.
    device
        The device that the launch runs on.
    driver_version
        The driver's CUDA version: an attribute that is newer is unknown to it.

    Returns
    -------
    LaunchAttributes
        The values.

    Raises
    ------
    Refusal
        If a value breaks a rule, or the simulator does not know an attribute: dropping it would hide a bug.
    """
    found: dict[str, Any] = {}
    for attribute in attributes:
        if attribute.id == LaunchAttributeId.IGNORE:
            continue
        row = _ROWS.get(attribute.id)
        if row is None:
            known = attribute.id in tuple(LaunchAttributeId)
            status = Status.NOT_SUPPORTED if known else Status.INVALID_VALUE
            raise Refusal(status, f"launch attribute {attribute.id} is not simulated")
        name = LaunchAttributeId(attribute.id).name
        if driver_version < row.since:
            reason = f"launch attribute {name} needs CUDA {row.since}, the driver's is {driver_version}"
            raise Refusal(Status.INVALID_VALUE, reason)
        value = row.decode(attribute.value, device)
        clusters = row.needs_clusters and value != ONE_BLOCK
        if clusters and not device.attribute(DeviceAttribute.CLUSTER_LAUNCH):
            major, minor = device.compute_capability
            reason = (
                f"launch attribute {name} needs clusters, the device is of compute capability {major}.{minor}"
            )
            raise Refusal(Status.INVALID_VALUE, reason)
        found[row.field] = value
    return LaunchAttributes(**found)


def encode_attribute(attributes: LaunchAttributes, attribute: int) -> LaunchAttributeValue:
    """Return the value of one attribute as ``cuGraphKernelNodeGetAttribute`` gives it; zeros if it is not set.

    Raises
    ------
    Refusal
        If kernel nodes have no such attribute.
    """
    row = _ROWS.get(attribute)
    unset = (
        LaunchAttributeId.PROGRAMMATIC_STREAM_SERIALIZATION,
        LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT,
    )
    if (
        row is None or attribute in unset
    ):  # the first is an edge of the graph, the second one of launches alone
        raise Refusal(Status.INVALID_VALUE, f"kernel nodes have no attribute {attribute}")
    value = LaunchAttributeValue()
    held = getattr(attributes, row.field)
    if isinstance(held, WindowAttribute):
        value.accessPolicyWindow = AccessPolicyWindowStruct(
            held.address, held.nbytes, held.hit_ratio, held.hit_property, held.miss_property
        )
    elif isinstance(held, tuple):
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = held
    elif held is not None:
        value.priority = int(held)  # every other member is an int at the union's start
    return value
