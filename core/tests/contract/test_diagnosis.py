"""What a plugin finds is checked when it is said: it comes from foreign code and is shown to people."""

from __future__ import annotations

import pytest

from trunnion.contract.diagnosis import Candidate, Component, Diagnosis, Finding, Severity
from trunnion.errors import ProgramError

WARNING = Finding(Severity.WARNING, "old", "it is old", "renew it")
ERROR = Finding(Severity.ERROR, "gone", "it is gone")


def test_only_errors_make_a_diagnosis_unhealthy() -> None:
    assert Diagnosis().healthy
    assert Diagnosis((), (WARNING,)).healthy
    assert not Diagnosis((), (WARNING, ERROR)).healthy


def test_sequences_become_tuples() -> None:
    place = Candidate("a wheel", "/x", chosen=True, reason="it is there")
    component = Component(name="acme", kind="library", candidates=[place])
    assert component.candidates == (place,)
    assert Diagnosis([component], [ERROR]) == Diagnosis((component,), (ERROR,))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Finding("error", "gone", "it is gone"), "severity"),
        (lambda: Finding(Severity.INFO, "gone", None), "summary"),
        (lambda: Candidate("a wheel", b"/x", chosen=True, reason=""), "path"),
        (lambda: Candidate("a wheel", "/x", chosen=1, reason=""), "chosen"),
        (lambda: Component(name="acme", kind="library", candidates=["/x"]), "candidates[0]"),
        (lambda: Diagnosis((ERROR,)), "components[0]"),
        (lambda: Diagnosis((), ("gone",)), "findings[0]"),
    ],
)
def test_a_wrong_field_is_named(make: object, field: str) -> None:
    with pytest.raises(ProgramError) as caught:
        make()
    assert caught.value.field == field
