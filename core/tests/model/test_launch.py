from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Symbol, eq
from trunnion.model.float_expr import real
from trunnion.model.launch import KernelLaunch
from trunnion.model.launch_attributes import (
    LAUNCH_ATTRIBUTES,
    ClusterSchedulingPolicy,
    MemSyncDomain,
)
from trunnion.model.params import ScalarParam, TensorParam

N = Symbol("n")


def launch(**fields: Any) -> KernelLaunch:
    return KernelLaunch("k", (), fields.pop("grid", N * 16), 32, **fields)


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({"cluster": 2}, (2, 1, 1)),
        ({"cluster": (2, Const(2), 4), "grid": (N, N, N)}, (2, 2, 4)),
        ({"cluster": (1, 1, 1)}, (1, 1, 1)),
        ({"cluster": (2, N), "grid": (N, N)}, (Const(2), N, Const(1))),
        ({"cluster": N}, (N, Const(1), Const(1))),
        ({"pdl": N}, (N,)),
        ({"pdl": eq(N, 3)}, (eq(N, 3),)),
        ({"pdl": Const(2)}, (1,)),
        ({"pdl": Const(0)}, ()),
        ({"cooperative": True}, (1,)),
        ({"pdl": True}, (1,)),
        ({"priority": 0}, (0,)),
        ({"priority": -5}, (-5,)),
        ({"carveout": 0}, (0,)),
        ({"carveout": 100}, (100,)),
        ({"scheduling_policy": "spread"}, (1,)),
        ({"scheduling_policy": ClusterSchedulingPolicy.LOAD_BALANCING}, (2,)),
        ({"mem_sync_domain": "remote"}, (1,)),
        ({"mem_sync_domain": MemSyncDomain.DEFAULT}, (0,)),
        ({"preferred_cluster": (4, 2), "cluster": (2, 1), "grid": (N, N)}, (4, 2, 1)),
    ],
)
def test_a_field_becomes_the_driver_s_numbers(fields: dict[str, Any], numbers: tuple[int, ...]) -> None:
    name = next(iter(fields))
    (row,) = [row for row in LAUNCH_ATTRIBUTES if row.field == name]
    assert row.values(getattr(launch(**fields), name)) == numbers


def test_a_plain_launch_says_nothing() -> None:
    plain = launch()
    assert [row.field for row in LAUNCH_ATTRIBUTES if row.values(getattr(plain, row.field))] == []


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"cluster": (2, Symbol("b", min=17))}, "cluster[1]"),
        ({"cluster": (2, N - N.max)}, "cluster[1]"),
        ({"cluster": (Symbol("b", min=3), 6)}, "cluster"),
        ({"cluster": (N, 2), "grid": (N, 3)}, "grid[1]"),
        ({"cluster": (2, N), "preferred_cluster": (4, 1)}, "preferred_cluster"),
        ({"cluster": 2, "preferred_cluster": N}, "preferred_cluster[0]"),
        ({"cluster": (2, "n")}, "cluster[1]"),
        ({"pdl": 1}, "pdl"),
        ({"pdl": "n"}, "pdl"),
        ({"cluster": 0}, "cluster[0]"),
        ({"cluster": 17}, "cluster[0]"),
        ({"cluster": (8, 4)}, "cluster"),
        ({"cluster": (1, 1, 1, 1)}, "cluster"),
        ({"cluster": True}, "cluster"),
        ({"cluster": 2, "grid": 3}, "grid[0]"),
        ({"preferred_cluster": 2}, "preferred_cluster"),
        ({"cluster": 2, "preferred_cluster": 3}, "preferred_cluster[0]"),
        ({"cluster": 2, "preferred_cluster": 4, "grid": 6}, "grid[0]"),
        ({"scheduling_policy": np.array([1, 2])}, "scheduling_policy"),
        ({"cooperative": 1}, "cooperative"),
        ({"pdl": None}, "pdl"),
        ({"priority": 1.0}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"carveout": 101}, "carveout"),
        ({"carveout": -1}, "carveout"),
        ({"carveout": True}, "carveout"),
        ({"scheduling_policy": "best"}, "scheduling_policy"),
        ({"mem_sync_domain": 1}, "mem_sync_domain"),
        ({"when": "n"}, "when"),
        ({"window": "all"}, "window"),
        ({"code": 0}, "code"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ProgramError) as caught:
        launch(**fields)
    assert caught.value.field == where
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("other", (), 1, 1)
    with pytest.raises(ProgramError) as caught:
        p.launch("k", (), **{"grid": N * 16, "block": 32, **fields})
    assert caught.value.field == f"launches[1].{where}"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: KernelLaunch("k", (), 2.5, 32),
            "expected an integer, an expression, or a sequence of up to 3",
        ),
        (lambda: KernelLaunch("k", (), 1, 2048), "got 2048, expected 1 to 1024"),
        (
            lambda: KernelLaunch("k", (), 1, Symbol("b", min=2000, max=3000)),
            "got 2000 to 3000, expected 1 to",
        ),
        (lambda: KernelLaunch("k", (), 1, 32, Const(-8)), "got -8 bytes, expected 0 to"),
        (lambda: TensorParam("x", "float32", 4), r"expected a sequence, \(4,\) for one dimension"),
        (lambda: TensorParam("x", "float32", N), r"expected a sequence, \(n,\) for one dimension"),
        (
            lambda: TensorParam("x", "float32", ("n",)),
            "got str 'n', expected an integer, a symbol or an expression",
        ),
        (lambda: TensorParam("x", "float32", (True,)), "a symbol or an expression; to compare"),
    ],
)
def test_what_is_allowed_is_told_whole(wrong: Any, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        wrong()


def test_the_table_names_each_attribute_once_and_fully() -> None:
    names = [row.field for row in LAUNCH_ATTRIBUTES]
    assert len(set(names)) == len(names)
    assert len({row.id for row in LAUNCH_ATTRIBUTES}) == len(names)
    assert set(names) < set(KernelLaunch.__match_args__)
    for row in LAUNCH_ATTRIBUTES:
        assert row.scopes <= {"launch", "stream", "graph"}
        assert "launch" in row.scopes
        assert row.cuda_version >= 11080
        assert re.fullmatch("[A-Z_]+", row.driver_name)


def test_the_table_says_which_devices_hold_an_attribute() -> None:
    rows = {row.field: row for row in LAUNCH_ATTRIBUTES}
    needing = {"cluster", "preferred_cluster", "scheduling_policy"}
    assert {name for name, row in rows.items() if row.least_capability((2, 1, 1)) == (9, 0)} == needing
    assert rows["cluster"].least_capability((1, 1, 1)) == (0, 0)
    assert rows["preferred_cluster"].least_capability((1, 1, 1)) == (0, 0)
    assert rows["scheduling_policy"].least_capability((0,)) == (9, 0)
    assert rows["pdl"].least_capability((1,)) == (0, 0)


def test_a_kernel_is_looked_for_in_its_own_part() -> None:
    first, second = DeviceCode("cuda", "// 1"), DeviceCode("cuda", "// 2")
    p = ProgramBuilder("two", (first, second))
    p.launch("k", (), 1, 1)
    p.launch("k", (1,), 1, 1, code=second)  # another kernel of that name, with other parameters
    kernels = p.build().plan().kernels
    assert [(kernel.name, kernel.part, len(kernel.parameters)) for kernel in kernels] == [
        ("k", 0, 0),
        ("k", 1, 1),
    ]


def test_a_part_must_be_the_program_s() -> None:
    p = ProgramBuilder("one", DeviceCode("cuda", "// 1"))
    p.launch("k", (), 1, 1, code=DeviceCode("cuda", "// other"))
    with pytest.raises(ProgramError) as caught:
        p.build()
    assert caught.value.field == "launches[0].code"


def test_a_number_for_a_parameter_says_what_to_write() -> None:
    with pytest.raises(
        ProgramError, match=r"args\[1\]: got float '0.5', .* is a parameter, scalar\('x', 'float32'\)"
    ):
        KernelLaunch("k", (1, 0.5), 1, 1)
    for grid in (ScalarParam("n", "int32"), (ScalarParam("n", "int32"), 1)):
        with pytest.raises(ProgramError, match=r"grid\[0\]: got ScalarParam, .* symbol=n\), and write n"):
            KernelLaunch("k", (), grid, 1)


@pytest.mark.parametrize("field", ["pdl", "cluster", "cluster[1]"])
def test_what_stands_for_no_integer_is_refused_with_what_to_write(field: str) -> None:
    """A call may decide both, so that a scalar or a float is what people try."""

    def refused(value: Any) -> str:
        name, _, axis = field.partition("[")
        with pytest.raises(ExprError) as caught:
            launch(**{name: (1, value) if axis else value}, grid=(N, N))
        assert caught.value.field == (field if name == "pdl" or axis else "cluster[0]")
        return str(caught.value)

    assert "write its symbol, i" in refused(ScalarParam("i", "int32", Symbol("i")))
    assert "compute with it in the kernel" in refused(ScalarParam("s", "float32"))
    assert "integers are divided by a // b" in refused(real(N) / 2)


def test_a_cluster_is_said_to_be_what_it_may_be() -> None:
    with pytest.raises(ProgramError, match="expected an integer, an expression, or up to 3 of them"):
        launch(cluster=2.0)
