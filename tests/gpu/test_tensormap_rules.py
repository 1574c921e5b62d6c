"""The rules of tensor maps against the driver of a real device: random requests, and the recorded answers."""

from __future__ import annotations

import collections
import json
import os
import random
from pathlib import Path

import pytest
from gpu_reading.encoding import Driver

from trunnion.model.tensormap.rules import (
    IM2COL_RULES,
    TILED_RULES,
    H200Answer,
    Im2colFields,
    TiledFields,
    violations,
)
from trunnion.testing.strategies import boundary_requests, random_request

pytestmark = pytest.mark.gpu

REQUESTS = int(os.environ.get("TRUNNION_MAP_REQUESTS", "40000"))
UNTOLD = "the innermost dimension is contiguous"  # the driver has no parameter that could break it
RECORDED = Path(__file__).parents[2] / "core" / "tests" / "model" / "tensormap_answers_h200.json"


@pytest.fixture(scope="module")
def driver():
    found = Driver()
    if found.compute_capability != (9, 0):
        pytest.skip("the rules say what a device of compute capability 9.0 accepts")
    return found


def expected(request):
    """Whether the rules say that the driver accepts a request, and the rules that it breaks."""
    broken = {rule.text: rule for rule, _ in violations(request, (9, 0))}
    refusing = [text for text, rule in broken.items() if rule.h200 is H200Answer.REFUSES]
    unseen = [text for text, rule in broken.items() if rule.h200 is H200Answer.UNSEEN]
    assert refusing or not unseen, f"the driver can be asked after all: {unseen}, {request}"
    return not refusing, broken


def disagreements(driver, requests):
    """Yield each request about which the driver and the rules differ, and count what was asked."""
    for index, request in enumerate(requests):
        good, broken = expected(request)
        if driver.accepts(request, index % 4) is not good:
            yield "the rules refuse it" if broken else "the driver refuses it", sorted(broken), request


def test_random_requests(driver):
    rng = random.Random(REQUESTS)  # noqa: S311 - reproducible, not secret
    requests = [random_request(rng) for _ in range(REQUESTS)]
    assert list(disagreements(driver, requests)) == []
    alone = collections.Counter()
    for request in requests:
        _, broken = expected(request)
        alone[type(request), tuple(broken)] += 1
    for kind, table in ((TiledFields, TILED_RULES), (Im2colFields, IM2COL_RULES)):
        assert alone[kind, ()] > REQUESTS // 8
        for rule in table:
            seen = alone[kind, (rule.text,)]
            asked = rule.h200 is not H200Answer.UNSEEN and rule.text != UNTOLD
            assert (seen > REQUESTS // 2000) is asked, (seen, rule.text)


def test_requests_at_the_edges(driver):
    assert list(disagreements(driver, boundary_requests())) == []


def test_the_recorded_answers_still_hold(driver):
    head, *rows = json.loads(RECORDED.read_text("utf-8"))
    for kind, accepted, *members in rows:
        values = [tuple(member) if isinstance(member, list) else member for member in members]
        fields = (TiledFields if kind == "tiled" else Im2colFields)(
            **dict(zip(head["columns"][kind], values, strict=True))
        )
        assert driver.accepts(fields) is accepted, fields
