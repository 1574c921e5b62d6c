"""What a line tells, against what a parser does, on the launchers of random programs."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings

from trunnion import examples
from trunnion.codegen.exprs import PYTHON, ExprPrinter
from trunnion.codegen.python.bindings import slot_name
from trunnion.codegen.python.names import assigned, assigned_conditionally, read
from trunnion.codegen.python.steps import StepPrinter
from trunnion.testing.strategies import programs


def names(tree, kind):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


def conditional(text):
    always, sometimes = set(), set()
    for statement in ast.parse(text).body:
        stored = names(statement, ast.Store)
        if isinstance(statement, ast.If):
            sometimes |= stored - always
        else:
            always |= stored
    return sometimes


def texts(plan):
    printer = ExprPrinter(PYTHON, lambda index: slot_name(plan, index), plan.symbols)
    yield StepPrinter(plan, printer).tensors().text()
    for remembers in (True, False):
        yield StepPrinter(plan, printer, remembers=remembers).values().text()


def compare(plan):
    for text in texts(plan):
        tree = ast.parse(text)
        stored = names(tree, ast.Store)
        assert assigned(text) == sorted(stored)
        assert assigned_conditionally(text) == sorted(conditional(text))
        loaded = names(tree, ast.Load)
        assert loaded <= read(text)
        # More would be recalled than is needed: a name of the text that is never read, or one of a user's.
        assert (read(text) & stored) - loaded <= stored


@settings(max_examples=60)
@given(programs())
def test_every_program_s_text(program):
    compare(program.plan())


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_every_example_s_text(name):
    compare(examples.load(name).program.plan())


def test_a_user_s_text_is_no_variable():
    text = "raise error('d0_0 = g0_x', \"it's k0\", a.b1, c=e2)\nx0 = y0 == z0\n"
    assert assigned(text) == ["x0"]
    assert read(text) >= {"a", "e2", "y0", "z0"}
    assert not read(text) & {"d0_0", "g0_x", "k0", "b1", "c", "s"}
