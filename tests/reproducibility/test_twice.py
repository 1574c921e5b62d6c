"""Two runs of the same tests draw the same examples, and simulated memory lies at the same addresses in both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "recording", "-p", "no:cacheprovider")
CHOSEN = (
    "core/tests/model/test_interval.py",
    "core/tests/sim/test_tensormap_rules.py",
    "core/tests/sim/test_capture.py",
    "tests/conformance/test_installed_backends.py::test_law[V3-nvrtc]",
    "tests/conformance/test_installed_backends.py::test_law[W1-nvrtc]",
    "tests/conformance/test_saboteurs.py::test_the_named_law_catches_the_saboteur[one-buffer-W1]",
)


def recorded(
    file: Path, hashes: str, *options: str, chosen: Sequence[str] = CHOSEN
) -> dict[str, tuple[str, str]]:
    """Run some tests in a process of their own; return of what each drew and allocated the count and a digest."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*COMMAND, *options, *chosen],
        cwd=ROOT,
        env=environment
        | {
            "PYTHONHASHSEED": hashes,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
            "RECORDING": str(file),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (line.split("\t") for line in file.read_text("utf-8").splitlines())
    return {name: (drawn, allocated) for name, drawn, allocated in lines}


def count(of: Iterable[str]) -> int:
    return sum(int(one.split()[0]) for one in of)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    return recorded(tmp_path_factory.mktemp("first") / "seen", "1")


def test_another_run_draws_the_same_and_has_the_same_addresses(
    first: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    assert recorded(tmp_path / "seen", "2") == first
    drawn, allocated = (count(found) for found in zip(*first.values(), strict=True))
    assert drawn > 500
    assert allocated > 100


def test_what_is_drawn_depends_on_no_test_before(first: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    """Addresses do, and may: all memory is equally aligned."""
    backwards = recorded(tmp_path / "seen", "3", chosen=CHOSEN[::-1])
    assert {name: drawn for name, (drawn, _) in backwards.items()} == {
        name: drawn for name, (drawn, _) in first.items()
    }


def test_a_run_that_explores_draws_other_examples(first: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    options = ("--hypothesis-profile=explore", "--hypothesis-seed=7")
    explored = recorded(tmp_path / "seen", "1", *options, chosen=CHOSEN[:1])
    drawing = {name: drawn for name, (drawn, _) in explored.items() if count([drawn])}
    assert len(drawing) > 2
    assert all(drawn != first[name][0] for name, drawn in drawing.items())
