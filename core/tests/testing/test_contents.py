"""The bytes of a tensor, as laws compare them, whatever its type: with no warning, which is an error in many suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forked_python.client import ForkedPython

CODE = """
import torch
from trunnion import sim
from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.machine import SimulatedMachine

simulator = sim.start()
harness = Harness(spec=default_registry().backends()[0], machine=SimulatedMachine(simulator))
numbers = torch.arange(24, dtype=torch.float16)
pairs = simulator.tensor(numbers.view(torch.complex32).view(3, 4))
assert harness.contents(pairs) == bytes(numbers.view(torch.uint8).tolist())
wanted = numbers.view(3, 4, 2)[:, ::2].contiguous().view(-1).view(torch.uint8)
assert harness.contents(pairs[:, ::2]) == bytes(wanted.tolist())
"""


def test_torch_warns_of_no_complex_half(forked_python: ForkedPython) -> None:
    """In a process of its own: torch warns once."""
    done = forked_python(CODE, warnings=("error",))
    assert done.returncode == 0, done.stderr
