"""What this plugin's toolchain consists of, where ``cuda.pathfinder`` finds it, and where else it was looked for.

``cuda.pathfinder`` says what it takes and not what it passed over, so the places are listed here, in the order that
its documentation gives. It runs in a process of its own: no library stays loaded, and none is initialised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.contract.diagnosis import Component
from trunnion.toolchain.host_headers import cuda_places
from trunnion.toolchain.inquiry import inquire
from trunnion.toolchain.search import Place, judge, loader_places, path_text, root_places, wheel_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "MAJOR",
    "Installed",
    "bindings",
    "builtins",
    "find_toolchain",
    "headers",
    "library",
    "nvrtc_in_wheels",
    "spare_headers",
]

MAJOR = 13
"""The major version of CUDA that this plugin is written for."""

Installed = tuple[Component, tuple[int, int] | None]
"""A component, and its version as two numbers; None if it is not there, or does not say."""

_ROOTS = ("CUDA_PATH", "CUDA_HOME")
_APART = "crt/mma.h"
"""A header that others of CUDA's include, and that is in a wheel of its own (nvidia-cuda-crt)."""
_HOST = "stdlib.h"
_HEAD_BYTES = 1 << 16
"""How much of a header is read for its version, which it says near its start."""
_CUDART_VERSION = re.compile(r"#\s*define\s+CUDART_VERSION\s+(\d+)")
_CCCL_VERSION = re.compile(r"#\s*define\s+CCCL_VERSION\s+(\d+)")
_ASK = """
import ctypes, json
from cuda import pathfinder

def library(name, version):
    try:
        found = pathfinder.load_nvidia_dynamic_lib(name)
    except Exception as error:
        return {"failure": str(error).strip().partition("\\n")[0]}
    answer = {"path": found.abs_path or "", "origin": str(getattr(found, "found_via", ""))}
    ask = getattr(ctypes.CDLL(found.abs_path), version, None) if found.abs_path else None
    numbers = ctypes.c_int(), ctypes.c_int()
    if ask is not None and ask(*map(ctypes.byref, numbers)) == 0:
        answer["version"] = [number.value for number in numbers]
    return answer

def headers(name):
    try:
        return {"path": pathfinder.find_nvidia_header_directory(name) or ""}
    except Exception as error:
        return {"failure": str(error).strip().partition("\\n")[0]}

print(json.dumps({
    "nvrtc": library("nvrtc", "nvrtcVersion"),
    "nvJitLink": library("nvJitLink", "nvJitLinkVersion"),
    "cudart": headers("cudart"),
    "cccl": headers("cccl"),
}))
"""


@dataclass(frozen=True, slots=True)
class _Library:
    """Where one library lies."""

    soname: str
    """The name without its version: ``"libnvrtc.so"``."""

    wheels: tuple[str, ...]
    """The folder of each layout of its wheels, the newest first."""


@dataclass(frozen=True, slots=True)
class _Headers:
    """Where one set of headers lies."""

    landmark: str
    """A header that tells that they are there."""

    wheels: tuple[str, ...]
    """The folder of each layout of its wheels, the newest first."""

    folders: tuple[str, ...]
    """The folders below a toolkit's root."""


_LIBRARIES = {
    "nvrtc": _Library("libnvrtc.so", ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")),
    "nvJitLink": _Library("libnvJitLink.so", ("nvidia/cu13/lib", "nvidia/nvjitlink/lib")),
}
_HEADERS = {
    "cudart": _Headers(
        "cuda_runtime.h", ("nvidia/cu13/include", "nvidia/cuda_runtime/include"), ("include",)
    ),
    "cccl": _Headers(
        "cuda/std/version",
        ("nvidia/cu13/include/cccl", "nvidia/cuda_cccl/include"),
        ("include/cccl", "include"),
    ),
}


def find_toolchain() -> Mapping[str, Mapping[str, Any]]:
    """Return what ``cuda.pathfinder`` finds: for each of nvrtc, nvJitLink, cudart and cccl its path, or the failure."""
    answer = inquire(_ASK)
    if "failure" in answer:
        return {name: {"failure": answer["failure"]} for name in (*_LIBRARIES, *_HEADERS)}
    return answer


def bindings() -> Installed:
    """Return the distribution ``cuda-bindings``."""
    name = "cuda-bindings"
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return Component(name=name, kind="distribution", detail="not installed"), None
    place = str(found.locate_file("cuda/bindings"))
    component = Component(name=name, kind="distribution", version=found.version, chosen=path_text(place))
    return component, _numbers(found.version)


def library(name: str, answer: Mapping[str, Any]) -> Installed:
    """Return a library with every place where it may lie.

    Parameters
    ----------
    name
        ``"nvrtc"`` or ``"nvJitLink"``.
    answer
        What `find_toolchain` says of it.
    """
    said = answer.get("version")
    version = (int(said[0]), int(said[1])) if isinstance(said, list) else None
    path = str(answer.get("path", ""))
    component = Component(
        name=name,
        kind="library",
        version="" if version is None else f"{version[0]}.{version[1]}",
        chosen=path_text(path),
        detail=str(answer.get("failure", "")),
        candidates=judge(_library_places(_LIBRARIES[name]), path, str(answer.get("origin", ""))),
    )
    return component, version


def headers(name: str, answer: Mapping[str, Any]) -> Installed:
    """Return a folder of headers with every place where it may lie.

    Parameters
    ----------
    name
        ``"cudart"`` or ``"cccl"``.
    answer
        What `find_toolchain` says of it.
    """
    path = str(answer.get("path", ""))
    version = _headers_version(name, Path(path)) if path else None
    component = Component(
        name=f"{name} headers",
        kind="headers",
        version="" if version is None else f"{version[0]}.{version[1]}",
        chosen=path_text(path),
        detail=str(answer.get("failure", "")),
        candidates=judge(_header_places(_HEADERS[name]), path, "the toolkit of the loader's libcudart"),
    )
    return component, version


def spare_headers(folder: str) -> str | None:
    """Return where else the headers of ``crt/`` are that a folder of CUDA's lacks, as a wheel's does.

    Parameters
    ----------
    folder
        CUDA's headers as they are found.

    Returns
    -------
    str | None
        Headers of the same major version, such as a toolkit's; empty if there are none, None if nothing is lacking.
    """
    version = None if Path(folder, _APART).is_file() else _headers_version("cudart", Path(folder))
    if version is None:
        return None
    for place in cuda_places():
        # Among the host's own headers, those that NVRTC cannot read would be found too.
        if place.path and Path(place.path, _APART).is_file() and not Path(place.path, _HOST).exists():
            there = _headers_version("cudart", Path(place.path))
            if there is not None and there[0] == version[0]:
                return place.path
    return ""


def builtins(nvrtc: Component) -> Component:
    """Return the library that NVRTC loads from beside itself when it compiles."""
    folder = Path(nvrtc.chosen).parent
    found = sorted(str(path) for path in folder.glob("libnvrtc-builtins.so*")) if nvrtc.chosen else []
    return Component(
        name="nvrtc-builtins",
        kind="library",
        version=Path(found[-1]).name.partition(".so.")[2] if found else "",
        chosen=path_text(found[-1]) if found else "",
        candidates=judge((Place("beside libnvrtc", path) for path in found), found[-1] if found else ""),
    )


def nvrtc_in_wheels() -> tuple[str, ...]:
    """Return each path that NVRTC has in a wheel, in the order in which they are looked at; nothing may be there."""
    return tuple(place.path for place in _wheels(_LIBRARIES["nvrtc"]))


def _wheels(wanted: _Library) -> Iterator[Place]:
    names = [f"{wanted.soname}.{major}" for major in (MAJOR, MAJOR - 1)]
    return wheel_places(f"{folder}/{name}" for folder in wanted.wheels for name in names)


def _library_places(wanted: _Library) -> Iterator[Place]:
    """Yield where a library may lie: wheels, conda, the loader, the toolkit; in each the newest version first."""
    names = tuple(f"{wanted.soname}.{major}" for major in (MAJOR, MAJOR - 1))
    yield from _wheels(wanted)
    yield from root_places(("CONDA_PREFIX",), (f"{f}/{name}" for f in ("lib64", "lib") for name in names))
    for name in names:
        yield from loader_places(name)
    yield from root_places(_ROOTS, (f"{f}/{name}" for f in ("lib64", "lib") for name in names))


def _header_places(wanted: _Headers) -> Iterator[Place]:
    """Yield where headers may lie: wheels, conda, the toolkit; a folder without the landmark cannot be used."""
    below = [f"targets/x86_64-linux/{folder}" for folder in wanted.folders]
    places = [*wheel_places(wanted.wheels), *root_places(("CONDA_PREFIX",), below)]
    places += root_places(_ROOTS, wanted.folders)
    for place in places:
        bare = place.path and not Path(place.path, wanted.landmark).is_file()
        yield Place(place.origin, place.path, f"it holds no {wanted.landmark}") if bare else place


def _headers_version(name: str, folder: Path) -> tuple[int, int] | None:
    """Return what the headers say of their own version; CCCL counts by itself, so it cannot be compared with CUDA's."""
    file, pattern = {
        "cudart": ("cuda_runtime_api.h", _CUDART_VERSION),
        "cccl": ("cuda/std/__cccl/version.h", _CCCL_VERSION),
    }[name]
    try:
        with (folder / file).open("rb") as text:
            found = pattern.search(text.read(_HEAD_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None
    if found is None:
        return None
    number = int(found[1])
    if name == "cccl":
        return number // 1_000_000, number // 1000 % 1000
    return number // 1000, number % 1000 // 10


def _numbers(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None
