"""A copy of the sources, in which mutants are applied: the repository itself is only read."""

from __future__ import annotations

import compileall
import contextlib
import os
import py_compile
import shutil
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mutation_trials.mutant import Mutant

_DISTRIBUTIONS = ("core", "plugins/nvrtc", "plugins/tvm_ffi", "plugins/cutedsl", "plugins/tilelang")
_META = "installed"
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info", "build")


class Tree:
    """A copy of every distribution's sources, which Python imports and finds plugins in with nothing installed.

    Parameters
    ----------
    folder
        Where it is made; what is there goes.
    root
        The repository.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for distribution in _DISTRIBUTIONS:
            source = root / distribution / "src"
            shutil.copytree(source, folder / distribution / "src", ignore=_NOT_COPIED)
            _describe(root / distribution / "pyproject.toml", folder / _META)
        # By the hash of the source: a mutant may have the size and the time of what it was made of.
        with contextlib.suppress(OSError):
            mode = py_compile.PycInvalidationMode.CHECKED_HASH
            compileall.compile_dir(folder, quiet=2, invalidation_mode=mode)

    @property
    def path(self) -> list[str]:
        """What comes first where modules are looked for."""
        folders = (_META, *(f"{distribution}/src" for distribution in _DISTRIBUTIONS))
        return [os.fspath(self.folder / one) for one in folders]

    @contextlib.contextmanager
    def mutated(self, mutant: Mutant | None) -> Iterator[None]:
        """Apply a mutant in the block; None: nothing.

        Raises
        ------
        ValueError
            If the file is not what it was when the mutant was drawn.
        """
        if mutant is None:
            yield
            return
        file = self.folder / mutant.path
        text = file.read_text("utf-8")
        file.write_text(mutant.applied(text), "utf-8")
        try:
            yield
        finally:
            file.write_text(text, "utf-8")


def _describe(manifest: Path, folder: Path) -> None:
    """Write what an installation of a distribution says of it: its name, its version, its entry points."""
    with manifest.open("rb") as file:
        project = tomllib.load(file)["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    about = folder / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    groups = project.get("entry-points", {})
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in points.items()), "")
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
