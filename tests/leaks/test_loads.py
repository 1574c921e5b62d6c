"""Programs of distinct bytes that are loaded and closed leave nothing behind; `tests/stress` loads 2,000 of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from leak_reading import loads

LOADS, WARM_UP = 40, 60  # what Python and the C library keep to hand out again grows for some fifty loads


@pytest.mark.parametrize("name", loads.subjects())
def test_loads_and_closes(name, tmp_path):
    """In a process of its own: heaps and threads of a thousand tests before it come and go, too."""
    command = [sys.executable, "-m", "leak_reading.loads", name, str(LOADS), str(WARM_UP), str(tmp_path)]
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env={**os.environ, **path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loads.assert_nothing(loads.Process(**json.loads(done.stdout)), LOADS)
