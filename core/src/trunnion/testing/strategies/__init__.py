"""Hypothesis strategies: random names, expressions, programs, calls, and calls with one mistake."""

from trunnion.testing.strategies.breakage import Breakage, broken_calls, mistakes_of_each_kind
from trunnion.testing.strategies.calls import CallSpec, Scenario, TensorSpec, calls, scenarios
from trunnion.testing.strategies.documents import json_programs
from trunnion.testing.strategies.expressions import expressions
from trunnion.testing.strategies.names import HOSTILE, names
from trunnion.testing.strategies.programs import PROGRAM_CAPABILITIES, programs

__all__ = [
    "HOSTILE",
    "PROGRAM_CAPABILITIES",
    "Breakage",
    "CallSpec",
    "Scenario",
    "TensorSpec",
    "broken_calls",
    "calls",
    "expressions",
    "json_programs",
    "mistakes_of_each_kind",
    "names",
    "programs",
    "scenarios",
]
