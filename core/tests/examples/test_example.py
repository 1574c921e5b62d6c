"""How results are compared with a reference."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from trunnion.examples import Example, load

REFERENCE = torch.tensor([1.0, -4.0, 2.0])


def error(results: torch.Tensor | tuple[torch.Tensor, ...], reference: object = REFERENCE) -> float:
    example: Example = replace(load("vector_add"), reference=lambda: reference)
    return example.largest_error(results, ())


def test_the_error_is_relative_to_the_greatest_magnitude() -> None:
    assert error(REFERENCE + torch.tensor([0.0, 0.0, 2.0])) == 0.5
    assert error(REFERENCE) == 0
    assert error(torch.ones(2), torch.zeros(2)) == 1
    assert error(torch.ones(0), torch.ones(0)) == 0


@pytest.mark.parametrize("result", [torch.ones(1), torch.ones(3, 1), REFERENCE.double(), REFERENCE.half()])
def test_another_shape_or_type_is_never_right(result: torch.Tensor) -> None:
    assert math.isinf(error(result))


def test_nan_is_never_right() -> None:
    wrong = torch.tensor([1.0, math.nan, 2.0])
    assert not error(wrong) <= 1e300
    assert not error((wrong, REFERENCE), (REFERENCE, REFERENCE)) <= 1e300
    assert not error((REFERENCE, wrong), (REFERENCE, REFERENCE)) <= 1e300


def test_of_several_results_the_worst_counts_and_none_may_be_missing() -> None:
    worse = REFERENCE + torch.tensor([0.0, 0.0, 2.0])
    assert error((REFERENCE, worse), (REFERENCE, REFERENCE)) == 0.5
    assert error((worse, REFERENCE), (REFERENCE, REFERENCE)) == 0.5
    assert math.isinf(error((REFERENCE,), (REFERENCE, REFERENCE)))
    assert math.isinf(error(REFERENCE, (REFERENCE, REFERENCE)))


def test_the_reference_gets_the_arguments_on_the_host() -> None:
    example = load("vector_add")
    given = (torch.ones(3), torch.ones(3))
    assert example.largest_error(torch.full((3,), 2.0), given) == 0
