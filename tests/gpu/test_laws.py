"""The laws on this machine's GPUs, and that they can fail there: what `trunnion conformance NAME --tier gpu` checks."""

from __future__ import annotations

import pytest

from trunnion.testing.laws import LawViolation, catalogue
from trunnion.testing.runner import Options, check, harness_of
from trunnion.testing.saboteurs import SABOTEURS

pytestmark = pytest.mark.filterwarnings(
    "ignore:ComplexHalf support is experimental"
)  # torch's own word on a type

_LAWS = tuple(law.id for law in catalogue().laws.values() if law.is_of("gpu"))
_PAIRS = [
    (saboteur.id, law_id)
    for saboteur in SABOTEURS.values()
    for law_id in saboteur.caught_by
    if catalogue()[law_id].tier == "driver"
]
_EXAMPLES = {"nvrtc": None, "tvm_ffi": 3, "cutedsl": 3}
"""Of backends with a launcher to compile fewer: the whole takes them minutes."""


@pytest.fixture(scope="module")
def harnesses():
    return {name: harness_of(name, tier="gpu") for name in _EXAMPLES}


@pytest.mark.parametrize("backend", _EXAMPLES)
@pytest.mark.parametrize("law_id", _LAWS)
def test_a_law_holds(harnesses, backend, law_id):
    check(catalogue()[law_id], harnesses[backend], Options(tier="gpu", examples=_EXAMPLES[backend]))


@pytest.mark.parametrize(("saboteur", "law_id"), _PAIRS)
def test_a_law_catches_a_saboteur(harnesses, saboteur, law_id):
    bad = SABOTEURS[saboteur].apply(harnesses["nvrtc"])
    with pytest.raises(LawViolation) as caught:
        catalogue()[law_id].check(bad, shrink=False)
    assert caught.value.law_id == law_id
