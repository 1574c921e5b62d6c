"""The laws on the CPU, as `trunnion conformance NAME --tier cpu` checks them, and that they can fail there."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import ArgumentValueError
from trunnion.testing.harness import Sabotage
from trunnion.testing.laws import EXAMPLES, LawViolation, catalogue
from trunnion.testing.plain_tensor_saboteurs import PLAIN_TENSOR_SABOTEURS
from trunnion.testing.runner import Options, backends_of, check, harness_of
from trunnion.testing.saboteur import Changed
from trunnion.testing.saboteurs import SABOTEURS

_LAWS = tuple(law.id for law in catalogue().laws.values() if law.is_of("cpu"))
_BACKENDS = tuple(spec.name for spec in backends_of("cpu"))

_AS_GIVEN = Sabotage().runtime
_OF_GPUS = ("first-to-blame", "even-fills")
"""Saboteurs with nothing to spoil on a CPU: one blames a tensor on a second device, one is of the driver's fills."""
_PAIRS = [
    (saboteur.id, law_id)
    for saboteur in SABOTEURS.values()
    for law_id in saboteur.caught_by
    # A native launcher does not ask its runtime for memory, so a runtime that errs is not its mistake, and has no
    # checks in Python.
    if law_id in _LAWS
    and saboteur.sabotage.runtime is _AS_GIVEN
    and saboteur not in PLAIN_TENSOR_SABOTEURS
    and saboteur.id not in _OF_GPUS
]


@pytest.fixture(scope="module")
def harnesses():
    return {name: harness_of(name, tier="cpu") for name in _BACKENDS}


def test_there_is_a_backend():
    assert _BACKENDS


@pytest.mark.law
@pytest.mark.filterwarnings(
    "ignore:ComplexHalf support is experimental"
)  # torch's own word, as in the tier itself
@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize("law_id", _LAWS)
def test_a_law_holds(harnesses, backend, law_id):
    law, harness = catalogue()[law_id], harnesses[backend]
    verdict = check(law, harness, Options(tier="cpu"))
    assert verdict.examples >= EXAMPLES[law.cost]
    if len(law.ways) > 1 and law.applies_to(harness):
        unused = {way for way in law.ways if verdict.made[way] < 2}
        assert unused == {"capture"} & set(law.ways)


def test_every_law_of_calls_has_a_saboteur():
    assert not set(_LAWS) - {law_id for _, law_id in _PAIRS}


@pytest.mark.parametrize(("saboteur", "law_id"), _PAIRS)
def test_a_law_catches_a_saboteur(harnesses, saboteur, law_id):
    bad = SABOTEURS[saboteur].apply(harnesses["tvm_ffi"])
    with pytest.raises(LawViolation) as caught:
        catalogue()[law_id].check(bad, shrink=False)
    assert caught.value.law_id == law_id


class _Flattening(Changed):
    """A program whose outputs have lost their shape."""

    def call(self, *args, **how):
        got = self._true.call(*args, **how)
        return got.flatten() if isinstance(got, torch.Tensor) else got


def test_outputs_of_another_shape_are_noticed(harnesses):
    bad = replace(harnesses["tvm_ffi"], sabotage=Sabotage(loaded=_Flattening))
    with pytest.raises(LawViolation, match="O1: output"):
        catalogue()["O1"].check(bad, shrink=False)


class _Learning(Changed):
    """A program whose new outputs require a gradient."""

    def call(self, *args, out=None, **how):
        got = self._true.call(*args, out=out, **how)
        if out is None and isinstance(got, torch.Tensor) and got.is_floating_point():
            got.requires_grad_()
        return got


class _Unlearned(Changed):
    """A program that takes no destination that requires a gradient."""

    def call(self, *args, out=None, **how):
        if any(one.requires_grad for one in out or () if isinstance(one, torch.Tensor)):
            raise ArgumentValueError("b", "a tensor that requires a gradient", "one that requires none")
        return self._true.call(*args, out=out, **how)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [(_Learning, "nobody gave requires a gradient"), (_Unlearned, "a good call was refused")],
)
def test_tensors_that_require_a_gradient_are_asked_about(harnesses, mistake, said):
    bad = replace(harnesses["tvm_ffi"], sabotage=Sabotage(loaded=mistake))
    with pytest.raises(LawViolation, match=said):
        catalogue()["A1"].check(bad, shrink=False)


class _BoundTwice(Changed):
    """A program whose bound calls do not wait for each other: each of two threads has one of its own."""

    def bind(self, *args, **how):
        one, other = (self._true.bind(*args, **how) for _ in range(2))
        others = itertools.cycle((one, other))

        def launch():
            return next(others)()

        return BoundLaunch(launch, name=one.name, device=one.device, stream=one.stream)


def test_launches_of_one_bound_call_take_turns(harnesses):
    bad = replace(harnesses["tvm_ffi"], sabotage=Sabotage(loaded=_BoundTwice))
    with pytest.raises(LawViolation, match="two threads launched a bound call"):
        catalogue()["H3"].check(bad, shrink=False)
