from __future__ import annotations

import pytest

import memory


@pytest.mark.parametrize(
    ("resident", "device", "reserved", "ok"),
    [
        (0, 0, 0, True),
        (262144, 0, 0, True),
        (262145, 0, 0, False),
        (-4096, 0, 0, True),
        (0, 512, 0, False),
        (0, 0, 2, False),
    ],
)
def test_what_may_grow_and_what_may_not(resident: int, device: int, reserved: int, ok: bool) -> None:
    first, last = (
        memory.Reading(10, 1024, 2048),
        memory.Reading(10 + resident, 1024 + device, 2048 + reserved),
    )
    growth = memory.Growth("x", (1, 2), first, last)
    assert growth.ok is ok
    assert growth.line().endswith("ok" if ok else "GREW")
