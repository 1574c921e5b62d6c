"""What is installed, found out without importing it, loading it or touching a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.toolchain.launcher_availability import probe_launchers

if TYPE_CHECKING:
    from trunnion.contract.spec import Availability

__all__ = ["DISTRIBUTION", "probe_backend"]

DISTRIBUTION = "trunnion-cutedsl"
"""What brings this package."""


def probe_backend() -> Availability:
    """Say whether launchers can be built and loaded here, and whether there are torch and a driver to run them with.

    CuTeDSL is not asked for: the backend launches what any compiler made.
    """
    return probe_launchers("cutedsl", DISTRIBUTION)
