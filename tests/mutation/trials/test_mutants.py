"""``mutants.py`` as it is run, killed in the middle, and run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "mutants.py"


def started(folder):
    words = [
        sys.executable,
        os.fspath(SCRIPT),
        "--language",
        "cpp",
        "--count",
        "2",
        "--shards",
        "2",
        "--laws",
        "L6",
    ]
    return subprocess.Popen(
        [*words, "--folder", os.fspath(folder)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def verdicts(folder):
    return [
        line
        for file in folder.glob("verdicts-*-L6.jsonl")
        for line in file.read_text().splitlines(keepends=True)
    ]


def test_what_was_killed_in_the_middle_goes_on_and_writes_its_results(tmp_path):
    run = started(tmp_path)
    while not verdicts(tmp_path) and run.poll() is None:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    kept = [line for line in verdicts(tmp_path) if line.endswith("\n")]
    again = started(tmp_path)
    said, _ = again.communicate()
    assert again.returncode == 0, said
    assert "drawing" not in said
    assert "unmutated" not in said
    assert verdicts(tmp_path)[: len(kept)] == kept
    assert len(kept) + said.count(" s of processor time") == len(verdicts(tmp_path)), "none is tried twice"
    document = json.loads((tmp_path / "mutants.json").read_text())
    assert document["total"]["counted"] == 2
    assert document["seed"] == 1
    assert document["not counted, since vector add does not launch"] == len(verdicts(tmp_path)) - 2
    assert "| **cpp** | 2 |" in (tmp_path / "mutants.md").read_text()
