"""Which architecture an image was made for, and which devices can run it."""

from __future__ import annotations

import re

from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx

__all__ = [
    "assembles_for",
    "assembling_capabilities",
    "can_assemble",
    "can_run",
    "image_target",
    "real_number",
    "running_capabilities",
    "runs_for",
    "virtual_arch",
]

_ELF = b"\x7fELF"
_ANY = 9999
_REAL = re.compile(r"sm_([0-9]{2,4})([af]?)")


def image_target(image: bytes) -> str:
    """Return what an image was compiled for: ``"sm_90a"``, or of PTX ``"compute_90a"``; empty if it cannot be read.

    Parameters
    ----------
    image
        The whole of it.
    """
    try:
        return read_cubin(image).arch if image.startswith(_ELF) else virtual_arch(read_ptx(image).target)
    except CorruptArtifactError:
        return ""


def virtual_arch(target: str) -> str:
    """Return the architecture that PTX was compiled for, as people ask for it: ``"compute_90a"``.

    Parameters
    ----------
    target
        What the text says, which is of the same form as a real architecture: ``"sm_90a"``.
    """
    return f"compute_{target.removeprefix('sm_')}"


def real_number(arch: str) -> int | None:
    """Return the number of a real architecture, whose code runs on its own devices: 90 of ``"sm_90a"``; else None.

    Parameters
    ----------
    arch
        A target's architecture, such as a virtual one, whose code runs on all later devices too.
    """
    found = _REAL.fullmatch(arch)
    return int(found[1]) if found else None


def can_run(arch: str, capability: tuple[int, int]) -> bool:
    """Whether a device can run a cubin.

    Parameters
    ----------
    arch
        The cubin's architecture, for example ``"sm_90"``: it runs on its own major version from its minor version
        on, with an ``a`` on exactly its own version (CUDA C++ Programming Guide, binary compatibility).
    capability
        The device's compute capability.

    Raises
    ------
    ProgramError
        If that is no real architecture; so do the functions below.
    """
    least, most = running_capabilities(arch)
    return least <= capability <= most


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
    least, most = assembling_capabilities(target)
    return least <= capability <= most


def running_capabilities(arch: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the least and the greatest compute capability of a device that can run a cubin; see `can_run`.

    Parameters
    ----------
    arch
        The cubin's architecture.
    """
    version, suffix = _version(arch)
    return version, version if suffix == "a" else (version[0], _ANY)


def assembling_capabilities(target: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the least and the greatest compute capability that the driver can assemble PTX for; see `can_assemble`.

    Parameters
    ----------
    target
        The PTX's target.
    """
    version, suffix = _version(target)
    return running_capabilities(target) if suffix else (version, (_ANY, _ANY))


def runs_for(arch: str, target: str) -> bool:
    """Whether a cubin runs on every device that runs what is compiled for a target.

    Parameters
    ----------
    arch
        The cubin's architecture.
    target
        The architecture of the target; on the devices of a virtual one, all later ones, no cubin runs.
    """
    return real_number(target) is not None and _covers(running_capabilities(arch), target)


def assembles_for(source: str, target: str) -> bool:
    """Whether PTX can be assembled for every device that runs what is compiled for a target.

    Parameters
    ----------
    source
        The PTX's target.
    target
        The architecture of the target, real or virtual: ``"compute_90a"``.
    """
    return _covers(assembling_capabilities(source), target)


def _covers(devices: tuple[tuple[int, int], tuple[int, int]], target: str) -> bool:
    real = target.replace("compute_", "sm_", 1)
    if real_number(real) is None:
        return False
    least, most = running_capabilities(target) if real == target else assembling_capabilities(real)
    return devices[0] <= least and most <= devices[1]


def _version(arch: str) -> tuple[tuple[int, int], str]:
    found = _REAL.fullmatch(arch)
    if found is None:
        raise ProgramError(f"got {shorten(arch)}, expected an architecture such as 'sm_90a'", field="arch")
    return divmod(int(found[1]), 10), found[2]
