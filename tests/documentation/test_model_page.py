"""The page on programs has the table of launch attributes: the same rows in the same order, with what each needs."""

from __future__ import annotations

import re

from page_reading.tables import page

from trunnion.model.facts import ATTRIBUTES
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES

_ROW = re.compile(r"^\| `(\w+)` \| `([A-Z_]+)` \| (\d+\.\d+) \| (any|\d+\.\d+) \|", re.MULTILINE)


def test_the_page_shows_every_launch_attribute() -> None:
    wanted = [
        (
            row.field,
            row.driver_name,
            f"{row.cuda_version // 1000}.{row.cuda_version % 1000 // 10}",
            "{}.{}".format(*row.compute_capability) if any(row.compute_capability) else "any",
        )
        for row in LAUNCH_ATTRIBUTES
    ]
    assert _ROW.findall(page("model")) == wanted


_FACT = re.compile(r"^\| `(\w+)` \| (\d+) \| [^|]*\|$", re.MULTILINE)


def test_the_page_shows_every_fact_of_a_device() -> None:
    section = page("model").partition("## Facts of the device")[2].partition("\n## ")[0]
    assert _FACT.findall(section) == [(name, str(row.least)) for name, row in ATTRIBUTES.items()]
