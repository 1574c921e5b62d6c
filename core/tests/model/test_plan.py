from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import UnboundSymbolError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Slot, symbols
from trunnion.model.params import Signature, TensorParam
from trunnion.model.plan.planning import plan_signature

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram

PARTS = ("trunnion.model.plan.launch_plan", "trunnion.model.plan.slots", "trunnion.model.plan.steps")
SCRIPT = """
import sys
from trunnion.model.program import KernelProgram
print(KernelProgram.from_json(sys.stdin.read()).plan().hash)
"""


def test_the_hash_is_the_same_in_every_process(program: KernelProgram) -> None:
    seen = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            input=program.to_json(),
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        seen.add(run.stdout.strip())
    assert seen == {program.plan().hash}


def test_equal_plans_have_equal_hashes(make_program: Any) -> None:
    one, other = make_program().plan(), make_program().plan()
    assert one == other
    assert one.hash == other.hash
    assert len(one.hash) == 64
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301 - our own bytes
        assert again == one
        assert again.hash == one.hash


def test_a_label_is_no_difference(make_program: Any) -> None:
    assert make_program(label="X").plan().hash == make_program(label="Y").plan().hash


@pytest.mark.parametrize("change", [{"name": "x"}, {"second": "x"}, {"block_y": 4}, {"box": (32, 64)}])
def test_a_change_of_the_program_changes_the_hash(make_program: Any, change: dict[str, Any]) -> None:
    assert make_program(**change).plan().hash != make_program().plan().hash


def variants(value: Any) -> list[Any]:  # noqa: PLR0911 - a kind of value each
    """Return values that differ from ``value`` in one place each."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [value / 2]
    if isinstance(value, (str, bytes)) and type(value) in (str, bytes):
        return [value + value[:1]]
    if isinstance(value, (tuple, frozenset)) and value:
        members = list(value)
        shorter = type(value)(members[1:])
        if isinstance(value, frozenset):
            return [shorter]
        return [
            shorter,
            *((*value[:i], new, *value[i + 1 :]) for i, one in enumerate(value) for new in variants(one)),
        ]
    if isinstance(value, Slot):
        return [Slot(value.index + 1, value.low, value.high)]
    if dataclasses.is_dataclass(value) and type(value).__module__ in PARTS:
        fields = [f.name for f in dataclasses.fields(value)]
        return [dataclasses.replace(value, **{n: new}) for n in fields for new in variants(getattr(value, n))]
    return []


def test_the_hash_differs_wherever_plans_differ(program: KernelProgram) -> None:
    plan = program.plan()
    changed: list[LaunchPlan] = variants(plan)
    assert len(changed) > 250
    hashes = {each.hash for each in changed}
    assert plan.hash not in hashes
    assert len(hashes) == len(set(changed))


def test_the_symbol_map_says_where_symbols_are_read() -> None:
    n, m, k, j = symbols("n m k j")
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.scalar("s", "int64", k)
    p.input("a", "int8", (n + 1, 3, j), strides=(m, m, 1), nullable=True)
    p.pointer("where")
    p.input("b", "int8", (2, n))
    p.output("c", "int8", (k, j))
    p.launch("kernel", (), 1, 1)
    assert p.build().plan().symbol_map == {"j": (0, 1, 2), "n": (0, 3, 1), "m": (1, 1, 0), "k": (2, 0, 0)}


def test_a_signature_alone_is_planned_as_in_a_program(program: KernelProgram) -> None:
    whole, alone = program.plan(), plan_signature(program.name, program.signature)
    for field in ("name", "signature", "tensors", "scalars", "pointers", "structs", "bindings", "checks"):
        assert getattr(alone, field) == getattr(whole, field)
    assert alone.results == whole.results
    assert (alone.launches, alone.kernels, alone.encodes, alone.workspaces) == ((), (), (), ())
    assert alone.requires < whole.requires


def test_a_signature_alone_needs_its_symbols_bound() -> None:
    (n,) = symbols("n")
    with pytest.raises(UnboundSymbolError) as caught:
        plan_signature("f", Signature(outputs=(TensorParam("y", "int8", (n,)),)))
    assert caught.value.symbol == "n"
