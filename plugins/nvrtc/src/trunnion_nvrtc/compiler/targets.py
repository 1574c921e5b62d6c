"""Architectures: which NVRTC compiles for, and which code runs on which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.contract.spec import target_words
from trunnion.errors import ProgramError
from trunnion.image.target import assembles_for, runs_for
from trunnion.messages import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.contract.spec import Target

__all__ = ["Architecture", "check_supported"]

_TEXT = re.compile(r"(?P<kind>sm|compute)_(?P<number>[1-9]\d{1,2})(?P<variant>[af]?)", re.ASCII)
_FIRST_WITH = {"": 0, "a": 90, "f": 100}


@dataclass(frozen=True, slots=True)
class Architecture:
    """One architecture of CUDA."""

    number: int
    """Ten times the compute capability: 90 for 9.0."""

    variant: str
    """``"a"``: all instructions, on this one alone; ``"f"``: those of the family; empty: on later ones too."""

    virtual: bool
    """Whether it is one that PTX is written for, ``compute_90a``, and not one that runs."""

    @classmethod
    def parse(cls, text: str) -> Architecture | None:
        """Read ``"sm_90a"`` or ``"compute_90a"``; None if it is neither."""
        found = _TEXT.fullmatch(text)
        return (
            None if found is None else cls(int(found["number"]), found["variant"], found["kind"] == "compute")
        )

    @classmethod
    def of(cls, target: Target) -> Architecture:
        """Return the architecture of a target.

        Raises
        ------
        ProgramError
            If it has none.
        """
        found = cls.parse(target.arch)
        if target.kind != "cuda" or found is None:
            raise ProgramError(
                f"got {shorten(str(target))}, expected {target_words(str(target))}", field="target"
            )
        return found

    def __str__(self) -> str:
        return self.name(virtual=self.virtual)

    def name(self, *, virtual: bool) -> str:
        """Return the name of the virtual or of the real architecture of this number."""
        return f"{'compute' if virtual else 'sm'}_{self.number}{self.variant}"

    def runs_ptx(self, target: str) -> bool:
        """Whether PTX for ``target`` can be compiled for this architecture."""
        return assembles_for(target, str(self))

    def runs_cubin(self, arch: str) -> bool:
        """Whether a cubin for ``arch`` runs on this architecture: within one major number, and not backwards."""
        return runs_for(arch, str(self))


def check_supported(arch: Architecture, supported: Sequence[int]) -> None:
    """Refuse an architecture that NVRTC does not compile for.

    Parameters
    ----------
    arch
        What is asked for.
    supported
        The numbers of those that there are.

    Raises
    ------
    ProgramError
        If it is none of them.
    """
    if arch.number not in supported or arch.number < _FIRST_WITH[arch.variant]:
        known = ", ".join(f"sm_{one}" for one in supported)
        raise ProgramError(
            f"got {shorten(str(arch))}, this NVRTC compiles for {known}, with 'a' from sm_90 and 'f' from sm_100",
            field="target",
        )
