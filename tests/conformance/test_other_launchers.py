"""A launcher that is not its program's never runs: law B5 notices each way of taking one up that forgets to look."""

from __future__ import annotations

import pytest

from trunnion import built_program
from trunnion.built_program import BuiltProgram
from trunnion.testing.laws import LawViolation, catalogue


def _rebuilds_anything(built, broken):
    built._held = built._again(broken)
    return built._held


@pytest.mark.parametrize(
    ("changed", "name", "mistake", "noticed"),
    [
        (built_program, "_check_source", lambda *_: None, "took a launcher for that of a program"),
        (BuiltProgram, "confirm", lambda _: None, "the launcher is another, and preloading raised None"),
        (BuiltProgram, "rebuilt", lambda *_: None, "is not what this version writes for the program"),
        (BuiltProgram, "rebuilt", _rebuilds_anything, "the launcher is another, and preloading raised None"),
    ],
)
def test_what_forgets_to_look_is_noticed(monkeypatch, harness, changed, name, mistake, noticed):
    monkeypatch.setattr(changed, name, mistake)
    with pytest.raises(LawViolation, match=noticed) as caught:
        catalogue()["B5"].check(harness, shrink=False)
    assert caught.value.law_id == "B5"
