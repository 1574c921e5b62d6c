"""What a device image's own tables say of kernels and variables: a compiler returns it, an artifact keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ImageKernel", "ImageParameter", "ImageVariable"]


@dataclass(frozen=True, slots=True)
class ImageParameter:
    """One parameter of a compiled kernel, as the image's own table describes it."""

    ordinal: int
    """The position, counted from 0."""

    offset: int
    """Bytes from the start of the kernel's parameter block."""

    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class ImageKernel:
    """One kernel of a compiled image."""

    name: str
    """The name that the program uses: a C identifier or a C++ name expression."""

    symbol: str
    """The exact name in the image, to be handed to ``cuLibraryGetKernel``; never searched for."""

    parameters: tuple[ImageParameter, ...]
    """The parameter table, by ordinal."""

    dynamic_smem_bytes: int = field(default=0, compare=False)
    """The dynamic shared memory that a block uses, in bytes, as far as the compiler found out.

    It is compared when a program is built; an artifact does not hold it."""


@dataclass(frozen=True, slots=True)
class ImageVariable:
    """One variable of a compiled image."""

    name: str
    """The name that the program uses: a C identifier or a C++ name expression."""

    symbol: str
    """The exact name in the image, to be handed to ``cuLibraryGetGlobal``; never searched for."""

    nbytes: int | None
    """How many bytes it has, as the image says; None: the image does not say."""
