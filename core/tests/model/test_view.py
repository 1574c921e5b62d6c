"""A tensor with its layout as one argument of a launch."""

from __future__ import annotations

import pytest

from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Cast, Const, Symbol
from trunnion.model.params import TensorParam
from trunnion.model.plan import KernelParameter, LaunchPlan, ViewArgument
from trunnion.model.program import KernelProgram
from trunnion.model.view import TensorView

M, N = Symbol("m"), Symbol("n")


def _program(shape: tuple[object, ...], strides: tuple[object, ...] | None = None) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("shown", "int8", (M, N))
    a = p.input("a", "float32", shape, strides=strides, alignment=16)
    p.launch("k", (a.view(),), 1, 1)
    return p.build()


def _view(plan: LaunchPlan) -> ViewArgument:
    argument = plan.launches[0].args[0]
    assert isinstance(argument, ViewArgument)
    return argument


@pytest.mark.parametrize(
    ("shape", "strides", "size", "extents", "steps"),
    [
        ((), None, 8, 0, 0),
        ((4, 8), None, 8, 0, 0),
        ((M,), None, 16, 1, 0),
        ((M, 8), None, 16, 1, 0),
        ((8, M), None, 24, 1, 1),
        ((M, N), None, 24, 2, 1),
        ((M, N, 3), None, 24, 2, 1),
        ((M, 4, N), None, 32, 2, 2),
        ((M, N, M), None, 40, 3, 2),
        ((4, 8), (M, 1), 16, 0, 1),
        ((M, N), (1, M), 24, 2, 1),
    ],
)
def test_only_what_a_call_decides_travels(shape, strides, size, extents, steps):
    plan = _program(shape, strides).plan()
    view = _view(plan)
    assert tuple(map(len, view.numbers)) == (extents, steps)
    assert view.size == size
    assert plan.kernels[0].parameters == (KernelParameter(size, 8, f"a view of float32 ({size} bytes)"),)


def test_a_view_knows_its_whole_layout():
    view = _view(_program((M, 8, N)).plan())
    assert (view.dtype.name, view.alignment) == ("float32", 16)
    assert view.extents[1] == Const(8)
    assert all(
        isinstance(view.extents[axis], Cast) and view.extents[axis].to.name == "int32" for axis in (0, 2)
    )
    assert view.strides[2] == Const(1)


def test_a_workspace_has_a_view_too():
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("shown", "int8", (M, N))
    scratch = p.workspace("scratch", "float32", (M, N))
    p.launch("k", (scratch.view(),), 1, 1)
    program = p.build()
    assert program.workspaces == (scratch,)
    assert _view(program.plan()).alignment == 256
    assert program.plan().workspaces[0].readers == (0,)


def test_a_program_with_views_goes_through_json():
    program = _program((M, N))
    assert KernelProgram.from_json(program.to_json()) == program


def test_a_program_needs_a_backend_that_knows_views():
    assert "tensor_views" in _program((M,)).plan().requires


def test_a_view_of_a_tensor_of_another_program_is_refused():
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    stranger = TensorParam("stranger", "float32", (Const(4),))  # type: ignore[arg-type]  # reads spellings
    p.launch("k", (stranger.view(),), 1, 1)
    with pytest.raises(ProgramError, match="'stranger' is not a parameter") as caught:
        p.build()
    assert caught.value.field == "launches[0].args[0]"


def test_a_view_is_of_memory():
    with pytest.raises(ProgramError, match="view"):
        TensorView(3)


def test_symbols_of_a_view_must_stand_in_the_signature():
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    scratch = p.workspace("scratch", "float32", (Symbol("elsewhere"),))
    p.launch("k", (scratch.view(),), 1, 1)
    with pytest.raises((ProgramError, ExprError), match="elsewhere"):
        p.build()
