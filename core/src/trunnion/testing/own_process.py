"""A process of its own for what one process cannot have twice: a driver, and its devices."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.testing.harness import Harness
    from trunnion.testing.laws import Law

__all__ = ["broken_laws", "told_by_a_process"]

_PATIENCE: Final = 300.0  # seconds: far more than any machine is busy


def told_by_a_process(module: str, *words: str, optimized: bool = False) -> str:
    """Return what a module prints that is run in a process of its own, and how it ended if that was by an error.

    What it prints ends with a line's end, once it has told all.

    Parameters
    ----------
    module
        Its name.
    *words
        What it is given.
    optimized
        Whether it is run as by ``python -O``, where neither assertions nor ``if __debug__:`` are there.
    """
    # The child finds what this process finds; what lies in the working folder is not what is installed.
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    how = ("-P", "-O") if optimized else ("-P",)
    try:
        done = subprocess.run(
            [sys.executable, *how, "-m", module, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
            env=found,
        )
    except subprocess.TimeoutExpired:
        return f"the process had not ended after {_PATIENCE:.0f} s"
    told = done.stdout.strip()
    if not done.returncode:
        return told
    when = "after all was checked, " if done.stdout.endswith("\n") else ""
    ended = f"{when}the process ended with status {done.returncode}: {done.stderr.strip()[-1000:]}"
    return "; ".join(filter(None, (told, ended)))


def broken_laws(harness: Harness, laws: Iterable[Law], examples: int) -> Iterator[str]:
    """Yield how a backend breaks some laws, each checked on a few examples.

    Parameters
    ----------
    harness
        The backend.
    laws
        The laws.
    examples
        How many.
    """
    from trunnion.testing.laws import LawViolation  # noqa: PLC0415 - needs hypothesis

    for law in laws:
        try:
            law.check(harness.under(law.id), examples=examples, shrink=False)
        except LawViolation as violation:
            yield str(violation)
