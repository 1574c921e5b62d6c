"""Build what is preloaded, sweep in a process that has it, and judge what came of each round."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KILL", "Swept", "sweep"]

KILL = 0
"""In the place of an errno: the process is killed."""

_HERE = Path(__file__).parent
_OBJECT = "namespace trunnion { int ours() { return 1; } }\n"
_GOOD = frozenset({"right", "typed", "killed"})


@dataclass(frozen=True)
class Swept:
    """What came of a sweep."""

    rounds: tuple[tuple[str, ...], ...]
    """Scene, errno, which call, its name, what came of it, what the next call gave."""

    calls: dict[str, int]
    """How many calls each scene makes."""

    said: str
    """What the process said on its way: tracebacks."""

    def wrong(self) -> list[str]:
        """Return the rounds that no user should meet."""
        return ["  ".join(one) for one in self.rounds if one[4] not in _GOOD or one[5] != "right"]


def sweep(folder: Path, numbers: Iterable[int], *, first: int = 1, step: int = 1) -> Swept:
    """Fail calls, and return what came of it.

    Parameters
    ----------
    folder
        An empty folder.
    numbers
        The errnos, or `KILL`.
    first, step
        Which calls of each scene.
    """
    library, compiled = folder / "refusing.so", folder / "object.o"
    cc = ("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    subprocess.run([*cc, str(_HERE / "refusing.c"), "-o", str(library), "-ldl"], check=True)
    subprocess.run(["c++", "-x", "c++", "-c", "-", "-o", str(compiled)], input=_OBJECT, text=True, check=True)
    (folder / "swept").mkdir()
    words = (library, compiled, folder / "swept", first, step, *numbers)
    done = subprocess.run(
        [sys.executable, "-m", "fault_injection.sweep", *map(str, words)],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "PYTHONPATH": os.pathsep.join([str(_HERE.parent), *filter(None, sys.path)]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    rows = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    calls = {row[0]: int(row[3]) for row in rows if row[2] == "end"}
    return Swept(tuple(row for row in rows if row[2] != "end"), calls, done.stderr)
