"""What changes with a file, whatever becomes of its times and contents; and of which files tools say they read them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from stat import S_ISREG
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

__all__ = [
    "Sighting", "Stamp", "are_absent", "is_file", "note", "stamp", "stamps", "unchanged", "witness", "witnessed",
]  # fmt: skip


class Stamp(NamedTuple):
    """What changes with a file, or with the names in a folder, whoever sets its times back."""

    device: int
    inode: int
    mode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def regular(self) -> bool:
        """Whether it is a file, and no folder."""
        return is_file(self)


_MODE = Stamp._fields.index("mode")
_AS_WHO_OPENS = os.access in os.supports_effective_ids  # else it is asked for who started the process


def stamp(path: str) -> Stamp | None:
    """Return the stamp of a file or folder; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path for each of hundreds takes longer than asking for them
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return None
    details = (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return Stamp(*details)


def is_file(numbers: tuple[int, ...]) -> bool:
    """Whether a stamp's numbers are those of a file, and of no folder."""
    return S_ISREG(numbers[_MODE])


def stamps(paths: Iterable[str]) -> list[tuple[int, ...] | None]:
    """Return the numbers of each one's stamp, None if there is none.

    It is what `stamp` says of each: to call that takes longer than to ask the system, and so does a name for each
    number.
    """
    found: list[tuple[int, ...] | None] = []
    add, ask = found.append, os.stat
    for path in paths:
        try:
            one = ask(path)
        except (OSError, ValueError):
            add(None)
            continue
        add((one.st_dev, one.st_ino, one.st_mode, one.st_size, one.st_mtime_ns, one.st_ctime_ns))
    return found


def are_absent(paths: Iterable[str]) -> bool:
    """Whether `stamp` finds nothing at any of some paths: for each that takes a third of the time."""
    try:
        return not any(os.access(path, os.F_OK, effective_ids=_AS_WHO_OPENS) for path in paths)
    except ValueError:  # a name with a NUL
        return False


Sighting: TypeAlias = tuple[str, tuple[int, ...] | None]
"""A file that a tool read, by path, and its stamp's numbers behind that; None if it had gone by then."""

_WITNESSED: Final[ContextVar[set[Sighting] | None]] = ContextVar("trunnion_witnessed", default=None)


@contextmanager
def witnessed() -> Iterator[set[Sighting]]:
    """Collect the files that tools say in the block that they read.

    A file that is edited while a compiler runs and then put back has its contents again, and another stamp. So what is
    compiled between two equal collections was compiled from what both saw.
    """
    seen: set[Sighting] = set()
    before = _WITNESSED.set(seen)
    try:
        yield seen
    finally:
        _WITNESSED.reset(before)
        around = _WITNESSED.get()
        if around is not None:
            around |= seen


def unchanged(before: AbstractSet[Sighting], after: AbstractSet[Sighting]) -> bool:
    """Return whether what was read after is what was read before, name by name; never if a file had gone."""
    return before == after and all(found is not None for _, found in before)


def witness(paths: Iterable[str]) -> None:
    """Note that files were read, as they are now, where somebody collects this."""
    if _WITNESSED.get() is not None:
        note((path, stamp(path)) for path in paths)


def note(sightings: Iterable[Sighting]) -> None:
    """Note that files were read, as they were then.

    Folders are left out: in many of them things come and go that have nothing to do with what is compiled.
    """
    seen = _WITNESSED.get()
    if seen is not None:  # `is_file` of each of hundreds takes longer than to look
        seen.update([one for one in sightings if one[1] is None or S_ISREG(one[1][_MODE])])
