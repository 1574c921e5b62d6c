"""CUDA's binary utilities, each a program of its own: where one is found, and how it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import BackendUnavailableError, DeviceRequirementError
from trunnion.messages import visible
from trunnion.storage.refusals import advice, of_a_folder, said
from trunnion.toolchain.search import Place, path_text, root_places, wheel_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["BinaryUtility"]

_WHEELS: Final = ("nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "triton/backends/nvidia/bin")
_USUAL: Final = "/usr/local/cuda/bin"
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class BinaryUtility:
    """One of the programs of "CUDA Binary Utilities", such as ``nvdisasm``."""

    name: str
    """The program's name."""

    @property
    def install(self) -> str:
        """What brings one."""
        return f"pip install nvidia-cuda-{self.name}"

    def places(self) -> Iterator[Place]:
        """Yield where it may lie.

        Wheels (Triton has some), conda, ``CUDA_PATH``, ``CUDA_HOME``, ``PATH``, the usual folder. The order is that of
        ``cuda.pathfinder``, which knows neither Triton's nor ``PATH``.
        """
        yield from wheel_places(f"{folder}/{self.name}" for folder in _WHEELS)
        yield from root_places(("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"), (f"bin/{self.name}",))
        found = shutil.which(self.name)
        yield Place("PATH", found or "", "" if found else "it is not there")
        yield Place("the usual folder", os.fspath(Path(_USUAL, self.name)))

    def find(self) -> str | None:
        """Return the path of the first one that may be run; None if there is none."""
        paths = (place.path for place in self.places() if place.path)
        return next((path for path in paths if Path(path).is_file() and os.access(path, os.X_OK)), None)

    def path(self) -> str:
        """Return the path of the first one that may be run.

        Raises
        ------
        BackendUnavailableError
            If there is none.
        """
        found = self.find()
        if found is None:
            reason = f"it is not installed; run: {self.install}, or set CUDA_HOME"
            raise BackendUnavailableError(self.name, "", reason)
        return found

    def ask(self, arguments: Sequence[str], folder: Path) -> str:
        """Return what it writes, run in a process of its own, in a folder that is given.

        Raises
        ------
        BackendUnavailableError
            If there is none, or it fails: one that is older than a file's architecture does not read that file.
        DeviceRequirementError
            If this process has run out of descriptors, say.
        """
        command = [os.path.abspath(self.path()), *arguments]  # noqa: PTH100 - a link is called by its own name
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                cwd=folder,
            )
        except subprocess.TimeoutExpired as error:
            raise self._failure(command[0], f"did not answer within {_SECONDS:g} s") from error
        except OSError as error:
            if not of_a_folder(error):
                requirement = f"a process that {self.name} can run in"
                raise DeviceRequirementError(requirement, said(error), advice(error)) from error
            raise self._failure(command[0], f"cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").strip().splitlines()
            problem = words[-1] if words else f"status {done.returncode}"
            raise self._failure(command[0], f"refused the image: {problem}")
        return done.stdout.decode("utf-8", "replace")

    def _failure(self, path: str, what: str) -> BackendUnavailableError:
        return BackendUnavailableError(
            self.name, "", f"{path_text(path)} {visible(what)}; for a newer one run: {self.install}"
        )
