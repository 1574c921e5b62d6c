"""What is installed of trunnion, and what can be: read from the metadata of distributions, never by importing one."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import time
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from trunnion.messages import nearest
from trunnion.storage.remembered import Answer, remembered
from trunnion.storage.stamps import Stamp, is_file, stamps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from importlib.metadata import Distribution, EntryPoint
    from typing import TypeAlias

    _Folders: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]  # of each its stamp

__all__ = [
    "PREFIX", "announced", "canonical", "distribution_of", "installation_hint", "installed", "metadata_folder",
    "name_and_version", "packages", "requirements", "usual_distribution", "version_of",
]  # fmt: skip

PREFIX = "trunnion-"
"""What the names of distributions begin with that bring a plugin or an importer, as a rule."""

_EVERY = "pip install 'trunnion[all]'"
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_SEPARATORS = re.compile(r"[-_.]+")
_MOST_AT_ONCE = 1 << 20
_POINTS = "entry_points.txt"
_USUAL = "trunnion"  # the group of whose entry points every process asks
_MOST_KNOWN = 4
_WRITTEN_AGAIN = ".egg-info"
_METADATA = (".dist-info", _WRITTEN_AGAIN)
_WRITING = 60_000_000_000  # nanoseconds in which an installer is done with a distribution's metadata
_VERSION = re.compile(r"\A(?:[!-~]+:.*\n(?:[ \t].*\n)*)*?Version: *(\S+)")
"""The version in the head of a distribution's metadata."""


def canonical(name: str) -> str:
    """Return a distribution's name in the one form in which names are compared (PEP 503)."""
    plain = name.isidentifier() and "__" not in name  # as most are: no pattern has to be tried
    return name.replace("_", "-").lower() if plain else _SEPARATORS.sub("-", name).lower()


def announced(group: str, *, anew: bool = False) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group: of two distributions of one name, those of the one that Python finds first.

    It is what `importlib.metadata.entry_points` returns, which reads all that every distribution announces, takes four
    times as long, and raises for everybody where one of them is damaged. Here a line that announces nothing is an entry
    point without a value, which fails when it is imported, alone.

    Raises
    ------
    OSError
        If the system lets nobody read them.
    """
    folders = _searched()
    if folders is None:
        return tuple(
            _point_class()(name, value, group, one)
            for one in installed().values()
            for name, value in _lines(_text_of(one, _POINTS), group)
        )
    own = _own(folder for folder, _ in folders)
    # As it is now: who is installed may announce something else since.
    said = _installed_in(own, group, anew=anew)
    known, found, made = json.loads(said[_POINTS]), list[Any](), _point_class()
    for place in _names_in(folders, said).values():
        theirs = known.get(place, ()) if place.rpartition("/")[0] in own else _announced_at(place, group)
        found += (made(name, value, group, place) for name, value in theirs)
    return tuple(found)


def _announced_at(place: str, group: str) -> list[tuple[str, str]]:
    """Return names and values of a group's entry points, of a distribution whose metadata lie at a place."""
    return _lines(_read(place, _POINTS).decode("utf-8", "replace"), group)


def _lines(said: str, group: str) -> list[tuple[str, str]]:
    """Return the lines of a group in what a distribution announces, as names and values; of a damaged one no value."""
    if f"[{group}]" not in said:  # as most say nothing of it
        return []
    section, found = "", list[tuple[str, str]]()
    for line in map(str.strip, said.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line.strip("[]")
        elif section == group and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.append((name.strip(), value.strip()))
    return found


@functools.cache
def _point_class() -> Callable[[str, str, str, str | Distribution], EntryPoint]:
    """Return the class of an entry point of a distribution, or of one whose metadata lie at a place."""
    from importlib import metadata  # noqa: PLC0415 - takes longer to import than all of trunnion

    class Point(metadata.EntryPoint):
        """Its distribution is looked at when somebody wants to know it."""

        def __init__(self, name: str, value: str, group: str, place: str | Distribution) -> None:
            super().__init__(name=name, value=value, group=group)
            vars(self)["place"] = place  # of its class nothing can be set by name

        @property
        def dist(self) -> Distribution:  # type: ignore[override]  # which is what importlib sets
            place = vars(self)["place"]
            return metadata.Distribution.at(place) if isinstance(place, str) else place

    return Point


def distribution_of(name: str) -> Distribution:
    """Return the distribution of a canonical name, as `importlib.metadata.distribution` does.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        If there is none.
    """
    from importlib import metadata  # noqa: PLC0415 - as above

    places = _metadata_folders()
    return (
        metadata.distribution(name)
        if not places or name not in places
        else metadata.Distribution.at(places[name])
    )


def metadata_folder(name: str) -> str | None:
    """Return where the metadata of the distribution of a canonical name lie; None where only `importlib` can tell."""
    return (_metadata_folders() or {}).get(name)


def version_of(name: str) -> str | None:
    """Return the version of the distribution of a canonical name; None if there is none.

    It is what `importlib.metadata.version` returns, which takes the description apart as well.
    """
    from importlib import metadata  # noqa: PLC0415 - as above

    try:
        found = distribution_of(name)
    except metadata.PackageNotFoundError:
        return None
    said = _VERSION.search(_text_of(found, "METADATA"))
    return said[1] if said else name_and_version(found)[1] or None


def _metadata_folders() -> dict[str, str] | None:
    """Return where the metadata of distributions lie, by canonical name: of each name those that Python finds first.

    None where anybody but Python itself finds distributions, or one may lie elsewhere than in a folder.
    """
    folders = _searched()
    if folders is None:
        return None
    known = _names().get(folders)
    return _names_in(folders, _installed_in(_own(one for one, _ in folders))) if known is None else known


def _searched() -> _Folders | None:
    """Return the folders in which Python looks for distributions, as they are now; None as `_metadata_folders`."""
    others = [one for one in sys.meta_path if hasattr(one, "find_distributions")]
    said: list[Any] = sys.path  # also what is no text, such as a Path, from which Python imports nothing
    paths = dict.fromkeys(path or os.curdir for path in said if isinstance(path, str))
    found = zip(paths, stamps(paths), strict=True)
    folders = tuple((path, status) for path, status in found if status is not None)
    archives = any(path.endswith(".egg") or is_file(status) for path, status in folders)
    return folders if others == [PathFinder] and not archives else None


@functools.cache
def _names() -> dict[_Folders, dict[str, str]]:
    """Return what this process knows of folders that are searched, as long as nothing comes or goes there."""
    return {}


def _names_in(folders: _Folders, said: Mapping[str, str]) -> dict[str, str]:
    """Return where metadata lie, by name, in folders of which the own ones are known."""
    found: dict[str, str] = {}
    for folder, _ in folders:
        found = (_split(folder, said[folder]) if folder in said else _named_in(folder)) | found
    known = _names()
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[folders] = found
    return found


def _installed_in(own: Iterable[str], group: str = _USUAL, *, anew: bool = False) -> Mapping[str, str]:
    """Return what lies in this Python's own folders: of each the names, and for all who announces what of a group."""
    folders = [*own]

    def ask() -> Answer:
        named = {folder: _named_in(folder) for folder in folders}
        places = [place for names in named.values() for place in names.values()]
        known = {place: pairs for place in places if (pairs := _announced_at(place, group))}
        # Installers write metadata once, and replace the whole folder; setuptools writes an egg-info's again in place.
        written = [place for place in places if place in known or place.endswith(_WRITTEN_AGAIN)]
        files = (*folders, *(f"{place}/{_POINTS}" for place in written), __file__)
        said = {folder: _joined(names) for folder, names in named.items()}
        return Answer(
            {**said, _POINTS: json.dumps(known)}, folders=frozenset(files), lasting=_are_whole(places)
        )

    return remembered(json.dumps(["what is installed", group, folders]), ask, noted=False, anew=anew)


def _are_whole(places: Iterable[str]) -> bool:
    """Whether nothing has come into any of some folders lately: an installer may still be about to write there."""
    now = time.time_ns()
    return all(one is None or now - Stamp(*one).changed_ns > _WRITING for one in stamps(places))


def _joined(named: Mapping[str, str]) -> str:
    """Return names and folders of metadata as one text that is quickly read: no name of a file has its separator."""
    return "/".join(f"{name}/{place.rpartition('/')[2]}" for name, place in named.items())


def _split(folder: str, joined: str) -> dict[str, str]:
    parts = iter(joined.split("/")) if joined else iter(())
    return {name: f"{folder}/{place}" for name, place in zip(parts, parts, strict=True)}


def _own(paths: Iterable[str]) -> list[str]:
    """Return those paths that are below this Python's own folders, where little changes; others may hold anything."""
    roots = tuple(f"{root.rstrip('/')}/" for root in (sys.prefix, sys.base_prefix))
    return [path for path in paths if path.startswith(roots)]


def _named_in(folder: str) -> dict[str, str]:
    """Return where the metadata of each distribution in a folder lie, by canonical name."""
    try:
        names = [one for one in os.listdir(folder) if one.endswith(_METADATA)]  # noqa: PTH208 - hundreds of paths take too long
    except (
        FileNotFoundError,
        NotADirectoryError,
        PermissionError,
    ):  # passed over, as when something is imported
        return {}
    # Of two of one name, which an upgrade leaves that was broken off, importlib takes the one that is listed first.
    return {
        canonical(name.rpartition(".")[0].partition("-")[0]): f"{folder}/{name}" for name in reversed(names)
    }


def _read(folder: str, name: str) -> bytes:
    try:
        # A file object takes twice as long.
        descriptor = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # it says nothing that anybody can read
        return b""
    try:
        parts = []
        while part := os.read(descriptor, _MOST_AT_ONCE):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def installed() -> dict[str, Distribution]:
    """Return every distribution by its canonical name: of two of one name the one that Python finds first."""
    from importlib import metadata  # noqa: PLC0415 - takes longer to import than all of trunnion

    found: dict[str, Distribution] = {}
    for distribution in metadata.distributions():
        name, _ = name_and_version(distribution)  # one whose metadata are damaged may have none
        found.setdefault(canonical(name), distribution)
    return found


def name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Return a distribution's name and version; of damaged metadata what their folder is called, or empty texts.

    Parameters
    ----------
    distribution
        The distribution.
    """
    try:
        return distribution.name or "", distribution.version or ""
    except UnicodeError:
        folder = str(getattr(distribution, "_path", "")).rpartition("/")[2]  # no public name
        name, _, version = folder.rpartition(".")[0].partition("-")
        return name, version


def _text_of(distribution: Distribution, name: str) -> str:
    """Return a file of a distribution's metadata; empty if there is none, or it is no text."""
    try:
        return distribution.read_text(name) or ""
    except UnicodeError:
        return ""


def packages() -> dict[str, tuple[str, ...]]:
    """Return the distributions that bring each package or module that can be imported, by canonical name.

    It is what `importlib.metadata.packages_distributions` returns, which raises where one of them is damaged.
    """
    found: dict[str, tuple[str, ...]] = {}
    for owner, distribution in installed().items():
        for name in _top_level(distribution):
            found[name] = (*found.get(name, ()), owner)
    return found


def _top_level(distribution: Distribution) -> Iterable[str]:
    """Return the names of what a distribution brings to be imported."""
    import csv  # noqa: PLC0415 - only who exports a wheel asks
    import inspect  # noqa: PLC0415 - as above

    declared = _text_of(distribution, "top_level.txt").split()
    try:
        files = () if declared else distribution.files or ()
    except (UnicodeError, ValueError, csv.Error):
        files = ()
    inferred = (one.parts[0] if len(one.parts) > 1 else inspect.getmodulename(one) for one in files)
    return declared or {name for name in inferred if name and "." not in name}


def requirements(distribution: Distribution) -> dict[str, frozenset[str]]:
    """Return the canonical names of what a distribution requires, each with the extras that ask for it.

    Parameters
    ----------
    distribution
        The distribution.

    Returns
    -------
    dict[str, frozenset[str]]
        No extra beside a name: it is required always.
    """
    found: dict[str, frozenset[str]] = {}
    for line in _requires(distribution):
        name = _NAME.match(line)
        if name is not None:
            extras = frozenset(canonical(extra) for extra in _EXTRA.findall(line))
            known = found.get(canonical(name[1]))
            # What is required always needs no extra, whoever else asks for it.
            every = extras if known is None else known | extras if known and extras else frozenset[str]()
            found[canonical(name[1])] = every
    return found


def _requires(distribution: Distribution) -> Iterable[str]:
    try:
        return distribution.requires or ()
    except UnicodeError:  # of damaged metadata nothing is known
        return ()


def usual_distribution(name: str) -> str:
    """Return the distribution that brings a plugin of that name, as a rule."""
    return PREFIX + canonical(name)


def installation_hint(name: str, role: str, known: Iterable[str] = ()) -> str:
    """Return what to install for a plugin that is not there; empty if one that is there was meant.

    Parameters
    ----------
    name
        What was asked for.
    role
        What it should have been, in words.
    known
        The names of those that are there.
    """
    if nearest(name, known):
        return ""
    there = installed()
    wanted = usual_distribution(name)
    if wanted in there:
        return f"{wanted} is installed and announces no {role} of that name"
    extras = _extras(there.get("trunnion"))
    meant = nearest(name, (extra for extra in extras if PREFIX + extra not in there))
    if meant:
        return f"{PREFIX}{meant} is not installed: pip install 'trunnion[{meant}]'"
    return f"for more: {_EVERY}, or the distribution that brings one, as a rule {PREFIX}<name>"


def _extras(core: Distribution | None) -> Iterable[str]:
    """Return those extras of core that install the distribution of their name."""
    needed = {} if core is None else requirements(core)
    return [
        name.removeprefix(PREFIX)
        for name, extras in needed.items()
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) in extras
    ]
