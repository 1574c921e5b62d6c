from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trunnion.errors import ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Slot, Symbol
from trunnion.model.params import ScalarParam
from trunnion.model.plan import MemoryKind, MemoryRef
from trunnion.model.window import AccessPolicyWindow, AccessProperty, WindowPolicy

N = Symbol("n", max=1 << 20)


def builder() -> ProgramBuilder:
    return ProgramBuilder("p", DeviceCode("cuda", "//"))


def test_words_and_defaults() -> None:
    window = builder().input("x", "float32", (N,)).window()
    assert window.hit_ratio == 1.0
    assert window.nbytes is None
    assert (window.hit_property, window.miss_property) == (
        AccessProperty.PERSISTING,
        AccessProperty.STREAMING,
    )
    assert window.policy is WindowPolicy.LAUNCH
    other = builder().input("x", "float32", (N,)).window(miss_property="normal", policy="stream", hit_ratio=1)
    assert other.miss_property is AccessProperty.NORMAL
    assert other.policy is WindowPolicy.STREAM


def test_a_ratio_of_zero_is_one_ratio() -> None:
    one, other = (builder().input("x", "float32", (N,)).window(hit_ratio=zero) for zero in (0, -0.0))
    assert one == other
    assert str(one.hit_ratio) == str(other.hit_ratio) == "0.0"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"hit_ratio": 1.5}, "hit_ratio"),
        ({"hit_ratio": float("nan")}, "hit_ratio"),
        ({"hit_ratio": True}, "hit_ratio"),
        ({"nbytes": -1}, "nbytes"),
        ({"nbytes": "all"}, "nbytes"),
        ({"element_offset": None}, "element_offset"),
        ({"hit_property": "keep"}, "hit_property"),
        ({"miss_property": "persisting"}, "miss_property"),
        ({"policy": "kernel"}, "policy"),
        ({"policy": []}, "policy"),
        ({"policy": np.array([1, 2])}, "policy"),
        ({"hit_property": np.array(["normal", "streaming"])}, "hit_property"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ProgramError) as caught:
        builder().input("x", "float32", (N,)).window(**fields)
    assert caught.value.field == f"window over 'x'.{where}"


def test_a_window_lies_over_memory() -> None:
    with pytest.raises(ProgramError):
        AccessPolicyWindow(ScalarParam("s", "int32"))  # type: ignore[arg-type]  # what is refused


def test_the_plan_has_bytes() -> None:
    p = builder()
    x = p.input("x", "float32", (N, 4), strides=(8, 1))
    scratch = p.workspace("scratch", "int16", (N,))
    p.launch("k", (x,), 1, 1, window=x.window(nbytes=N * 2, element_offset=N, hit_ratio=0.25))
    p.launch("k", (x,), 1, 1, window=scratch.window(policy="stream"))
    plan = p.build().plan()
    first, second = (launch.window for launch in plan.launches)
    assert first is not None
    assert second is not None
    n = Slot(0, 0, 1 << 20)
    assert first.memory == MemoryRef(MemoryKind.TENSOR, 0)
    assert first.offset_bytes == n * 4
    assert first.nbytes == n * 2
    assert (first.hit_ratio, first.hit_property, first.miss_property, first.policy) == (0.25, 2, 1, "launch")
    assert second.memory == MemoryRef(MemoryKind.WORKSPACE, 0)
    assert second.nbytes is None
    assert plan.workspaces[0].readers == (1,)


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    p = builder()
    x = p.input("x", "int16", shape, strides=strides)
    p.launch("k", (x,), 1, 1, window=x.window())
    window = p.build().plan().launches[0].window
    assert window is not None
    assert isinstance(window.limit_bytes, Const)
    return window.limit_bytes.value


def test_the_limit_is_what_the_elements_span() -> None:
    assert span((4, 3), (3, 1)) == 24
    assert span((4, 3), (10, 2)) == (3 * 10 + 2 * 2 + 1) * 2
    assert span((4, 1), (10, 99999)) == (3 * 10 + 1) * 2
    assert span((), ()) == 2
    assert span((4, 0), (10, 1)) == 0
