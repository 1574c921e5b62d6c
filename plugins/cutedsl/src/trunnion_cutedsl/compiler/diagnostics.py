"""What the compiling process answers when it has no cubin, as trunnion's errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.errors import BackendUnavailableError, CompileError, ProgramError
from trunnion_cutedsl.availability import DISTRIBUTION
from trunnion_cutedsl.release import PACKAGE, installed_release

if TYPE_CHECKING:
    from trunnion_cutedsl.compiler.answer import Answer
    from trunnion_cutedsl.compiler.request import Job

__all__ = ["compile_error", "raise_answer"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def raise_answer(answer: Answer, job: Job) -> None:
    """Raise what an answer says; return if it says nothing of the kind.

    Raises
    ------
    ProgramError
        If CuTeDSL has no such architecture, or the text has no such kernel, or it takes other arguments.
    CompileError
        If the text raised, or CuTeDSL refused it.
    BackendUnavailableError
        If CuTeDSL cannot be imported.
    """
    if answer.unusable is not None:
        reason = f"{PACKAGE} {installed_release()} cannot be imported ({answer.unusable})"
        raise BackendUnavailableError("cutedsl", DISTRIBUTION, f"{reason}; install it anew")
    if answer.refused is not None:
        raise ProgramError(_plain(answer.refused), field=answer.field)
    failure = answer.failed
    if failure is not None:
        said = f"{failure.kind}: {_plain(failure.text)}".rstrip()
        trail = [f"  {name}:{number}: {text}" for name, number, text in failure.lines]
        log = "\n".join(part for part in (said, *trail, _plain(answer.log).strip()) if part)
        own = [number for name, number, _ in failure.lines if name == job.file_name]
        raise compile_error(log, job, own[-1] if own else 0)


def compile_error(log: str, job: Job, line: int = 0) -> CompileError:
    """Return the error of a failed compilation.

    Parameters
    ----------
    log
        What is said of it.
    job
        What was compiled.
    line
        The line of the text that it is about, counted from 1; 0: none.
    """
    return CompileError(f"CuTeDSL {installed_release()}", log, job.source, job.options.words, job.arch, line)


def _plain(text: str) -> str:
    return _COLOUR.sub("", text)
