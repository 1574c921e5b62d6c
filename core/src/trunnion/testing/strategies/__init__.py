"""Hypothesis strategies: random names, expressions, programs, calls, and calls with one mistake."""

from trunnion.testing.strategies.attributes import ATTRIBUTES
from trunnion.testing.strategies.breakage import Breakage, broken_calls, mistakes_of_each_kind
from trunnion.testing.strategies.calls import CallSpec, Scenario, TensorSpec, calls, scenarios
from trunnion.testing.strategies.documents import json_programs
from trunnion.testing.strategies.expressions import expressions
from trunnion.testing.strategies.map_requests import boundary_requests, map_requests, random_request
from trunnion.testing.strategies.names import HOSTILE, names
from trunnion.testing.strategies.numbers import BytesSpec, Indexable, RaiserSpec, numbers
from trunnion.testing.strategies.programs import PROGRAM_CAPABILITIES, programs

__all__ = [
    "ATTRIBUTES",
    "HOSTILE",
    "PROGRAM_CAPABILITIES",
    "Breakage",
    "BytesSpec",
    "CallSpec",
    "Indexable",
    "RaiserSpec",
    "Scenario",
    "TensorSpec",
    "boundary_requests",
    "broken_calls",
    "calls",
    "expressions",
    "json_programs",
    "map_requests",
    "mistakes_of_each_kind",
    "names",
    "numbers",
    "programs",
    "random_request",
    "scenarios",
]
