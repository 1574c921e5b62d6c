"""The program that an artifact was built from: a file of it that core adds, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.artifacts.artifact import Artifact

__all__ = ["PROGRAM_FILE", "program_of", "program_of_variants"]

PROGRAM_FILE: Final = "program.json"
"""The file of an artifact that holds the program that it was built from."""


def program_of(artifact: Artifact) -> KernelProgram:
    """Return the program that an artifact was built from.

    Raises
    ------
    CorruptArtifactError
        If it holds none.
    """
    text = artifact.files.get(PROGRAM_FILE)
    if text is None:
        raise CorruptArtifactError(PROGRAM_FILE, "is missing from the artifact")
    try:
        return KernelProgram.from_json(text.decode())
    except ValueError as error:
        raise CorruptArtifactError(PROGRAM_FILE, f"is not a program: {error}") from error


def program_of_variants(name: str, artifacts: Iterable[Artifact]) -> KernelProgram:
    """Return the first of the programs that variants were built from; all of them are called alike.

    Parameters
    ----------
    name
        The name that they have in common.
    artifacts
        The variants, one at least.

    Raises
    ------
    ProgramError
        If they are not called alike.
    CorruptArtifactError
        If one of them holds no program.
    """
    first, *others = map(program_of, artifacts)
    if any(other.signature != first.signature for other in others):
        raise ProgramError(
            f"the variants of {shorten(name)} take different parameters; give each signature a name of its own",
            field="programs",
        )
    return first
