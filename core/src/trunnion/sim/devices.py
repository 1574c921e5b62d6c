"""The simulated devices: one table of attributes for each architecture.

The values of ``sm_90a`` were read from an H200 under driver 580 (CUDA 13.0) with ``cuDeviceGetAttribute``. The
other architectures have the same, but for what the CUDA C++ Programming Guide says of their compute capability
(Technical Specifications), and how many multiprocessors some products have: enough to try a program's rules on them,
no portrait of a product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from trunnion.errors import ArgumentTypeError, ArgumentValueError, DeviceRequirementError, shorten
from trunnion.image.shared_memory import BLOCK_SMEM
from trunnion.messages import describe
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.status import Refusal, Status

__all__ = [
    "ARCHITECTURES",
    "MODES",
    "Architecture",
    "Device",
    "architecture",
    "architecture_of",
    "check_integer",
    "check_version",
    "least_version",
    "machine",
    "variant",
]

# CUdevice_attribute: value. Rows that name a place in the machine (PCI, GPU ids) are left at the measured
# zero.
_H200: Final = {
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2147483647, 6: 65535, 7: 65535, 8: 49152, 9: 65536, 10: 32,
    11: 2147483647, 12: 65536, 13: 1980000, 14: 512, 15: 1, 16: 132, 17: 0, 18: 0, 19: 1, 20: 0, 21: 131072,
    22: 131072, 23: 65536, 24: 16384, 25: 16384, 26: 16384, 27: 32768, 28: 32768, 29: 2048, 30: 512, 31: 1,
    32: 1, 33: 0, 34: 0, 35: 0, 36: 3201000, 37: 6016, 38: 62914560, 39: 2048, 40: 3, 41: 1, 42: 32768, 43:
    2048, 44: 1, 45: 32768, 46: 32768, 47: 8192, 48: 8192, 49: 32768, 50: 0, 51: 32, 52: 32768, 53: 32768,
    54: 2046, 55: 32768, 56: 131072, 57: 65536, 58: 16384, 59: 16384, 60: 16384, 61: 32768, 62: 2048, 63:
    32768, 64: 32768, 65: 2048, 66: 32768, 67: 32768, 68: 2046, 69: 268435456, 70: 131072, 71: 65000, 72:
    2097120, 73: 32768, 74: 32768, 75: 9, 76: 0, 77: 32768, 78: 1, 79: 1, 80: 1, 81: 233472, 82: 65536, 83:
    1, 84: 0, 85: 0, 86: 0, 87: 2, 88: 0, 89: 1, 90: 1, 91: 1, 92: 0, 93: 0, 94: 0, 95: 1, 96: 1, 97: 232448,
    98: 0, 99: 1, 100: 0, 101: 0, 102: 1, 103: 1, 104: 0, 105: 0, 106: 32, 107: 1, 108: 39321600, 109:
    134217728, 110: 1, 111: 1024, 112: 1, 113: 1, 114: 1, 115: 1, 116: 1, 117: 1, 118: 100, 119: 9, 120: 1,
    121: 1, 122: 1, 123: 1, 124: 1, 125: 1, 126: 4, 127: 1, 128: 1, 129: 1, 130: 0, 131: -1, 132: 1, 133: 0,
    134: 0, 135: 0, 136: 0, 137: 0, 138: 0, 139: 0, 140: 0, 141: 1, 142: 1, 143: 0, 144: 1, 145: 1, 146: 0,
    147: 0,
}  # fmt: skip


# Compute capability: threads and blocks of a multiprocessor, and its shared memory in KiB.
_SPECIFICATIONS: Final = {
    (8, 0): (2048, 32, 164),
    (8, 6): (1536, 16, 100),
    (8, 7): (1536, 16, 164),
    (8, 9): (1536, 24, 100),
    (10, 0): (2048, 32, 228),
    (10, 3): (2048, 32, 228),
    (12, 0): (1536, 24, 100),
}
# Compute capability: the multiprocessors of a device of it, where it is no other's: an A100's, a B200's.
_MULTIPROCESSORS: Final = {(8, 0): 108, (10, 0): 148}
_HOPPER: Final = (9, 0)
_INT32_MAX: Final = 2**31 - 1
_FIRST_VERSION, _NO_VERSION = 1000, 100_000


@dataclass(frozen=True, slots=True)
class Architecture:
    """What all devices of one architecture have in common."""

    name: str
    """For example ``"sm_90a"``."""

    device_name: str
    """What ``cuDeviceGetName`` returns."""

    attributes: Mapping[int, int]
    """The value of each ``CUdevice_attribute``."""

    memory_bytes: int = 139 << 30
    """What ``cuDeviceTotalMem`` returns; about as much as an H200 has."""


def _derived(capability: tuple[int, int]) -> Architecture:
    threads, blocks, shared = _SPECIFICATIONS[capability]
    major, minor = capability
    hopper = capability >= _HOPPER
    changes: dict[int, int] = {
        DeviceAttribute.COMPUTE_CAPABILITY_MAJOR: major,
        DeviceAttribute.COMPUTE_CAPABILITY_MINOR: minor,
        DeviceAttribute.MULTIPROCESSOR_COUNT: _MULTIPROCESSORS.get(
            capability, _H200[DeviceAttribute.MULTIPROCESSOR_COUNT]
        ),
        DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR: threads,
        DeviceAttribute.MAX_BLOCKS_PER_MULTIPROCESSOR: blocks,
        DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: shared << 10,
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: BLOCK_SMEM[10 * major + minor],
        DeviceAttribute.CLUSTER_LAUNCH: int(hopper),
        DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED: int(hopper),
    }
    name = f"sm_{major}{minor}{'a' if hopper else ''}"
    return Architecture(name, f"Simulated {name}", MappingProxyType({**_H200, **changes}))


_ALL: Final = (
    Architecture("sm_90a", "Simulated H200", MappingProxyType(_H200)),
    *(_derived(capability) for capability in _SPECIFICATIONS),
)

ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType({row.name: row for row in _ALL})
"""The architectures that can be simulated."""

MODES: Final[Mapping[str, Mapping[int, int]]] = MappingProxyType(
    {
        "whole": MappingProxyType({}),
        # CUDA C++ Programming Guide, L2 cache set-aside: none in MIG mode, the server's choice under MPS
        "mig": MappingProxyType({DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE: 0}),
        "mps": MappingProxyType({DeviceAttribute.MPS_ENABLED: 1}),
    }
)
"""How a device can be shared, and which attributes that changes."""

# The first CUDA release whose driver knows an attribute, where the release notes say it.
_SINCE: Final = (
    (DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE, 11000),
    (DeviceAttribute.CLUSTER_LAUNCH, 11080),
    (DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED, 12000),
)


@dataclass(slots=True, eq=False)
class Device:
    """One simulated device."""

    ordinal: int
    """Its ordinal."""

    arch: Architecture
    """Its architecture."""

    def attribute(self, attribute: int) -> int:
        """Return an attribute's value.

        Raises
        ------
        Refusal
            If there is no such attribute (``CUDA_ERROR_INVALID_VALUE``).
        """
        try:
            return self.arch.attributes[attribute]
        except KeyError:
            raise Refusal(Status.INVALID_VALUE, f"there is no device attribute {attribute}") from None

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor version."""
        return (
            self.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
            self.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
        )


def least_version(attribute: int) -> int:
    """Return the CUDA version of the first driver that knows a device attribute."""
    return max((since for first, since in _SINCE if attribute >= first), default=0)


def variant(
    arch: Architecture, mode: str = "whole", attributes: Mapping[int, int] | None = None
) -> Architecture:
    """Return an architecture whose devices are shared, or differ in some attributes.

    Raises
    ------
    ArgumentTypeError
        If an attribute's number or value is no integer.
    ArgumentValueError
        If there is no such mode or attribute, or the attribute cannot have the value.
    """
    if mode not in MODES:
        raise ArgumentValueError("mode", f"{describe(mode)}", f"one of {', '.join(MODES)}")
    if not isinstance(attributes, Mapping | None):
        raise ArgumentTypeError("attributes", f"{shorten(attributes)}", "a mapping of numbers to values")
    changes = {
        check_integer("attributes", key): check_integer("attributes", value)
        for key, value in (attributes or {}).items()
    }
    unknown = sorted(set(changes) - set(arch.attributes))
    if unknown:
        raise ArgumentValueError("attributes", f"{unknown}", "numbers of CUdevice_attribute")
    for key, value in changes.items():
        least = min(0, arch.attributes[key])  # some say -1 for none
        if not least <= value <= _INT32_MAX:
            allowed = f"for attribute {key} from {least} to {_INT32_MAX}"
            raise ArgumentValueError("attributes", f"{value}", allowed)
    return replace(arch, attributes=MappingProxyType({**arch.attributes, **MODES[mode], **changes}))


def machine(
    devices: int | None,
    archs: Sequence[Architecture],
    mode: str = "whole",
    attributes: Mapping[int, int] | Sequence[Mapping[int, int] | None] | None = None,
) -> tuple[Architecture, ...]:
    """Return the architecture of each device of a machine.

    Parameters
    ----------
    devices
        How many there are; None: as many as there are architectures.
    archs
        One for each device, or one for all.
    mode, attributes
        As for `variant`; attributes may be given for each device.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `variant`, or if there are not as many of each as there are devices.
    """
    given = None if devices is None else check_integer("devices", devices, 1)
    count = max(len(archs), given or 1)
    _check_count("arch", len(archs), (1, count), given)
    each: Sequence[Mapping[int, int] | None]
    if isinstance(attributes, Mapping | None):
        each = (attributes,) * count
    else:
        each = _sequence("attributes", attributes)
        _check_count("attributes", len(each), (count,), count)
    rows = tuple(archs) if len(archs) == count else tuple(archs) * count
    return tuple(variant(row, mode, changes) for row, changes in zip(rows, each, strict=True))


def _sequence(argument: str, value: object) -> Sequence[Any]:
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError(
            argument, describe(value), "a mapping of numbers to values, or one for each device"
        )
    return value


def _check_count(argument: str, got: int, allowed: tuple[int, ...], devices: int | None) -> None:
    if got not in allowed or (devices is not None and got > devices):
        raise ArgumentValueError(argument, f"{got} values for {devices} devices", "one for each device")


def check_integer(argument: str, value: object, least: int | None = None) -> int:
    """Return an argument that is an integer.

    Raises
    ------
    ArgumentTypeError
        If it is none; a truth value is none either.
    ArgumentValueError
        If it is less than ``least``.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentTypeError(argument, describe(value), "an integer")
    if least is not None and value < least:
        raise ArgumentValueError(argument, f"{value}", f"at least {least}")
    return int(value)


def check_version(version: object) -> int:
    """Return a CUDA version as the driver spells it: 1000 x major + 10 x minor.

    Raises
    ------
    ArgumentTypeError
        If it is no integer.
    ArgumentValueError
        If it is none of any release, for example 13 for 13000.
    """
    number = check_integer("driver_version", version)
    if not _FIRST_VERSION <= number < _NO_VERSION or number % 10:
        allowed = "1000 x major + 10 x minor, for example 13000"
        raise ArgumentValueError("driver_version", f"{number}", allowed)
    return number


def architecture(name: str) -> Architecture:
    """Return the architecture of that name.

    Raises
    ------
    ArgumentTypeError
        If the name is no text.
    DeviceRequirementError
        If it cannot be simulated.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError("arch", describe(name), "text such as 'sm_90a'")
    try:
        return ARCHITECTURES[name]
    except KeyError:
        known = ", ".join(ARCHITECTURES)
        raise DeviceRequirementError(
            f"an architecture that can be simulated ({known})", shorten(name)
        ) from None


def architecture_of(capability: tuple[int, int]) -> Architecture:
    """Return the architecture of a compute capability.

    Raises
    ------
    ArgumentTypeError
        If it is no pair of integers.
    DeviceRequirementError
        If it cannot be simulated.
    """
    given: object = capability
    if not isinstance(given, tuple) or len(given) != len(_HOPPER):
        raise ArgumentTypeError("compute_capability", describe(capability), "a pair such as (9, 0)")
    major, minor = (check_integer("compute_capability", part) for part in given)
    names = (f"sm_{major}{minor}a", f"sm_{major}{minor}")
    return architecture(names[0] if names[0] in ARCHITECTURES else names[1])


def chosen(arch: str | Sequence[str] | None, capability: tuple[int, int] | None) -> tuple[Architecture, ...]:
    """Return the architectures that were asked for by name, one or several, or by compute capability; else Hopper's.

    Raises
    ------
    ArgumentTypeError, DeviceRequirementError
        As for `architecture` and `architecture_of`.
    ArgumentValueError
        If both are given, or none of several.
    """
    if capability is None:
        if not isinstance(arch, (tuple, list)):
            return (architecture("sm_90a" if arch is None else arch),)  # type: ignore[arg-type]  # which it refuses
        if not arch:
            raise ArgumentValueError("arch", "no architecture", "one for each device")
        return tuple(map(architecture, arch))
    if arch is not None:
        raise ArgumentValueError(
            "compute_capability", f"{capability} beside {shorten(str(arch))}", "one of the two"
        )
    return (architecture_of(capability),)
