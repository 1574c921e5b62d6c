"""``trunnion doctor``: what it says of plugins that work, lack something, break the contract, or cannot be loaded."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from importlib.metadata import EntryPoint

import pytest

import trunnion
from trunnion.cli.application import run
from trunnion.cli.doctor import _about_plugins, diagnose
from trunnion.contract.diagnosis import Candidate, Component, Diagnosis, Finding, Severity
from trunnion.contract.spec import Availability, BackendSpec
from trunnion.registry import Registry
from trunnion.toolchain import driver
from trunnion.toolchain.driver import InstalledDriver

KEYS = {
    "caches",
    "call_helper",
    "components",
    "environment",
    "findings",
    "plugins",
    "simulator",
    "torch",
    "unavailable",
    "usable",
    "versions",
}
LIBRARY = Component(
    name="libacme",
    kind="library",
    version="1.2",
    chosen="/opt/libacme.so",
    candidates=(
        Candidate("a wheel", "/wheel/libacme.so", chosen=False, reason="it does not exist"),
        Candidate("ACME_HOME", "/opt/libacme.so", chosen=True, reason="this one is used"),
    ),
)
OLD = Finding(Severity.WARNING, "acme-old", "libacme is old", "renew it")
GONE = Finding(Severity.ERROR, "acme-gone", "libacme is gone", "install it")


def _never() -> type:
    raise AssertionError("a diagnosis loads no toolchain")


ACME = BackendSpec(
    name="acme",
    contract_version=3,
    targets={"cuda": frozenset()},
    accepts=("cubin",),
    load_wrapper=_never,
    load_adapter=_never,
)


def _raises() -> Diagnosis:
    raise OSError("no such thing")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """An empty registry, on a machine without a driver."""
    registry = Registry([])
    monkeypatch.setattr(trunnion, "default_registry", lambda: registry, raising=False)
    nothing = InstalledDriver(Component(name="libcuda.so.1", kind="driver"), None, ())
    monkeypatch.setattr(driver, "installed_driver", lambda: nothing)
    return registry


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    status = run(["doctor", "--json"])
    return status, json.loads(capsys.readouterr().out)


def codes(document: dict) -> list[str]:
    return [finding["code"] for finding in document["findings"] if finding["plugin"]]


def test_a_plugin_that_works(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    registry.register(dataclasses.replace(ACME, diagnose=lambda: Diagnosis((LIBRARY,), (OLD,))), "acme-dist")
    status, document = doctor(capsys)
    assert (status, document["usable"]) == (0, True)
    assert document.keys() == KEYS
    (plugin,) = document["plugins"]
    assert plugin == {
        "name": "acme",
        "role": "backend",
        "distribution": "acme-dist",
        "usable": True,
        "targets": ["cuda"],
        "unusable": {},
        "detail": "needs nothing more",
    }
    (component,) = (one for one in document["components"] if one["name"] == "libacme")
    assert component["candidates"][0] == {
        "origin": "a wheel",
        "path": "/wheel/libacme.so",
        "chosen": False,
        "reason": "it does not exist",
    }
    assert {"severity": "warning", "code": "acme-old", "summary": "libacme is old", "advice": "renew it"} | {
        "plugin": "acme"
    } in document["findings"]


def test_a_plugin_that_works_for_one_target_says_for_which(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    partly = Availability(usable=True, detail="g++", unusable={"cuda": "there is no cuda.h"})
    both = {"cuda": frozenset(), "cpu": frozenset()}
    registry.register(dataclasses.replace(ACME, targets=both, probe=lambda: partly), "acme-dist")
    status, document = doctor(capsys)
    assert (status, document["usable"]) == (0, True)
    (plugin,) = document["plugins"]
    assert (plugin["usable"], plugin["targets"]) == (True, ["cpu", "cuda"])
    assert plugin["unusable"] == {"cuda": "there is no cuda.h"}
    assert run(["doctor"]) == 0
    assert "for cpu alone" in " ".join(capsys.readouterr().out.split())


def test_an_error_of_the_only_backend_is_exit_1(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.register(dataclasses.replace(ACME, diagnose=lambda: Diagnosis((), (OLD, GONE))))
    status, document = doctor(capsys)
    assert (status, document["usable"]) == (1, False)
    assert document["plugins"][0]["usable"] is False
    assert document["findings"][0]["code"] == "acme-gone", "the worst first"
    registry.register(dataclasses.replace(ACME, name="other"))
    assert doctor(capsys)[0] == 0, "another one is usable"


def test_without_a_diagnosis_the_probe_speaks(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    missing = Availability(usable=False, detail="pip install libacme")
    registry.register(dataclasses.replace(ACME, probe=lambda: missing))
    status, document = doctor(capsys)
    assert status == 1
    (finding,) = (one for one in document["findings"] if one["plugin"])
    assert (finding["code"], finding["summary"]) == ("unusable", "pip install libacme")


@pytest.mark.parametrize(
    ("broken", "said"), [(_raises, "no such thing"), (lambda: None, "NoneType"), (lambda: "fine", "str")]
)
def test_a_diagnosis_that_fails_is_told_and_hurts_nobody(
    registry: Registry, capsys: pytest.CaptureFixture[str], broken: object, said: str
) -> None:
    registry.register(dataclasses.replace(ACME, diagnose=broken))
    status, document = doctor(capsys)
    assert status == 0
    (finding,) = (one for one in document["findings"] if one["plugin"])
    assert finding["code"] == "diagnosis-failed"
    assert said in finding["summary"]


def test_what_two_roles_say_is_said_once(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("acme", "other"):
        registry.register(
            dataclasses.replace(ACME, name=name, diagnose=lambda: Diagnosis((LIBRARY,), (OLD,)))
        )
    _, document = doctor(capsys)
    assert codes(document) == ["acme-old"]
    assert [one["name"] for one in document["components"]] == ["libcuda.so.1", "libacme"]


def test_a_plugin_that_cannot_be_loaded_shows_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Registry([EntryPoint("broken", "no_such_module", "trunnion")])
    monkeypatch.setattr(trunnion, "default_registry", lambda: broken, raising=False)
    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "broken (unknown) cannot be loaded" in out
    assert "Traceback" in out
    status, document = doctor(capsys)
    assert status == 1
    assert "Traceback" in document["unavailable"][0]["traceback"]
    assert document["findings"][0]["code"] == "no-backend"


def test_a_plugin_that_hangs_is_named_and_the_rest_is_said(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.register(dataclasses.replace(ACME, diagnose=lambda: time.sleep(600)), "acme-dist")
    registry.register(dataclasses.replace(ACME, name="dies", probe=lambda: os._exit(0)), "dies-dist")
    registry.register(dataclasses.replace(ACME, name="works"), "works-dist")
    status = run(["doctor", "--json", "--limit", "0.5"])
    document = json.loads(capsys.readouterr().out)
    assert (status, document["usable"]) == (0, True)
    assert [row["name"] for row in document["plugins"]] == ["works"]
    hung, dead = document["unavailable"]
    assert (hung["name"], hung["distribution"]) == ("acme", "acme-dist")
    assert hung["reason"] == "it hangs: it did not answer within 0.5 s"
    assert "test_doctor.py" in hung["traceback"]
    assert (dead["name"], dead["reason"]) == ("dies", "it ended its process, with status 0")
    said = [one["summary"] for one in document["findings"] if one["code"] == "plugin-unavailable"]
    assert said[0] == f"plugin acme (acme-dist) cannot be loaded: {hung['reason']}"


def test_a_call_helper_that_hangs_is_said(
    registry: Registry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register(ACME, "acme-dist")
    monkeypatch.setattr("trunnion.cli.doctor.call_helper", lambda: time.sleep(600))
    assert run(["doctor", "--json", "--limit", "0.5"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["call_helper"]["reason"] == "it hangs: it did not answer within 0.5 s"
    assert document["findings"][0]["code"] == "call-helper-hangs"


def test_people_see_every_place_and_its_reason(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.register(dataclasses.replace(ACME, diagnose=lambda: Diagnosis((LIBRARY,), (OLD,))))
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    for line in (
        "libacme (library): 1.2 /opt/libacme.so",
        "a wheel: /wheel/libacme.so: it does not exist",
        "-> ACME_HOME: /opt/libacme.so: this one is used",
        "warning: libacme is old",
        "  renew it",
    ):
        assert line in out


def test_a_distribution_without_a_folder_of_its_own_is_not_called_missing(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = (
        Component(name="acme-libs", kind="distribution", version="4.8"),
        Component(name="acme-more", kind="distribution"),
    )
    registry.register(dataclasses.replace(ACME, diagnose=lambda: Diagnosis(parts, ())))
    assert run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "acme-libs (distribution): 4.8" in lines
    assert "acme-more (distribution): not found" in lines


def test_hostile_words_of_a_plugin_do_not_reach_the_terminal(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = "\x1b]0;owned\x07\u202ename"
    hostile = Component(name=bad, kind=bad, detail=bad, candidates=(Candidate(bad, bad, False, bad),))
    finding = Finding(Severity.WARNING, bad, bad, bad)
    registry.register(dataclasses.replace(ACME, diagnose=lambda: Diagnosis((hostile,), (finding,))))
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "\\x1b]0;owned\\x07\\u202ename" in out


def test_a_healthy_diagnosis_is_passed_on() -> None:
    said = Diagnosis((LIBRARY,), (OLD,))
    assert diagnose(dataclasses.replace(ACME, diagnose=lambda: said)) is said


def test_the_real_thing_imports_nothing_heavy_and_loads_no_driver() -> None:
    source = (
        "import sys; from trunnion.cli import examination, main\n"
        # In this process, so that what it imports is seen.
        "import trunnion.cli.doctor as doctor\n"
        "doctor.examine = lambda asked, limit: [(name, ask()) for name, ask in asked.items()]\n"
        "status = main(['doctor', '--json'])\n"
        "assert not {'torch', 'numpy', 'cuda', 'tvm_ffi'} & set(sys.modules)\n"
        "assert 'libcuda' not in open('/proc/self/maps').read()\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document.keys() == KEYS
    assert document["versions"]["trunnion"]
    assert document["torch"]["version"]


@pytest.mark.parametrize(
    ("compilers", "codes"), [((False, False), ["loads-only"]), ((False, True), []), ((), [])]
)
def test_without_a_compiler_it_says_that_what_was_built_elsewhere_launches(
    compilers: tuple[bool, ...], codes: list[str]
) -> None:
    rows = [{"role": "backend", "usable": False, "compiles": False}]
    rows += [{"role": "device compiler", "usable": one, "compiles": True} for one in compilers]
    rows += [{"role": "device compiler", "usable": True, "compiles": False}]  # it only takes finished images
    assert [one.code for one in _about_plugins(rows, [])] == codes
