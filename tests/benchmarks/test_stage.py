"""What is measured is compiled once for all ways in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trunnion
from launching.case import Case
from launching.ours import our_subjects
from launching.stage import Device, Stage

if TYPE_CHECKING:
    import pytest

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
