"""Our files that include the projects', compiled by nvcc: a library for each project and each set of macros."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from real_programs.copies import MissingCopyError

from real_hosts.project import HERE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from real_hosts.project import Project

__all__ = ["Built", "Library", "MissingCopyError", "NoCompilerError", "find_nvcc", "libraries", "start"]

_PLACES = "the PATH, CUDA_HOME/bin and /usr/local/cuda/bin"
_OPTIONS = (
    "-gencode=arch=compute_90a,code=sm_90a",
    "-O3",
    "-DNDEBUG",
    "-shared",
    "-Xcompiler=-fPIC",
    "--expt-relaxed-constexpr",
    "-Xlinker=--exclude-libs=ALL,-Bsymbolic",  # torch has its own CUDA runtime in the process: none is shared
)


class NoCompilerError(Exception):
    """There is no nvcc."""


@dataclass(frozen=True, slots=True)
class Library:
    """What is compiled at once."""

    project: Project
    """The project."""

    defines: tuple[str, ...] = ()
    """Macros."""

    @property
    def name(self) -> str:
        """What the file is called, without its suffix."""
        return ".".join((self.project.name, *self.defines))

    def command(self, nvcc: Path, folder: Path) -> list[str]:
        """Return the command that writes it into a folder, in which the project's written headers lie.

        Raises
        ------
        MissingCopyError
            If there is no copy of the project.
        """
        root = self.project.subject.COPY.folder()
        folders = [HERE, folder, *(root / name for name in self.project.folders)]
        return [
            str(nvcc),
            *_OPTIONS,
            *self.project.options,
            *(f"-D{name}" for name in self.defines),
            *(f"-I{one}" for one in folders),
            str(self.project.source),
            f"--output-file={folder / self.name}.so",
        ]


@dataclass(frozen=True, slots=True)
class Built:
    """What became of a library."""

    path: Path
    """Where it is."""

    seconds: float
    """How long nvcc took."""

    problem: str = ""
    """What nvcc said, if it failed."""


def find_nvcc() -> Path:
    """Return the compiler.

    Raises
    ------
    NoCompilerError
        If there is none.
    """
    homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    places = [shutil.which("nvcc"), *(shutil.which("nvcc", path=f"{home}/bin") for home in homes if home)]
    found = next(filter(None, places), None)
    if found is None:
        raise NoCompilerError(f"no nvcc in {_PLACES}: install a CUDA toolkit of at least 13.0")
    return Path(found)


def libraries(projects: Iterable[Project]) -> tuple[Library, ...]:
    """Return the libraries that have all ways of the projects."""
    found = [Library(project, way.defines) for project in projects for way in project.ways]
    return tuple(dict.fromkeys(found))


def start(wanted: Iterable[Library], folder: Path, jobs: int) -> dict[Library, Future[Built]]:
    """Begin to compile, so many at once; the caller may do something else meanwhile.

    Raises
    ------
    NoCompilerError
        If there is no nvcc.
    MissingCopyError
        If there is no copy of a project.
    """
    nvcc = find_nvcc()
    commands = {library: library.command(nvcc, folder) for library in wanted}
    for library in commands:
        for name, text in library.project.texts.items():
            (folder / name).write_text(text, "utf-8")
    pool = ThreadPoolExecutor(jobs)
    started = {
        library: pool.submit(_compile, command, folder / f"{library.name}.so")
        for library, command in commands.items()
    }
    pool.shutdown(wait=False)
    return started


def _compile(command: list[str], path: Path) -> Built:
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    problem = f"{done.stdout}{done.stderr}" or f"status {done.returncode}"
    return Built(path, time.perf_counter() - begin, problem if done.returncode else "")
