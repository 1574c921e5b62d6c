"""What messages say of the places where numbers stand."""

from __future__ import annotations

from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, symbols
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan.places import allowed_values, author_extents, author_text
from trunnion.model.program import DeviceCode


def test_a_long_expression_is_cut() -> None:
    (n,) = symbols("n")
    long = n
    for _ in range(80):
        long = long + n
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x, y = p.input("x", "float32", (n, long)), p.output("y", "float32", (long,))
    p.launch("k", (x, y), 1, 1)
    plan = p.build().plan()
    for text in (author_text(plan, plan.checks[0]), *author_extents(plan, plan.outputs[0])):
        assert len(text) == 203
        assert " + n) + n" in text
        assert text.endswith("...")


def test_bounds_that_a_place_has_anyway_are_not_told() -> None:
    n = Symbol("n", min=-5, max=7, multiple_of=2)
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    s = p.scalar("s", "int64", n)
    p.launch("k", (s,), 1, 1)
    (binding,) = p.build().plan().bindings
    assert allowed_values(binding, (-(2**63), INT64_MAX)) == "-5 to 7, a multiple of 2"
    assert allowed_values(binding, (0, INT64_MAX)) == "at most 7, a multiple of 2"
    assert allowed_values(binding, (-9, 7)) == "at least -5, a multiple of 2"
    assert allowed_values(binding, (-5, 7)) == "a multiple of 2"
