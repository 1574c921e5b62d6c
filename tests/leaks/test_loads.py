"""Programs of distinct bytes that are loaded and closed leave nothing behind; `tests/stress` loads 2,000 of them."""

from __future__ import annotations

import pytest
from leak_reading.loads import FEW_MAPPINGS, assert_nothing, growth, subjects

LOADS, WARM_UP, PERIODS = 40, 10, 3


@pytest.mark.parametrize("name", subjects())
def test_loads_and_closes(running_simulator, simulator, name, tmp_path):
    for period in range(PERIODS):  # what leaks does so in each; heaps that come and go do not
        left = growth(simulator, name, LOADS, WARM_UP, tmp_path, first=period * (WARM_UP + LOADS))
        if left.mappings <= FEW_MAPPINGS:
            break
    assert_nothing(left, LOADS)
