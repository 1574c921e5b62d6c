"""Build many programs at once, by any executor of `concurrent.futures`' interface."""

from __future__ import annotations

import functools
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect, expect_text
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.compilation import compile as compile_program
from trunnion.contract.spec import Target
from trunnion.errors import ArgumentTypeError, ArtifactError, TrunnionError, shorten
from trunnion.messages import describe, first_line, type_name
from trunnion.model.program import KernelProgram
from trunnion.plain import ForeignError, is_a, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

__all__ = ["BuildJob", "build_many"]

_MOST_JOBS: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuildJob:
    """One thing to build; its fields are parameters of `trunnion.compile`.

    Raises
    ------
    ArgumentTypeError, ProgramError
        If the program, the target or the backend is none.
    """

    program: KernelProgram
    """The program."""

    target: str | Target | None = None
    """What to compile for."""

    backend: str = "auto"
    """The backend's name."""

    compiler: str | None = None
    """The device compiler's name."""

    options: Mapping[str, Mapping[str, Any]] | None = None
    """Options for plugins."""

    cache: str | bool = True
    """The folder of a store; True: this user's; False: nothing is kept."""

    trust: bool = False
    """Whether device code may run here, as you, while it is compiled."""

    def __post_init__(self) -> None:
        expect(self.program, KernelProgram, "program", "a KernelProgram")
        object.__setattr__(self, "backend", expect_text(self.backend, "backend", "the name of a backend"))
        if self.target is not None:
            object.__setattr__(self, "target", Target.parse(self.target))

    def __str__(self) -> str:
        target = "" if self.target is None else f" for {self.target}"
        return f"{shorten(self.program.name)} by {shorten(self.backend)}{target}"


def _ignore(job: BuildJob, made: Artifact | TrunnionError) -> None:
    """Tell nobody."""


def build_many(
    jobs: Iterable[BuildJob],
    executor: Executor | None = None,
    *,
    told: Callable[[BuildJob, Artifact | TrunnionError], object] = _ignore,
) -> list[Artifact]:
    """Build programs, all of them even if some cannot be built.

    Parameters
    ----------
    jobs
        What to build.
    executor
        Who builds: of threads, of processes, or anybody's of `concurrent.futures.Executor`'s interface, such as Dask's
        or mpi4py's, on whose machines trunnion and its plugins are installed. None: this thread, one after another.
    told
        Called in this thread when a job is done, with what was built or what was raised: for progress. What it raises,
        and an interrupt, cancels the jobs that have not begun.

    Returns
    -------
    list[Artifact]
        What was built, in the order of the jobs.

    Raises
    ------
    ExceptionGroup
        When all is done, if some could not be built: a `TrunnionError` for each, with a note that names the job. It is
        what `trunnion.compile` raised, or an `ArtifactError` where the executor failed, or anything else was raised.
    ArgumentTypeError
        If something else than a job is given, the executor is none, or ``told`` cannot be called.
    """
    wanted = _wanted(jobs)
    if executor is not None:
        expect(executor, Executor, "executor", "a concurrent.futures.Executor, or None")
    if not callable(told):
        raise ArgumentTypeError("told", describe(told), "something to call with a job and what was made")
    built: dict[int, Artifact] = {}
    errors: list[TrunnionError] = []
    outcomes = _here(wanted) if executor is None else _by(executor, wanted)
    with closing(outcomes):  # which cancels what has not begun
        for place, made in outcomes:
            if isinstance(made, Artifact):
                built[place] = made
            else:
                made.add_note(f"it was to be built: {wanted[place]}")
                errors.append(made)
            told(wanted[place], made)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(wanted)} could not be built", errors)
    return [built[place] for place in range(len(wanted))]


def _wanted(jobs: object) -> list[BuildJob]:
    try:
        given = sequence(jobs, _MOST_JOBS)
    except ForeignError as error:
        raise ArgumentTypeError("jobs", type_name(jobs), "BuildJobs") from error.__cause__
    if given is None:
        raise ArgumentTypeError("jobs", type_name(jobs), "a sequence of BuildJobs")
    return [expect(job, BuildJob, "jobs", "BuildJobs") for job in given]  # type: ignore[misc]  # which it refuses


def _here(jobs: Sequence[BuildJob]) -> Generator[tuple[int, Artifact | TrunnionError]]:
    """Yield each job's place, and what came of it."""
    for place, job in enumerate(jobs):
        yield place, _outcome(job, functools.partial(_build, job))


def _by(executor: Executor, jobs: Sequence[BuildJob]) -> Generator[tuple[int, Artifact | TrunnionError]]:
    """Yield each job's place, and what came of it, as they come to an end.

    Futures say it themselves: `concurrent.futures.as_completed` waits for ever for one that is cancelled while nobody
    would run it any more, as those are of an executor that is shut down with ``cancel_futures=True``.
    """
    waiting: dict[int, Any] = {}
    done: SimpleQueue[int] = SimpleQueue()
    try:
        for place, job in enumerate(jobs):
            whose = ""
            try:
                future = executor.submit(_build, job)
                whose = f"{type_name(executor)} gave {type_name(future)}, expected a future: "
                waiting[place] = future
                future.add_done_callback(functools.partial(_tell, done, place))
            except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 - it is broken, or shut down
                _cancel(waiting.pop(place, None))
                yield place, _failed(job, error, whose)
        while waiting:
            place = done.get()
            if place in waiting:  # whatever a future does, each job has one outcome
                yield place, _outcome(jobs[place], waiting.pop(place).result)
    finally:
        for future in waiting.values():
            _cancel(future)


def _tell(done: SimpleQueue[int], place: int, _future: object) -> None:
    done.put(place)


def _cancel(future: Any) -> None:
    """Cancel what has not begun; one that cannot be cancelled hides neither what is told, nor keeps others."""
    with suppress(Exception, SystemExit, GeneratorExit):
        future.cancel()


def _outcome(job: BuildJob, result: Callable[[], Any]) -> Artifact | TrunnionError:
    try:
        made = result()
    except TrunnionError as error:
        return error
    except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 - that job's failure alone
        return _failed(job, error)
    if not is_a(made, Artifact):
        return _failed(job, TypeError(f"the executor returned {type_name(made)}"))
    if made.files.get(PROGRAM_FILE) != job.program.to_json().encode():
        return _failed(job, ValueError("the executor returned what was built of another program"))
    wanted = {"target": job.target and str(job.target), "backend": job.backend != "auto" and job.backend}
    for what, name in wanted.items():
        built = getattr(made.manifest, what)
        if name and built != name:
            problem = f"the executor returned what was built for the {what} {shorten(built)}"
            return _failed(job, ValueError(problem))
    return made


def _failed(job: BuildJob, error: BaseException, whose: str = "") -> ArtifactError:
    failure = ArtifactError(f"{job} was not built: {whose}{type_name(error)}: {first_line(error)}")
    failure.__cause__ = error
    return failure


def _build(job: BuildJob) -> Artifact:
    return compile_program(
        job.program,
        job.backend,
        target=job.target,
        compiler=job.compiler,
        options=job.options,
        cache=job.cache,
        trust=job.trust,
    ).artifact
