"""The read-me file names every target of make and every extra, and shows an error as it is raised."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import trunnion
from trunnion import DeviceCode, ProgramBuilder, symbols
from trunnion.errors import ParameterMismatchError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text("utf-8")
MANUAL = "\n".join(path.read_text("utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
ONE_LINE = " ".join(PAGE.split())

(_PHONY,) = re.findall(r"^\.PHONY: (venv .+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
TARGETS = sorted({*_PHONY.split()} - {"venv", "clean"})
EXTRAS = tomllib.loads((ROOT / "core/pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_named(target: str) -> None:
    assert re.search(rf"(?:\bmake |`){target}\b(?!-)", PAGE)


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_every_extra_is_named(extra: str) -> None:
    assert re.search(rf"trunnion\[(?:[\w-]+,)*{extra}[\],]", MANUAL) or f"`{extra}`" in PAGE


def test_the_mismatch_that_is_shown_is_raised_so() -> None:
    source = 'extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {}'
    p = ProgramBuilder("vector_add", DeviceCode("cuda", source))
    (n,) = symbols("n")
    a, b, c = p.input("a", "float32", (n,)), p.input("b", "float32", (n,)), p.output("c", "float32", (n,))
    p.launch("vector_add", args=(a, b, c, n), grid=1, block=1)
    with pytest.raises(ParameterMismatchError) as raised:
        trunnion.compile(p.build(), "nvrtc", target="sm_90a", cache=False)
    assert f"ParameterMismatchError: {raised.value}" in ONE_LINE
