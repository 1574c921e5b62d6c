"""``trunnion backends`` shows working plugins, unusable ones and broken ones."""

from __future__ import annotations

import dataclasses
import json
import time
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion.cli.application import run
from trunnion.contract.spec import Availability, BackendSpec, Capability, CompilerSpec
from trunnion.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path


def _never() -> type:
    raise AssertionError("listing plugins loads no toolchain")


def _missing() -> Availability:
    return Availability(usable=False, detail="libacme is missing; install it: pip install [acme]")


BACKEND = BackendSpec(
    name="acme",
    contract_version=3,
    targets={"cuda": frozenset({Capability.PDL}), "cpu": frozenset({Capability.WORKSPACE})},
    accepts=("cubin",),
    load_wrapper=_never,
    load_adapter=_never,
)
COMPILER = CompilerSpec(
    name="acme",
    contract_version=3,
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
        "capabilities": ["pdl", "workspace"],
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
    for word in ("acme-dist", "pdl, workspace", "pip install", "[acme]", "no_such_module"):
        assert word in out


def test_no_plugin_at_all_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trunnion, "default_registry", lambda: Registry([]), raising=False)
    assert run(["backends"]) == 0
    assert "pip install 'trunnion[all]'" in capsys.readouterr().out


def test_a_plugin_that_hangs_is_named_and_the_others_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "hangs_here.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = Registry(
        [EntryPoint("broken", "no_such_module", "trunnion"), EntryPoint("hung", "hangs_here", "trunnion")]
    )
    plugins.register(BACKEND, "acme-dist")
    plugins.register(dataclasses.replace(BACKEND, name="zeta", probe=lambda: time.sleep(600)), "zeta-dist")
    monkeypatch.setattr(trunnion, "default_registry", lambda: plugins, raising=False)
    assert run(["backends", "--json", "--limit", "0.5"]) == 0
    acme, broken, hung, zeta = json.loads(capsys.readouterr().out)
    assert (acme["usable"], broken["usable"], hung["usable"], zeta["usable"]) == (True, False, False, False)
    for row, owner in ((hung, "unknown"), (zeta, "zeta-dist")):
        assert (row["distribution"], row["detail"]) == (owner, "it hangs: it did not answer within 0.5 s")
    assert "hangs_here.py" in hung["traceback"]
