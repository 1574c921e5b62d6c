"""`cluster_norm` by clusters of 16 blocks, a size that is not portable: the launcher sets the kernel's attribute."""

from __future__ import annotations

from trunnion.examples.cluster_norm import cluster_norm

__all__ = ["EXAMPLE"]

EXAMPLE = cluster_norm("cluster_norm_16", 16, (6, 20_011))
