"""Where device compilers put a kernel's parameters.

Read from what ptxas of CUDA 12.8 and 13.0 writes; the agreement test of the NVRTC plugin compares it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.contract.compiler import ImageParameter
from trunnion.errors import ProgramError, shorten
from trunnion.image.nvinfo import WIDE_THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.contract.spec import Target

__all__ = [
    "BLACKWELL",
    "ParameterLayout",
    "arch_number",
    "pack_parameters",
    "pack_parameters_for",
    "parameter_base",
    "place_parameters",
]

BLACKWELL: Final = 100
"""The first architecture number of Blackwell."""

_ARCH_LIMIT: Final = 0xFF  # e_flags has a byte for it
_HOPPER: Final = 90
_BASE_ALIGNMENT: Final = 128


@dataclass(frozen=True, slots=True)
class ParameterLayout:
    """Where a kernel's parameters are, and how its image says so."""

    base: int
    """Bytes from the start of constant bank 0 to the parameters."""

    wide: bool
    """Whether the image describes them with records of the wide kind."""

    parameters: tuple[ImageParameter, ...]
    """The parameters by ordinal, with offsets from ``base``."""


def arch_number(arch: str) -> int:
    """Return the number of an architecture such as ``"sm_90a"``, or of a virtual one such as ``"compute_90a"``.

    Raises
    ------
    ProgramError
        If ``arch`` is no architecture.
    """
    match = re.fullmatch(r"(?:sm|compute)_(\d{2,3})[af]?", arch, re.ASCII)
    if match is None or int(match[1]) > _ARCH_LIMIT:
        raise ProgramError(f"{shorten(arch)} is no architecture such as 'sm_90a'", field="arch")
    return int(match[1])


def parameter_base(arch: str, nbytes: int) -> int:
    """Return where compilers put the parameters in constant bank 0, in bytes.

    Parameters
    ----------
    arch
        For example ``"sm_90a"``.
    nbytes
        The size of all parameters together, laid out from zero as PTX lays them out, in bytes. It may be
        less or more than they take at their place, where other gaps lie between them.

    Raises
    ------
    ProgramError
        If ``arch`` is no architecture.
    """
    number = arch_number(arch)
    if number >= BLACKWELL:
        return 0x380
    if number >= _HOPPER:
        return 0x210
    return 0x1A80 if nbytes > WIDE_THRESHOLD else 0x160


def pack_parameters(layouts: Iterable[tuple[int, int]], arch: str = "sm_90a") -> tuple[ImageParameter, ...]:
    """Return only the parameters of `place_parameters`, which says what is taken and what is raised."""
    return place_parameters(layouts, arch).parameters


def pack_parameters_for(layouts: Iterable[tuple[int, int]], target: Target) -> tuple[ImageParameter, ...]:
    """Return where the parameters of a kernel for some target are said to lie.

    On a CPU, parameters travel in registers and on the stack; an image's table lays them out from zero, each at the
    next place that its alignment allows, as the members of a C structure.

    Parameters
    ----------
    layouts
        The size and the alignment of each parameter, in bytes.
    target
        For CUDA with its architecture, which matters: see `place_parameters`.

    Raises
    ------
    ProgramError
        As `place_parameters`.
    """
    if target.kind == "cuda":
        return pack_parameters(layouts, target.arch)
    return _pack(_checked(layouts), 0)


def place_parameters(layouts: Iterable[tuple[int, int]], arch: str = "sm_90a") -> ParameterLayout:
    """Lay out parameters in order, each at the next place that its alignment allows, as device compilers do.

    Alignment applies to the place in constant bank 0, so the offsets of one signature differ by architecture.
    What the parameters take when they are laid out from zero decides about the place and the records, not
    what they take at their place.

    Parameters
    ----------
    layouts
        The size and the alignment of each parameter, in bytes.
    arch
        For example ``"sm_90a"``.

    Raises
    ------
    ProgramError
        If a size is not positive, an alignment is no power of two, or ``arch`` is no architecture.
    """
    pairs = _checked(layouts)
    flat = _pack(pairs, 0)
    total = flat[-1].offset + flat[-1].size if flat else 0
    base = parameter_base(arch, total)
    # A base that is a multiple of 128 is taken for one of every alignment.
    placed = _pack(pairs, base) if base % _BASE_ALIGNMENT else flat
    return ParameterLayout(base, total > WIDE_THRESHOLD, placed)


def _checked(layouts: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    pairs = tuple(layouts)
    for ordinal, (size, alignment) in enumerate(pairs):
        if size < 1 or alignment < 1 or alignment & (alignment - 1):
            problem = (
                f"{size} bytes aligned to {alignment}, where a positive size and a power of two are allowed"
            )
            raise ProgramError(problem, field=f"layouts[{ordinal}]")
    return pairs


def _pack(pairs: tuple[tuple[int, int], ...], base: int) -> tuple[ImageParameter, ...]:
    parameters = []
    end = base
    for ordinal, (size, alignment) in enumerate(pairs):
        at = -(-end // alignment) * alignment
        parameters.append(ImageParameter(ordinal, at - base, size))
        end = at + size
    return tuple(parameters)
