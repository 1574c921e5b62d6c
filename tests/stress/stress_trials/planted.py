"""Trials with something wrong, which show that a shard's parent finds it: after three good ones."""

from __future__ import annotations

import os
import sys
import time

from stress_trials.shard import MOST_SECONDS, Journal, finish


def _dies() -> str:
    os.abort()


def _slow() -> str:
    until = time.process_time() + MOST_SECONDS * 1.2
    while time.process_time() < until:
        pass
    return ""


def main(path: str, what: str) -> None:
    """Run a shard."""
    journal = Journal(path)
    for _ in range(3):
        journal.attempt(str, str)
    journal.attempt({"dies": _dies, "slow": _slow}[what], lambda: "the fourth")
    finish(journal, {})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[4])
