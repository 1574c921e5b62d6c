"""A process that has imported torch, and nothing of trunnion: each job is a fork of it. Jobs come in as lines."""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import sys
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

_READING = os.O_RDONLY | os.O_CLOEXEC
_WRITING = os.O_WRONLY | os.O_CLOEXEC


def next_fork() -> dict[str, Any] | None:
    """Return the job, in a fork that is to do it; None in the server, once the input ends."""
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        if wrong := _unfit():
            _answer({"wrong": wrong})
            continue
        pid = os.fork()
        if not pid:
            return job
        _answer({"status": _end_of(pid, job["timeout"])})
    return None


def _unfit() -> str:
    loaded = [name for name in sys.modules if name.partition(".")[0].startswith("trunnion")]
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    return f"it has {loaded} imported, and {threads} threads" if loaded or threads > 1 else ""


def _answer(answer: dict[str, object]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def _end_of(pid: int, timeout: float) -> int | None:
    descriptor = os.pidfd_open(pid)
    in_time, _, _ = select.select([descriptor], [], [], timeout)
    os.close(descriptor)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if in_time else None


def become(job: dict[str, Any]) -> dict[str, Any]:
    """Make this process what a new Python is before its text; return the names of its ``__main__``."""
    for descriptor, path, flags in (
        (0, os.devnull, _READING),
        (1, job["stdout"], _WRITING),
        (2, job["stderr"], _WRITING),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.argv = ["-c", *job["arguments"]]
    sys.orig_argv = [sys.executable, *(f"-W{action}" for action in job["warnings"]), *sys.argv]
    sys.path[:] = ["", *job["path"], *_OWN_PATH]
    for action in job["warnings"]:
        sys.warnoptions.append(action)
        warnings.simplefilter(action)
    sys.excepthook = _say
    sys.modules["__main__"] = types.ModuleType("__main__")
    return vars(sys.modules["__main__"])


def _say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print what nobody caught as a new Python does: without the line of this file that ran the text."""
    error.__traceback__ = trace.tb_next if trace else None
    sys.__excepthook__(kind, error, error.__traceback__)


_GIVEN = os.environ.get("PYTHONPATH", "").split(os.pathsep)
_OWN_PATH = [entry for entry in sys.path[1:] if entry not in _GIVEN]

importlib.import_module("torch")
gc.freeze()  # what torch made is nothing that a fork has to look through, least of all at its end
if (_job := next_fork()) is not None:
    _names = become(_job)
    # Here, and in no function: the interpreter itself ends with what the text raises, as it does at the end of any.
    exec(compile(_job["text"], "<string>", "exec"), _names)
