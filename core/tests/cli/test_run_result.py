"""What became of a program, as JSON and as cells of a table."""

from __future__ import annotations

from trunnion.cli.run_result import COLUMNS, Outcome
from trunnion.errors import ProgramError


def test_an_outcome_has_a_cell_for_every_column_and_json_for_every_fact() -> None:
    problem = ProgramError("got 7", field="grid[0]")
    outcome = Outcome(name="x", backend="acme", device="simulated", ok=False, problem=problem)
    assert len(outcome.cells()) == len(COLUMNS)
    assert str(outcome.cells()[-1]) == "WRONG"
    assert outcome.facts()["problem"] == "ProgramError: grid[0]: got 7"
    good = Outcome(name="x", backend="acme", device="d", ok=True, target="cuda:sm_90a", sha256="ab" * 32)
    assert good.digest_line() == f"{'ab' * 32}  acme/x"
    assert str(good.cells()[-1]) == "ok"
    refused = Outcome(name="x", backend="acme", device="d", ok=False, refused=True)
    assert str(refused.cells()[-1]) == "refused"
