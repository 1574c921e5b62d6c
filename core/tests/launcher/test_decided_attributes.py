"""Clusters and early starts that a call decides: what the driver is told, by a generated launcher and interpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ArgumentValueError, DeviceRequirementError, DriverError, ExprError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ge

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.program import KernelProgram

CLUSTER, PDL = 4, 6  # CUlaunchAttributeID
NON_PORTABLE = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
X, Y, EARLY = (Symbol(name, min=0) for name in ("x", "y", "early"))


def program(**fields: Any) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    for symbol in (X, Y, EARLY):
        p.scalar(symbol.name, "int32", symbol=symbol)
    p.launch("k", (X,), **{"grid": (X * Y, Y), "block": 32, "cluster": (X, Y), "pdl": ge(EARLY, 2)} | fields)
    p.launch("k", (X,), 4, 32, cluster=2, pdl=True)
    return p.build()


def decided(cluster: tuple[int, int, int], pdl: int) -> tuple[Any, ...]:
    return ((CLUSTER, cluster), (PDL, (pdl,)))


def test_each_launch_has_what_its_own_call_decided(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program())
    for x, y, early in ((2, 1, 0), (2, 1, 0), (1, 4, 2), (2, 1, 3), (1, 1, 1)):
        r.program.call((x, y, early), stream=9, device=0)
        first, second = r.facade.launched[-2:]
        assert first.attributes == decided((x, y, 1), int(early >= 2))
        assert second.attributes == decided((2, 1, 1), 1)
    assert r.facade.count("set_attributes") == 4  # the second call's are the first one's


def test_a_bound_launch_keeps_what_was_decided(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program())
    bound = r.program.bind((2, 1, 2), stream=9, device=0)
    r.program.call((1, 2, 0), stream=9, device=0)
    bound()
    assert r.facade.launched[-2].attributes == decided((2, 1, 1), 1)


def test_a_kernel_is_allowed_what_is_not_portable_by_the_call_that_asks(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program())
    allowed = []
    for x, y in ((1, 1), (4, 2), (4, 4), (3, 3), (8, 2)):
        r.program.call((x, y, 0), stream=9, device=0)
        asked = [one for one in r.facade.log if one[0] == "set_kernel_attribute" and one[3] == NON_PORTABLE]
        allowed.append(len(asked))
    assert allowed == [0, 0, 1, 1, 1]


def test_what_a_constant_one_was_allowed_needs_no_second_word(any_rig: Callable[..., Any]) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.scalar("x", "int32", symbol=X)
    p.launch("k", (), 16, 32, cluster=16)
    p.launch("k", (), X, 32, cluster=X)
    r = any_rig(p.build())
    r.program.call((9,), stream=9, device=0)
    assert r.facade.count("set_kernel_attribute") == 1


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (0, 1, "a cluster of 0 blocks along x for kernel 'k', expected 1 to 16"),
        (1, 17, "a cluster of 17 blocks along y for kernel 'k', expected 1 to 16"),
        (4, 8, "a cluster of 32 blocks for kernel 'k', expected at most 16"),
        (2, 3, "a grid of 7 blocks along x for kernel 'k', expected a multiple of the cluster's 2"),
    ],
)
def test_what_is_no_cluster_is_refused_by_the_call(
    any_rig: Callable[..., Any], x: int, y: int, said: str
) -> None:
    r = any_rig(program(grid=(7, 7)))
    with pytest.raises(ArgumentValueError, match=said):
        r.program.call((x, y, 0), stream=9, device=0)
    assert not r.facade.launched
    r.program.call((1, 7, 0), stream=9, device=0)


def test_a_launch_that_does_not_happen_decides_nothing(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program(grid=(X, 4), cluster=X, pdl=4 // X))
    r.program.call((0, 1, 0), stream=9, device=0)
    assert len(r.facade.launched) == 1
    r = any_rig(program(grid=4, cluster=X, when=Y, pdl=4 // X))
    r.program.call((0, 0, 0), stream=9, device=0)
    with pytest.raises(ArgumentValueError):
        r.program.call((0, 1, 0), stream=9, device=0)
    r = any_rig(program(grid=4, cluster=2, pdl=4 // X))
    with pytest.raises(ExprError, match="division by zero"):
        r.program.call((0, 1, 0), stream=9, device=0)


def test_a_device_without_clusters_refuses_the_call_that_asks_for_several_blocks(
    any_rig: Callable[..., Any],
) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.scalar("x", "int32", symbol=X)
    p.launch("k", (), X, 32, cluster=X)
    r = any_rig(p.build())
    r.facade.attributes[75] = 8
    r.program.preload(0)
    for blocks, good in ((1, True), (2, False), (1, True), (16, False)):
        if good:
            r.program.call((blocks,), stream=9, device=0)
            continue
        with pytest.raises(
            DeviceRequirementError, match=r"compute capability 9.0 for the launch attribute cluster"
        ):
            r.program.call((blocks,), stream=9, device=0)
    assert (len(r.facade.launched), r.facade.count("set_kernel_attribute")) == (2, 0)


def test_a_refused_launch_is_told_with_what_the_call_decided(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program())

    def refuse(*_: object) -> None:
        raise DriverError("cuLaunchKernelEx", 1, "CUDA_ERROR_INVALID_VALUE", "wrong")

    r.facade.on["launch"] = refuse
    with pytest.raises(DriverError, match=r"with grid=.*, block=.*, cluster=\(2, 1, 1\), pdl=False"):
        r.program.call((2, 1, 0), stream=9, device=0)
