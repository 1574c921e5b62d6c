"""Numbers and attributes as a launch delivers them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trunnion.sim.launch_attributes import AccessProperty, LaunchAttributes, WindowAttribute
from trunnion.sim.trace import Launched
from trunnion.testing.delivery import compare_launches, is_number, locate_workspaces
from trunnion.testing.expected import Address, ExpectedLaunch, ExpectedNan, ExpectedParts, ExpectedWindow
from trunnion.testing.harness import Harness
from trunnion.testing.laws import LawViolation

HARNESS = Harness(spec=None, machine=None, law_id="X1")  # type: ignore[arg-type]  # it only raises
WINDOW = WindowAttribute(0x1010, 32, 0.6000000238418579, AccessProperty.PERSISTING, AccessProperty.STREAMING)
HAVE = Launched(
    kernel="s",
    library=1,
    device=0,
    stream=0,
    grid=(2, 1, 1),
    block=(1, 1, 1),
    cluster=(2, 1, 1),
    dynamic_smem_bytes=0,
    parameters=((0x5000).to_bytes(8, "little"),),
    attributes=LaunchAttributes(cluster=(2, 1, 1), priority=0, carveout=0, cooperative=False, window=WINDOW),
    window=WINDOW,
)
WANT = ExpectedLaunch(
    kernel=("k", 0),
    grid=(2, 1, 1),
    block=(1, 1, 1),
    dynamic_smem_bytes=0,
    parameters=(Address("w", 0, workspace=True),),
    attributes=(("cluster", (2, 1, 1)), ("priority", (0,)), ("carveout", (0,))),
    window=ExpectedWindow(
        address=Address("x", 16), nbytes=32, hit_ratio=0.6, hit_property=2, miss_property=1, policy="launch"
    ),
)


def compare(want, have):
    where = {Address("x"): 0x1000, **locate_workspaces((want,), (have,))}
    compare_launches(HARNESS, (want,), (have,), where, {("k", 0): "s"})


def test_what_is_right():
    compare(WANT, HAVE)
    on_stream = replace(HAVE, attributes=replace(HAVE.attributes, window=None))
    compare(replace(WANT, window=replace(WANT.window, policy="stream")), on_stream)


@pytest.mark.parametrize(
    "change",
    [
        {"priority": None},
        {"carveout": 99},
        {"cluster": None},
        {"mem_sync_domain": 0},
        {"scheduling_policy": 0},
        {"cooperative": True},
        {"programmatic_stream_serialization": True},
        {"preferred_cluster": (2, 1, 1)},
        {"window": None},
        {"window": replace(WINDOW, nbytes=31)},
        {"window": replace(WINDOW, hit_ratio=0.5)},
    ],
    ids=str,
)
def test_other_attributes(change):
    have = replace(HAVE, attributes=replace(HAVE.attributes, **change))
    with pytest.raises(LawViolation, match="X1"):
        compare(WANT, have)


def test_a_window_of_the_stream_is_none_of_the_launch():
    with pytest.raises(LawViolation, match="launch's window"):
        compare(replace(WANT, window=replace(WANT.window, policy="stream")), HAVE)
    with pytest.raises(LawViolation, match="window in force"):
        compare(replace(WANT, window=None), HAVE)


def test_numbers():
    half = ExpectedParts((b"\0\x3c", ExpectedNan("float16")))
    assert is_number(half, bytes.fromhex("003c007e"))
    assert not is_number(half, bytes.fromhex("003c007c"))
    assert not is_number(half, bytes.fromhex("013c007e"))
    assert is_number(ExpectedNan("float8_e4m3fn"), b"\xff")
    assert not is_number(b"\1", b"\1\0")
