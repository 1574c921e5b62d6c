"""Overlaps are found exactly."""

from __future__ import annotations

import itertools

import pytest

from trunnion.cli.layout import overlap


@pytest.mark.parametrize("shape", [(), (1,), (4,), (0, 3), (3, 2), (2, 3), (1, 4), (2, 2, 3)])
def test_an_overlap_is_two_elements_at_one_place(shape: tuple[int, ...]) -> None:
    for strides in itertools.product(range(7), repeat=len(shape)):
        places = [
            sum(index * stride for index, stride in zip(indices, strides, strict=True))
            for indices in itertools.product(*map(range, shape))
        ]
        assert overlap(shape, strides) == (len(set(places)) < len(places)), strides
