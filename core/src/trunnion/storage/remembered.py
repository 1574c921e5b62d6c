"""Answers of slow tools that hold as long as the files which they depend on do not change: kept for this user.

Whether one still holds is seen from the files' and folders' times alone, which takes a millisecond for hundreds. What
cannot be seen so is asked for again.
"""

from __future__ import annotations

import contextvars
import functools
import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.storage.stamps import Stamp, note, stamp
from trunnion.storage.user_caches import user_caches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trunnion.storage.stamps import Sighting

__all__ = ["Answer", "remembered"]

_SETTLED = 2_000_000_000
"""How long before the question a file must have changed last, in nanoseconds: the times of file systems are as coarse
as two seconds, and one that changed while the tool read it must not pass for what was read."""
_MOST_KNOWN = 32  # each takes some 50 KiB
_MOST_KEPT = 512
_OTHERS_WRITE = 0o022


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool said, and what it depends on."""

    said: Mapping[str, str]
    """What it said."""

    files: frozenset[str] = frozenset()
    """The files that it read, by absolute path."""

    folders: frozenset[str] = frozenset()
    """The folders, there or not, in which another file that appears could make it say something else."""

    lasting: bool = True
    """Whether these are all. Else the tool is asked each time."""


@dataclass(frozen=True, slots=True)
class _Record:
    said: dict[str, str]
    stamps: dict[str, Stamp | None]

    def holds(self) -> bool:
        return all(stamp(path) == before for path, before in self.stamps.items())

    def sightings(self) -> Iterator[Sighting]:
        """Yield what is there: no file that is remembered had gone, and folders may be missing."""
        yield from ((path, one) for path, one in self.stamps.items() if one is not None)


def remembered(question: str, ask: Callable[[], Answer], *, noted: bool = True) -> Mapping[str, str]:
    """Return the answer to a question, asking only if none is known that holds.

    Parameters
    ----------
    question
        Everything that the answer depends on, but for files.
    ask
        Asks the tool. What it raises is passed on.
    noted
        Whether the files count as read where somebody collects that (`trunnion.storage.stamps.witnessed`). Else it is
        an answer of which a process asks once what it uses often: two collections would differ by it.
    """
    if not noted:
        return contextvars.Context().run(remembered, question, ask)
    key = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
    known = _memory().get(key) or _load(key)
    if known is not None and known.holds():
        _know(key, known)
        note(known.sightings())
        return known.said
    began = time.time_ns()
    answer = ask()
    stamps = {path: stamp(path) for path in sorted(answer.files | answer.folders)}
    lost = {path for path in answer.files if stamps[path] is None}
    if answer.lasting and not lost and all(_settled(one, began) for one in stamps.values()):
        record = _Record(dict(answer.said), stamps)
        _know(key, record)
        _save(key, record)
    note((path, one) for path, one in stamps.items() if one is not None or path in lost)
    return answer.said


def _settled(one: Stamp | None, began: int) -> bool:
    return one is None or max(one.modified_ns, one.changed_ns) < began - _SETTLED


def _know(key: str, record: _Record) -> None:
    known = _memory()
    if len(known) >= _MOST_KNOWN and key not in known:
        known.clear()
    known[key] = record


@functools.cache
def _memory() -> dict[str, _Record]:
    """Return what this process knows, by question."""
    return {}


# Kept for other processes --------------------------------------------------------------------------------------------


def _folder() -> Path:
    return user_caches() / "remembered"


def _load(key: str) -> _Record | None:
    """Return what another process kept; None if there is nothing, or others could have written it."""
    try:
        folder = _folder()
        with open(folder / f"{key}.json", "rb", buffering=0) as file:  # noqa: PTH123 - each hit of a cache waits for it
            details = (os.fstat(file.fileno()), folder.stat())
            if any(one.st_uid != os.geteuid() or one.st_mode & _OTHERS_WRITE for one in details):
                return None
            return _read(json.loads(file.read()))
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _read(found: Any) -> _Record:
    said = {str(name): str(value) for name, value in found["said"].items()}
    stamps = {
        str(path): None if one is None else Stamp(*one)  # what is no number is no stamp of anything
        for path, one in found["stamps"].items()
    }
    return _Record(said, stamps)


def _save(key: str, record: _Record) -> None:
    """Keep a record where that can be; only time is lost where it cannot."""
    import tempfile  # noqa: PLC0415 - whoever finds an answer pays nothing for it

    with suppress(OSError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_oldest(folder)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix="writing-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"said": record.said, "stamps": record.stamps}, file)
            Path(name).replace(folder / f"{key}.json")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _remove_oldest(folder: Path) -> None:
    """Make room: also of what a process left that died while it wrote."""
    kept = list(folder.iterdir())
    if len(kept) < _MOST_KEPT:
        return
    with suppress(FileNotFoundError):  # another process makes room, too
        kept.sort(key=lambda one: one.stat().st_mtime_ns)
    for one in kept[: _MOST_KEPT // 2]:
        one.unlink(missing_ok=True)
