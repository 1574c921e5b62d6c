"""How a law is checked on an installed backend: the options, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from trunnion.errors import DeviceRequirementError, UnknownBackendError, UnsupportedFeatureError
from trunnion.testing import runner
from trunnion.testing.laws import Law, LawViolation, Verdict, catalogue
from trunnion.testing.runner import Options, check, harness_of, laws_of


class Told:
    """A law that only says how it was checked."""

    id, sentence, cost, seed = "X1", "It is checked.", "launcher", Law.seed

    def __init__(self, examples=15):
        self.examples, self.given = examples, {}

    def check(self, harness, **given):
        self.given = given
        return Verdict(self.examples, Counter())


def test_the_seed_of_a_law_follows_from_the_run_s_and_the_law_s_id(simulator):
    plain, other = Told(), Told()
    check(plain, None, Options())
    check(other, None, Options(seed=1, examples=7, shrink=False, thorough=True))
    assert other.given["seed"] != plain.given["seed"]
    assert {name: other.given[name] for name in ("examples", "shrink", "thorough")} == {
        "examples": 7,
        "shrink": False,
        "thorough": True,
    }
    law = catalogue()["S4"]
    drawn = check(law, harness_of("nvrtc"), Options(examples=3))
    assert drawn.digest == law.check(harness_of("nvrtc"), examples=3).digest, "seed 0 is the law's own"


@pytest.mark.parametrize(("got", "asked"), [(14, None), (2, 3), (14, 100)])
def test_too_few_examples_break_a_law(got, asked):
    with pytest.raises(
        LawViolation, match=f"was checked on {got} examples of {min(asked or 15, 15)}"
    ) as caught:
        check(Told(got), None, Options(examples=asked))
    assert caught.value.report
    assert caught.value.verdict.examples == got


def test_a_law_of_few_examples_needs_no_more_than_there_are():
    assert check(Told(40), None, Options(examples=100)).examples == 40


@pytest.mark.parametrize("wrong", [{"examples": 0}, {"seed": -1}, {"seed": 1 << 32}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        Options(**wrong)


def test_the_tier_of_a_gpu_needs_one(monkeypatch):
    assert len(laws_of("sim")) == len(catalogue().laws)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DeviceRequirementError, match="a GPU that torch can use"):
        laws_of("gpu")


def test_the_tier_of_the_cpu_is_for_backends_that_launch_there():
    assert [spec.name for spec in runner.backends_of("cpu")] == ["tvm_ffi"]
    with pytest.raises(UnsupportedFeatureError) as caught:
        harness_of("nvrtc", tier="cpu")
    assert caught.value.plugin == "nvrtc"
    assert "the target cpu, of the tier cpu of the laws" in str(caught.value)
    assert "it launches on: cuda; on cpu launch: tvm_ffi" in str(caught.value)
    harness = harness_of("tvm_ffi", tier="cpu")
    assert harness.capabilities == harness.spec.targets["cpu"] != harness.spec.targets["cuda"]


def test_laws_are_checked_where_a_machine_answers_what_they_ask():
    tiers = {tier: {law.id for law in catalogue().laws.values() if law.is_of(tier)} for tier in runner.TIERS}
    on_hosts = {law.id for law in catalogue().laws.values() if law.tier == "host"}
    assert on_hosts == {"H3"} == tiers["cpu"] - tiers["gpu"]
    assert tiers["cpu"] - on_hosts < tiers["gpu"] < tiers["sim"] == set(catalogue().laws)
    assert {"L1", "A1", "W2", "S4"} <= tiers["cpu"]
    assert not {"T1", "L5", "P1", "N2", "G1"} & tiers["cpu"]
    verdict = check(catalogue()["O4"], harness_of("tvm_ffi", tier="cpu"), Options(tier="cpu", examples=1))
    assert "capture" not in verdict.made


def test_an_unknown_backend_is_refused():
    with pytest.raises(UnknownBackendError):
        harness_of("nowhere")
