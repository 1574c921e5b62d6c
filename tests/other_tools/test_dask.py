"""Programs built by Dask's executor, on workers that are processes of their own."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from distributed import Client, LocalCluster

import trunnion
from trunnion import building, examples
from trunnion.errors import ArtifactError, CompileError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def jobs() -> list[trunnion.BuildJob]:
    return [
        trunnion.BuildJob(program=examples.load(name).program, target=target, backend="nvrtc", cache=False)
        for name in ("vector_add", "affine")
        for target in ("sm_90a", "sm_80")
    ]


def broken() -> trunnion.BuildJob:
    builder = ProgramBuilder("broken", DeviceCode("cuda", 'extern "C" __global__ void k() { no; }'))
    builder.launch("k", (), 1, 1)
    return trunnion.BuildJob(program=builder.build(), target="sm_90a", backend="nvrtc", cache=False)


def test_two_workers_build(client: Client) -> None:
    told: list[Any] = []
    wanted = jobs()
    with client.get_executor() as executor:
        built = trunnion.build_many(wanted, executor, told=lambda job, made: told.append(job))
    assert len({*client.run(os.getpid).values()} - {os.getpid()}) == 2
    assert sorted(map(str, told)) == sorted(map(str, wanted))
    assert built == trunnion.build_many(wanted)


def test_what_cannot_be_built_comes_back_as_what_it_is(client: Client) -> None:
    with client.get_executor() as executor, pytest.raises(ExceptionGroup) as caught:
        trunnion.build_many([broken(), jobs()[0]], executor)
    (error,) = caught.value.exceptions
    assert isinstance(error, CompileError)
    assert "no" in error.log
    assert error.__notes__ == ["it was to be built: 'broken' by 'nvrtc' for cuda:sm_90a"]


def _die(_: trunnion.BuildJob) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _have_builds_die() -> None:
    building._build = _die


def test_a_worker_that_dies_is_its_job_s_typed_error(client: Client) -> None:
    client.run(_have_builds_die)
    client.cluster.scheduler.allowed_failures = 0  # a task is begun again after three deaths otherwise
    with client.get_executor() as executor, pytest.raises(ExceptionGroup) as caught:
        trunnion.build_many(jobs()[:1], executor)
    (error,) = caught.value.exceptions
    assert isinstance(error, ArtifactError)
    assert "KilledWorker" in str(error)
