"""What becomes of mutants of which that is known, of those that hang, and of a run that is ended in the middle."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from mutation_trials.campaign import Baseline, Campaign, Records, Server
from mutation_trials.judge import Judge, Limits, Outcome, Verdict
from mutation_trials.mutant import edit
from mutation_trials.scope import ROOT
from mutation_trials.trial import Trial

PATIENT = Limits(silence=600.0, whole=3000.0)
BASELINES = {"nvrtc": Baseline({"L9": 1.0}, (), 1.0)}
STRUCTURES = "plugins/nvrtc/src/trunnion_nvrtc/backend/structures.py"
PLANNING = "core/src/trunnion/model/plan/planning.py"
INCLUDE = "core/src/trunnion/codegen/cpp/include/trunnion"


def planted(path, before, after):
    """Return the mutant that has another text in the place of one that the file has."""
    text = (ROOT / path).read_text("utf-8")
    assert before in text, f"{path} has no {before!r} any more: plant another mutant"
    return edit(path, text, text.replace(before, after, 1), operator="planted", family="planted")


def in_laws(does):
    """Return a mutant that does something whenever a program is planned, but for vector add."""
    whole = "    return _Planner(program).plan()"
    return planted(PLANNING, whole, f'    if program.name != "vector_add":\n        {does}\n{whole}')


PRIORITY = planted(
    STRUCTURES,
    "for number, values in spec.attributes]",
    "for number, values in spec.attributes if number != 8]",  # CU_LAUNCH_ATTRIBUTE_PRIORITY
)
EQUIVALENT = planted(PLANNING, 'dtype("int64")', 'dtype("int" + "64")')
NO_LAUNCH = planted(PLANNING, "    return _Planner(program).plan()", "    raise KeyError")


def sources():
    found = hashlib.sha256()
    for path in sorted((ROOT / "core/src").rglob("*")) + sorted((ROOT / "plugins").rglob("*.py")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(path.as_posix().encode() + path.read_bytes())
    return found.hexdigest()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("mutants")) as server:
        yield server


def verdict(server, mutant, *laws, backend="nvrtc", limits=PATIENT, short=()):
    return server.ask(backend, laws, limits, mutant, short)


def test_a_known_bad_mutant_is_killed_by_the_law_that_is_about_it(server):
    before = sources()
    found = verdict(server, PRIORITY, "L6", "L9", short=("L6", "L9"))
    assert (found["status"], found["law"], found["how"]) == ("killed", "L9", "red")
    assert "priorit" in found["text"]
    assert sources() == before, "the repository itself is only read"


def test_an_equivalent_one_survives_and_the_one_before_it_left_nothing(server):
    found = verdict(server, EQUIVALENT, "L9", short=("L9",))
    assert (found["status"], found["law"], found["unconfirmed"]) == ("survived", "", [])


def test_one_with_which_vector_add_does_not_launch_does_not_count(server):
    found = verdict(server, NO_LAUNCH, "L9")
    assert found["status"] == "left out"
    assert "KeyError" in found["text"]


def test_a_crash_kills_and_so_does_a_hang(server):
    crashing = in_laws("import os; os.kill(os.getpid(), 11)")
    found = verdict(server, crashing, "L9", short=("L9",))
    assert (found["status"], found["law"], found["how"]) == ("killed", "L9", "crashed")
    assert "-11" in found["text"]
    hanging = in_laws("import time; time.sleep(3600)")
    found = verdict(server, hanging, "L9", limits=Limits(silence=20.0, whole=3000.0))
    assert (found["status"], found["law"], found["how"]) == ("killed", "L9", "hung")


class Scripted(Judge):
    """A judge whose children say what is written down."""

    def __init__(self, *outcomes):
        self.outcomes, self.trials = list(outcomes), []

    def _child(self, trial, scratch, limits):
        self.trials.append(trial)
        return self.outcomes.pop(0)


def decided(judge):
    trial = Trial(backend="", folder="", short=("A", "B"), laws=("A", "B", "C"))
    return judge._decided(trial, Path(), PATIENT)


def test_what_few_examples_break_is_no_verdict():
    judge = Scripted(Outcome("red", "A", short=True), Outcome("green", "A"), Outcome("green", "C"))
    found = decided(judge)
    assert (found.status, found.unconfirmed) == ("survived", ("A",))
    assert [(trial.short, trial.laws) for trial in judge.trials] == [
        (("A", "B"), ("A", "B", "C")),
        ((), ("A",)),
        (("B",), ("B", "C")),
    ]


def test_what_is_red_only_behind_others_kills_nothing():
    judge = Scripted(Outcome("red", "B"), Outcome("green", "B"), Outcome("red", "C"), Outcome("red", "C"))
    found = decided(judge)
    assert (found.status, found.law, found.unconfirmed) == ("killed", "C", ("B",))
    assert [trial.laws for trial in judge.trials] == [("A", "B", "C"), ("B",), ("C",), ("C",)]


def test_a_mutant_of_another_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match="draw them anew"):
        PRIORITY.applied((ROOT / PLANNING).read_text("utf-8"))


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (
            planted(f"{INCLUDE}/launching.cc", "sharedMemBytes = dynamic_smem_bytes;", "sharedMemBytes = 0;"),
            "L1",
        ),
        (
            planted(
                f"{INCLUDE}/numbers.hpp",
                "static_cast<Wide>(a) + b",
                "static_cast<Wide>(a) - b",
            ),
            "L2",
        ),
    ],
    ids=["source", "header"],
)
def test_a_mutant_of_the_cpp_runtime_is_compiled(server, mutant, law):
    """Also where launchers of the unmutated one are kept from before."""
    assert verdict(server, EQUIVALENT, law, backend="tvm_ffi")["status"] == "survived"
    found = verdict(server, mutant, law, backend="tvm_ffi")
    assert (found["status"], found["law"]) == ("killed", law)


# A whole run ---------------------------------------------------------------------------------------------------


class Known:
    """In the place of a server: verdicts that are known, in the order in which they are asked for."""

    def __init__(self, statuses, ends_after=None):
        self.statuses, self.ends_after, self.asked = statuses, ends_after, []

    def ask(self, backend, laws, limits, mutant, short=()):
        if self.ends_after is not None and len(self.asked) == self.ends_after:
            raise RuntimeError("ended")
        self.asked.append(mutant.id)
        known = {"text": "", "how": "", "unconfirmed": [], "seconds": 1.0, "cpu": 1.0, "law": ""}
        return {"id": mutant.id, "status": self.statuses[mutant.id], **known}


def many(count):
    return [replace(EQUIVALENT, line=line) for line in range(count)]


def test_a_run_takes_the_first_that_count_however_many_processes_try_them(tmp_path):
    mutants = many(40)
    statuses = {one.id: "left out" if index % 3 == 0 else "killed" for index, one in enumerate(mutants)}
    expected = [one.id for one in mutants[:15]]  # ten of them count
    for shards in (1, 4):
        servers = [Known(statuses) for _ in range(shards)]
        campaign = Campaign(mutants, 10, Records(tmp_path / f"{shards}.jsonl"))
        tried = campaign.run(servers, BASELINES)
        assert [mutant.id for mutant, _ in tried] == expected
        assert sorted(asked for server in servers for asked in server.asked) == sorted(expected)


def test_a_run_that_was_ended_goes_on(tmp_path):
    mutants = many(10)
    statuses = {one.id: "survived" for one in mutants}
    file = tmp_path / "verdicts.jsonl"
    with pytest.raises(RuntimeError):
        Campaign(mutants, 8, Records(file)).run([Known(statuses, ends_after=3)], BASELINES)
    with file.open("a") as out:
        out.write('{"id": "cut sho')  # as a killed process leaves it
    rest = Known(statuses)
    tried = Campaign(mutants, 8, Records(file)).run([rest], BASELINES)
    assert rest.asked == [one.id for one in mutants[3:8]]
    assert [mutant.id for mutant, _ in tried] == [one.id for one in mutants[:8]]
    assert len(Records(file).verdicts) == 8


def test_laws_that_killed_most_come_first(tmp_path):
    records = Records(tmp_path / "verdicts.jsonl")
    baseline = Baseline({"A1": 1.0, "A2": 1.0, "A3": 9.0}, (), 1.0)
    campaign = Campaign([], 1, records)
    assert campaign._order(baseline) == ["A1", "A2", "A3"]
    for line in range(30):
        mutant = replace(EQUIVALENT, line=line)
        known = {**Known({mutant.id: "killed"}).ask("", (), None, mutant), "law": "A3"}
        campaign._give(mutant, _verdict(known))
    assert campaign._order(baseline)[0] == "A3"


def _verdict(known):
    return Verdict(**{**known, "unconfirmed": ()})
