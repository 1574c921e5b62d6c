"""Where the reader's copies of other projects are: nothing of theirs is in this repository."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TRUNNION_SOURCES"
"""Names the folder that holds the copies."""

SHARED = "include"
"""Beside the copies: what is searched last, for CUDA's headers that the environment lacks. It need not be there."""


class MissingCopyError(Exception):
    """A copy is not where it is looked for, or lacks a file; the text says how to get it."""


@dataclass(frozen=True)
class Copy:
    """A project's sources at one version."""

    project: str
    version: str
    """A tag, or the commit's first digits."""
    repository: str
    revision: str
    """What ``git checkout`` takes: the tag or the whole commit."""
    files: tuple[str, ...]
    """What the programs read, from the copy's root: of the files that include others, the outermost."""

    @property
    def name(self) -> str:
        """What the copy's folder is called."""
        return f"{self.project}-{self.version}"

    def folder(self) -> Path:
        """Return the copy's folder, which has all the files.

        Raises
        ------
        MissingCopyError
            If there is no such copy.
        """
        sources = os.environ.get(VARIABLE)
        if not sources:
            raise MissingCopyError(f"{VARIABLE} names no folder of copies; {self._how('FOLDER')}")
        root = Path(sources).resolve() / self.name
        for name in self.files:
            if not (root / name).is_file():
                raise MissingCopyError(f"{root} has no {name}; {self._how(str(root.parent))}")
        return root

    def text(self, name: str) -> str:
        """Return the text of one of the files."""
        return (self.folder() / name).read_text("utf-8")

    def includes(self, *folders: str) -> tuple[str, ...]:
        """Return the options with which the copy's headers are found, and after them what lies beside the copies."""
        root = self.folder()
        return tuple(
            f"--include-path={folder}" for folder in (*(root / one for one in folders), root.parent / SHARED)
        )

    def _how(self, parent: str) -> str:
        return f"get it: {self.command(parent)}"

    def command(self, parent: str) -> str:
        """Return the line that makes the copy in a folder, of this version alone: a clone would bring all of them."""
        place = f"{parent}/{self.name}"
        fetch = f"git -C {place} fetch --depth 1 {self.repository} {self.revision}"
        return f"git init {place} && {fetch} && git -C {place} checkout FETCH_HEAD"


def none_at_all(copies: tuple[Copy, ...]) -> str:
    """Return what to say where there is none of the copies, in one sentence; empty if there is one."""
    sources = os.environ.get(VARIABLE, "")
    root = Path(sources).resolve()
    if sources and any((root / copy.name).is_dir() for copy in copies):
        return ""
    where = f"{root} has no copy of another project" if sources else f"{VARIABLE} names no folder of copies"
    commands = "\n".join(copy.command(str(root) if sources else "FOLDER") for copy in copies)
    return f"{where}; get one, or all of them:\n{commands}"
