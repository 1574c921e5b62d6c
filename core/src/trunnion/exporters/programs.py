"""What an exporter asks of a bundle's programs: that the variants of one are called alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.artifacts.program_file import program_of
from trunnion.errors import ProgramError, shorten

if TYPE_CHECKING:
    from trunnion.bundles.bundle import Bundle
    from trunnion.model.program import KernelProgram

__all__ = ["bundled_programs"]


def bundled_programs(bundle: Bundle) -> dict[str, KernelProgram]:
    """Return each program of a bundle, by name; its variants are called alike.

    Parameters
    ----------
    bundle
        The bundle.

    Raises
    ------
    ProgramError
        If they are not.
    ArtifactError, CorruptArtifactError
        If a part cannot be read.
    """
    found: dict[str, KernelProgram] = {}
    for name, variants in bundle.index.programs.items():
        for variant in variants:
            program = program_of(bundle.artifact(variant))
            if found.setdefault(name, program).signature != program.signature:
                raise ProgramError(
                    f"the variants of {shorten(name)} take different parameters", field="programs"
                )
    return found
