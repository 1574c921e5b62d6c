"""The other side of `trunnion_cutedsl.compiler.worker`: start workers, hand them jobs, wait no longer than agreed.

CuTeDSL takes most of a second to import, runs the author's text, prints, and keeps state for a whole process. So it is
imported once in a process of its own, which forks a child for each compilation: a text that ends its process, hangs or
breaks CuTeDSL's state hurts nothing but its own job, and jobs run at once.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import BackendUnavailableError
from trunnion.messages import shorten
from trunnion.turns import Turns
from trunnion_cutedsl.compiler.messages import receive, send
from trunnion_cutedsl.compiler.staging import discard, make_staging, sweep
from trunnion_cutedsl.release import components

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TooSlowError", "WorkerDiedError", "Workers", "workers"]

_IDLE_SECONDS: Final = 60.0
_START_SECONDS: Final = 120.0
# CuTeDSL's own variables, and those of the compilers that it calls: they would change what is made.
_DROPPED: Final = (
    "CUTE_DSL_",
    "CUTLASS_",
    "LIBNVVM_",
    "LLVM_",
    "MLIR_",
    "NVJITLINK",
    "NVRTC",
    "NVVM_",
    "NV_NVVM_",
)
_TRIES: Final = 3


class WorkerDiedError(Exception):
    """The process that compiled ended before it answered."""


class TooSlowError(Exception):
    """The compilation took longer than it may."""


class _UnstartedError(Exception):
    """There is no process for a job, and the text says why; the worker goes on."""


class _Worker:
    """One worker process, for one architecture."""

    def __init__(self, arch: str, seconds: float) -> None:
        self.packages = components()
        self.jobs: set[socket.socket] = set()
        """The connections to children that are at work."""
        self._seconds, self._last_used = seconds, -math.inf
        sweep()
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as done:
            self.control, theirs = map(undo.enter_context, socket.socketpair())
            done.callback(theirs.close)
            self.folder, lock = make_staging()
            undo.callback(discard, self.folder)
            done.callback(os.close, lock)
            self.process = self._started(arch, theirs.fileno(), lock)
            undo.pop_all()

    def _started(self, arch: str, control: int, lock: int) -> subprocess.Popen[bytes]:
        words = [str(control), str(lock), str(self.folder), str(self._seconds)]
        if not sys.executable:
            raise BackendUnavailableError(
                "cutedsl",
                "the compiling process",
                "sys.executable names no interpreter that could be started: set it to the path of one that has these "
                "packages",
            )
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "trunnion_cutedsl.compiler.worker", *words],
                pass_fds=(control, lock),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**_environment(arch), "TMPDIR": str(self.folder)},  # CuTeDSL leaves folders there
            )
        except OSError as error:
            raise BackendUnavailableError(
                "cutedsl", "the compiling process", f"{shorten(sys.executable)} cannot be started: {error}"
            ) from error

    def connect(self) -> socket.socket:
        """Return a connection to a child that waits for one job.

        Raises
        ------
        _UnstartedError
            If this process can open none.
        OSError
            If the worker is gone.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise _UnstartedError(str(error)) from error
        try:
            socket.send_fds(self.control, [b"j"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    def child(self, deadline: float, ending: contextlib.ExitStack) -> tuple[socket.socket, int]:
        """Return a connection to a new child, and the child's number.

        Parameters
        ----------
        deadline
            When it must be there, on the clock of `time.monotonic`.
        ending
            What ends once the child is needed no more, and closes the connection then.

        Raises
        ------
        TimeoutError
            If there is none by then.
        _UnstartedError
            If there can be none now.
        OSError, EOFError, ValueError, TypeError, KeyError
            If the worker, or the child, is gone.
        """
        connection = self.connect()
        try:
            hello, _ = receive(connection, deadline)
            pid = _number(hello)
        except BaseException:  # an interrupt too: nobody else has the connection to close it
            connection.close()
            raise
        ending.callback(self._leave, connection)  # before anybody knows of it, whom an interrupt may end
        self.jobs.add(connection)
        return connection, pid

    def _leave(self, connection: socket.socket) -> None:
        connection.close()
        self._last_used = time.monotonic()
        self.jobs.discard(connection)

    def is_fresh(self) -> bool:
        """Whether it may have to import CuTeDSL before it has another child, which is no part of a job."""
        return not self.jobs and time.monotonic() - self._last_used >= self._seconds

    def close(self) -> None:
        """Let the worker end, with its children and its folder."""
        self.control.close()
        self.process.kill()  # it may be busy importing; its children die with it
        self.process.wait()
        discard(self.folder)


def _number(hello: dict[str, Any]) -> int:
    """Return the number of a child, from what was said first."""
    if "unstarted" in hello:
        raise _UnstartedError(str(hello["unstarted"]))
    return int(hello["pid"])


def _kill(descriptor: int, owner: int) -> None:
    """End a child, unless this process was forked since ``owner`` opened its descriptor: then it is the parent's."""
    if os.getpid() == owner:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)


def _environment(arch: str) -> dict[str, str]:
    """Return the environment of a worker: this process's packages, no GPU, and none of CuTeDSL's own variables."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_DROPPED)}
    path: list[object] = [*sys.path]  # Python's import passes over what is no text there
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(one for one in path if isinstance(one, str) and one),
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "CUTE_DSL_ARCH": arch,
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
    }


class Workers:
    """The workers of this process, one for each architecture that it compiled for.

    Parameters
    ----------
    seconds
        How long a worker that has nothing to do keeps what it has imported.
    """

    def __init__(self, seconds: float = _IDLE_SECONDS) -> None:
        self._seconds = seconds
        self._owner = os.getpid()
        self._changing = _changing()
        self._workers: dict[str, _Worker] = {}
        self._given_up: list[_Worker] = []

    def run(self, arch: str, job: dict[str, Any], seconds: float) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a job.

        Parameters
        ----------
        arch
            What to compile for.
        job
            What the child is told.
        seconds
            How long it may take, once there is a worker; that one may have stopped since then.

        Raises
        ------
        TooSlowError
            If it takes longer; the child is dead then.
        WorkerDiedError
            If the child ended without an answer.
        BackendUnavailableError
            If no worker, or no child of it, can be started.
        """
        with self._child(arch, seconds) as (connection, deadline):
            try:
                send(connection, job, b"", deadline)
                return receive(connection, deadline)
            except TimeoutError as error:
                raise TooSlowError from error
            except (EOFError, OSError, ValueError, TypeError) as error:
                raise WorkerDiedError(str(error)) from error

    def close(self) -> None:
        """End all workers."""
        self.notice_fork()
        with self._changing.turn():
            gone = [*self._workers.values(), *self._given_up]
            self._workers, self._given_up = {}, []
        for worker in gone:
            worker.close()

    @contextlib.contextmanager
    def _child(self, arch: str, seconds: float) -> Iterator[tuple[socket.socket, float]]:
        """Give a connection to a fresh child, and when it must be done; kill it if it is not done at the end."""
        with contextlib.ExitStack() as ending:
            ending.callback(self._bury)
            connection, pid, deadline = self._open(arch, seconds, ending)
            # Before it gets its job it is there for sure, and its number is nobody else's.
            with contextlib.suppress(ProcessLookupError):
                ending.callback(_kill, os.pidfd_open(pid), os.getpid())
            yield connection, deadline

    def _open(
        self, arch: str, seconds: float, ending: contextlib.ExitStack
    ) -> tuple[socket.socket, int, float]:
        reason = "it ends before it takes a job: there is no memory or no descriptor left for it, or CuTeDSL ends it"
        for _ in range(_TRIES):
            worker = self._worker(arch)
            fresh = worker.is_fresh()
            deadline = time.monotonic() + (_START_SECONDS if fresh else seconds)
            try:
                connection, pid = worker.child(deadline, ending)
                return connection, pid, time.monotonic() + seconds if fresh else deadline
            except _UnstartedError as error:
                if worker.folder.is_dir():
                    raise _unstarted(error) from error
                # Somebody removed it, as those do who clean up among temporary files.
                self._give_up(arch, worker)
            except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
                self._give_up(arch, worker)  # something ended it, or its child alone
                if isinstance(error, TimeoutError):
                    if not fresh:
                        raise TooSlowError from error
                    reason = (
                        f"it takes no job within {_START_SECONDS:g} s: importing CuTeDSL takes longer here"
                    )
        raise BackendUnavailableError(
            "cutedsl", "the compiling process", f"{reason}; try: python -c 'import cutlass'"
        )

    def _worker(self, arch: str) -> _Worker:
        self.notice_fork()
        with self._changing.turn():
            worker = self._workers.get(arch)
            if (
                worker is not None and worker.packages != components()
            ):  # what it imported is installed no more
                self._given_up.append(self._workers.pop(arch))
                worker = None
            if worker is None:
                try:
                    worker = self._workers[arch] = _Worker(arch, self._seconds)
                except OSError as error:
                    raise _unstarted(error) from error
        self._bury()
        return worker

    def notice_fork(self) -> None:
        """Start anew in a forked child: the workers are the parent's, and so may be whoever is changing them.

        They end when it does, which they see by their sockets: the child must not have them open.
        """
        if self._owner != os.getpid():
            for worker in (*self._workers.values(), *self._given_up):
                for one in (worker.control, *worker.jobs):
                    one.close()
            self._changing, self._workers, self._given_up = _changing(), {}, []
            self._owner = os.getpid()

    def _give_up(self, arch: str, worker: _Worker) -> None:
        """Take no more children of a worker; those that it has may still be at work, and would die with it."""
        with self._changing.turn():
            if self._workers.get(arch) is worker:  # else another thread was faster
                self._given_up.append(self._workers.pop(arch))
        self._bury()

    def _bury(self) -> None:
        """End the workers that were given up and have no child at work any more."""
        self.notice_fork()
        for worker in tuple(self._given_up):
            if not worker.jobs:
                with contextlib.suppress(ValueError):  # another thread was faster
                    self._given_up.remove(worker)
                    worker.close()


def _unstarted(error: Exception) -> BackendUnavailableError:
    reason = f"no process can be started for a job: {error}; free what has run out, and compile again"
    return BackendUnavailableError("cutedsl", "the compiling process", reason)


def _changing() -> Turns:
    return Turns("a process that compiles is being started or ended")


@functools.cache
def workers() -> Workers:
    """Return the workers of this process; they end with it."""
    found = Workers()
    atexit.register(found.close)
    os.register_at_fork(after_in_child=found.notice_fork)
    return found
