"""`trunnion.testing.strategies.limits`: both sides of each limit are drawn, and the oracle tells them apart."""

from __future__ import annotations

from collections import Counter

import pytest

from trunnion.model.expr import Binary, Op
from trunnion.model.expr_tree import walk
from trunnion.testing.draws import for_examples
from trunnion.testing.expected import Refused
from trunnion.testing.reference import expect
from trunnion.testing.rounding import FORMATS
from trunnion.testing.strategies import limits
from trunnion.testing.strategies.numbers import edges, fits

SERIES = {
    "grids": limits.grids(),
    "blocks": limits.blocks(),
    "aligned_memory": limits.aligned_memory(workspace=True),
    "memory_sizes": limits.memory_sizes(workspace=True),
    "map_layouts": limits.map_layouts(im2col=True),
    "window_ranges": limits.window_ranges(),
    "view_layouts": limits.view_layouts(built=True),
    "shared_memory": limits.shared_memory(232448, several=True).map(lambda drawn: drawn[0]),
}


def judged(strategy, count=15):
    """Return how often the calls of drawn series are good, and why the others are not."""
    verdicts = Counter()

    def judge(series):
        for call in series.calls:
            told = expect(series.program, call.imagined())
            verdicts.update(told.problems if isinstance(told, Refused) else ["good"])

    for_examples(strategy, count, judge)
    return verdicts


@pytest.mark.parametrize("name", SERIES)
def test_calls_on_both_sides_are_drawn(name):
    verdicts = judged(SERIES[name])
    good = verdicts.pop("good", 0)
    assert good > 10
    assert verdicts.total() > 10


def test_every_operation_is_drawn_with_and_without_a_value():
    verdicts = {}
    narrow = set()

    def judge(series):
        launch = series.program.launches[0]
        for call in series.calls:
            good = not isinstance(expect(series.program, call.imagined()), Refused)
            for argument in launch.args:
                verdicts.setdefault(argument.operand.op, Counter())[good] += 1

    for_examples(limits.operations(), 60, judge)
    assert set(verdicts) == set(Op)
    assert min(counts[good] for counts in verdicts.values() for good in (True, False)) > 10
    for_examples(
        limits.narrow_operations(),
        15,
        lambda series: narrow.update(
            node.op for argument in series.program.launches[0].args for node in binaries(argument)
        ),
    )
    assert narrow >= {op for op in Op if op.value not in ("eq", "ne", "lt", "le", "gt", "ge")}


def binaries(expr):
    return [node for node in walk(expr) if isinstance(node, Binary)]


def test_numbers_of_every_type_are_good_at_their_edges():
    assert set(judged(limits.number_edges(), 5)) == {"good"}


def test_a_wrong_number_is_the_only_one():
    refused = judged(limits.wrong_numbers(addresses=True))
    assert {len(problem.arguments) for problem in refused if problem != "good"} == {1}
    assert refused["good"] < refused.total() / 2


@pytest.mark.parametrize("kind", FORMATS)
def test_edges_lie_on_both_sides_of_what_a_float_type_holds(kind):
    held = [number for number in edges(kind) if fits(kind, number)]
    assert len(held) > 10
    if kind != "float64":  # beyond which there is no double
        assert len(held) < len(edges(kind))
