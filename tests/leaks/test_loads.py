"""Programs of distinct bytes that are loaded and closed leave nothing behind; `tests/stress` loads 2,000 of them."""

from __future__ import annotations

import pytest
from leak_reading.loads import assert_nothing, growth, subjects

LOADS, WARM_UP = 40, 10


@pytest.mark.parametrize("name", subjects())
def test_loads_and_closes(running_simulator, simulator, name, tmp_path):
    assert_nothing(growth(simulator, name, LOADS, WARM_UP, tmp_path), LOADS)
