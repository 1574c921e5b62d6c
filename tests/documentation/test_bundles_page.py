"""The page of bundles lists the conditions that this version knows, each with a value of the form that it has."""

from __future__ import annotations

import re

import pytest
from page_reading.tables import page

import trunnion
from trunnion.artifacts.manifest import built_by
from trunnion.bundles.conditions import Condition
from trunnion.contract.spec import CONTRACT_VERSION
from trunnion.selection import load_part

ROWS = re.findall(r"^\| `([a-z.]+)` \| `([a-z ]+)` \| `(.+?)` \| .+ \|$", page("bundles"), re.MULTILINE)


@pytest.mark.parametrize(("fact", "rule", "value"), ROWS)
def test_every_row_is_a_condition(fact: str, rule: str, value: str) -> None:
    assert Condition(fact, rule, value).known


def test_there_are_rows() -> None:
    facts = {fact for fact, _, _ in ROWS}
    assert facts == {
        "device", "driver", "host.machine", "host.level", "host.libc", "host.libstdcxx", "backend",
    }  # fmt: skip


def test_what_wrote_a_launcher_is_spelled_so() -> None:
    (value,) = (value for fact, _, value in ROWS if fact == "backend")
    spec = trunnion.default_registry().backend("nvrtc")
    wrapper = load_part(spec, spec.load_wrapper)(spec)
    assert value == f"nvrtc {built_by(wrapper.version, CONTRACT_VERSION)}"
