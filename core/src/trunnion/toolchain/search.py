"""Where libraries and headers may lie, and why one place is taken and another is not."""

from __future__ import annotations

import functools
import os
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.contract.diagnosis import Candidate
from trunnion.storage.remembered import Grounds
from trunnion.storage.stamps import stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.storage.stamps import Stamp

__all__ = [
    "Place", "earlier_on_path", "installed_stamps", "judge", "listed_by_loader", "loader_places", "path_text",
    "root_places", "site_folders", "wheel_places",
]  # fmt: skip

_SECONDS = 10.0
_LOADER_CACHE = "/etc/ld.so.cache"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something may lie."""

    origin: str
    """Who names the place."""

    path: str
    """The file or folder; empty if the origin names none on this machine."""

    note: str = ""
    """Why it names none, or why what lies there cannot be used even if it exists."""


def site_folders() -> tuple[str, ...]:
    """Return the folders that installed packages lie in, in the order in which they are searched for libraries."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        # An environment's own packages come first; outside of one, the user's.
        folders.insert(1 if sys.prefix != sys.base_prefix else 0, site.getusersitepackages())
    return tuple(dict.fromkeys(folders))


def installed_stamps() -> tuple[tuple[str, Stamp | None], ...]:
    """Return what changes when a package is installed, removed or replaced where this process imports from."""
    return tuple((path, stamp(path or ".")) for path in sys.path)


def wheel_places(paths: Iterable[str]) -> Iterator[Place]:
    """Yield where wheels put something.

    Parameters
    ----------
    paths
        The path of each layout, relative to the folder of installed packages.
    """
    folders = site_folders()
    for path in paths:
        for folder in folders:
            yield Place("a wheel", os.path.join(folder, path))  # noqa: PTH118 - a hit of a cache waits for it


def root_places(variables: Iterable[str], paths: Iterable[str]) -> Iterator[Place]:
    """Yield where something lies below the folders that environment variables name.

    Parameters
    ----------
    variables
        The variables, the first one that counts first.
    paths
        The paths below each.
    """
    relative = tuple(paths)
    for variable in variables:
        root = os.environ.get(variable, "")
        if not root:
            yield Place(variable, "", "it is not set")
            continue
        for path in relative:
            yield Place(variable, os.fspath(Path(root, path)))


def earlier_on_path(name: str) -> Grounds:
    """Return what decides which program of a name is the one on ``PATH``, beside the program itself."""
    tried = []
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)  # noqa: PTH118 - as text: a Path for each takes longer than to look
        if not os.path.isabs(path):  # noqa: PTH117 - likewise; it depends on where the process is
            return Grounds(lasting=False)
        tried.append(path)
        if shutil.which(path):
            break
    return Grounds(folders=frozenset(tried))


def loader_places(soname: str) -> Iterator[Place]:
    """Yield where the dynamic loader looks for a library: ``LD_LIBRARY_PATH``, its cache, its default folders."""
    listed = os.environ.get("LD_LIBRARY_PATH", "")
    if not listed:
        yield Place("LD_LIBRARY_PATH", "", "it is not set")
    for folder in listed.split(":") if listed else ():
        yield Place("LD_LIBRARY_PATH", os.fspath(Path(folder or ".", soname)))
    cached = listed_by_loader(soname)
    yield from (Place("the loader's cache", path) for path in cached)
    if not cached:
        yield Place("the loader's cache", "", f"it does not list {soname}")
    for folder in ("/lib64", "/usr/lib64", "/lib", "/usr/lib"):
        yield Place("the loader's default", os.fspath(Path(folder, soname)))


def judge(places: Iterable[Place], chosen: str, origin: str = "") -> tuple[Candidate, ...]:
    """Return what became of each place.

    Parameters
    ----------
    places
        Every place, in the order of the search.
    chosen
        The file or folder that is used; empty if there is none.
    origin
        Who found it, for the case that none of the places is that one.
    """
    found = False
    judged: list[Candidate] = []
    for place in dict.fromkeys(places):
        taken = not found and bool(chosen) and bool(place.path) and _same(place.path, chosen)
        found = found or taken
        reason = "this one is used" if taken else _rejection(place, chosen)
        judged.append(Candidate(place.origin, path_text(place.path), taken, reason))
    if chosen and not found:
        judged.append(Candidate(origin or "found elsewhere", path_text(chosen), True, "this one is used"))
    return tuple(judged)


def _rejection(place: Place, chosen: str) -> str:
    path = Path(place.path)
    if not place.path:
        reason = place.note or "it names no place here"
    elif path.is_symlink() and not path.exists():
        reason = "a link to nothing"
    elif not path.exists():
        reason = "it does not exist" if path.parent.is_dir() else "its folder does not exist"
    elif place.note:
        reason = place.note
    elif chosen:
        reason = "the same, under another name" if _same(place.path, chosen) else "another one comes first"
    else:
        reason = "it is there, and could not be used"
    return reason


def _same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return Path(one) == Path(other)


def path_text(path: str) -> str:
    """Return a path as text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def listed_by_loader(soname: str) -> list[str]:
    """Return the paths at which the dynamic loader's cache lists a library."""
    tool = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if tool is None:
        return []
    try:
        lines = os.fsdecode(_listed(tool, stamp(_LOADER_CACHE))).splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []
    pairs = (line.strip().partition(" => ") for line in lines)
    return [path for name, _, path in pairs if path and name.partition(" (")[0] == soname]


@functools.lru_cache(4)
def _listed(tool: str, _cache: Stamp | None) -> bytes:
    """Return what the loader's cache lists: asked for as long as it is the same, because that takes a process."""
    return subprocess.run([tool, "-p"], capture_output=True, check=False, timeout=_SECONDS).stdout
