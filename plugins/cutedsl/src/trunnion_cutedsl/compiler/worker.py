"""The process that has CuTeDSL imported: it forks a child for each job, and cleans up after it.

``python -m trunnion_cutedsl.compiler.worker CONTROL LOCK FOLDER SECONDS``: CONTROL is a socket on which each job comes
as one end of a connection; LOCK is a descriptor that only has to stay open. CuTeDSL is imported for the first job, and
a worker that got none for SECONDS becomes a fresh interpreter, which waits in little memory: if it ended, it would
stay in the system's table until whoever started it looks. When CONTROL closes (that one ended, however it did) all
children are killed and FOLDER is removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trunnion_cutedsl.compiler.messages import JobError, receive, send
from trunnion_cutedsl.compiler.staging import discard

__all__ = ["Worker", "main"]

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_MOST_LOG_BYTES = 1 << 20
_MOST_LINES = 1 << 16  # who reads an answer takes no longer list
_MAIN = "trunnion_cutedsl.compiler.worker"


@dataclass(frozen=True, slots=True)
class _Child:
    """One job that runs."""

    pid: int
    folder: Path


class Worker:
    """The loop.

    Parameters
    ----------
    control
        Where connections come from.
    folder
        Where the folders of jobs are made.
    seconds
        How long it waits for a job while none runs, before it lets go of what it has imported.
    """

    def __init__(self, control: socket.socket, folder: Path, seconds: float) -> None:
        self._control = control
        self._folder = folder
        self._seconds = seconds
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}
        self._awake = False

    def run(self) -> None:
        """Take jobs until nobody can send any."""
        self._selector.register(self._control, selectors.EVENT_READ)
        try:
            while self._step():
                pass
        finally:
            for child in self._children.values():
                _kill(child.pid)
            discard(self._folder)

    def _step(self) -> bool:
        waiting = self._awake and not self._children
        ready = self._selector.select(self._seconds if waiting else None)
        if not ready:
            self._begin_anew()
        for key, _ in ready:
            if key.fd != self._control.fileno():
                self._reap(key.fd)
            elif not self._accept():
                return False
        return bool(ready)

    def _accept(self) -> bool:
        """Take a job; one that cannot be started is told why, and the others go on."""
        word, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        if descriptors:
            with socket.socket(fileno=descriptors[0]) as connection:
                self._wake()
                try:
                    self._start(connection)
                except OSError as error:
                    _refuse(connection, error)
        # A word alone is a job whose connection the system closed, for want of a descriptor: its owner sees that.
        return bool(word)

    def _start(self, connection: socket.socket) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            # Room for the child's descriptor, and then for the next connection: known before there is a child.
            os.close(os.dup(connection.fileno()))
            pid = os.fork()
            if pid == 0:
                self._selector.close()
                self._control.close()
                _serve(connection, folder)
            descriptor = _opened(pid)
        except OSError:
            discard(folder)
            raise
        self._children[descriptor] = _Child(pid, folder)
        self._selector.register(descriptor, selectors.EVENT_READ)

    def _wake(self) -> None:
        """Import CuTeDSL, so that every child has it."""
        if not self._awake:
            self._awake = True
            # Each child tries again, and says what is wrong.
            with contextlib.suppress(ImportError, OSError, RuntimeError, AttributeError):
                import trunnion_cutedsl.compiler.dsl  # noqa: F401, PLC0415 - only for a job

    def _begin_anew(self) -> None:
        """Become a fresh interpreter with the same descriptors; where that cannot be, the worker ends."""
        with contextlib.suppress(OSError):
            for left in self._folder.iterdir():
                if left.is_dir():
                    discard(left)  # CuTeDSL's
            os.execv(sys.executable, [sys.executable, "-P", "-m", _MAIN, *sys.argv[1:]])  # noqa: S606 - no shell is wanted

    def _reap(self, descriptor: int) -> None:
        """Take up a child that ended, with whatever it started, and remove its folder."""
        child = self._children.pop(descriptor)
        self._selector.unregister(descriptor)
        _kill(child.pid)
        os.waitpid(child.pid, 0)
        os.close(descriptor)
        discard(child.folder)


def _opened(pid: int) -> int:
    """Return a descriptor of a child, which is not left alone if there is none."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)  # it may lead no session yet, and has no job
        os.waitpid(pid, 0)
        raise


def _refuse(connection: socket.socket, error: OSError) -> None:
    """Say why a job cannot be started, in place of its child's number."""
    with contextlib.suppress(OSError):  # nobody may wait for it any more
        send(connection, {"unstarted": str(error)})


def _kill(pid: int) -> None:
    """Kill the session that a child leads: it, and what it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError:
        return


# In the child -----------------------------------------------------------------------------------------------------


def _serve(connection: socket.socket, folder: Path) -> None:
    """Do one job and end; never returns."""
    status = 1
    try:
        try:
            log, work = _settle(folder)
        except OSError as error:
            _refuse(connection, error)
            return
        send(connection, {"pid": os.getpid()})
        job, _ = receive(connection)
        head, data = _answer(job, work)
        _flush()
        head["log"] = os.pread(log, _MOST_LOG_BYTES, 0).decode("utf-8", "replace")
        send(connection, head, data)
        status = 0
    finally:
        os._exit(status)


def _settle(folder: Path) -> tuple[int, Path]:
    """Make the process one that a text may run in; return the descriptor of its log, and where it works."""
    os.setsid()
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(folder / "log", os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return log, work


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the text may have closed it
            continue


def _answer(job: dict[str, Any], folder: Path) -> tuple[dict[str, Any], bytes]:
    """Return what becomes of a job: an error is an answer, too, whatever its class."""
    imported = False
    try:
        from trunnion_cutedsl.compiler import dsl  # noqa: PLC0415 - imported before the fork

        imported = True
        return dsl.compile_job(job, folder)
    except JobError as error:
        return {"refused": str(error), "field": error.field}, b""
    except BaseException as error:  # noqa: BLE001 - the text may raise anything; the process ends either way
        if not imported:
            return {"unusable": f"{type(error).__name__}: {error}"}, b""
        return {"failed": _failure(error, job, folder.resolve())}, b""


def _failure(error: BaseException, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the error, and the lines of the author's files that it came through, the innermost last."""
    own = {job["file_name"], *(name for name, _ in job["modules"])}
    lines = []
    passed: set[int] = set()
    seen: BaseException | None = error
    while seen is not None and id(seen) not in passed:
        passed.add(id(seen))
        for frame in traceback.extract_tb(seen.__traceback__):
            name = _name_of(frame.filename, folder)
            if name in own and frame.lineno:
                lines.append({"file": name, "line": frame.lineno, "text": frame.line or ""})
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, SyntaxError) and error.lineno:
        text = (error.text or "").strip()
        lines.append({"file": _name_of(error.filename or "", folder), "line": error.lineno, "text": text})
    return {"kind": type(error).__name__, "text": _text(error), "lines": lines[-_MOST_LINES:]}


def _name_of(file: str, folder: Path) -> str:
    """Return the name by which the job has a file, if it lies in the job's folder; else its path."""
    return str(Path(file).relative_to(folder)) if Path(file).is_relative_to(folder) else file


def _text(error: BaseException) -> str:
    """Return what an error says; that is the author's code, too."""
    try:
        return str(error)
    except BaseException as another:  # noqa: BLE001 - as above
        return f"(its text cannot be had: {type(another).__name__})"


def main() -> None:
    """Run the worker."""
    control, _, folder, seconds = sys.argv[1:]
    Worker(socket.socket(fileno=int(control)), Path(folder), float(seconds)).run()


if __name__ == "__main__":
    main()
