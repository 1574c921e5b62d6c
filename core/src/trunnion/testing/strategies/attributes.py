"""Random values of a launch's constant attributes, one row for each row of `LAUNCH_ATTRIBUTES`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES

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
    return chosen
