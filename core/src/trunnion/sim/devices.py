"""The simulated devices: one table of attributes for each architecture.

The values of ``sm_90a`` were read from an H200 under driver 580 (CUDA 13.0) with ``cuDeviceGetAttribute``.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import DeviceRequirementError, shorten
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ARCHITECTURES", "Architecture", "Device", "architecture", "can_run"]

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


@dataclass(frozen=True, slots=True)
class Architecture:
    """What all devices of one architecture have in common."""

    name: str
    """For example ``"sm_90a"``."""

    device_name: str
    """What ``cuDeviceGetName`` returns."""

    attributes: Mapping[int, int]
    """The value of each ``CUdevice_attribute``."""


ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(
    {"sm_90a": Architecture("sm_90a", "Simulated H200", MappingProxyType(_H200))}
)
"""The architectures that can be simulated."""


@dataclass(frozen=True, slots=True)
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


def architecture(name: str) -> Architecture:
    """Return the architecture of that name.

    Raises
    ------
    DeviceRequirementError
        If it cannot be simulated.
    """
    try:
        return ARCHITECTURES[name]
    except KeyError:
        known = ", ".join(ARCHITECTURES)
        raise DeviceRequirementError(
            f"an architecture that can be simulated ({known})", shorten(name)
        ) from None


def can_run(image: str, device: Device) -> bool:
    """Whether a device can run an image.

    Parameters
    ----------
    image
        The image's architecture, for example ``"sm_90"``: an image runs on its own major version from its
        minor version on, with an ``a`` on exactly its own version (CUDA C++ Programming Guide, binary
        compatibility).
    device
        The device.
    """
    digits = image.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    suffix = image.removeprefix("sm_")[len(digits) :]
    major, minor = int(digits[:-1]), int(digits[-1])
    has_major, has_minor = device.compute_capability
    if suffix == "a":
        return (major, minor) == (has_major, has_minor)
    return major == has_major and minor <= has_minor
