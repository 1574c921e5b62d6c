"""Which lines each law runs: one that does not run what a mutant changes cannot tell the mutant from the sources.

Each law is watched in a process of its own, so that nothing which another law left in a cache hides what it runs. What
runs while modules are imported, every law runs. A law that starts processes, or sets a tracer of its own, is taken for
one that runs everything: what it does there is not seen.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
import threading
import traceback
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mutation_trials import trial as trials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from mutation_trials.mutant import Mutant

_PATIENCE = 1800  # seconds for one law, watched
_UNSEEN: Final = frozenset(
    {"os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "subprocess.Popen", "sys.settrace"}
)
"""Audit events of what leaves the sight of a tracer."""

Lines = dict[str, list[int]]


class Reach:
    """What runs what.

    Parameters
    ----------
    imported
        The lines of each file that run while modules are imported.
    laws
        The lines that each law runs; None: it may run any.
    """

    def __init__(self, imported: Mapping[str, Sequence[int]], laws: Mapping[str, Lines | None]) -> None:
        self._imported = {path: frozenset(lines) for path, lines in imported.items()}
        self._laws = {
            law: None if found is None else {path: frozenset(lines) for path, lines in found.items()}
            for law, found in laws.items()
        }

    def tells(self, law: str, mutant: Mutant, text: str) -> bool:
        """Whether a law may tell a mutant from the file's text.

        Parameters
        ----------
        law
            Which law.
        mutant
            The mutant.
        text
            The whole file, before.
        """
        wanted = statement_lines(text, mutant.line)
        found = self._laws.get(law)
        if wanted is None or found is None or wanted & self._imported.get(mutant.path, frozenset()):
            return True
        return bool(wanted & found.get(mutant.path, frozenset()))


@cache
def _statements(text: str) -> tuple[range, ...]:
    return tuple(lines for node in ast.walk(ast.parse(text)) for lines in _own_lines(node))


def _own_lines(node: ast.AST) -> Iterator[range]:
    """Yield the lines of a statement but for those of statements within."""
    body = getattr(node, "body", None)
    inner = body[0].lineno if isinstance(body, list) and body else None
    if isinstance(node, ast.match_case):
        yield range(node.pattern.lineno, max(inner or 0, node.pattern.lineno + 1))
    elif isinstance(node, (ast.stmt, ast.ExceptHandler)):
        last = (node.end_lineno or node.lineno) + 1 if inner is None else max(inner, node.lineno + 1)
        yield range(node.lineno, last)
        yield from (range(one.lineno, node.lineno + 1) for one in getattr(node, "decorator_list", ()))


def statement_lines(text: str, line: int) -> frozenset[int] | None:
    """Return the lines of the smallest statement that a line is of; None: it is of none.

    Parameters
    ----------
    text
        A file's text.
    line
        From 1.
    """
    around = [lines for lines in _statements(text) if line in lines]
    return frozenset(min(around, key=len)) if around else None


# Watching ------------------------------------------------------------------------------------------------------------


class _Watch:
    """Notes the lines that run, of the files in a folder.

    Parameters
    ----------
    folder
        The sources.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder + os.sep
        self._tracers: dict[str, Any] = {}
        self._lines: dict[str, set[int]] = {}
        self.watching = False
        self.unseen = False
        sys.addaudithook(self._hear)

    def start(self) -> None:
        """Watch this thread, and those that begin from now on."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        self.watching = True

    def stop(self) -> Lines:
        """Stop, and return what ran, by path relative to the folder."""
        self.watching = False
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # stubs know no None, which ends it
        return {path[len(self._folder) :]: sorted(lines) for path, lines in self._lines.items()}

    def _hear(self, event: str, _: tuple[Any, ...]) -> None:
        if self.watching and event in _UNSEEN:
            self.unseen = True

    def _trace(self, frame: FrameType, _: str, __: Any) -> Any:
        path = frame.f_code.co_filename
        if path not in self._tracers:
            self._tracers[path] = self._noting(path) if path.startswith(self._folder) else None
        tracer = self._tracers[path]
        if tracer is not None:
            self._lines[path].add(frame.f_lineno)
        return tracer

    def _noting(self, path: str) -> Any:
        note = self._lines.setdefault(path, set()).add

        def tracer(frame: FrameType, _: str, __: Any) -> Any:
            note(frame.f_lineno)
            return tracer

        return tracer


def watched(trial: trials.Trial, scratch: Path) -> dict[str, Any]:
    """Return what runs while modules are imported, and what each law of a trial runs.

    Parameters
    ----------
    trial
        Whose second round is watched, law by law.
    scratch
        An empty folder.
    """
    answer = scratch / "answer"
    child = os.fork()
    if not child:
        _be(lambda: _watch_all(trial, scratch, answer))
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"watching the laws: {(scratch / 'words').read_text('utf-8')[-2000:]}")
    found: dict[str, Any] = json.loads(answer.read_text("utf-8"))
    return found


def _be(does: Any) -> None:
    """Be a forked child, which never returns."""
    status = 1
    try:
        does()
        status = 0
    except BaseException:  # noqa: BLE001 - said, and a forked child must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _watch_all(trial: trials.Trial, scratch: Path, answer: Path) -> None:
    trials.become(scratch, os.open(scratch / "words", os.O_WRONLY | os.O_CREAT, 0o600))
    watch = _Watch(trial.folder)
    watch.start()
    harness, known = trials.prepared(trial)
    imported = watch.stop()
    laws = {
        law: _watch_law(lambda law=law: (known[law], harness), trial, scratch / law) for law in trial.laws
    }
    answer.write_text(json.dumps({"imported": imported, "laws": laws}), "utf-8")


def _watch_law(made: Any, trial: trials.Trial, file: Path) -> Lines | None:
    child = os.fork()
    if not child:
        signal.alarm(_PATIENCE)
        _be(lambda: _watch_one(*made(), trial, file))
    os.waitpid(child, 0)
    found: Lines | None = json.loads(file.read_text("utf-8")) if file.exists() else None
    return found


def _watch_one(law: Any, harness: Any, trial: trials.Trial, file: Path) -> None:
    watch = _Watch(trial.folder)
    watch.start()
    green = trials.holds(law, harness)
    lines = watch.stop()
    file.write_text(json.dumps(lines if green and not watch.unseen else None), "utf-8")
