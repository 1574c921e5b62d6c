"""Many programs at once, by any executor: what was built comes in order, and all that failed is told."""

from __future__ import annotations

import errno
import multiprocessing
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import building, examples
from trunnion.artifacts.artifact import Artifact
from trunnion.errors import (
    ArgumentTypeError,
    ArtifactError,
    CompileError,
    ProgramError,
    TrunnionError,
    UnsupportedFeatureError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

NAMES = ("vector_add", "affine")
TARGETS = ("sm_90a", "sm_80")


def jobs() -> list[trunnion.BuildJob]:
    return [
        trunnion.BuildJob(program=examples.load(name).program, target=target, backend="nvrtc", cache=False)
        for name in NAMES
        for target in TARGETS
    ]


def broken() -> trunnion.BuildJob:
    builder = ProgramBuilder("broken", DeviceCode("cuda", 'extern "C" __global__ void k() { no; }'))
    builder.launch("k", (), 1, 1)
    return trunnion.BuildJob(program=builder.build(), target="sm_90a", backend="nvrtc", cache=False)


SPAWNED = partial(ProcessPoolExecutor, 2, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("executor", [None, partial(ThreadPoolExecutor, 2), SPAWNED])
def test_what_is_built_comes_in_the_order_of_the_jobs(executor: Callable[[], Executor] | None) -> None:
    told: list[str] = []
    wanted = jobs()

    def tell(job: trunnion.BuildJob, made: Artifact | TrunnionError) -> None:
        assert isinstance(made, Artifact)
        told.append(str(job))

    with nullcontext() if executor is None else executor() as pool:
        built = trunnion.build_many(wanted, pool, told=tell)
    assert [one.manifest.target for one in built] == ["cuda:sm_90a", "cuda:sm_80"] * 2
    assert sorted(told) == sorted(map(str, wanted))
    alone = trunnion.compile(wanted[0].program, "nvrtc", target="sm_90a", cache=False).artifact
    assert built[0] == alone


@pytest.mark.parametrize("executor", [None, SPAWNED])
def test_all_are_built_though_some_cannot_be(executor: Callable[[], Executor] | None) -> None:
    good, told = jobs()[0], []
    unlaunchable = trunnion.BuildJob(program=good.program, target="cpu", backend="nvrtc", cache=False)
    wanted = [broken(), good, unlaunchable]
    with (
        nullcontext() if executor is None else executor() as pool,
        pytest.raises(ExceptionGroup, match="2 of 3 could not be built") as caught,
    ):
        trunnion.build_many(wanted, pool, told=lambda _, made: told.append(type(made)))
    assert {type(error) for error in caught.value.exceptions} == {CompileError, UnsupportedFeatureError}
    notes = sorted(error.__notes__[0] for error in caught.value.exceptions)
    assert notes == [
        "it was to be built: 'broken' by 'nvrtc' for cuda:sm_90a",
        "it was to be built: 'vector_add' by 'nvrtc' for cpu",
    ]
    assert set(told) == {CompileError, UnsupportedFeatureError, Artifact}


class Dying(ThreadPoolExecutor):
    """An executor whose workers end, as those of processes do that are killed."""

    def submit(self, *_: object, **__: object) -> Any:
        future: Future[Any] = Future()
        future.set_exception(ERROR)
        return future


class Shut(ThreadPoolExecutor):
    """An executor that takes nothing."""

    def submit(self, *_: object, **__: object) -> Any:
        raise RuntimeError("cannot schedule new futures after shutdown")


class Exhausted(ThreadPoolExecutor):
    """An executor that cannot begin a process."""

    def submit(self, *_: object, **__: object) -> Any:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


class Leaving(ThreadPoolExecutor):
    """An executor whose workers call sys.exit."""

    def submit(self, *_: object, **__: object) -> Any:
        return super().submit(sys.exit)


class Swapping(ThreadPoolExecutor):
    """An executor that answers with what another job was."""

    def submit(self, function: Any, job: trunnion.BuildJob, /) -> Any:
        return super().submit(function, replace(job, program=examples.load("affine").program))


class Answering(ThreadPoolExecutor):
    """An executor that answers something else."""

    def submit(self, *_: object, **__: object) -> Any:
        return super().submit(int)


class Retargeting(ThreadPoolExecutor):
    """An executor that answers with what was built for another target."""

    def submit(self, function: Any, job: trunnion.BuildJob, /) -> Any:
        return super().submit(function, replace(job, target="sm_100"))


class Preferring(ThreadPoolExecutor):
    """An executor that answers with what another backend built."""

    def submit(self, function: Any, job: trunnion.BuildJob, /) -> Any:
        return super().submit(function, replace(job, backend="tvm_ffi"))


class Silent(ThreadPoolExecutor):
    """An executor that gives no future."""

    def submit(self, *_: object, **__: object) -> Any:
        return None


class Closing(ThreadPoolExecutor):
    """An executor of which a worker ends as a generator that is closed."""

    def submit(self, *_: object, **__: object) -> Any:
        future: Future[Any] = Future()
        future.set_exception(GeneratorExit())
        return future


class Deaf(Future[Any]):
    """A future that calls nobody, and cannot be cancelled."""

    def add_done_callback(self, *_: object) -> None:
        raise KeyError("who?")

    def cancel(self) -> bool:
        raise KeyError("what?")


class Deafening(ThreadPoolExecutor):
    """An executor that gives such futures."""

    def submit(self, *_: object, **__: object) -> Any:
        return Deaf()


ERROR = BrokenProcessPool("A process in the process pool was terminated abruptly")


class Cancelling(ThreadPoolExecutor):
    """An executor whose futures are cancelled, and which tells nobody, as one that is shut down."""

    def submit(self, *_: object, **__: object) -> Any:
        future: Future[Any] = Future()
        future.cancel()
        return future


@pytest.mark.parametrize(
    "executor",
    [
        *(Dying, Shut, Exhausted, Leaving, Swapping, Answering, Cancelling),
        *(Retargeting, Preferring, Silent, Closing, Deafening),
    ],
)
def test_an_executor_that_fails_is_each_job_s_own_typed_error(executor: type[ThreadPoolExecutor]) -> None:
    with executor(1) as pool, pytest.raises(ExceptionGroup) as caught:
        trunnion.build_many(jobs()[:2], pool)
    assert [type(error) for error in caught.value.exceptions] == [ArtifactError] * 2
    assert [len(error.__notes__) for error in caught.value.exceptions] == [1, 1]


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        (Retargeting, "was built for the target 'cuda:sm_100'"),
        (Preferring, "was built for the backend 'tvm_ffi'"),
        (Silent, "Silent gave NoneType, expected a future: "),
        (Deafening, "Deafening gave Deaf, expected a future: KeyError"),
    ],
)
def test_what_an_executor_answers_wrongly_is_said(executor: type[ThreadPoolExecutor], said: str) -> None:
    with executor(1) as pool, pytest.raises(ExceptionGroup) as caught:
        trunnion.build_many(jobs()[:1], pool)
    assert said in str(caught.value.exceptions[0])


def test_what_cannot_be_cancelled_hides_nothing_and_keeps_no_other() -> None:
    class Stubborn(Future[Any]):
        def cancel(self) -> bool:
            super().cancel()
            raise KeyError("what?")

    class Pool(ThreadPoolExecutor):
        def submit(self, *_: object, **__: object) -> Any:
            futures.append(Stubborn())
            if len(futures) == 1:
                futures[0].set_exception(ERROR)
            return futures[-1]

    futures: list[Stubborn] = []
    with Pool(1) as pool, pytest.raises(ZeroDivisionError):
        trunnion.build_many(jobs(), pool, told=lambda *_: 1 / 0)
    assert [future.cancelled() for future in futures] == [False, True, True, True]


def test_a_future_that_tells_twice_is_one_job_s() -> None:
    class Eager(Future[Any]):
        def add_done_callback(self, fn: Any) -> None:
            super().add_done_callback(fn)
            super().add_done_callback(fn)

    class Pool(ThreadPoolExecutor):
        def submit(self, function: Any, job: trunnion.BuildJob, /) -> Any:
            future = Eager()
            future.set_result(function(job))
            return future

    with Pool(1) as pool:
        built = trunnion.build_many(jobs()[:2], pool)
    assert [one.manifest.target for one in built] == ["cuda:sm_90a", "cuda:sm_80"]


@pytest.mark.parametrize("executor", [None, partial(ThreadPoolExecutor, 1)])
def test_whatever_a_plugin_raises_is_its_job_s_failure(
    executor: Callable[[], Executor] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(job: trunnion.BuildJob) -> Artifact:
        raise KeyError("of a plugin") if job is wanted[0] else StopAsyncIteration

    wanted = jobs()[:2]
    monkeypatch.setattr(building, "_build", failing)
    with nullcontext() if executor is None else executor() as pool, pytest.raises(ExceptionGroup) as caught:
        trunnion.build_many(wanted, pool)
    assert [type(error) for error in caught.value.exceptions] == [ArtifactError] * 2
    assert "KeyError" in str(caught.value.exceptions[0])


def test_what_the_caller_raises_cancels_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def counted(job: trunnion.BuildJob) -> Any:
        begun.append(job)
        time.sleep(0.1)
        return None

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(building, "_build", counted)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        trunnion.build_many(jobs() * 5, pool, told=interrupt)
    assert len(begun) < 5


def test_who_shuts_the_executor_down_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, given, shut = threading.Event(), threading.Semaphore(0), threading.Event()

    class Counted(ThreadPoolExecutor):
        def submit(self, *args: Any, **named: Any) -> Any:
            future = super().submit(*args, **named)
            given.release()
            return future

    def building_until_then(job: trunnion.BuildJob) -> Any:
        begun.set()
        shut.wait()
        raise KeyError("of a plugin")

    def shut_down() -> None:
        begun.wait()
        for _ in jobs():
            given.acquire()
        pool.shutdown(wait=False, cancel_futures=True)
        shut.set()

    monkeypatch.setattr(building, "_build", building_until_then)
    pool = Counted(1)
    other = threading.Thread(target=shut_down)
    other.start()
    with pytest.raises(ExceptionGroup) as caught:
        trunnion.build_many(jobs(), pool)
    other.join()
    assert sorted(str(error).split(": ")[1] for error in caught.value.exceptions) == [
        *["CancelledError"] * 3,
        "KeyError",
    ]


def test_what_is_told_of_is_cancelled_before_the_error_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, futures = ThreadPoolExecutor(1), []
    held = threading.Event()

    def submitted(*_: object) -> Any:
        futures.append(ThreadPoolExecutor.submit(pool, held.wait if futures else int))
        return futures[-1]

    monkeypatch.setattr(pool, "submit", submitted)
    with pytest.raises(ZeroDivisionError) as caught:
        trunnion.build_many(jobs(), pool, told=lambda *_: 1 / 0)
    cancelled = [future.cancelled() for future in futures[2:]]
    assert (cancelled, caught.tb) == ([True, True], caught.tb)  # which holds all frames that it went through
    held.set()
    pool.shutdown()


@pytest.mark.parametrize("fields", [{"program": 3}, {"backend": 3}, {"target": 3}])
def test_what_is_no_job_is_refused_when_it_is_made(fields: dict[str, Any]) -> None:
    with pytest.raises((ArgumentTypeError, ProgramError)):
        trunnion.BuildJob(**{"program": examples.load("vector_add").program, **fields})


def test_what_is_no_job_and_no_executor_is_refused() -> None:
    for given in (3, None, jobs()[0]):
        with pytest.raises(ArgumentTypeError, match="a sequence of BuildJobs"):
            trunnion.build_many(given)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(ArgumentTypeError, match="something to call"):
        trunnion.build_many([], told=3)  # type: ignore[arg-type]  # likewise
    with pytest.raises(ArgumentTypeError, match="BuildJobs"):
        trunnion.build_many([examples.load("vector_add").program])  # type: ignore[list-item]  # that is the mistake
    with pytest.raises(ArgumentTypeError, match="Executor, or None"):
        trunnion.build_many([], 3)  # type: ignore[arg-type]  # likewise
