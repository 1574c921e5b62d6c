"""What a program may need and a plugin may offer, in one closed table."""

from __future__ import annotations

import enum

__all__ = ["BACKEND_CAPABILITIES", "Capability"]


class Capability(enum.StrEnum):
    """A feature that a plugin declares, or does not.

    The world is closed: what a plugin declares, the conformance suite checks; what it does not declare, it refuses
    with `UnsupportedFeatureError`. Launching contiguous tensors of static shape with scalars, on a given stream, with
    every argument checked, is not a capability: no backend may leave it out.

    `LaunchPlan.requires` holds the members that a program needs; it is computed where the plan is made
    (`trunnion.model.planning`), by the rule that stands beside each member here.
    """

    DYNAMIC_SHAPES = "dynamic_shapes"
    """A symbol stands in the signature: shapes, strides or scalars bind it at each call."""

    STRIDED_TENSORS = "strided_tensors"
    """A tensor parameter names its strides, instead of being contiguous and row-major."""

    MULTI_LAUNCH = "multi_launch"
    """The program has more than one launch."""

    TMA_TILED = "tma_tiled"
    """A launch takes a tensor map of ``cuTensorMapEncodeTiled``."""

    CLUSTER = "cluster"
    """A launch names a cluster, even one of a single block."""

    COOPERATIVE = "cooperative"
    """A launch is cooperative: all its blocks are resident at once."""

    PDL = "pdl"
    """A launch may start before the launch before it has finished (programmatic dependent launch)."""

    AOT = "aot"
    """Of the backend, not of a program: it builds for a named target on a machine that has no device."""

    GRAPH_CAPTURE = "graph_capture"
    """Of the backend, not of a program: its launches can be captured into a CUDA graph."""


BACKEND_CAPABILITIES = frozenset({Capability.AOT, Capability.GRAPH_CAPTURE})
"""The members that describe a backend; no program ever requires one."""
