from __future__ import annotations

import shutil

import pytest
import torch

from launching.case import Case
from launching.stage import Device, Stage
from launching.subject import prepare
from launching.yardsticks import BARE, YARDSTICKS, build, cuda_header_directory

pytestmark = pytest.mark.skipif(
    cuda_header_directory() is None or shutil.which("g++") is None, reason="needs g++ and cuda.h"
)


def test_the_bare_call_receives_everything_and_returns_nothing() -> None:
    module = build()
    tensor = torch.zeros(4)
    assert module.nothing(tensor, tensor, 9) is None
    assert module.seen() == (3 << 32) + 9


def test_the_loop_refuses_more_than_it_has_room_for() -> None:
    with pytest.raises(RuntimeError, match=r"too many arguments|no CUDA driver"):
        build().raw(*range(64))


def test_what_needs_a_gpu_is_absent_by_name_where_there_is_none() -> None:
    simulated = Device("simulated", simulator=object())
    stage = Stage.__new__(Stage)
    object.__setattr__(stage, "case", Case(3))
    object.__setattr__(stage, "device", simulated)
    ready = prepare(YARDSTICKS, stage)
    assert not ready.trials
    assert ready.absent[BARE] == "needs a GPU"
