"""Saboteurs of attributes that a call decides: each launches with something near what the call says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.model.expr import Expr, maximum, minimum
from trunnion.model.launch_attributes import PORTABLE_CLUSTER_BLOCKS
from trunnion.sim.trace import Launched
from trunnion.testing.saboteur import Saboteur, each_launch, in_trace, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.plan import PlannedLaunch

__all__ = ["ATTRIBUTE_SABOTEURS"]


def _decided(field: str, change: Callable[[tuple[Expr, ...]], Any]) -> Callable[..., PlannedLaunch]:
    """Return the change of a launch that changes what a call computes for an attribute."""

    def changed(launch: PlannedLaunch) -> PlannedLaunch:
        attributes = (
            replace(one, values=change(one.exprs)) if one.field == field and one.exprs else one
            for one in launch.attributes
        )
        return replace(launch, attributes=tuple(attributes))

    return changed


def _within(cluster: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Take the nearest extent that there is for one that there is not."""
    return tuple(minimum(maximum(extent, 1), PORTABLE_CLUSTER_BLOCKS) for extent in cluster)


class _FirstCluster:
    """Launches each kernel in the cluster of its first launch."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int, int] | None] = {}

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Forget them."""
        self._seen.clear()
        return program

    def __call__(self, event: Launched) -> Launched:
        cluster = self._seen.setdefault(event.kernel, event.attributes.cluster)
        return replace(event, attributes=replace(event.attributes, cluster=cluster))


_FIRST_CLUSTER = _FirstCluster()

ATTRIBUTE_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "first-cluster",
        "Keeps the cluster of a kernel's first launch.",
        "L17",
        stage="driver",
        loaded=_FIRST_CLUSTER.loaded,
        trace=in_trace(_FIRST_CLUSTER, Launched),
    ),
    saboteur(
        "clamped-clusters",
        "Takes the nearest cluster that is allowed.",
        "L17",
        stage="emitter",
        emitted=each_launch(_decided("cluster", _within)),
    ),
    saboteur(
        "always-early",
        "Starts early whatever the call says.",
        "L17",
        stage="emitter",
        emitted=each_launch(_decided("pdl", lambda _: (1,))),
    ),
)
"""The saboteurs."""
