"""The backend page's recipe: what its commands make of the sample is a backend, under a name of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forked_python.client import ForkedPython

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "backends.md").read_text("utf-8")
SAMPLE = "tests/third_party/acme_backend"

LAUNCH = """
import torch, trunnion
from trunnion import Registry, examples, sim
from trunnion_mine.hooks import SPEC
registry = Registry()
registry.register(SPEC)
simulator = sim.start()
example = examples.load("vector_add")
simulator.register_body("vector_add", example.bodies["vector_add"])
with simulator.torch_mode(), trunnion.compile(
    example.program, SPEC.name, target="sm_90a", registry=registry
) as program:
    inputs = example.inputs(torch.Generator().manual_seed(0), "cuda:0")
    assert example.largest_error(program(*inputs), inputs) <= example.tolerance
print(SPEC.name)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the page's first commands make in a clone."""
    clone = tmp_path_factory.mktemp("place") / "clone"
    shutil.copytree(ROOT / SAMPLE, clone / SAMPLE, ignore=shutil.ignore_patterns("__pycache__"))
    block = re.search(r"^ *```sh\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block
    commands = textwrap.dedent(block[1])
    subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=clone, check=True, timeout=60)
    return clone.parent / "trunnion-mine"


def test_nothing_of_the_sample_s_name_is_left(copy: Path) -> None:
    paths = [path for path in copy.rglob("*") if path.is_file()]
    assert len(paths) > 5
    for path in paths:
        assert "acme" not in f"{path.relative_to(copy)} {path.read_text('utf-8')}".lower(), path


def test_its_entry_point_names_its_module_and_its_classes_have_the_names_on_the_page(copy: Path) -> None:
    points = tomllib.loads((copy / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert points == {"trunnion": {"mine": "trunnion_mine.hooks"}}
    named = re.findall(r"`(Mine\w+)` in `(\w+\.py)`", PAGE)
    assert len(named) == 3
    for name, file in named:
        assert f"class {name}" in (copy / "src" / "trunnion_mine" / file).read_text("utf-8")


def test_it_launches(copy: Path, forked_python: ForkedPython) -> None:
    path = os.pathsep.join([str(copy / "src"), *(entry for entry in sys.path if entry)])
    done = forked_python(LAUNCH, env={**os.environ, "PYTHONPATH": path}, warnings=("error",))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "mine\n"
