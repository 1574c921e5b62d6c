"""Build many programs at once, by any executor of `concurrent.futures`' interface."""

from __future__ import annotations

from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect
from trunnion.compilation import compile as compile_program
from trunnion.errors import TrunnionError, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.spec import Target
    from trunnion.model.program import KernelProgram

__all__ = ["BuildJob", "build_many"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildJob:
    """One thing to build; its fields are parameters of `trunnion.compile`."""

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

    def __str__(self) -> str:
        return " ".join(
            (shorten(self.program.name), f"by {self.backend}", f"for {self.target}" if self.target else "")
        ).rstrip()


_IGNORED: Final = lambda *_: None  # noqa: E731 - it is the default of a parameter


def build_many(
    jobs: Iterable[BuildJob],
    executor: Executor | None = None,
    *,
    told: Callable[[BuildJob, Artifact | Exception], object] = _IGNORED,
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
        Called in this thread when a job is done, with what was built or what was raised: for progress.

    Returns
    -------
    list[Artifact]
        What was built, in the order of the jobs.

    Raises
    ------
    ExceptionGroup
        When all is done, if some could not be built: what each of them raised, as `trunnion.compile` does or the
        executor, with a note that names the job.
    ArgumentTypeError
        If something else than a job is given.
    """
    wanted = [expect(job, BuildJob, "jobs", "BuildJobs") for job in jobs]
    if executor is not None:
        expect(executor, Executor, "executor", "a concurrent.futures.Executor, or None")
    built: dict[int, Artifact] = {}
    errors: list[Exception] = []
    for place, future in _done(wanted, executor):
        error = future.exception()
        if error is None:
            built[place] = future.result()
            told(wanted[place], built[place])
            continue
        if not isinstance(error, Exception):
            raise error
        error.add_note(f"it was to be built: {wanted[place]}")
        errors.append(error)
        told(wanted[place], error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(wanted)} could not be built", errors)
    return [built[place] for place in range(len(wanted))]


def _done(jobs: list[BuildJob], executor: Executor | None) -> Iterator[tuple[int, Future[Artifact]]]:
    """Yield each job's place, and its future, as they come to an end."""
    if executor is None:
        for place, job in enumerate(jobs):
            yield place, _here(job)
        return
    places = {executor.submit(_build, job): place for place, job in enumerate(jobs)}
    for future in as_completed(places):
        yield places[future], future


def _here(job: BuildJob) -> Future[Artifact]:
    future: Future[Artifact] = Future()
    try:
        future.set_result(_build(job))
    except TrunnionError as error:
        future.set_exception(error)
    return future


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
