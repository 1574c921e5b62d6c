"""Which architecture an image was made for, for messages."""

from __future__ import annotations

from trunnion.errors import CorruptArtifactError
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx

__all__ = ["image_target"]

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
