"""Jobs in processes of their own: one that crashes, hangs or breaks its device hurts no other."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from multiprocessing.context import ForkServerProcess

__all__ = ["Job", "Outcome", "attempted", "run_jobs", "start_from", "told"]

_KEPT = 300
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Job:
    """A function to be called in a process of its own, and for how long it may take."""

    name: str
    """Unique among the jobs of one run."""

    function: Callable[..., Any]
    """It can be pickled, as what it returns can."""

    arguments: tuple[Any, ...]
    """What it is called with."""

    seconds: float
    """After this time its process is ended, and every process that it started."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    name: str
    """The job's."""

    how: str
    """``"returned"``, ``"raised"``, ``"crashed"``, ``"hung"`` or ``"not run"``."""

    value: Any = None
    """What it returned."""

    reason: str = ""
    """Why it did not."""

    seconds: float = 0.0
    """How long it took."""


def start_from(modules: Iterable[str], folders: Iterable[Path]) -> None:
    """Let processes start with modules that are imported already; before the first job.

    Parameters
    ----------
    modules
        Their names. None of them may use a device when it is imported, for a process that is forked cannot.
    folders
        Where modules are found, besides where this process finds them.
    """
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*map(str, folders), *(path for path in known if path)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(modules))


@dataclass(frozen=True)
class _Running:
    job: Job
    process: ForkServerProcess
    log: Path
    began: float

    @property
    def late_at(self) -> float:
        return self.began + self.job.seconds

    def end(self) -> None:
        """End the process, and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()
        self.process.join()

    def outcome(self, how: str, value: Any = None, reason: str = "") -> Outcome:
        return Outcome(self.job.name, how, value, reason, time.monotonic() - self.began)


def run_jobs(
    jobs: Iterable[Job], workers: int, until: float, tell: Callable[[Outcome], None] = lambda _: None
) -> dict[str, Outcome]:
    """Run jobs side by side, each in a process of its own, and return what became of each, by name.

    Parameters
    ----------
    jobs
        They begin in this order.
    workers
        How many run at once.
    until
        The time, as `time.monotonic` says it, after which none begins; those that run then are waited for.
    tell
        Called with each outcome.
    """
    waiting = deque(jobs)
    found: dict[str, Outcome] = {}
    running: dict[Any, _Running] = {}
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
        try:
            while waiting or running:
                ended = _late_ones(waiting, until)
                while waiting and len(running) < workers:
                    receiver, started = _start(
                        waiting.popleft(), Path(folder, str(len(found) + len(running)))
                    )
                    running[receiver] = started
                ended += _ended(running)
                for outcome in ended:
                    found[outcome.name] = outcome
                    tell(outcome)
        finally:
            for one in running.values():
                one.end()
    return found


def _late_ones(waiting: deque[Job], until: float) -> list[Outcome]:
    if time.monotonic() < until:
        return []
    late = [Outcome(job.name, "not run", None, "out of time") for job in waiting]
    waiting.clear()
    return late


def _start(job: Job, log: Path) -> tuple[Any, _Running]:
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, str(log), job.function, job.arguments))
    began = time.monotonic()
    process.start()
    sender.close()
    return receiver, _Running(job, process, log, began)


def _ended(running: dict[Any, _Running]) -> list[Outcome]:
    """Wait until one has ended or is late, and return the outcomes of those."""
    if not running:
        return []
    patience = max(0.0, min(one.late_at for one in running.values()) - time.monotonic())
    ready = connection.wait(list(running), patience)
    late = [key for key, one in running.items() if key not in ready and time.monotonic() >= one.late_at]
    outcomes = [_outcome(key, running[key]) for key in ready]
    outcomes += [
        running[key].outcome("hung", None, f"ended after {running[key].job.seconds:g} s") for key in late
    ]
    for key in (*ready, *late):
        running.pop(key).end()
        key.close()
    return outcomes


def _outcome(receiver: Any, one: _Running) -> Outcome:
    try:
        how, value = receiver.recv()
    except (EOFError, OSError):
        one.process.join(5)
        code = one.process.exitcode
        by = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"status {code}"
        return one.outcome("crashed", None, f"ended with {by}{_last_words(one.log)}")
    return one.outcome(how, value) if how == "returned" else one.outcome(how, None, value)


def _last_words(log: Path) -> str:
    try:
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f": {lines[-1][:_KEPT]}" if lines else ""


def _work(sender: Any, log: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Do a job, in its process; what is written to the terminal goes to a file."""
    os.setsid()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    value, reason = attempted(function, *arguments)
    sender.send(("raised", reason) if reason else ("returned", value))
    os._exit(0)  # whatever a library does at the end of a process is none of the job


def attempted(function: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """Return what a function returns and an empty text, or None and what it raises in one line.

    Parameters
    ----------
    function
        Any: what a launcher of others raises is its row in a table, and ends no other.
    *arguments
        What it is called with.
    """
    try:
        return function(*arguments), ""
    except Exception as error:  # noqa: BLE001 - that is what this is for
        return None, told(error)


def told(error: BaseException) -> str:
    """Return an error in one line: of a compiler's log and the source around it, the first that speaks of an error.

    Colours are left out, and so is where this machine keeps its temporary files.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    telling = next((line for line in lines if "error:" in line.lower()), lines[0])
    telling = _COLOURS.sub("", telling).replace(f"{tempfile.gettempdir()}/", "")
    return f"{type(error).__name__}: {telling}"[:_KEPT].rstrip(": ")
