"""The manual's page of the API has everything that `trunnion` exports, and what a body or a backend is written with."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from page_reading.blocks import python_blocks

import trunnion

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text("utf-8")
_MODULE = re.compile(r"^\.\. automodule:: (\S+)\n   :members:(?: (.+))?$", re.MULTILINE)
_MORE = {
    "trunnion.launcher.driver_status.status_error",
    "trunnion.codegen.python.dialect.Dialect",
    "trunnion.codegen.python.emitter.emit_launcher",
    "trunnion.examples.example.Example",
    "trunnion.examples.load",
    "trunnion.launcher.l2_persisting.SetAsideWarning",
    "trunnion.storage.refusals.NotKeptWarning",
    "trunnion.launcher.facade.DriverFacade",
    "trunnion.launcher.program.PythonProgram",
    "trunnion.image.layout.pack_parameters",
    "trunnion.image.match.match_launches",
    "trunnion.image.match.match_parameters",
    "trunnion.model.expr.Op",
    "trunnion.model.expr_text.format_expr",
    "trunnion.sim.bodies.KernelCall",
    "trunnion.sim.memory.BoundMemory",
    "trunnion.sim.simulator.Simulator",
    "trunnion.sim.start",
    "trunnion.sim.tiled_view.TiledView",
    "trunnion.sim.trace.Launched",
    "trunnion.sim.trace.CallRefused",
    "trunnion.testing.laws.Law",
    "trunnion.testing.runner.replay",
}


def documented() -> set[str]:
    """Return what the page's directives show: of a module what ``:members:`` names, all that it exports if it names
    nothing, and nothing without it."""
    shown = set()
    for name, members in _MODULE.findall(PAGE):
        names = members.split(", ") if members else import_module(name).__all__
        shown |= {f"{name}.{member}" for member in names}
    return shown


@pytest.mark.parametrize("name", [name for name in trunnion.__all__ if name != "__version__"])
def test_what_the_package_exports_is_on_the_page(name):
    value = getattr(trunnion, name)
    home = getattr(value, "__module__", "")
    if home.startswith("pluggy"):  # a marker of pluggy's: an instance, which has no module of its own
        home = "trunnion.hookspecs"
    assert f"{home}.{name}" in documented()


@pytest.mark.parametrize("path", sorted(_MORE))
def test_what_bodies_and_backends_are_written_with_is_on_the_page(path):
    assert path in documented()


def _imported() -> set[str]:
    """Return what the blocks of all pages import from modules of `trunnion`."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    trees = [ast.parse(code) for path in pages for _, code in python_blocks(path.read_text("utf-8"))]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        f"{node.module}.{one.name}"
        for node in found
        for one in node.names
        if (node.module or "").startswith("trunnion.")
    }


@pytest.mark.parametrize("path", sorted(_imported()))
def test_what_a_page_imports_is_on_the_page(path):
    module, _, name = path.rpartition(".")
    home = getattr(getattr(import_module(module), name), "__module__", module)
    assert {path, f"{home}.{name}"} & documented()


def test_every_name_on_the_page_exists():
    for path in documented():
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name), path
