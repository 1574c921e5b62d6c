"""The headers that a C++ launcher includes, and the library that it is linked with: where they lie, and their versions.

Nothing is imported or loaded: versions are read from the text of the headers.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import platform
import re
import shutil
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.distributions import distribution_of, metadata_folder, version_of
from trunnion.errors import BackendUnavailableError
from trunnion.storage.remembered import Grounds, remembered
from trunnion.toolchain.search import Place, installed_stamps, root_places, wheel_places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.storage.remembered import Answer

__all__ = [
    "FFI_DISTRIBUTION", "INSTALL_CUDA", "INSTALL_FFI", "LEAST_CUDA", "LEAST_FFI", "CudaHeaders", "FfiFiles",
    "cuda_headers", "cuda_places", "cuda_variables", "ffi_files", "find_cuda", "find_ffi",
]  # fmt: skip

LEAST_CUDA = (12, 8)
"""The least version of ``cuda.h``. What a launcher calls is of CUDA 12.0; the youngest launch attribute (preferred
clusters), swizzles and element types of tensor maps are of 12.8. It bounds the headers, not the driver."""

LEAST_FFI = (0, 1, 11)
"""The least version of TVM-FFI's C interface."""

FFI_DISTRIBUTION = "apache-tvm-ffi"
"""The distribution that brings TVM-FFI's headers and library."""

INSTALL_CUDA = "pip install nvidia-cuda-runtime (or set CUDA_HOME to a toolkit)"
"""What to do where there is no ``cuda.h``."""

INSTALL_FFI = f"pip install '{FFI_DISTRIBUTION}>={'.'.join(map(str, LEAST_FFI))}'"
"""What to do where there is no TVM-FFI."""

_CUDA_LANDMARK = "cuda.h"
_CUDA_VERSION = re.compile(rb"^\s*#\s*define\s+CUDA_VERSION\s+(\d+)", re.MULTILINE)
_HEAD_BYTES = 1 << 16
_FFI_VERSION = re.compile(rb"^\s*#\s*define\s+\w+_VERSION_(MAJOR|MINOR|PATCH)\s+(\d+)", re.MULTILINE)
_FFI_HEADER = ("tvm", "ffi", "c_api.h")
_DLPACK_HEADER = ("include", "dlpack", "dlpack.h")
_FFI_LIBRARY = "libtvm_ffi.so"
_CONDA, _ROOTS, _NVCC = ("CONDA_PREFIX",), ("CUDA_PATH", "CUDA_HOME"), "nvcc"
_WHEELS = ("nvidia/cu13/include", "nvidia/cuda_runtime/include")
_USUAL = ("/usr/local/cuda/include", "/usr/include")
_TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux")}


@dataclass(frozen=True, slots=True)
class CudaHeaders:
    """The headers of the CUDA driver's interface."""

    folder: str
    """The folder that holds ``cuda.h``."""

    version: tuple[int, int]
    """Their version: ``(13, 0)``."""

    grounds: Grounds = field(default=Grounds(lasting=False), repr=False, compare=False)
    """What it is these by, and no others: beside what `cuda_variables` returns."""


@dataclass(frozen=True, slots=True)
class FfiFiles:
    """The C interface of TVM-FFI."""

    folders: tuple[str, ...]
    """The folders that ``tvm/ffi/c_api.h`` and ``dlpack/dlpack.h`` are found in."""

    library: str
    """The library, to link with. Its soname is what a launcher asks for; its path is not."""

    version: tuple[int, int, int]
    """What the header says: the version of the interface, which may be ahead of the distribution's."""

    distribution: str
    """The version of the distribution."""

    grounds: Grounds = field(default=Grounds(lasting=False), repr=False, compare=False)
    """What it is these by, and no others: beside where the metadata of the distribution lie."""


def cuda_headers(plugin: str) -> CudaHeaders:
    """Return the first headers of CUDA that are new enough.

    Parameters
    ----------
    plugin
        Who needs them; named in the error.

    Raises
    ------
    BackendUnavailableError
        If there are none; it says which were too old, and what to install.
    """
    found = find_cuda()
    if found is not None:
        return found
    passed_over = [
        f"{place.path}: {place.note}"
        for place in cuda_places()
        if place.note and place.path and Path(place.path, _CUDA_LANDMARK).is_file()
    ]
    seen = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise BackendUnavailableError(
        plugin,
        "its toolchain",
        f"there is no cuda.h of CUDA {_text(LEAST_CUDA)} or newer{seen}; run: {INSTALL_CUDA}",
    )


def find_cuda() -> CudaHeaders | None:
    """Return the first headers of CUDA that are new enough; None if there are none."""
    looked_at: list[str] = [__file__]
    lasting = True
    for place in cuda_places():
        if place.path:
            looked_at.append(f"{place.path}/{_CUDA_LANDMARK}")
            # Where nvcc leads is a question of links and of PATH; another place depends on where the process is.
            lasting = lasting and place.origin != _NVCC and place.path.startswith("/")
        version = _cuda_version(Path(place.path)) if place.path and not place.note else None
        if version is not None:
            return CudaHeaders(place.path, version, Grounds(folders=frozenset(looked_at), lasting=lasting))
    return None


def cuda_variables() -> tuple[str | None, ...]:
    """Return the variables that tell where CUDA's headers may lie; None for one that is not set."""
    return tuple(os.environ.get(name) for name in (*_CONDA, *_ROOTS))


def cuda_places() -> Iterator[Place]:
    """Yield where CUDA's headers may lie: wheels, conda, ``CUDA_PATH``, ``CUDA_HOME``, nvcc, the usual folders.

    The order is that of ``cuda.pathfinder``. A place whose headers cannot be used has a note that says why.
    """
    targets = _TARGETS.get(platform.machine(), ())
    places = itertools.chain(
        wheel_places(_WHEELS),
        root_places(_CONDA, (f"targets/{target}/include" for target in targets)),
        root_places(_ROOTS, ("include",)),
        _nvcc_places(),
        (Place("the usual folder", folder) for folder in _USUAL),
    )
    for place in places:
        yield Place(place.origin, place.path, _cuda_problem(Path(place.path))) if place.path else place


def _nvcc_places() -> Iterator[Place]:
    """Yield where headers lie beside the compiler that is on ``PATH``: looked for by who comes so far."""
    nvcc = shutil.which(_NVCC)
    beside = os.fspath(Path(nvcc).resolve().parent.parent / "include") if nvcc else ""
    yield Place(_NVCC, beside, "" if nvcc else "it is not on PATH")


def ffi_files(plugin: str) -> FfiFiles:
    """Return the headers and the library of TVM-FFI, from its distribution.

    Parameters
    ----------
    plugin
        Who needs them; named in the error.

    Raises
    ------
    BackendUnavailableError
        If it is not installed, or too old; the error says what to install.
    """
    found = find_ffi()
    if isinstance(found, str):
        raise BackendUnavailableError(plugin, "its toolchain", f"{found}; run: {INSTALL_FFI}")
    return found


def find_ffi() -> FfiFiles | str:
    """Return TVM-FFI's files; if they cannot be used, what is wrong with them."""
    try:
        return _read_ffi(installed_stamps())
    except metadata.PackageNotFoundError:
        return f"{FFI_DISTRIBUTION} is not installed"
    except (OSError, ValueError) as error:
        return str(error)


@functools.lru_cache(4)
def _read_ffi(_installed: object) -> FfiFiles:
    """Return the files, after reading the distribution's list if that is not known. Failures are not remembered."""
    place = metadata_folder(FFI_DISTRIBUTION)
    question = json.dumps(["the files of TVM-FFI", LEAST_FFI, place])
    said = remembered(question, lambda: _ask_ffi(place), noted=False)
    folders, library, version, distribution = json.loads(said["files"])
    read, candidates = (frozenset(json.loads(said[name])) for name in ("read", "candidates"))
    grounds = Grounds(read, candidates, place is not None)
    return FfiFiles(tuple(folders), library, tuple(version), distribution, grounds)


def _ask_ffi(place: str | None) -> Answer:
    """Return the files that the distribution lists, and all that this depends on."""
    found = distribution_of(FFI_DISTRIBUTION)
    names = (_FFI_HEADER[-1], _DLPACK_HEADER[-1], _FFI_LIBRARY)
    listed = [line.partition(",")[0] for line in (found.read_text("RECORD") or "").splitlines()]
    # Of hundreds only these: most of the time went into making paths of the others.
    files = [Path(str(found.locate_file(file))) for file in listed if file.endswith(names)]
    header = _ending(files, *_FFI_HEADER)
    dlpack = _ending(files, *_DLPACK_HEADER)
    library = _ending(files, _FFI_LIBRARY)
    lines = b"\n".join(line for line in header.read_bytes().splitlines() if b"_VERSION_" in line)
    numbers = {part: int(number) for part, number in _FFI_VERSION.findall(lines)}
    major, minor, patch = (numbers.get(part, -1) for part in (b"MAJOR", b"MINOR", b"PATCH"))
    if (major, minor, patch) < LEAST_FFI:
        said = "of no known version" if major < 0 else f"of version {major}.{minor}.{patch}"
        raise ValueError(f"{header} is {said}; {_text(LEAST_FFI)} or newer is needed")
    folders = dict.fromkeys((str(header.parents[2]), str(dlpack.parents[1])))
    files_said = [*folders], str(library), (major, minor, patch), version_of(FFI_DISTRIBUTION) or ""
    metadata_read = () if place is None else (f"{place}/{name}" for name in ("RECORD", "METADATA"))
    read = (*metadata_read, *map(str, (header, dlpack, library)))
    candidates = (*map(str, files), __file__)  # one that is listed and not there may come first once it is
    told = {"files": files_said, "read": read, "candidates": candidates}
    grounds = Grounds(frozenset(read), frozenset(candidates), place is not None)
    return grounds.answer({name: json.dumps(value) for name, value in told.items()})


def _ending(files: list[Path], *parts: str) -> Path:
    found = [file for file in files if file.parts[-len(parts) :] == parts and file.is_file()]
    if not found:
        raise ValueError(f"{FFI_DISTRIBUTION} is installed without {'/'.join(parts)}")
    return min(found, key=lambda file: len(file.parts))  # a copy for builds of the library itself lies deeper


def _cuda_problem(folder: Path) -> str:
    """Return why the headers in a folder cannot be used; empty if they can, or if there is no such folder."""
    if not folder.is_dir():
        return ""
    version = _cuda_version(folder)
    if version is None:
        landmark = (folder / _CUDA_LANDMARK).is_file()
        return (
            f"its {_CUDA_LANDMARK} does not say its version" if landmark else f"it holds no {_CUDA_LANDMARK}"
        )
    if version < LEAST_CUDA:
        return f"it is of CUDA {_text(version)}; {_text(LEAST_CUDA)} or newer is needed"
    return ""


def _cuda_version(folder: Path) -> tuple[int, int] | None:
    path = folder / _CUDA_LANDMARK
    try:
        details = path.stat()
        number = _cuda_number(
            path, (details.st_ctime_ns, details.st_mtime_ns, details.st_size, details.st_ino)
        )
    except OSError:
        return None
    return (number // 1000, number % 1000 // 10) if number else None


@functools.cache
def _cuda_number(path: Path, _stamp: tuple[int, ...]) -> int:
    with path.open("rb") as file:  # of more than a megabyte it is near the head
        found = _CUDA_VERSION.search(file.read(_HEAD_BYTES)) or _CUDA_VERSION.search(file.read())
    return int(found[1]) if found else 0


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
