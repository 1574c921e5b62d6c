"""A campaign over a sample: what is known is not tried again."""

from __future__ import annotations

from mutation_trials.campaign import Baseline, Campaign, Records
from mutation_trials.judge import Verdict
from mutation_trials.mutant import Mutant

MUTANT = Mutant(
    path="core/src/trunnion/turns.py",
    digest="",
    start=4,
    end=5,
    text="2",
    line=1,
    operator="a",
    family="a",
    before="x = 1",
    after="x = 2",
)


class Nobody:
    """A process that nobody may ask."""

    def ask(self, *asked: object) -> None:
        raise AssertionError(f"asked {asked}")


def run(records: Records):
    campaign = Campaign([MUTANT], 1, records)
    return campaign.run([Nobody()], {"nvrtc": Baseline({}, (), 0.0)})


def test_what_is_assumed_counts_untried_and_is_in_no_file(tmp_path):
    file = tmp_path / "verdicts"
    records = Records(file)
    records.assume(Verdict(id=MUTANT.id, status="survived"))
    assert [verdict.status for _, verdict in run(records)] == ["survived"]
    assert not file.exists()


def test_what_was_found_stands_whatever_is_assumed(tmp_path):
    records = Records(tmp_path / "verdicts")
    records.add(Verdict(id=MUTANT.id, status="killed", law="A1"))
    records.assume(Verdict(id=MUTANT.id, status="survived"))
    assert [verdict.status for _, verdict in run(Records(tmp_path / "verdicts"))] == ["killed"]
    assert [verdict.status for _, verdict in run(records)] == ["killed"]
