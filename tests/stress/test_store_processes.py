"""Sixteen processes ask one store for fifty programs, all at once: each is built once, and each is right."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES, PROGRAMS = 16, 50

CHILD = """
    import random, sys, time
    from pathlib import Path
    from fault_injection.scenes import ARTIFACT
    from trunnion.artifacts.manifest import artifact_key
    from trunnion.artifacts.store import ArtifactStore

    folder, log, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    store = ArtifactStore(folder)
    numbers = list(range(50))
    random.Random(seed).shuffle(numbers)
    for number in numbers:
        inputs = {"number": str(number)}
        made = ARTIFACT.including("number.txt", b"%d" % number).keyed(inputs)

        def build(scratch, number=number, made=made):
            with log.open("a") as out:
                out.write(f"{number}\\n")
            (scratch / "mine").write_bytes(b"")
            time.sleep(random.random() / 50)
            return made

        assert store.get_or_build(artifact_key(inputs), build) == made
    print("right")
"""


def test_each_is_built_once_and_each_is_right(tmp_path: Path) -> None:
    store, log = tmp_path / "store", tmp_path / "log"
    words = [sys.executable, "-W", "error", "-c", textwrap.dedent(CHILD), str(store), str(log)]
    path = os.pathsep.join(filter(None, sys.path))
    children = [
        subprocess.Popen(
            [*words, str(seed)], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
        )
        for seed in range(PROCESSES)
    ]
    assert [child.communicate()[0] for child in children] == ["right\n"] * PROCESSES
    assert Counter(log.read_text().split()) == {str(number): 1 for number in range(PROGRAMS)}
    assert len(list((store / "entries").iterdir())) == PROGRAMS
    assert not [*(store / "staging").iterdir(), *(store / "corrupt").iterdir()]
