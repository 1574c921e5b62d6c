"""What a backend does on an older driver, and what is seen of one that does wrong."""

from __future__ import annotations

import os
import sys

CODE = """
import sys
from trunnion import sim
from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.machine import ARCHITECTURES
from trunnion.testing.older_driver import problems
from trunnion.testing.saboteurs import SABOTEURS

simulator = sim.start(arch=ARCHITECTURES, driver_version=int(sys.argv[1]))
harness = Harness(spec=default_registry().backend("nvrtc"), machine=SimulatedMachine(simulator))
print(*(line.split(",")[0] for line in problems(SABOTEURS[sys.argv[2]].apply(harness))), sep="\\n")
"""


def told(forked_python, version, saboteur):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = forked_python(CODE, version, saboteur, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_an_attribute_that_goes_through_is_told(forked_python):
    assert told(forked_python, 12000, "silent-devices") == ["carveout", "preferred_cluster"]


def test_one_that_is_known_must_go_through(forked_python):
    assert told(forked_python, 13000, "silent-devices") == []
