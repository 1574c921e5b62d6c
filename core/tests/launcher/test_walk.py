"""A call step by step, as somebody who looks at it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ArgumentValueError, ExprError
from trunnion.launcher.arithmetic import evaluate
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Binary, Slot, Symbol, ceildiv, symbols
from trunnion.model.float_expr import sqrt
from trunnion.model.op import Op
from trunnion.model.plan.steps import Bind, Phase, ShapeLaunch

if TYPE_CHECKING:
    from trunnion.launcher.walk import Walk


def rows() -> Any:
    p = ProgramBuilder("rows", DeviceCode("cuda", "//"))
    (m,) = symbols("m")
    n = Symbol("n", multiple_of=4)
    x, y = p.input("x", "float32", (m, n)), p.output("y", "float32", (m,))
    scratch = p.workspace("scratch", "int8", (n,))
    p.launch(
        "k", (x, y, scratch, (m * n).cast("int32")), grid=(ceildiv(m, 4),), block=n, dynamic_smem_bytes=n * 4
    )
    return p.build()


def walk(rig: Any, *args: Any, **said: Any) -> Walk:
    return rig(rows()).program.walk(args, **said)


def test_every_step_is_told_once_it_is_done(rig: Any, tensor: Any) -> None:
    one = walk(rig, tensor("float32", 6, 8))
    seen = []
    for step in one.run():
        seen.append(step)
        if isinstance(step.action, Bind):
            slot = step.action.binding.slot
            assert one.values[slot] == (6, 8)[slot]
        if isinstance(step.action, ShapeLaunch):
            assert one.launches == {0: (2, 1, 1, 8, 1, 1, 32)}
    arguments = (Phase.TENSORS, Phase.VALUES)
    assert seen == [step for step in rows().plan().steps if step.phase in arguments]
    assert one.shapes == {1: (6,)}
    assert one.sizes == {0: 8}
    assert one.computed == {(0, 3): (48).to_bytes(4, "little")}
    assert (one.device, one.stream) == (0, 100)


def test_the_first_refusal_ends_it(rig: Any, tensor: Any) -> None:
    one, seen = walk(rig, tensor("float32", 6, 7)), []
    with pytest.raises(
        ArgumentValueError, match="7 for the extent along dimension 1, expected a multiple of 4"
    ):
        seen.extend(one.run())
    assert tuple(seen) == rows().plan().steps[: len(seen)]
    assert isinstance(seen[-1].action, Bind)


def test_nothing_is_allocated_or_launched(rig: Any, tensor: Any) -> None:
    made = rig(rows())
    before = len(made.facade.log)
    for _ in made.program.walk((tensor("float32", 6, 8),)).run():
        pass
    assert not {entry[0] for entry in made.facade.log[before:]} & {"enter", "launch", "fill"}
    assert made.runtime.allocated == []


@pytest.mark.parametrize("op", Op)
def test_evaluate_computes_each_operation(op: Op) -> None:
    expr = Binary(op, Slot(0, -100, 100), Slot(1, -100, 100))
    for values in ((7, 2), (-7, 2), (7, -2), (-7, -2), (3, 3)):
        if not op.admits(values[1]):
            with pytest.raises(ExprError, match=r"a shift by -2 in a (<<|>>) b, expected 0 to 63"):
                evaluate(expr, values, ("a", "b"))
            continue
        assert evaluate(expr, values, ("a", "b")) == op.compute(*values)


def test_a_launch_that_is_skipped_judges_no_floating_point_number(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("skipped", DeviceCode("cuda", "//"))
    m, n = symbols("m n")
    p.input("x", "float32", (m, n))
    p.launch("k", ((1 / sqrt(n)).cast("float16"),), grid=m, block=1)
    program = rig(p.build()).program
    done = program.walk((tensor("float32", 3, 64),))
    tuple(done.run())
    assert done.computed == {(0, 0): b"\x00\x30"}
    skipped = program.walk((tensor("float32", 0, 0),))
    tuple(skipped.run())
    assert skipped.computed == {}
    with pytest.raises(ExprError) as caught:
        tuple(program.walk((tensor("float32", 3, 0),)).run())
    assert str(caught.value) == "the value inf of 1.0 / sqrt(n) is not finite"
