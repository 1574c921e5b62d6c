"""Each way to launch is checked before it is timed, on the simulated driver."""

from __future__ import annotations

import ctypes
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import trunnion
from launching.case import Case
from launching.stage import enter_device
from real_hosts.bench import WAYS, Bench, native_loop
from real_hosts.building import Built, libraries
from real_hosts.project import Project, Way
from trunnion.call_helper import installed_choice

WORD = 7
LOOP = ctypes.CFUNCTYPE(
    ctypes.c_double, ctypes.c_longlong, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_longlong)
)


def project(*, wrong: float = 0.0) -> Project:
    """Return a program that adds a number to a vector, as the benchmark of launches does."""
    subject = SimpleNamespace(
        __name__="real_programs.adding",
        COPY=SimpleNamespace(name="some-1.0"),
        TOLERANCE={"rtol": 0.0, "atol": 0.0},
        arguments=lambda shape, place: (torch.ones(shape).to(place), WORD),
        reference=lambda x, word: x + word + wrong,
        program=lambda: Case(2).program(allocating=True),
    )
    return Project(
        subject, Case(2).shape, (), (Way("own", "launches"),), lambda given, out: (given[0], out), tuple
    )


@pytest.fixture
def adding(simulator, monkeypatch):
    """Yield a function that returns the bench of a project."""
    compile_it = trunnion.compile
    monkeypatch.setattr(trunnion, "compile", lambda *said: compile_it(*said, target="sm_90a"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    with enter_device(simulate=True):
        yield lambda **said: Bench(project(**said))


def test_every_way_into_a_program_is_ready_when_its_result_is_right(adding) -> None:
    bench = adding()
    for backend in ("nvrtc", "tvm_ffi"):
        bench.add_ours(backend)
    helper = installed_choice()
    labels = ["nvrtc", *([f"nvrtc + {helper.name}"] if helper.helper else []), "tvm_ffi"]
    assert bench.problems == {}
    assert list(bench.trials) == [f"{label} {way}" for label in labels for way in WAYS]
    assert list(bench.does) == ["some-1.0 own", *bench.trials]
    assert bench.first == "some-1.0 own"


def test_a_wrong_result_is_a_row_that_says_so(adding) -> None:
    bench = adding(wrong=1.0)
    bench.add_ours("tvm_ffi")
    assert not bench.trials
    assert set(bench.problems) == {f"tvm_ffi {way}" for way in WAYS}
    assert all("AssertionError: Tensor-likes are not equal" in text for text in bench.problems.values())


def test_what_was_not_compiled_is_a_row_that_says_what_nvcc_said(adding) -> None:
    bench = adding()
    future: Future[Built] = Future()
    future.set_result(Built(Path("none.so"), 0.0, "error:\n no header"))
    bench.add_theirs({libraries((bench.project,))[0]: future})
    assert bench.problems == {"some-1.0 own": "RuntimeError: nvcc failed: error: no header"}


def test_a_loop_is_given_addresses_and_numbers_and_says_when_it_failed() -> None:
    tensors, seen = (torch.ones(1), torch.ones(2)), []

    @LOOP
    def loop(calls, addresses, numbers):
        seen.append((calls, addresses[:2], numbers[:3]))
        return 0.5 if calls < 9 else -1.0

    trial = native_loop(loop, tensors, (1, 2, 1 << 40))
    assert trial.seconds(3) == 0.5
    assert seen == [(3, [tensor.data_ptr() for tensor in tensors], [1, 2, 1 << 40])]
    with pytest.raises(RuntimeError, match="host code, or CUDA's runtime"):
        trial.seconds(9)
