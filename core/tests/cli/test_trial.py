"""How a result is compared with its reference."""

from __future__ import annotations

import math

import pytest
import torch

from trunnion.cli.trial import COLUMNS, Outcome, _relative_error
from trunnion.errors import ProgramError

REFERENCE = torch.tensor([1.0, -4.0, 2.0])


def test_the_error_is_relative_to_the_greatest_magnitude() -> None:
    assert _relative_error(REFERENCE + torch.tensor([0.0, 0.0, 2.0]), REFERENCE) == 0.5
    assert _relative_error(REFERENCE, REFERENCE) == 0
    assert _relative_error(torch.ones(2), torch.zeros(2)) == 1
    assert _relative_error(torch.ones(0), torch.ones(0)) == 0


@pytest.mark.parametrize("result", [torch.ones(1), torch.ones(3, 1), REFERENCE.double(), REFERENCE.half()])
def test_another_shape_or_type_is_never_right(result: torch.Tensor) -> None:
    assert math.isinf(_relative_error(result, REFERENCE))


def test_nan_is_never_right() -> None:
    largest = _relative_error(torch.tensor([1.0, math.nan, 2.0]), REFERENCE)
    assert not largest <= 1e300


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
