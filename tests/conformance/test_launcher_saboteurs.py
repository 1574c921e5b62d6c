"""The laws see mistakes through a launcher that is not Python too: those of the plan, and of what a driver is given.

The other saboteurs stand in the Python launcher's own parts.
"""

from __future__ import annotations

import pytest

from trunnion.testing.laws import LawViolation, catalogue
from trunnion.testing.saboteurs import SABOTEURS

_SEED = 7
_EXAMPLES = {"launcher": 15, "toolchain": 3}
_CHOSEN = sorted(saboteur.id for saboteur in SABOTEURS.values() if saboteur.stage in ("plan", "driver"))


def test_some_are_chosen():
    assert len(_CHOSEN) > 10


@pytest.mark.parametrize("saboteur", _CHOSEN)
def test_a_launcher_in_cpp_hides_no_mistake(harnesses, saboteur):
    bad = SABOTEURS[saboteur]
    law = catalogue()[bad.caught_by[0]]
    with pytest.raises(LawViolation) as caught:
        law.check(bad.apply(harnesses["cutedsl"]), seed=_SEED, examples=_EXAMPLES[law.cost], shrink=False)
    assert caught.value.law_id == law.id
