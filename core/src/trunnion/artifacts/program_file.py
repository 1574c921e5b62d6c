"""The program that an artifact was built from: a file of it that core adds, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from trunnion.artifacts.artifact import Artifact

__all__ = ["PROGRAM_FILE", "program_of"]

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
