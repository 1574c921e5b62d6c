"""Which architecture an image was made for, and which devices can run it."""

from __future__ import annotations

from trunnion.errors import CorruptArtifactError
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx

__all__ = ["can_assemble", "can_run", "image_target"]

_ELF = b"\x7fELF"


def image_target(image: bytes) -> str:
    """Return the architecture of a cubin, or the target of PTX: ``"sm_90a"``; empty if it cannot be read.

    Parameters
    ----------
    image
        The whole of it.
    """
    try:
        return read_cubin(image).arch if image.startswith(_ELF) else read_ptx(image).target
    except CorruptArtifactError:
        return ""


def can_run(arch: str, capability: tuple[int, int]) -> bool:
    """Whether a device can run a cubin.

    Parameters
    ----------
    arch
        The cubin's architecture, for example ``"sm_90"``: it runs on its own major version from its minor version
        on, with an ``a`` on exactly its own version (CUDA C++ Programming Guide, binary compatibility).
    capability
        The device's compute capability.
    """
    version, suffix = _version(arch)
    if suffix == "a":
        return version == capability
    return version[0] == capability[0] and version <= capability


def can_assemble(target: str, capability: tuple[int, int]) -> bool:
    """Whether the driver can assemble PTX for a device.

    Parameters
    ----------
    target
        The PTX's target, for example ``"sm_90"``: it can be assembled for that version and all later ones, with
        an ``a`` for exactly its own, with an ``f`` for later ones of its major version (PTX ISA, ``.target``).
    capability
        The device's compute capability.
    """
    version, suffix = _version(target)
    return can_run(target, capability) if suffix else version <= capability


def _version(arch: str) -> tuple[tuple[int, int], str]:
    digits = arch.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    suffix = arch.removeprefix("sm_")[len(digits) :]
    return (int(digits[:-1]), int(digits[-1])), suffix
