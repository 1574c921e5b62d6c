"""The page's backend: its blocks, as the files that they are, are found by their entry point and held to laws."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from page_reading.blocks import python_blocks

from trunnion.testing.laws import catalogue

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "from-nothing-to-green.md").read_text("utf-8")
LAWS = ("L1", "A1", "V8", "N3", "C5", "Y6", "G1")
"""Of all kinds, and one that it refuses."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the page's distribution is installed, without pip."""
    folder = tmp_path_factory.mktemp("installed")
    block = re.search(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block
    read = tomllib.loads(block[1])
    project, (module,) = read["project"], read["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    (folder / module).write_text("\n\n".join(code for _, code in python_blocks(PAGE)), "utf-8")
    told = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    points = "".join(f"{name} = {place}\n" for name, place in project["entry-points"]["trunnion"].items())
    (told / "entry_points.txt").write_text(f"[trunnion]\n{points}", "utf-8")
    return folder


def _trunnion(installed: Path, *words: str) -> Any:
    path = os.pathsep.join([str(installed), *(entry for entry in sys.path if entry)])
    done = subprocess.run(
        [sys.executable, "-m", "trunnion", *words, "--json"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_it_is_found(installed: Path) -> None:
    (row,) = [row for row in _trunnion(installed, "backends") if row["name"] == "bare"]
    assert row["usable"], row
    assert not row["capabilities"]


def test_it_is_green(installed: Path) -> None:
    words = [word for law in LAWS for word in ("-k", law)]
    report = _trunnion(installed, "conformance", "bare", *words, "--examples", "4", "--no-shrink")
    verdicts = {law["id"]: law["status"] for law in report["laws"]}
    assert verdicts == dict.fromkeys(LAWS, "held") | {"G1": "refused"}


def test_what_the_page_says_is_printed_are_the_laws_that_there_are() -> None:
    laws = catalogue().laws
    refused = sum(bool(law.requires) for law in laws.values())
    assert f"\n{len(laws) - refused} held, {refused} refused as declared; " in PAGE
    assert f"│ {laws['L1'].sentence} │" in PAGE
