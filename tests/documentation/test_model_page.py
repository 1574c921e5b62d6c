"""The page on programs has the table of launch attributes: the same rows in the same order, with what each needs.

Its other tables have every word that a field takes, and what is measured by.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import pytest
from page_reading.tables import page

import trunnion
from trunnion.model.facts import ATTRIBUTES
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES, ClusterSchedulingPolicy, MemSyncDomain
from trunnion.model.tensormap import Interleave, L2Promotion, OobFill, Swizzle, TensorMapDataType
from trunnion.model.window import AccessProperty

if TYPE_CHECKING:
    from trunnion.model.enums import DriverEnum

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


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("interleave", Interleave),
        ("swizzle", Swizzle),
        ("l2_promotion", L2Promotion),
        ("oob_fill", OobFill),
        ("dtype", TensorMapDataType),
        ("hit_property", AccessProperty),
        ("scheduling_policy", ClusterSchedulingPolicy),
        ("mem_sync_domain", MemSyncDomain),
    ],
)
def test_every_word_of_a_field_is_in_its_row(field: str, kind: type[DriverEnum]) -> None:
    rows = re.findall(rf"^\| `{field}` \| .+$", page("model"), re.MULTILINE)
    assert any({one.word for one in kind} <= set(re.findall(r'`"(\w+)"`', row)) for row in rows)


def test_measured_is_listed_with_all_that_it_takes() -> None:
    table = page("model").partition("\n| `measured` | default |")[2].partition("\n\n")[0]
    wanted = [
        (name, repr(one.default))
        for name, one in inspect.signature(trunnion.measured).parameters.items()
        if one.kind is one.KEYWORD_ONLY
    ]
    assert re.findall(r"^\| `(\w+)` \| `(\w+)` \|", table, re.MULTILINE) == wanted
