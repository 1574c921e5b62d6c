"""``trunnion conformance``: green where every law held or was refused as declared, red where one was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trunnion.cli import main
from trunnion.cli.conformance import _write as write_reports
from trunnion.errors import DeviceRequirementError
from trunnion.testing.laws import catalogue
from trunnion.testing.report import Report
from trunnion.testing.runner import Options

FAULTY = Path(__file__).parents[1] / "faulty_backend"


def conformance(*words):
    path = os.pathsep.join([str(FAULTY), *(entry for entry in sys.path if entry)])
    return subprocess.run(
        [sys.executable, "-m", "trunnion", "conformance", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        timeout=600,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return what the command did with a backend that is wrong, and the folder of its files."""
    folder = tmp_path_factory.mktemp("reports")
    files = [f"--{kind}={folder / kind}" for kind in ("html", "badge")]
    laws = ["-k", "L5", "--law", "L9", "-k", "W1"]
    options = ["--examples", "8", "--no-shrink", "--seed", "3", "--json", str(folder / "report.json")]
    return conformance("faulty", *laws, *options, *files), folder


def test_a_wrong_backend_is_red_and_every_verdict_is_there(run):
    done, folder = run
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(
        "1 refused as declared, 1 failed, 1 crashed; seed 3, draws "
    )
    assert "crashed in law L5 (SIGSEGV)" in done.stdout
    assert "L9 on faulty, by way of " in done.stdout
    report = Report.from_json((folder / "report.json").read_text("utf-8"))
    assert [(law.id, law.status) for law in report.laws] == [
        ("L5", "crashed"),
        ("L9", "failed"),
        ("W1", "refused"),
    ]
    assert (report.backend, report.distribution, report.seed, report.examples) == (
        "faulty", "trunnion-faulty 1.0", 3, 8,
    )  # fmt: skip
    assert set(report.versions) == {"trunnion", "python", "hypothesis", "torch"}
    assert "workspace" not in report.capabilities


def test_each_law_is_told_when_it_is_checked_where_no_terminal_shows_it(run):
    told = [line.split(", ")[0] for line in run[0].stderr.splitlines() if line.endswith(" s")]
    assert sorted(told) == ["L5: crashed", "L9: failed", "W1: refused"]


def test_the_page_and_the_badge_are_made_of_the_report(run):
    _, folder = run
    assert "crashed in law L5 (SIGSEGV)" in (folder / "html").read_text("utf-8")
    assert "2 of 3 laws broken" in (folder / "badge").read_text("utf-8")


def test_a_right_backend_is_green_and_json_alone_is_the_document(tmp_path):
    badge = tmp_path / "badge.json"
    done = conformance("nvrtc", "-k", "S4", "--examples=3", "--badge", str(badge), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert Report.from_json(done.stdout).good
    assert document["good"]
    assert document["laws"][0]["sentence"] == catalogue()["S4"].sentence
    assert json.loads(badge.read_text("utf-8"))["message"] == "1 laws held"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nvrtc", "-k", "Z9"], "'Z9'"),
        (["nvrtc", "-k", "L99"], "did you mean 'L9'?"),
        (["nvrtc", "-k", "L99"], "L8, L9, L10, L11"),
        (["nvrtc", "--tier", "moon"], "one of sim, gpu, cpu"),
        (["nvrtc", "--examples", "0"], "examples"),
        (["nvrtc", "--seed", "-1"], "seed"),
        ([], "NAME"),
    ],
)
def test_what_is_asked_for_wrongly_is_a_usage_error(words, said, capsys):
    assert main(["conformance", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["nowhere"], "UnknownBackendError", "unknown backend 'nowhere'"),
        (["nvrtc", "--tier", "gpu"], "DeviceRequirementError", "a GPU that torch can use"),
        (["nvrtc", "--tier", "cpu"], "UnsupportedFeatureError", "on cpu launch: tvm_ffi"),
    ],
)
def test_what_is_not_here_is_its_own_error(words, kind, said, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["conformance", *words, "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["type"] == kind
    assert said in error["message"]


def test_a_report_has_its_file_wherever_a_traceback_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("trunnion.cli.conformance._checked", None)
    assert main(["--traceback", "conformance", "nvrtc", "--json", str(tmp_path / "no" / "a.json")]) == 2
    assert "whose folder does not exist" in " ".join(capsys.readouterr().err.replace("│", "").split())


@pytest.mark.parametrize("kind", ["--json", "--html", "--badge"])
def test_a_place_for_no_report_is_refused_before_anything_is_checked(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("trunnion.cli.conformance._checked", None)
    assert main(["conformance", "nvrtc", kind, str(tmp_path / "no" / "a.json")]) == 2
    said = capsys.readouterr()
    assert "whose folder does not exist" in " ".join(f"{said.out} {said.err}".replace("│", "").split())


def test_a_report_that_is_there_stays_until_the_new_one_is_whole(tmp_path):
    class Unspellable:
        def to_json(self):
            return "{" * 100_000 + "\udcff"

    (tmp_path / "a.json").write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_reports(Unspellable(), tmp_path / "a.json", None, None)
    assert (tmp_path / "a.json").read_text() == "before"
    assert len([*tmp_path.iterdir()]) == 1


def test_a_backend_that_cannot_be_used_is_an_error(monkeypatch, capsys):
    from trunnion.contract.spec import BackendSpec

    monkeypatch.setattr(BackendSpec, "probe", lambda self: _Unusable())
    assert main(["conformance", "nvrtc", "-k", "S4"]) == 1
    assert "'nvrtc' is unavailable: it lacks a thing" in capsys.readouterr().err


class _Unusable:
    usable = False

    def problem(self, kinds):
        return "it lacks a thing"


def test_how_the_laws_are_checked_is_what_the_words_say(monkeypatch):
    seen = []

    def checked(spec, laws, options, *, patience, jobs):
        seen.append((spec.name, [law.id for law in laws], options, patience, jobs))
        raise DeviceRequirementError("nothing", "enough")

    monkeypatch.setattr("trunnion.cli.conformance._checked", checked)
    words = ["-k", "S1", "--examples", "2", "--seed", "5", "--patience", "7"]
    assert main(["conformance", "nvrtc", *words, "--no-shrink", "--thorough", "--jobs", "3"]) == 1
    assert main(["conformance", "nvrtc", *words]) == 1
    chosen = Options(examples=2, seed=5)
    assert seen == [
        ("nvrtc", ["S1"], replace(chosen, shrink=False, thorough=True), 7.0, 3),
        ("nvrtc", ["S1"], chosen, 7.0, len(os.sched_getaffinity(0))),
    ]
