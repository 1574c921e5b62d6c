"""Which headers a source can reach, and where CUDA's own are."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trunnion.storage.stamps import Stamp, stamp
from trunnion.toolchain.directives import may_lead_out, may_paste, may_quote, mentions, quoted_names
from trunnion_nvrtc.installation import spare_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trunnion.model.code import DeviceCode
    from trunnion.toolchain.directives import Mention

__all__ = [
    "ReachableHeaders",
    "file_digest",
    "find_header",
    "host_headers",
    "needs_toolkit",
    "reachable_headers",
    "tells_time",
    "toolkit_directories",
]

_T = TypeVar("_T")
_LIBRARIES = ("cudart", "cccl")
_LIBRARY_FOLDER = "cccl"
_MOST_FILES = 2000
_MOST_BYTES = 64 << 20
_TIME = re.compile(rb"__(?:DATE|TIME|TIMESTAMP)__")
_SETTLED = 2_000_000_000
"""How long ago a file must have changed, in nanoseconds, for another change to show in its stamp: file systems count in
as much as two seconds."""


def needs_toolkit(code: DeviceCode, first: Sequence[str] = ()) -> bool:
    """Whether a source includes anything that is not in memory, so that CUDA's headers have to be found.

    Parameters
    ----------
    code
        The source, and its headers in memory.
    first
        What is included before the source (``--pre-include``).
    """
    held = {name for name, _ in code.includes}
    texts = _own_texts(code)
    return (
        any(name not in held for name in first)
        or any(map(may_paste, texts))
        or any(mention.name not in held for text in texts for mention in mentions(text))
    )


def toolkit_directories() -> tuple[str, ...]:
    """Return the directories of CUDA's headers on this machine; empty if there are none.

    They come from wheels (``nvidia/cu13/include`` as well as ``nvidia/cuda_runtime/include``), a conda
    environment or a toolkit, in the order of ``cuda.pathfinder``. CUDA's C++ library is found under both of its names:
    ``<cuda/std/…>``, and ``<cccl/cuda/std/…>``, which CUTLASS writes. What a wheel lacks (``crt/``, which ``mma.h``
    includes) comes from a toolkit of the same major version, if there is one.
    """
    from cuda.pathfinder import find_nvidia_header_directory  # noqa: PLC0415 - only sources with includes need it

    found = [directory for library in _LIBRARIES if (directory := find_nvidia_header_directory(library))]
    # Last, because beside a toolkit's library lie all of its headers, and a wheel's may be those of NVRTC's version.
    above = [str(Path(directory).parent) for directory in found if Path(directory).name == _LIBRARY_FOLDER]
    spare = [spare_headers(str(found[0])) or ""] if found else []
    return tuple(filter(None, dict.fromkeys((*map(str, found), *above, *spare))))


def host_headers() -> str:
    """Return the directory of this distribution's own headers: a few of the host's that NVRTC lacks.

    It comes before the toolkit's directories and after an author's own. Each of its headers hands on to libcu++ or to
    the toolkit's header where there is one; ``cuda.h`` alone does not: NVRTC refuses the functions of the toolkit's.
    """
    return str(Path(__file__).parents[1] / "host_headers")


def find_header(name: str, directories: Iterable[str]) -> str | None:
    """Return the path of the first file of that name in the directories; None if there is none."""
    found = _find(name, directories, every=False)
    return found[0][0] if found else None


@dataclass(frozen=True, slots=True)
class ReachableHeaders:
    """Every header that a source could include."""

    held: tuple[str, ...] = ()
    """Names of headers in memory, sorted."""

    files: tuple[str, ...] = ()
    """Absolute paths of files, sorted."""

    versions: tuple[Stamp, ...] = field(default=(), repr=False)
    """For each file what changes when somebody writes to it."""

    complete: bool = True
    """Whether these are all. They are not if a macro makes up a name, and the include path has more files than are
    worth reading, or if it could make up ``__has_include``: then nobody can tell when an image is stale."""

    on_disk: bool = False
    """Whether a file that is not in the working directory could be read."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of headers in memory, and paths of files, sorted together."""
        return tuple(sorted({*self.held, *self.files}))

    def fresh_digests(self) -> tuple[str, ...]:
        """Return the digest of each file that changed just now: another change might not show in its version."""
        pairs = zip(self.files, self.versions, strict=True)
        return tuple(_digest(path)[0] for path, version in pairs if not _settled(version))


def reachable_headers(
    code: DeviceCode, directories: Sequence[str], first: Sequence[str] = (), toolkit: Sequence[str] = ()
) -> ReachableHeaders:
    """Return every header that a source could include, directly or not.

    NVRTC does not say which headers it read, so all that any ``#include`` or ``__has_include`` names is followed,
    whatever ``#if`` stands around it. Where a macro makes up the name, it could be any file of ``directories``.

    Parameters
    ----------
    code
        The source, and its headers in memory.
    directories
        Where headers are looked for, in order.
    first
        What is included before the source (``--pre-include``).
    toolkit
        Where they are looked for after that: the directories of CUDA's own headers, of which none includes what a
        macro of somebody else makes up.
    """
    return _Search(code, directories, toolkit).run(first)


def file_digest(path: str, version: Stamp) -> str:
    """Return the SHA-256 of a header file; the reason if it cannot be read, which may change too.

    With it stands a value that never comes again where the file has a macro that is the time.

    Parameters
    ----------
    path
        Where it is.
    version
        Its version, as `ReachableHeaders` has it: one that has settled is read once in a process.
    """
    digest, timed = _known_digest(path, version) if _settled(version) else _digest(path)
    return f"{digest} at {uuid.uuid4().hex}" if timed else digest


def tells_time(code: DeviceCode) -> bool:
    """Whether a source, or a header in memory, has a macro that is the time at which it is compiled, or its file's."""
    return any(map(_TIME.search, _own_texts(code)))


def _settled(version: Stamp) -> bool:
    return time.time_ns() - max(version.changed_ns, version.modified_ns) > _SETTLED


class _Search:
    """Follows what is included, from the source on."""

    def __init__(self, code: DeviceCode, directories: Sequence[str], toolkit: Sequence[str]) -> None:
        self.code, self.own, self.toolkit = code, tuple(directories), tuple(toolkit)
        self.held = {name: _bytes(text) for name, text in code.includes}
        self.files: dict[str, Stamp] = {}
        self._directories = (*self.own, *self.toolkit)
        self._inside = tuple(f"{directory}/" for directory in self.toolkit)
        self._reached: set[str] = set()
        self._seen: set[tuple[str, str, bool]] = set()
        self._beside_held: list[tuple[str, str]] = []
        self._made_up = False
        self._beside: set[str] = set()
        """The folders of what includes a header that a macro names, in which that may lie too."""
        self._made_up_held: set[str] = set()
        """The same of headers in memory."""

    def run(self, first: Sequence[str]) -> ReachableHeaders:
        self._follow([(name, "", False) for name in first])
        for text in (_bytes(self.code.source), _defined(self.code)):
            for mention in mentions(text):
                self._made_up = self._made_up or not mention.name
                if mention.name:
                    self._follow([(mention.name, "", mention.every)])
        complete = self._take_made_up() and not self._may_paste()
        on_disk = bool(self.files) or (self._made_up and not complete)
        if on_disk:
            # Without a file NVRTC is told not to look beside the includer, which for a header in memory is here.
            for name, folder in self._beside_held:
                self._follow([(name, folder, False)])
            self._beside |= self._made_up_held
            complete = self._take_made_up() and complete and not self._may_paste()
        paths = sorted(self.files)
        return ReachableHeaders(
            held=tuple(sorted(self._reached)),
            files=tuple(paths),
            versions=tuple(self.files[path] for path in paths),
            complete=complete,
            on_disk=on_disk,
        )

    def _follow(self, todo: list[tuple[str, str, bool]]) -> None:
        """Take what some names mean, and all that this includes.

        Parameters
        ----------
        todo
            Each name, the folder beside which it is looked for first, and whether every file of that name is meant.
        """
        while todo:
            wanted = todo.pop()
            if wanted in self._seen:
                continue
            self._seen.add(wanted)
            name, beside, every = wanted
            if name in self.held:
                if name not in self._reached:
                    self._reached.add(name)
                    todo += self._named_in_memory(name)
                if not every:
                    continue
            places = ("",) if name.startswith("/") else self._directories
            for path, version in _find(name, (beside, *places) if beside else places, every=every):
                if path in self.files:
                    continue
                self.files[path] = version
                todo += self._named_on_disk(path, version)

    def _take_made_up(self) -> bool:
        """Take all that macros could name, until that brings no more of them; False if nobody knows what it is."""
        count = -1
        while self._made_up and count < len(self.files) + len(self._reached):
            count = len(self.files) + len(self._reached)
            # It could be any header in memory, too.
            self._follow([(name, "", False) for name in self.held])
            names = {mention.name for mention in self._made_up_names()}
            self._follow([(name, folder, False) for name in names for folder in ("", *self._beside)])
            own = tuple(f"{directory}/" for directory in self.own)
            apart = {one for one in self._beside if not f"{one}/".startswith(own)}
            if not self._take_all((*self.own, *(apart if self._any_own(may_quote) else ()))):
                return False
        return not self._made_up or not self._any_own(may_lead_out)

    def _named_in_memory(self, holder: str) -> list[tuple[str, str, bool]]:
        found = mentions(self.held[holder])
        folder = os.path.dirname(holder)  # noqa: PTH120 - as below
        here = os.path.join(_here(), folder)  # noqa: PTH118 - a text, as the folders beside it are: a Path takes longer
        if any(not mention.name for mention in found):
            self._made_up = True
            self._made_up_held.add(here)
        self._beside_held += [
            (name, here) for name, quoted, _ in found if quoted and name and name not in self.held
        ]
        return [(name, "", every) for name, _, every in found if name]

    def _named_on_disk(self, path: str, version: Stamp) -> list[tuple[str, str, bool]]:
        own = path.startswith(self._inside)
        found = _of_version(_scan_file, path, version, usual=own)
        folder = os.path.dirname(path)  # noqa: PTH120 - a Path for each of hundreds of headers takes longer than reading them
        if not own and any(not mention.name for mention in found):
            self._made_up = True
            self._beside.add(folder)
        return [(name, folder if quoted else "", every) for name, quoted, every in found if name]

    def _made_up_names(self) -> list[Mention]:
        """Return what macros spell out, in this source and in its author's headers: folders do not bound that."""
        return [
            *(mention for text in _own_texts(self.code) for mention in quoted_names(text)),
            *(mention for file in self._own_files() for mention in _of_version(_spelled_names, *file)),
        ]

    def _may_paste(self) -> bool:
        """Whether a macro of this source's author could make up a word that asks for a header."""
        return self._any_own(may_paste)

    def _any_own(self, question: Callable[[bytes], bool]) -> bool:
        """Whether something is so of any text that this source's author wrote."""
        return any(map(question, _own_texts(self.code))) or any(
            _of_version(_is_so, *file, question=question) for file in self._own_files()
        )

    def _own_files(self) -> list[tuple[str, Stamp]]:
        return [file for file in self.files.items() if not file[0].startswith(self._inside)]

    def _take_all(self, directories: Iterable[str]) -> bool:
        """Take every file below, and all that these include; return False if there are too many."""
        count = total = 0
        todo: list[tuple[str, str, bool]] = []
        for directory in directories:
            if f"{directory}/".startswith(self._inside):
                continue
            for folder, folders, names in os.walk(directory, followlinks=True):
                count += len(names) + len(folders)
                if count > _MOST_FILES:
                    return False
                for path, version in _find_all(folder, names):
                    total += version.size
                    if path not in self.files:
                        self.files[path] = version
                        todo += self._named_on_disk(path, version)
                if total > _MOST_BYTES:
                    return False
        self._follow(todo)
        return True


def _find(name: str, directories: Iterable[str], *, every: bool) -> list[tuple[str, Stamp]]:
    """Return the first file of that name, or every one, with its version."""
    found = []
    for directory in directories:
        here = _find_all(directory, (name,))
        if here:
            found += here
            if not every:
                break
    return found


def _find_all(directory: str, names: Iterable[str]) -> list[tuple[str, Stamp]]:
    """Return those names that are files in a directory, with their versions."""
    found = []
    for name in names:
        path = os.path.join(directory, name)  # noqa: PTH118 - as above
        version = stamp(path)
        if version is not None and version.regular:
            found.append((path, version))
    return found


@functools.lru_cache(maxsize=8192)
def _scan_file(path: str, _version: Stamp, *, usual: bool) -> tuple[Mention, ...]:
    """Scan one version of a file: CUDA's headers are hundreds of files that never change."""
    return tuple(mentions(_read(path), usual=usual))


@functools.lru_cache(maxsize=8192)
def _spelled_names(path: str, _version: Stamp) -> tuple[Mention, ...]:
    """Return what the macros of one version of a file could stand for."""
    return tuple(quoted_names(_read(path)))


@functools.lru_cache(maxsize=8192)
def _is_so(path: str, _version: Stamp, *, question: Callable[[bytes], bool]) -> bool:
    """Return what a question says of one version of a file."""
    return question(_read(path))


def _of_version(scan: functools._lru_cache_wrapper[_T], path: str, version: Stamp, **named: Any) -> _T:
    """Return what a scan finds in one version of a file: it is remembered if another change would show in that."""
    return (scan if _settled(version) else scan.__wrapped__)(path, version, **named)


@functools.lru_cache(maxsize=8192)
def _known_digest(path: str, _version: Stamp) -> tuple[str, bool]:
    return _digest(path)


def _digest(path: str) -> tuple[str, bool]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            data = file.read()
    except OSError as error:
        return f"not readable: {error.strerror}", False
    return hashlib.sha256(data).hexdigest(), _TIME.search(data) is not None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return file.read()
    except OSError:  # it cannot be read, or has gone since: NVRTC will say so if it needs it
        return b""


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as above
    except OSError:  # the working directory is gone, and with it all that was in it
        return ""


def _own_texts(code: DeviceCode) -> list[bytes]:
    """Return what the author of a source wrote, but for files: macros of the request as directives."""
    return [_bytes(code.source), _defined(code), *(_bytes(text) for _, text in code.includes)]


def _defined(code: DeviceCode) -> bytes:
    return _bytes("".join(f"#define {name} {value}\n" for name, value in code.defines))


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")
