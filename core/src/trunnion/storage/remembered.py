"""Answers of slow tools that hold as long as the files which they depend on do not change: kept for this user.

Whether one still holds is seen from the files' and folders' times alone, which takes a millisecond for hundreds. What
cannot be seen so is asked for again.
"""

from __future__ import annotations

import contextvars
import functools
import hashlib
import json
import marshal
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import UntrustedArtifactError
from trunnion.storage.ownership import check_links
from trunnion.storage.stamps import Stamp, are_absent, note, stamps
from trunnion.storage.user_caches import user_caches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    _Numbers: TypeAlias = tuple[int, ...] | None

__all__ = ["Answer", "Grounds", "remembered", "writing_nothing"]

_SETTLED = 2_000_000_000
"""How long before the question a file must have changed last, in nanoseconds: the times of file systems are as coarse
as two seconds, and one that changed while the tool read it must not pass for what was read."""
_FORM: Final = "trunnion remembers 2"  # how a file begins; another number, where another form is written
_MOST_KNOWN = 32  # each takes some 50 KiB
_MOST_KEPT = 512
_OTHERS_WRITE = 0o022
_writes: Final = contextvars.ContextVar("_writes", default=True)


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
class Grounds:
    """What something stands on that was found out on this machine, for an answer that is made of several such."""

    files: frozenset[str] = frozenset()
    """As `Answer.files`."""

    folders: frozenset[str] = frozenset()
    """As `Answer.folders`: also what is not there, and would come first if it were."""

    lasting: bool = True
    """As `Answer.lasting`."""

    def __or__(self, other: Grounds) -> Grounds:
        lasting = self.lasting and other.lasting
        return Grounds(self.files | other.files, self.folders | other.folders, lasting)

    def answer(self, said: Mapping[str, str]) -> Answer:
        """Return an answer that stands on this."""
        return Answer(said, self.files, self.folders, self.lasting)


@dataclass(frozen=True, slots=True)
class _Record:
    said: dict[str, str]
    paths: tuple[str, ...]
    seen: str  # what the stamps of these were
    absent: tuple[str, ...]  # where nothing was

    @classmethod
    def of(cls, said: Mapping[str, str], found: Mapping[str, _Numbers]) -> _Record:
        there = {path: one for path, one in found.items() if one is not None}
        absent = tuple(path for path in found if path not in there)
        return cls(dict(said), tuple(there), _digest(there.values()), absent)

    def holds(self) -> bool:
        return self.looked_at() is not None

    def looked_at(self) -> list[_Numbers] | None:
        """Return the stamps of the paths, as they were when the answer was given; None if anything is otherwise."""
        found = stamps(self.paths)
        return found if _digest(found) == self.seen and are_absent(self.absent) else None


def _digest(found: Iterable[_Numbers]) -> str:
    """Return what tells stamps from others: to read so many numbers takes longer than to read a digest of them."""
    # Version 2 says nothing of which objects are one, so that equal numbers are equal bytes.
    return hashlib.sha256(marshal.dumps([*found], 2)).hexdigest()


@contextmanager
def writing_nothing() -> Iterator[None]:
    """Keep no answer for other processes meanwhile: whoever only looks leaves nothing behind."""
    token = _writes.set(False)
    try:
        yield
    finally:
        _writes.reset(token)


def remembered(
    question: str, ask: Callable[[], Answer], *, noted: bool = True, anew: bool = False
) -> Mapping[str, str]:
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
    anew
        Whether to ask in any case, and to remember that instead.
    """
    key = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
    known = None if anew else _memory().get(key) or _load(key)
    found = None if known is None else known.looked_at()
    if known is None or found is None:
        if noted:
            return _asked(key, ask)
        alone = contextvars.Context()
        alone.run(_writes.set, _writes.get())
        return alone.run(_asked, key, ask)
    _know(key, known)
    if noted:
        note(zip(known.paths, found, strict=True))
    return known.said


def _asked(key: str, ask: Callable[[], Answer]) -> Mapping[str, str]:
    """Ask, and remember what was said if that can be."""
    began = time.time_ns()
    answer = ask()
    paths = sorted(answer.files | answer.folders)
    found = dict(zip(paths, stamps(paths), strict=True))
    lost = {path for path in answer.files if found[path] is None}
    if answer.lasting and not lost and all(_settled(one, began) for one in found.values()):
        record = _Record.of(answer.said, found)
        _know(key, record)
        if _writes.get():
            _save(key, record)
    note((path, one) for path, one in found.items() if one is not None or path in lost)
    return answer.said


def _settled(numbers: _Numbers, began: int) -> bool:
    if numbers is None:
        return True
    one = Stamp(*numbers)
    return max(one.modified_ns, one.changed_ns) < began - _SETTLED


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
    """Return what another process kept; None if there is nothing whole, or others could have written it."""
    try:
        folder = os.fspath(_folder())
        path = f"{folder}/{key}"
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - each hit of a cache waits for it
            if not _lies_at(file.fileno(), path):
                check_links(Path(path))
            details = (os.fstat(file.fileno()), os.stat(folder))  # noqa: PTH116 - likewise
            if any(one.st_uid != os.geteuid() or one.st_mode & _OTHERS_WRITE for one in details):
                return None
            return _read(key, file.read(details[0].st_size))
    except (OSError, ValueError, RecursionError, UntrustedArtifactError):
        return None


def _lies_at(descriptor: int, path: str) -> bool:
    """Whether an open file lies at that very path, no part of which is a link; False where the system does not say.

    It is one question, where `check_links` asks one for each folder on the way.
    """
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") == path  # noqa: PTH115 - each hit of a cache waits for it
    except OSError:
        return False


def _read(key: str, data: bytes) -> _Record | None:
    """Return the record that a file holds; None if it is not what was written for that question, in this form.

    Of what stands behind its seal nothing else is asked: only `_written` makes one.
    """
    seal, _, rest = data.partition(b"\n")
    if seal != _seal(key, rest):
        return None
    said, paths, seen, absent = json.loads(rest)
    return _Record(said, tuple(paths), seen, tuple(absent))


def _written(key: str, record: _Record) -> bytes:
    """Return what `_read` reads."""
    rest = json.dumps([record.said, record.paths, record.seen, record.absent]).encode("ascii")
    return b"\n".join((_seal(key, rest), rest))


def _seal(key: str, rest: bytes) -> bytes:
    return f"{_FORM} {hashlib.sha256(key.encode('ascii') + rest).hexdigest()}".encode("ascii")


def _save(key: str, record: _Record) -> None:
    """Keep a record where that can be; only time is lost where it cannot."""
    import tempfile  # noqa: PLC0415 - whoever finds an answer pays nothing for it

    with suppress(OSError, UntrustedArtifactError):
        folder = _folder()
        check_links(folder)  # room is made there, too
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_oldest(folder)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix="writing-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_written(key, record))
            Path(name).replace(folder / key)
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
