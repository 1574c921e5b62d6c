"""What the doctor is told of CuTeDSL."""

from __future__ import annotations

import sys

import pytest

import trunnion
from trunnion.contract.diagnosis import Severity
from trunnion_cutedsl import diagnosis, release


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in list(diagnosis.os.environ):
        if name.startswith("CUTE_DSL_"):
            monkeypatch.delenv(name)


def test_what_is_installed_is_shown_and_not_imported_here():
    found = trunnion.default_registry().compiler("cutedsl").diagnose()
    assert found.healthy
    assert found.findings == ()
    names = {component.name: component for component in found.components}
    assert names["nvidia-cutlass-dsl"].version == release.installed_release()
    assert names["nvidia-cutlass-dsl"].chosen.endswith("cutlass/__init__.py")
    assert "nvidia-cutlass-dsl-libs-base" in names
    assert "cutlass" not in sys.modules


@pytest.mark.parametrize(("version", "code"), [(None, "cutedsl-missing"), ("4.6.0", "cutedsl-release")])
def test_a_missing_or_another_release_is_an_error_with_advice(monkeypatch, version, code):
    monkeypatch.setattr(release, "_version", lambda _: version)
    monkeypatch.setattr(diagnosis, "inquire", lambda _: {"file": "x"})
    found = diagnosis.diagnose_compiler()
    assert not found.healthy
    assert [finding.code for finding in found.findings] == [code]
    assert "pip install" in found.findings[0].advice


def test_a_package_that_cannot_be_imported_is_an_error(monkeypatch):
    monkeypatch.setattr(diagnosis, "inquire", lambda _: {"failure": "ImportError: libc"})
    (finding,) = diagnosis.diagnose_compiler().findings
    assert (finding.severity, finding.code) == (Severity.ERROR, "cutedsl-broken")
    assert "ImportError: libc" in finding.summary


def test_variables_that_are_not_listened_to_are_named(monkeypatch):
    monkeypatch.setattr(diagnosis, "inquire", lambda _: {"file": "x"})
    monkeypatch.setenv("CUTE_DSL_PRINT_IR", "1")
    found = diagnosis.diagnose_compiler()
    assert found.healthy
    assert "CUTE_DSL_PRINT_IR" in found.findings[0].summary
