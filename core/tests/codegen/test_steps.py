"""Every reader of a plan's steps knows every kind of them, and passes none over that it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import pytest

from trunnion.codegen.cpp.emitter import emit_launcher as emit_cpp
from trunnion.codegen.cpp.host import emit_host_launcher
from trunnion.codegen.python.emitter import emit_launcher as emit_python
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import ge, symbols
from trunnion.model.facts import device, occupancy
from trunnion.model.plan import steps
from trunnion.model.plan.steps import Action, Phase, ReadTensors, Step

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram

PRINTERS = {"python": emit_python, "cpp": emit_cpp}


def everything(*, facts: bool = True) -> KernelProgram:
    """Return a program whose plan has steps of every kind; without facts of the device, of every other."""
    p = ProgramBuilder("everything", DeviceCode("cuda", "//"))
    m, n = symbols("m n")
    x = p.input("x", "float32", (n, 64))
    left = p.input("left", "float32", (n, 64), nullable=True)
    p.scalar("m", "int32", symbol=m)
    if facts:
        p.check(ge(device.compute_capability_major, occupancy("first", 32)), "a device")
    y = p.output("y", "float32", (n,), fill=0.0)
    scratch = p.workspace("scratch", "int8", (m,), zeroed=True)
    window = x.window(hit_ratio=0.5, nbytes=m)
    p.copy(p.variable("gain", "float32", (64,)), p.input("gains", "float32", (64,)))
    p.launch("first", (x, left.tiled((8, 64)), y, scratch, m * 2), n, 32, dynamic_smem_bytes=m, window=window)
    stream_window = x.window(hit_ratio=0.5, policy="stream")
    p.launch("second", (y,), n, 32, window=stream_window, cluster=n % 2 + 1, pdl=ge(m, 2), when=m)
    return p.build()


def simple() -> KernelProgram:
    """Return a program for devices of every kind."""
    p = ProgramBuilder("simple", DeviceCode("cuda", "//"))
    x, y = p.input("x", "float32", (8,)), p.output("y", "float32", (8,))
    p.launch("k", (x, y), 1, 32)
    return p.build()


def test_a_program_has_steps_of_every_kind_and_every_reader_does_them(any_rig: Any, tensor: Any) -> None:
    plan = everything().plan()
    assert {type(step.action) for step in plan.steps} == set(get_args(Action))
    for printer in PRINTERS.values():
        printer(plan)
    r = any_rig(everything())
    x = tensor("float32", 4, 64)
    r.program.call((x, tensor("float32", 4, 64), 256, tensor("float32", 64)), stream=9)
    assert [launch.kernel for launch in r.facade.launched] == ["first", "second"]


def test_every_kind_of_step_is_public() -> None:
    assert {kind.__name__ for kind in get_args(Action)} <= set(steps.__all__)


@dataclass(frozen=True, slots=True)
class Unheard(ReadTensors.__base__):  # type: ignore[misc]  # what every kind is made of
    """A step of a kind that nobody knows."""


def with_strange(plan: LaunchPlan, phase: Phase) -> LaunchPlan:
    """Put a step that nobody knows at the end of a phase."""
    order = [*Phase]
    place = sum(order.index(step.phase) <= order.index(phase) for step in plan.steps)
    plan.__dict__["steps"] = (*plan.steps[:place], Step(phase, Unheard()), *plan.steps[place:])
    return plan


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("printer", [*PRINTERS.values(), emit_host_launcher], ids=[*PRINTERS, "host"])
def test_a_printer_refuses_a_step_that_it_does_not_know(printer: Any, phase: Phase) -> None:
    program = simple() if printer is emit_host_launcher else everything()
    with pytest.raises(TypeError, match="a step Unheard"):
        printer(with_strange(program.plan(), phase))


@pytest.mark.parametrize("phase", Phase)
def test_an_interpreter_refuses_a_step_that_it_does_not_know(
    interpreted_rig: Any, tensor: Any, phase: Phase
) -> None:
    r = interpreted_rig(simple())
    with_strange(r.module.plan(), phase)
    with pytest.raises(TypeError, match="a step Unheard"):
        r.program.entry(tensor("float32", 8))


def test_a_host_launcher_passes_over_no_step_of_a_device() -> None:
    with pytest.raises(TypeError, match="ReadFacts"):
        emit_host_launcher(everything().plan())
    with pytest.raises(TypeError, match="RefuseCapture"):
        emit_host_launcher(everything(facts=False).plan())
