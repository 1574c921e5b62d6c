"""A pytest plugin that writes down what a run draws, and where simulated memory lies, for each test.

The file is a line for each test: its name, and of both how much there was and a digest. `RECORDING` names the file.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis.internal.conjecture.data import ConjectureData

from trunnion.sim.memory import DeviceMemory


class Recording:
    """What was seen since the last test."""

    def __init__(self) -> None:
        self._seen = {"drawn": (0, hashlib.sha256()), "allocated": (0, hashlib.sha256())}

    def note(self, what: str, value: object) -> None:
        count, digest = self._seen[what]
        digest.update(repr(value).encode("utf-8", "surrogatepass"))
        self._seen[what] = count + 1, digest

    def line(self, test: str) -> str:
        found = "\t".join(f"{count} {digest.hexdigest()}" for count, digest in self._seen.values())
        return f"{test}\t{found}\n"


_recording = Recording()


def pytest_configure() -> None:
    """Watch each example that Hypothesis is done with, and each simulated allocation."""
    freeze, allocate = ConjectureData.freeze, DeviceMemory.allocate

    @functools.wraps(freeze)
    def frozen(self: ConjectureData) -> None:
        if not self.frozen:
            _recording.note("drawn", self.choices)
        freeze(self)

    @functools.wraps(allocate)
    def allocated(self: DeviceMemory, *wanted: Any, **named: Any) -> Any:
        found = allocate(self, *wanted, **named)
        _recording.note("allocated", found[0])
        return found

    patch.multiple(ConjectureData, freeze=frozen).start()
    patch.multiple(DeviceMemory, allocate=allocated).start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Write a line once a test is over."""
    global _recording  # noqa: PLW0603 - what the watchers above write to
    _recording = Recording()
    done = yield
    with Path(os.environ["RECORDING"]).open("a", encoding="utf-8") as file:
        file.write(_recording.line(item.nodeid))
    return done
