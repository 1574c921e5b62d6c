"""Calls of drawn programs, whose launchers the sanitizers watch, in a process of their own.

`test_sanitizers` runs this with the sanitizers' libraries loaded first, and with a compiler that builds all C++ with
them: the launchers, what they share, and the kernels for the CPU. What a sanitizer reports ends the process.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from hypothesis import strategies as st

import trunnion
from trunnion import sim
from trunnion.errors import TrunnionError
from trunnion.testing.comparison import check_call
from trunnion.testing.draws import for_examples
from trunnion.testing.harness import Harness
from trunnion.testing.host_machine import HostMachine
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.strategies import PROGRAM_CAPABILITIES, Scenario, calls, mistakes_of_each_kind, programs

PROGRAMS, HOST_PROGRAMS, CALLS = 4, 2, 3


@st.composite
def examples(draw, capabilities):
    program = draw(programs(capabilities))
    return program, [draw(calls(program)) for _ in range(CALLS)], draw(mistakes_of_each_kind(program))


def drawn(capabilities, count):
    """Return examples, the same in every run."""
    found = []
    for_examples(examples(capabilities), count, found.append)
    return found


def on_devices(tally):
    """Call programs on the simulated driver: each way in, every kind of mistake, bound launches, after the end."""
    simulator = sim.start(devices=2)
    harness = Harness(
        spec=trunnion.default_registry().backend("tvm_ffi"), machine=SimulatedMachine(simulator)
    )
    found = drawn(PROGRAM_CAPABILITIES, PROGRAMS)
    with ThreadPoolExecutor(2) as pool:
        artifacts = list(pool.map(harness.build, [program for program, _, _ in found]))
    for (program, good, mistakes), artifact in zip(found, artifacts, strict=True):
        loaded = harness.load(artifact)
        for call in [*good, *(broken.call for broken in mistakes)]:
            check_call(harness, Scenario(program, call), loaded, first=False)
            args = harness.arguments(call.args)
            tally.count(simulator.call, loaded.entry, *args)
            tally.count(simulator.call, twice, loaded.bind, args, device=call.device)
        loaded.close()
        loaded.close()
        tally.count(loaded.call, harness.arguments(good[0].args), device=0)


def on_the_host(tally):
    """Call programs for the CPU, on several threads."""
    machine = HostMachine({"threads": 2})
    harness = Harness(spec=trunnion.default_registry().backend("tvm_ffi"), machine=machine)
    for program, good, mistakes in drawn(harness.capabilities, HOST_PROGRAMS):
        with harness.loaded(program) as loaded:
            for call in [*good, *(broken.call for broken in mistakes)]:
                check_call(harness, Scenario(program, call), loaded, first=False)
                args = harness.arguments(call.args)
                device = None if call.device is None else 0
                tally.count(loaded.call, args, device=device)
                tally.count(twice, loaded.bind, args, device=device)


def twice(bind, *args, **said):
    """Bind a call, and make it twice."""
    bound = bind(*args, **said)
    bound()
    bound()


@dataclass
class Tally:
    """What became of calls."""

    made: int = 0
    refused: int = 0

    def count(self, function, *args, **said):
        """Make a call."""
        try:
            function(*args, **said)
        except TrunnionError:
            self.refused += 1
        else:
            self.made += 1


if __name__ == "__main__":
    calls_made = Tally()
    on_devices(calls_made)
    on_the_host(calls_made)
    sys.stdout.write(json.dumps(asdict(calls_made)))
