"""Many programs at once, by any executor: what was built comes in order, and all that failed is told."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion import examples
from trunnion.artifacts.artifact import Artifact
from trunnion.errors import ArgumentTypeError, CompileError, UnsupportedFeatureError
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

    def tell(job: trunnion.BuildJob, made: Artifact | Exception) -> None:
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
        "it was to be built: 'broken' by nvrtc for sm_90a",
        "it was to be built: 'vector_add' by nvrtc for cpu",
    ]
    assert set(told) == {CompileError, UnsupportedFeatureError, Artifact}


def test_what_is_no_job_and_no_executor_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="BuildJobs"):
        trunnion.build_many([examples.load("vector_add").program])  # type: ignore[list-item]  # that is the mistake
    with pytest.raises(ArgumentTypeError, match="Executor, or None"):
        trunnion.build_many([], 3)  # type: ignore[arg-type]  # likewise
