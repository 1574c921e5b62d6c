"""What Hypothesis is told: runs that gate a change all draw the same, and one that explores keeps what it finds."""

from __future__ import annotations

import ast
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).parents[2]
TESTS = [
    path
    for place in ("core/tests", "plugins", "tests")
    for path in (ROOT / place).rglob("test_*.py")
    if "build" not in path.parts
]
OWN = {
    ROOT / "core/tests/testing/test_draws.py": "a process without these profiles",
    ROOT / "core/tests/testing/test_strategies.py": "draws that follow from a seed that a test chooses",
}


def test_the_gate_draws_by_no_chance_and_from_no_database() -> None:
    gate = settings.get_profile("gate")
    assert gate.derandomize
    assert gate.database is None


def test_exploring_draws_by_a_seed_and_keeps_what_it_finds_where_the_gate_does_not_look() -> None:
    explore = settings.get_profile("explore")
    assert not explore.derandomize
    assert isinstance(explore.database, DirectoryBasedExampleDatabase)
    assert explore.database.path == ROOT / ".hypothesis-explore" / "examples"
    assert ".hypothesis-explore/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", ["gate", "explore"])
def test_no_verdict_depends_on_how_busy_the_machine_is(name: str) -> None:
    profile = settings.get_profile(name)
    assert profile.deadline is None
    assert hypothesis.HealthCheck.too_slow in profile.suppress_health_check


def said(path: Path) -> list[str]:
    """Return what a file says of Hypothesis' settings that is the profiles' to say."""
    return [
        f"{path.relative_to(ROOT)}:{call.lineno}: {word.arg}={ast.unparse(word.value)}"
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "settings"
        for word in call.keywords
        if word.arg in ("deadline", "database", "derandomize") or _forgets_slowness(word)
    ]


def _forgets_slowness(word: ast.keyword) -> bool:
    text = ast.unparse(word.value)
    return word.arg == "suppress_health_check" and "too_slow" not in text and text != "list(HealthCheck)"


def test_no_test_says_otherwise() -> None:
    assert all(map(said, OWN)), "these need no exception any more"
    assert [line for path in TESTS if path not in OWN for line in said(path)] == []


@st.composite
def _dismissed(draw: st.DrawFn, long: str) -> str:
    hypothesis.assume(draw(st.integers(0, 3)))
    return long


@given(st.data())
def test_an_example_of_a_long_program_is_dismissed_without_a_warning(data: st.DataObject) -> None:
    """Of the strategy of an example that is dismissed, Hypothesis makes a text, arguments and all."""
    assert len(data.draw(_dismissed("x" * 40_000))) == 40_000
