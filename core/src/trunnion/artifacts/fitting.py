"""Whether an artifact is what its key says: a key says what was asked for, and an artifact can be given any key."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.errors import shorten

if TYPE_CHECKING:
    from trunnion.artifacts.artifact import Artifact

__all__ = ["BACKEND_INPUT", "MAX_INPUT_BYTES", "PROGRAM_INPUT", "TARGET_INPUT", "key_input", "misfit"]

PROGRAM_INPUT: Final = "program"
"""Which input of a key is the program, as JSON: `key_input` of the artifact's own, byte for byte."""

TARGET_INPUT: Final = "target"
"""Which is the target, as the manifest spells it."""

BACKEND_INPUT: Final = "backend"
"""Which is the backend: its name, a space, and whatever else tells one from another."""


MAX_INPUT_BYTES: Final = 1 << 20
"""The longest text that is an input of a key itself: 1 MiB. All of them are in the manifest, which has a limit."""


def key_input(text: str) -> str:
    """Return what a key is made of for a text: the text itself, or of one that is too long the SHA-256."""
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= MAX_INPUT_BYTES else _digest(hashlib.sha256(data).hexdigest())


def _digest(sha256: str) -> str:
    return f"SHA-256 {sha256}"


def misfit(artifact: Artifact, key: str) -> str:
    """Return why an artifact is not what was asked for, as the end of a sentence about it; empty if it is.

    Its manifest has the inputs of its key, and was read: so nothing is hashed here, nor parsed.

    Parameters
    ----------
    artifact
        What was found, or built.
    key
        What was asked for.
    """
    manifest = artifact.manifest
    if manifest.key != key:
        return f"is of key {shorten(manifest.key)}"
    inputs = manifest.key_inputs
    program = inputs.get(PROGRAM_INPUT)
    if program is not None and not _holds(artifact, program):
        return f"was built of another program than the one that its key is made of: see its {PROGRAM_FILE}"
    target = inputs.get(TARGET_INPUT, manifest.target)
    if target != manifest.target:
        return f"is for target {shorten(manifest.target)}, and its key for {shorten(target)}"
    backend = inputs.get(BACKEND_INPUT, manifest.backend).partition(" ")[0]
    if backend != manifest.backend:
        return f"is of backend {shorten(manifest.backend)}, and its key of {shorten(backend)}"
    return ""


def _holds(artifact: Artifact, program: str) -> bool:
    """Whether an artifact's program is the one that `key_input` gave this for."""
    record = artifact.manifest.files.get(PROGRAM_FILE)
    if record is None:
        return False
    if program == _digest(record.sha256):
        return True
    # Any text that JSON has may stand in a manifest, that of no UTF-8 too.
    return artifact.files[PROGRAM_FILE] == program.encode("utf-8", "surrogatepass")
