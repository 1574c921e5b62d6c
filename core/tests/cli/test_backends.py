"""``trunnion backends`` shows working plugins, unusable ones and broken ones."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint

import pytest

import trunnion
from trunnion.cli.application import run
from trunnion.contract.spec import Availability, BackendSpec, Capability, CompilerSpec
from trunnion.registry import Registry


def _never() -> type:
    raise AssertionError("listing plugins loads no toolchain")


def _missing() -> Availability:
    return Availability(usable=False, detail="libacme is missing; install it: pip install [acme]")


BACKEND = BackendSpec(
    name="acme",
    contract_version=1,
    targets={"cuda": frozenset({Capability.PDL}), "cpu": frozenset({Capability.AOT})},
    accepts=("cubin",),
    load_wrapper=_never,
    load_adapter=_never,
)
COMPILER = CompilerSpec(
    name="acme",
    contract_version=1,
    languages=("acme-lang",),
    targets=("cuda",),
    produces=("cubin", "ptx"),
    load_compiler=_never,
    probe=_missing,
)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    registry = Registry([EntryPoint("broken", "no_such_module", "trunnion")])
    registry.register(BACKEND, "acme-dist")
    registry.register(COMPILER, "acme-dist")
    monkeypatch.setattr(trunnion, "default_registry", lambda: registry, raising=False)
    return registry


@pytest.mark.usefixtures("registry")
def test_json_has_a_row_for_every_role(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backends", "--json"]) == 0
    backend, compiler, broken = json.loads(capsys.readouterr().out)
    assert backend == {
        "name": "acme",
        "distribution": "acme-dist",
        "role": "backend",
        "targets": ["cpu", "cuda"],
        "capabilities": ["aot", "pdl"],
        "usable": True,
        "unusable": {},
        "detail": "needs nothing more",
        "traceback": "",
    }
    assert (compiler["role"], compiler["usable"]) == ("device compiler", False)
    assert compiler["capabilities"] == ["acme-lang to cubin, ptx"]
    assert (broken["name"], broken["usable"]) == ("broken", False)
    assert "no_such_module" in broken["detail"]
    assert "Traceback" in broken["traceback"]


@pytest.mark.usefixtures("registry")
def test_the_table_says_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backends"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for word in ("acme-dist", "aot, pdl", "pip install", "[acme]", "no_such_module"):
        assert word in out


def test_no_plugin_at_all_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trunnion, "default_registry", lambda: Registry([]), raising=False)
    assert run(["backends"]) == 0
    assert "pip install 'trunnion[all]'" in capsys.readouterr().out
