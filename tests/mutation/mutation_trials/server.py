"""A process that tries mutants, one after another: ``server.py FOLDER``. Jobs come in, and verdicts go out, as lines.

It has torch and Hypothesis imported, and nothing of trunnion: each trial is a fork of it, and imports the tree as it is
then.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from mutation_trials.judge import Judge, Limits
from mutation_trials.mutant import Mutant
from mutation_trials.scope import ROOT
from mutation_trials.tree import Tree

_ALREADY = (
    "hypothesis.strategies",
    "torch._subclasses.fake_tensor",
    "numpy",
    "pluggy",
    "platformdirs",
    "filelock",
)
"""What every trial needs, and no mutant changes."""


def main(folder: Path) -> None:
    """Make a copy of the sources in a folder, and answer until the input ends."""
    tree = Tree(folder / "tree", ROOT)
    sys.path[:0] = tree.path
    os.environ["PYTHONPATH"] = os.pathsep.join(tree.path)
    for name in _ALREADY:
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    loaded = [name for name in sys.modules if name.partition(".")[0].startswith("trunnion")]
    if loaded:
        raise RuntimeError(f"{loaded} are imported before the fork: mutants of them would not be seen")
    judge = Judge(tree, folder)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(judge, json.loads(line))) + "\n")
        sys.stdout.flush()


def _answer(judge: Judge, job: dict[str, Any]) -> dict[str, Any]:
    laws = tuple(job["laws"])
    if job.get("reach"):
        return judge.reach(job["backend"], laws)
    limits = Limits(**job["limits"])
    if job["mutant"] is None:
        found, useless = judge.baseline(job["backend"], laws, limits)
        return {**dataclasses.asdict(found), "useless": useless}
    mutant = Mutant(**job["mutant"])
    return dataclasses.asdict(judge.verdict(mutant, job["backend"], tuple(job["short"]), laws, limits))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
