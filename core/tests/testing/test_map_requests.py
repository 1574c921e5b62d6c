from __future__ import annotations

import collections
import random

from hypothesis import find, settings

from trunnion.model.tensormap.rules import (
    IM2COL_RULES,
    TILED_RULES,
    H200Answer,
    Im2colFields,
    TiledFields,
    broken_rules,
    violations,
)
from trunnion.testing.strategies import boundary_requests, map_requests, random_request


def drawn(seed: int, count: int) -> list[TiledFields | Im2colFields]:
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    return [random_request(rng) for _ in range(count)]


def test_equal_seeds_draw_equal_requests() -> None:
    assert drawn(1, 50) == drawn(1, 50) != drawn(2, 50)


def test_good_requests_and_each_rule_broken_alone_are_drawn() -> None:
    alone = collections.Counter()
    for fields in drawn(3, 20_000):
        broken = {rule.text for rule, _ in violations(fields, (9, 0))}
        if len(broken) <= 1:
            alone[type(fields), *broken] += 1
    for kind, table in ((TiledFields, TILED_RULES), (Im2colFields, IM2COL_RULES)):
        assert alone[(kind,)] > 4000
        for rule in table:
            asked = (
                rule.h200 is not H200Answer.UNSEEN and rule.text != "the innermost dimension is contiguous"
            )
            assert (alone[kind, rule.text] > 10) is asked, rule.text


def test_boundaries_are_many_and_some_are_good() -> None:
    requests = list(boundary_requests())
    good = sum(not broken_rules(fields, (9, 0)) for fields in requests)
    assert len(set(requests)) > 500
    assert 100 < good < len(requests) - 100


def test_what_hypothesis_finds_it_makes_small() -> None:
    found = find(
        map_requests(),
        lambda fields: isinstance(fields, TiledFields) and len(fields.dims) > 2,
        settings=settings(max_examples=2000),
    )
    assert len(found.dims) == 3
