"""Random values of a launch's attributes, one row for each row of `LAUNCH_ATTRIBUTES`, and what a call decides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.model.expr import Const, Expr, ge, maximum, minimum, select
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.testing.strategies.choices import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.testing.strategies.draft import Draft

__all__ = ["ATTRIBUTES", "draw_attributes"]

_CLUSTERS = (
    (1, 1, 1),
    (2, 1, 1),
    (2, 1, 1),
    (1, 2, 1),
    (4, 1, 1),
    (2, 2, 2),
    (16, 1, 1),
    (4, 4, 1),
    (3, 1, 1),
)
_MOST_BLOCKS = 16


def _preferred(chosen: Mapping[str, Any]) -> st.SearchStrategy[object]:
    """Return larger clusters; without a cluster there is none to prefer."""
    cluster = chosen.get("cluster")
    if cluster is None or chosen.get("cooperative"):  # which a driver refuses beside it (measured on an H200)
        return st.none()
    x, y, z = cluster
    wider = [(x * by, y, z) for by in (1, 2, 4) if x * y * z * by <= _MOST_BLOCKS]
    return st.sampled_from([*wider, *([(x, 2 * y, z)] if 2 * x * y * z <= _MOST_BLOCKS else [])])


ATTRIBUTES: Mapping[str, Callable[[Mapping[str, Any]], st.SearchStrategy[object]]] = {
    "cluster": lambda _: st.sampled_from(_CLUSTERS),
    "cooperative": lambda _: st.just(True),
    "pdl": lambda _: st.just(True),
    "priority": lambda _: st.integers(-5, 0),
    "carveout": lambda _: st.sampled_from((0, 1, 50, 100)),
    "preferred_cluster": _preferred,
    "scheduling_policy": lambda _: st.sampled_from(("default", "spread", "load_balancing")),
    "mem_sync_domain": lambda _: st.sampled_from(("default", "remote")),
}
"""The values of each attribute, by its field, given the attributes that were drawn before it."""


def draw_attributes(draft: Draft, *, first: bool) -> dict[str, Any]:
    """Draw the attributes of a launch; the program's first launch has all that it shall require.

    Parameters
    ----------
    draft
        The program.
    first
        Whether this is the first launch.
    """
    chosen: dict[str, Any] = {}
    for row in LAUNCH_ATTRIBUTES:
        if draft.wants(row.capability) and (first or draft.draw(st.booleans())):
            value = draft.draw(ATTRIBUTES[row.field](chosen))
            if value is not None:
                chosen[row.field] = value
    if draft.wants(Capability.COMPUTED_ATTRIBUTES):
        _decide(draft, chosen, first=first)
    return chosen


def _decide(draft: Draft, chosen: dict[str, Any], *, first: bool) -> None:
    """Let a call decide some of what it can; of the program's first launch one attribute at least."""
    can = [field for field in ("cluster", "pdl") if field in chosen]
    if "preferred_cluster" in chosen:  # beside which a cluster is constant
        can.remove("cluster")
    some = [field for field in can if draft.draw(st.booleans())]
    for field in some or (can[-1:] if first else ()):
        chosen[field] = _cluster(draft, chosen[field]) if field == "cluster" else _switch(draft)


def _cluster(draft: Draft, cluster: tuple[int, int, int]) -> tuple[Expr, ...]:
    """Draw expressions for the extents of a cluster, mostly such that it is one."""
    draw = draft.draw
    axis = draw(st.integers(0, 2))
    widths = [Const(width) for width in cluster]
    drawn = tuple(
        _width(draft, width) if place == axis or draw(st.integers(0, 3)) == 0 else width
        for place, width in enumerate(widths)
    )
    return drawn if _can_be_a_cluster(drawn) else tuple(width.cast("int32") for width in widths)


def _can_be_a_cluster(extents: tuple[Expr, ...]) -> bool:
    """Whether the bounds of extents allow a call that is right: else no program has them."""
    within = all(one.bounds.high >= 1 for one in extents)
    return within and math.prod(max(one.bounds.low, 1) for one in extents) <= _MOST_BLOCKS


def _width(draft: Draft, width: Const) -> Expr:
    draw = draft.draw
    if not draft.numbers:
        return width.cast("int32")
    number = choose(draw, draft.numbers)
    good = (number % 2 + 1, minimum(maximum(number, 1), width), select(ge(number, 2), width, 1))
    return choose(draw, good) if draw(st.integers(0, 7)) else choose(draw, (number + 0, number % 9))


def _switch(draft: Draft) -> Expr:
    draw = draft.draw
    if not draft.numbers:
        return Const(draw(st.integers(-1, 1))).cast("int32")
    number = choose(draw, draft.numbers)
    return choose(draw, (ge(number, 2), number % 2, number * 0, number + 1, -3 // number))
