"""2,000 programs of distinct bytes are loaded, called and closed one after another, and the process is as it was.

A library that is only made distinct (`leak_reading.loads.distinct`) is a file of its own, mapped, relocated and
unloaded as any other: the loader knows it by its digest alone. Compiling 2,000 would take five minutes and add nothing.
"""

from __future__ import annotations

import pytest
from leak_reading.loads import assert_nothing, growth, subjects

LOADS, WARM_UP = 2000, 50


@pytest.mark.parametrize("name", subjects())
def test_loads_and_closes(running_simulator, simulator, name, tmp_path):
    assert_nothing(growth(simulator, name, LOADS, WARM_UP, tmp_path), LOADS)
