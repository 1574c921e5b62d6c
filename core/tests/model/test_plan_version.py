"""A plan's version: it moves with what plans say, so that nothing of another version is taken for this one's."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion import examples
from trunnion.codegen.cpp import emitter as cpp_emitter
from trunnion.codegen.python import emitter as python_emitter
from trunnion.model.plan import PLAN_VERSION, launch_plan

if TYPE_CHECKING:
    import pytest

GOLDEN = Path(__file__).parent / "golden" / "plans.json"


def said(name: str) -> str:
    """Return the digest of all that an example's plan says, and of its steps."""
    plan = examples.load(name).program.plan()
    steps = json.dumps(launch_plan._plain(plan.steps))
    return hashlib.sha256(f"{plan.hash} {steps}".encode()).hexdigest()


def test_plans_of_one_version_say_the_same() -> None:
    """Raise `PLAN_VERSION` if plans say something else, and set TRUNNION_REFRESH_GOLDEN=1 to write the file anew."""
    here = {name: said(name) for name in (*examples.EXAMPLES, *examples.CPU_EXAMPLES)}
    kept = {"version": PLAN_VERSION, "plans": here}
    if os.environ.get("TRUNNION_REFRESH_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(kept, indent=1) + "\n", encoding="ascii")
    assert kept == json.loads(GOLDEN.read_text(encoding="ascii"))


def test_another_version_has_other_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = examples.load("vector_add").program.plan()
    before = plan.hash
    monkeypatch.setattr(launch_plan, "PLAN_VERSION", PLAN_VERSION + 1)
    assert replace(plan).hash != before  # a plan computes its own once


def test_every_text_of_core_says_of_which_version_its_plan_was() -> None:
    assert python_emitter.VERSION.endswith(f"+plan{PLAN_VERSION}")
    assert cpp_emitter.VERSION.endswith(f"+plan{PLAN_VERSION}")
