"""Every law on every installed backend, as a third party would run them, and on core's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from trunnion.model.capability import Capability
from trunnion.registry import default_registry
from trunnion.testing.laws import EXAMPLES, catalogue
from trunnion.testing.strategies import PROGRAM_CAPABILITIES

_USABLE = sorted(
    (spec for spec in default_registry().backends() if spec.probe().usable), key=lambda spec: -spec.auto_rank
)
_BACKENDS = tuple(spec.name for spec in _USABLE)


_UNSAID = {
    **{key: {"capture"} for key in ("N2", "N4")},
    "C3": {"call"},
    "P4": {"capture"},
}
"""The ways that cannot say a law's calls: they name a stream, or are refused while a stream is captured."""


def test_there_is_a_backend():
    assert _BACKENDS


_PAIRS = [(law_id, backend) for law_id in catalogue().laws for backend in _BACKENDS]
_PAIRS += [(law_id, "interpreted") for law_id in catalogue().laws if law_id not in {"B4", "S2", "Z4"}]
"""Those left out start processes of their own, which find installed backends alone."""


@pytest.mark.law
@pytest.mark.parametrize(("law_id", "backend"), _PAIRS)
def test_law(harnesses, backend, law_id, seeds_to_try):
    law = catalogue()[law_id]
    for seed in seeds_to_try(f"{law_id}-{backend}"):
        verdict = law.check(harnesses[backend], seed=law.seed(seed))
        assert verdict.examples >= EXAMPLES[law.cost]
        if law.deal is not None:
            assert verdict.met.keys() >= law.deal.capabilities(harnesses[backend])
        if seed is None and len(law.ways) > 1 and law.applies_to(harnesses[backend]):
            unused = {way for way in law.ways if verdict.made[way] < 2}
            assert unused == _UNSAID.get(law_id, set())


def test_what_can_matter_to_a_failing_driver_call_is_dealt_to_each_law_of_faults():
    dealing = {law.id: law.deal for law in catalogue().laws.values() if law.deal is not None}
    assert dealing.keys() == {"F1", "F2", "F3", "F4"}
    for deal in dealing.values():
        assert deal.capabilities(_Declaring) == PROGRAM_CAPABILITIES


class _Declaring:
    """A backend that declares everything."""

    capabilities = frozenset(Capability)


def _suite(*options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--pyargs",
        "trunnion.testing.suite",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def test_the_command_collects_one_item_for_each_law_and_backend(tmp_path):
    done = _suite("--collect-only", "--rootdir", str(tmp_path), "-c", os.devnull)
    names = [line.split("::")[1] for line in done.stdout.splitlines() if "::" in line]
    harness_of = {spec.name: spec.targets["cuda"] for spec in default_registry().backends()}
    wanted = [
        f"{law.id}[{backend}-{'holds' if law.requires <= harness_of[backend] else 'refused'}]"
        for law in catalogue().laws.values()
        for backend in _BACKENDS
    ]
    assert sorted(names) == sorted(wanted), done.stdout + done.stderr


def test_the_command_runs_laws_and_reports_examples(tmp_path):
    report = tmp_path / "report.xml"
    done = _suite(
        "-k", "L1[ or T3[", "--trunnion-backend", _BACKENDS[0], "--rootdir", str(tmp_path), "-c", os.devnull,
        "--junit-xml", str(report),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert report.read_text(encoding="utf-8").count('name="examples"') == 2


def test_the_plugin_alone_imports_nothing_heavy():
    code = (
        "import sys, json; import trunnion.testing.pytest_plugin;"
        "print(json.dumps([m for m in ('hypothesis', 'torch', 'cuda', 'trunnion.sim') if m in sys.modules]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert json.loads(done.stdout) == []


def test_an_unknown_backend_is_one_usage_error(tmp_path):
    done = _suite("--rootdir", str(tmp_path), "-c", os.devnull, "--trunnion-backend", "nowhere")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert said.count(f"unknown backend 'nowhere'; installed: {', '.join(sorted(_BACKENDS))}; ") == 1
