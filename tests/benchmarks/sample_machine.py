"""A machine that reports are of."""

from __future__ import annotations

from launching.machine import Machine

MACHINE = Machine(
    date="2026-11-20",
    device="a GPU",
    simulated=False,
    driver="580",
    cpu="a CPU",
    cores=2,
    python="3.12",
    versions={"torch": "2"},
)
