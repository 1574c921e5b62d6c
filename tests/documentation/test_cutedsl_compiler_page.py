"""The page of the CuTeDSL compiler names every option, type and error that there is, and every example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trunnion import errors
from trunnion.model.dtypes import DTYPES
from trunnion.registry import default_registry
from trunnion_cutedsl.compiler.dtypes import SPELLINGS
from trunnion_cutedsl.compiler.options import OPTIONS, SECONDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cutedsl-compiler.md").read_text("utf-8")


def _cells(heading: str) -> list[str]:
    """Return the first cell of each row of the table under a heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_options_are_those_of_the_table():
    said = [re.match(r"`--([\w-]+)", cell)[1] for cell in _cells("Options")]
    assert said == list(OPTIONS)
    assert f"{SECONDS:g} unless it is given" in PAGE


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_is_spelt_or_refused_by_name(name):
    assert name in SPELLINGS
    if not SPELLINGS[name]:
        assert "complex numbers" in PAGE if name.startswith("complex") else f"`{name}`" in PAGE


def test_the_errors_exist():
    for cell in _cells("Errors"):
        assert hasattr(errors, cell.strip("`")), cell


def test_every_example_is_named():
    for module in default_registry().compiler("cutedsl").examples:
        assert f"`{module.rpartition('.')[2]}`" in PAGE
