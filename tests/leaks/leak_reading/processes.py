"""The processes that this one started, and that still are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["children"]


def children() -> set[str]:
    """Return the numbers of this process's children, those that ended and were not waited for among them.

    A test process may have some of earlier tests, such as one that compiles and waits for the next job: what a test is
    about are those that came since.
    """
    threads = Path("/proc/self/task").glob("*/children")
    return {number for thread in threads for number in thread.read_text().split()}
