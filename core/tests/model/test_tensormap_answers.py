"""The rules against what the driver of an H200 answered, recorded by ``tests/gpu/record_tensormaps.py``."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest

from trunnion.model.tensormap.rules import (
    IM2COL_RULES,
    TILED_RULES,
    H200Answer,
    Im2colFields,
    TiledFields,
    violations,
)

HEAD, *ROWS = json.loads(Path(__file__).with_name("tensormap_answers_h200.json").read_text("utf-8"))
KINDS: dict[str, type[TiledFields | Im2colFields]] = {"tiled": TiledFields, "im2col": Im2colFields}
TABLES = {"tiled": TILED_RULES, "im2col": IM2COL_RULES}


def rows(kind: str) -> list[tuple[bool, TiledFields | Im2colFields]]:
    names = HEAD["columns"][kind]
    found = []
    for row_kind, accepted, *members in ROWS:
        if row_kind == kind:
            values: list[Any] = [tuple(member) if isinstance(member, list) else member for member in members]
            found.append((accepted, KINDS[kind](**dict(zip(names, values, strict=True)))))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_say_what_the_driver_said(kind: str) -> None:
    different = []
    for accepted, fields in rows(kind):
        refusing = [rule for rule, _ in violations(fields, (9, 0)) if rule.h200 is H200Answer.REFUSES]
        if accepted is bool(refusing):
            different.append((accepted, fields, [rule.text for rule in refusing]))
    assert different == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_rule_was_asked_about_alone(kind: str) -> None:
    answers = collections.defaultdict(set)
    for accepted, fields in rows(kind):
        broken = {rule.text for rule, _ in violations(fields, (9, 0))}
        if len(broken) == 1:
            answers[broken.pop()].add(accepted)
    for rule in TABLES[kind]:
        if rule.text == "the innermost dimension is contiguous":
            continue  # the driver has no parameter that could break it
        expected = {H200Answer.REFUSES: {False}, H200Answer.ACCEPTS: {True}, H200Answer.UNSEEN: set()}
        assert answers[rule.text] == expected[rule.h200], rule.text


def test_good_requests_and_refused_ones_were_recorded() -> None:
    said = collections.Counter((kind, accepted) for kind, accepted, *_ in ROWS)
    assert HEAD["compute_capability"] == [9, 0]
    assert min(said["tiled", True], said["tiled", False], said["im2col", True], said["im2col", False]) > 100
