"""``nvdisasm``, which turns a cubin's machine code into text: where it is found, and how it is asked.

``cuobjdump --dump-sass`` is no second way: it runs ``nvdisasm`` itself, and fails without one (tried: CUDA 13.5).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import BackendUnavailableError
from trunnion.messages import visible
from trunnion.storage.refusals import refusals
from trunnion.storage.scratch import scratch_folder
from trunnion.toolchain.search import Place, path_text, root_places, wheel_places

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["INSTALL", "disassembled", "disassembler_places", "find_disassembler"]

INSTALL: Final = "pip install nvidia-cuda-nvdisasm"
"""What brings one."""

_NAME: Final = "nvdisasm"
_WHEELS: Final = ("nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "triton/backends/nvidia/bin")
_USUAL: Final = "/usr/local/cuda/bin"
_SECONDS: Final = 120.0


def disassembler_places() -> Iterator[Place]:
    """Yield where it may lie: wheels (Triton has one), conda, ``CUDA_PATH``, ``CUDA_HOME``, ``PATH``, the usual folder.

    The order is that of ``cuda.pathfinder``, which knows neither Triton's nor ``PATH``.
    """
    yield from wheel_places(f"{folder}/{_NAME}" for folder in _WHEELS)
    yield from root_places(("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"), (f"bin/{_NAME}",))
    found = shutil.which(_NAME)
    yield Place("PATH", found or "", "" if found else "it is not there")
    yield Place("the usual folder", os.fspath(Path(_USUAL, _NAME)))


def find_disassembler() -> str | None:
    """Return the path of the first one that may be run; None if there is none."""
    paths = (place.path for place in disassembler_places() if place.path)
    return next((path for path in paths if Path(path).is_file() and os.access(path, os.X_OK)), None)


def disassembled(cubin: bytes, symbol: int) -> str:
    """Return the machine code of one function as text, in a process of its own.

    Parameters
    ----------
    cubin
        The whole file.
    symbol
        The function's place in its symbol table, counted from 0.

    Raises
    ------
    BackendUnavailableError
        If there is no ``nvdisasm``, or it does not read this file: one that is older than the architecture does not.
    DeviceRequirementError
        If this machine has no folder for temporary files.
    """
    tool = find_disassembler()
    if tool is None:
        raise BackendUnavailableError(_NAME, "", f"it is not installed; run: {INSTALL}, or set CUDA_HOME")
    with scratch_folder() as folder:
        file = folder / "image.cubin"
        with refusals("a file for nvdisasm"):
            file.write_bytes(cubin)
        # "CUDA Binary Utilities", nvdisasm: code alone, of the function at that index.
        return _said([tool, "--print-code", "--cuda-function-index", str(symbol), os.fspath(file)])


def _said(command: list[str]) -> str:
    """Return what a disassembler writes."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise _failure(command[0], f"did not answer within {_SECONDS:g} s") from error
    except OSError as error:
        raise _failure(command[0], f"cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        problem = said[-1] if said else f"status {done.returncode}"
        raise _failure(command[0], f"refused the image: {problem}")
    return done.stdout.decode("utf-8", "replace")


def _failure(tool: str, what: str) -> BackendUnavailableError:
    return BackendUnavailableError(
        _NAME, "", f"{path_text(tool)} {visible(what)}; for a newer one run: {INSTALL}"
    )
