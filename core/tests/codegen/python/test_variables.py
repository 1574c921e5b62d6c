"""What a launcher keeps of its fixed part, against what a parser finds that it sets and reads."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings

from trunnion import examples
from trunnion.codegen.exprs import PYTHON, ExprPrinter
from trunnion.codegen.python.bindings import slot_name
from trunnion.codegen.python.emitter import emit_launcher
from trunnion.codegen.python.steps import StepPrinter
from trunnion.codegen.writer import SourceWriter
from trunnion.model.plan.steps import Phase
from trunnion.testing.strategies import programs


def names(tree, kind):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


def always_set(tree):
    return {
        name
        for statement in tree.body
        if not isinstance(statement, ast.If)
        for name in names(statement, ast.Store)
    }


def read_by_entry(plan):
    """Return what ``entry`` reads, if its fixed part is elsewhere, in ``look``."""
    tree = ast.parse(emit_launcher(plan))
    (entry,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "entry")
    looks = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "look"]
    return names(entry, ast.Load) if looks else set()


def compare(plan):
    printer = StepPrinter(plan, ExprPrinter(PYTHON, lambda index: slot_name(plan, index), plan.symbols))
    kept, fixed = printer.kept(), ast.parse(printer.tensors().text())
    admitted = SourceWriter()
    for action in plan.actions(Phase.ADMIT):
        printer.step(admitted, action)
    derived = ast.parse(printer.values().text()), ast.parse(admitted.text())
    loaded = {name for tree in derived for name in names(tree, ast.Load)}
    assert len(kept) == len(set(kept))
    later = loaded | read_by_entry(plan)
    needed = (names(fixed, ast.Store) & later) - {"device", "want", "shape"}
    assert needed <= set(kept), "read where nothing is kept"
    places = {name for name in kept if name[0] in "drv"}
    assert places <= loaded, "kept for nobody"
    assert set(kept) <= always_set(fixed), "set in some calls alone"


@settings(max_examples=60)
@given(programs())
def test_every_program_s_text(program):
    compare(program.plan())


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_every_example_s_text(name):
    compare(examples.load(name).program.plan())
