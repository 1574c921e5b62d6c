"""Which headers a source can reach, and where CUDA's own are."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trunnion.model.program import DeviceCode

__all__ = ["needs_toolkit", "reachable_headers", "toolkit_directories"]

_INCLUDE = re.compile(
    r"""^[ \t]*\#[ \t]*include(?:_next)?\b[ \t]*
        (?: "(?P<quoted>[^"\n]+)" | <(?P<angled>[^>\n]+)> | (?P<other>.*) )""",
    re.MULTILINE | re.VERBOSE,
)
_LIBRARIES = ("cudart", "cccl")


def needs_toolkit(code: DeviceCode) -> bool:
    """Whether a source includes anything that is not in memory, so that CUDA's headers have to be found."""
    held = {name for name, _ in code.includes}
    texts = [_text(code.source), *(text for _, text in code.includes)]
    return any(name not in held for text in texts for name, _ in _scan(text))


def toolkit_directories() -> tuple[str, ...]:
    """Return the directories of CUDA's headers on this machine; empty if there are none.

    They come from wheels (``nvidia/cu13/include`` as well as ``nvidia/cuda_runtime/include``), a conda
    environment or a toolkit, in the order of ``cuda.pathfinder``.
    """
    from cuda.pathfinder import find_nvidia_header_directory  # noqa: PLC0415 - only sources with includes need it

    found = (find_nvidia_header_directory(library) for library in _LIBRARIES)
    return tuple(dict.fromkeys(str(directory) for directory in found if directory))


def reachable_headers(code: DeviceCode, directories: Sequence[str]) -> tuple[str, ...]:
    """Return every header that a source could include, directly or not, sorted.

    NVRTC does not say which headers it read, so all that any ``#include`` names is followed, whatever
    ``#if`` stands around it. A name that a macro makes up cannot be followed.

    Parameters
    ----------
    code
        The source, and its headers in memory.
    directories
        Where headers are looked for, in order.

    Returns
    -------
    tuple[str, ...]
        Names of headers in memory, and absolute paths of files.
    """
    held = dict(code.includes)
    todo: list[tuple[str, bool, str]] = [(name, quoted, "") for name, quoted in _scan(_text(code.source))]
    reached: set[str] = set()
    while todo:
        name, quoted, beside = todo.pop()
        place = _find(name, held, [beside, *directories] if quoted and beside else directories)
        if place is None or place in reached:
            continue
        reached.add(place)
        if place in held:
            todo += [(n, q, "") for n, q in _scan(held[place])]
        else:
            todo += [(n, q, str(Path(place).parent)) for n, q in _scan_file(place)]
    return tuple(sorted(reached))


def _find(name: str, held: Mapping[str, str], directories: Sequence[str]) -> str | None:
    if name in held:
        return name
    places = (Path(directory, name) for directory in directories)
    return next((str(place) for place in places if place.is_file()), None)


def _scan(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what is included, and whether in quotes; an empty name for what a macro stands for."""
    for found in _INCLUDE.finditer(text):
        quoted = found["quoted"]
        yield quoted or found["angled"] or "", quoted is not None


def _scan_file(path: str) -> tuple[tuple[str, bool], ...]:
    status = Path(path).stat()
    return _scan_version(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8192)
def _scan_version(path: str, _mtime: int, _size: int) -> tuple[tuple[str, bool], ...]:
    """Scan one version of a file: CUDA's headers are hundreds of files that never change."""
    return tuple(_scan(Path(path).read_text(encoding="utf-8", errors="replace")))


def _text(source: str | bytes) -> str:
    return source if isinstance(source, str) else source.decode("utf-8", "replace")
