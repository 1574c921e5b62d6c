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

    block: tuple[int, int, int] | None = field(default=None, compare=False)
    """The threads that each block must have, if it was compiled for just so many; None: nothing is known."""

    dynamic_smem_bytes: int = field(default=0, compare=False)
    """The dynamic shared memory that a block uses, in bytes, as far as the compiler found out.

    This and `block` are compared when a program is built; an artifact does not hold them."""


@dataclass(frozen=True, slots=True)
class ImageVariable:
    """One variable of a compiled image."""

    name: str
    """The name that the program uses: a C identifier or a C++ name expression."""

    symbol: str
    """The exact name in the image, to be handed to ``cuLibraryGetGlobal``; never searched for."""

    nbytes: int | None
    """How many bytes it has, as the image says; None: the image does not say."""
