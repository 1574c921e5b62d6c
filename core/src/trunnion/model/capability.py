"""What a program may need and a plugin may offer, in one closed table."""

from __future__ import annotations

import enum

__all__ = ["BACKEND_CAPABILITIES", "Capability"]


class Capability(enum.StrEnum):
    """A feature that a plugin declares, or does not.

    The world is closed: what a plugin declares, the conformance suite checks; what it does not declare, core refuses
    with `UnsupportedFeatureError` before the plugin is asked. Launching contiguous tensors of static shape with
    scalars, on a given stream, with every argument checked, is not a capability: no backend may leave it out.

    `LaunchPlan.requires` holds the members that a program needs; it is computed where the plan is made
    (`trunnion.model.plan.planning`), by the rule that stands beside each member here.
    """

    DYNAMIC_SHAPES = "dynamic_shapes"
    """A symbol stands in the signature: shapes, strides or scalars bind it at each call.

    Without one every expression is of constants; not all of these are computed in the plan.
    """

    STRIDED_TENSORS = "strided_tensors"
    """A tensor parameter names its strides, instead of being contiguous and row-major."""

    NULLABLE_TENSORS = "nullable_tensors"
    """The caller may pass None for a tensor."""

    POINTER_PARAMS = "pointer_params"
    """The caller passes an address as a number."""

    STRUCT_PARAMS = "struct_params"
    """The caller passes bytes that reach the kernel by value."""

    TENSOR_VIEWS = "tensor_views"
    """A launch is given a tensor or a workspace with its layout, by value."""

    CONSTANTS_AND_OFFSETS = "constants_and_offsets"
    """A launch is given a number or a null pointer that is the same in every call, or an address that is moved."""

    BUILT_STRUCTS = "built_structs"
    """A launch is given a struct that the launcher builds, of fields that are laid out as C lays them out."""

    FLOAT_EXPRESSIONS = "float_expressions"
    """A launch is given a floating-point number that a call computes from integers."""

    OUTPUT_FILL = "output_fill"
    """An output is filled with a value before the first launch."""

    WORKSPACE = "workspace"
    """A launch is given device memory that the launcher allocates for the call."""

    MULTI_LAUNCH = "multi_launch"
    """The program has more than one launch."""

    CONDITIONAL_LAUNCH = "conditional_launch"
    """A launch has a condition of its own."""

    MODULE_VARIABLES = "module_variables"
    """The program has a variable of the device code: it initialises one, copies to one, or passes its address."""

    TMA_TILED = "tma_tiled"
    """A launch takes a tensor map of ``cuTensorMapEncodeTiled``."""

    TMA_IM2COL = "tma_im2col"
    """A launch takes a tensor map of ``cuTensorMapEncodeIm2col``."""

    ACCESS_POLICY_WINDOW = "access_policy_window"
    """A launch names an access-policy window of the L2 cache."""

    CLUSTER = "cluster"
    """A launch names a cluster, even one of a single block."""

    PREFERRED_CLUSTER = "preferred_cluster"
    """A launch names a larger cluster that the hardware may choose instead."""

    CLUSTER_SCHEDULING = "cluster_scheduling"
    """A launch says how clusters are spread over the device."""

    COOPERATIVE = "cooperative"
    """A launch is cooperative: all its blocks are resident at once."""

    PDL = "pdl"
    """A launch may start before the launch before it has finished (programmatic dependent launch)."""

    PRIORITY = "priority"
    """A launch names a priority of its own."""

    CARVEOUT = "carveout"
    """A launch names the share of the L1 cache that it prefers as shared memory."""

    MEM_SYNC_DOMAIN = "mem_sync_domain"
    """A launch names its memory synchronisation domain."""

    COMPUTED_ATTRIBUTES = "computed_attributes"
    """A launch's cluster or ``pdl`` is an expression: each call decides it."""

    DEVICE_FACTS = "device_facts"
    """An expression is over a fact of the device: one of its attributes, or the occupancy of a kernel."""

    GRAPH_CAPTURE = "graph_capture"
    """Of the backend, not of a program: its launches can be captured into a CUDA graph."""


BACKEND_CAPABILITIES = frozenset({Capability.GRAPH_CAPTURE})
"""The members that describe a backend; no program ever requires one."""
