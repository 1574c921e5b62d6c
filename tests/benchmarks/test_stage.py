"""What is measured is compiled once for all ways in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from launching.case import Case
from launching.ours import our_subjects
from launching.stage import Device, Stage, enter_device
from launching.subject import prepare

if TYPE_CHECKING:
    from trunnion.sim import Simulator


def test_each_program_is_compiled_once(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def count(program: Any, backend: str, *, compile_it: Any = trunnion.compile) -> Any:
        compiled.append(f"{backend} {bool(program.signature.outputs)}")
        return compile_it(program, backend, target="sm_90a")

    monkeypatch.setattr(trunnion, "compile", count)
    with simulator.torch_mode():
        stage = Stage(Case(2), Device("simulated", simulator))
        subjects = [subject for subject in our_subjects() if subject.name.startswith("tvm_ffi")]
        assert len(subjects) > 2
        trials = [subject.prepare(stage) for subject in subjects]
        assert sorted(compiled) == ["tvm_ffi False", "tvm_ffi True"]
        for trial in trials:
            trial.once(0)
        assert stage.program("tvm_ffi", allocating=False) is not stage.program("tvm_ffi", allocating=False)


def test_a_stage_knows_which_of_its_tensors_are_held_by_others(simulator: Simulator) -> None:
    with simulator.torch_mode():
        stage = Stage(Case(2), Device("simulated", simulator))
        assert stage.held == ()
        kept = stage.named["t1"].clone()
        kept.grad = stage.named["t1"]
        assert stage.held == ("t1",)
        del kept
        assert stage.held == ()


@pytest.mark.usefixtures("simulator")
def test_none_of_our_launchers_holds_what_it_is_passed() -> None:
    with enter_device(simulate=True) as device:
        assert device is not None
        ready = prepare(our_subjects(), Stage(Case(2), device))
        assert len(ready.trials) > 8
        assert ready.absent == {}
