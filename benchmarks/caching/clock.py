"""Processor time of this process and of the compilers that it started: other work on the machine counts little."""

from __future__ import annotations

import resource
import time

__all__ = ["spent"]


def spent() -> float:
    """Return the seconds so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
