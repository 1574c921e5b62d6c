"""What becomes of Python texts by operators; needs cosmic-ray, so `make test` runs it apart."""

from __future__ import annotations

import ast
import random

import pytest
from cosmic_ray.mutating import mutate_code
from mutation_trials.draw import drawn, rules
from mutation_trials.python_mutants import DropStatement, family_of, operators, places
from mutation_trials.scope import ROOT


def others(text):
    """Return each text that a Python text can become."""
    found = set()
    for place in places("x.py", text):
        made = (place.make(random.Random(seed)) for seed in range(20))  # noqa: S311 - a sample
        found |= {mutant.applied(text) for mutant in made if mutant is not None}
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a < b\n", {"x = a <= b\n", "x = a > b\n", "x = a != b\n"}),
        ("x = a is None\n", {"x = a is not None\n"}),
        ("x = a + b\n", {"x = a - b\n"}),
        ("x = 8\n", {"x = 9\n", "x = 7\n"}),
        ("x = a and b\n", {"x = a or b\n"}),
        ("x = not a\n", {"x = a\n"}),
        ("x = True\n", {"x = False\n"}),
        ("if a:\n    f(x)\n", {"if not a:\n    f(x)\n", "if a:\n    pass\n"}),
        ("for x in y:\n    break\n", {"for x in []:\n    break\n", "for x in y:\n    continue\n"}),
        ("x.y = a\n", {"pass\n"}),
        ("x += a\n", {"pass\n"}),
        ("x = a\n", set()),
        ('"""Say it."""\n', set()),
        ("def f(a, *, b): ...\n", set()),
        ("f(*a, **b)\n", {"pass\n"}),
        ("def f(a: int | None) -> None: ...\n", set()),
        ("@property\ndef f(): ...\n", {"def f(): ...\n"}),
        ("@functools.cache\ndef f(): ...\n", set()),
        ("raise E(f'{a + 1}')\n", set()),
    ],
)
def test_what_a_text_becomes(text, expected):
    spaces = str.maketrans({" ": ""})
    assert {one.translate(spaces) for one in others(text)} == {one.translate(spaces) for one in expected}


def test_the_examples_of_our_own_operator_hold():
    for example in DropStatement.examples():
        assert mutate_code(example.pre_mutation_code, DropStatement(), 0) == example.post_mutation_code


def test_every_operator_is_of_a_family():
    assert {family_of(name) for name in operators()} == {
        "arithmetic", "comparison", "negation", "connective", "constant", "number", "loop", "exception", "decorator",
        "statement",
    }  # fmt: skip


def test_a_sample_follows_from_its_seed_and_is_python(tmp_path):
    path = "core/src/trunnion/model/interval.py"
    (tmp_path / path).parent.mkdir(parents=True)
    text = (ROOT / path).read_text("utf-8")
    (tmp_path / path).write_text(text, "utf-8")
    mutants = drawn("python", 1, 1000, tmp_path)
    assert mutants == drawn("python", 1, 1000, tmp_path)
    assert mutants != drawn("python", 2, 1000, tmp_path)
    assert mutants[:7] == drawn("python", 1, 7, tmp_path)
    assert len({mutant.id for mutant in mutants}) == len(mutants) > 50
    for mutant in mutants:
        assert mutant.applied(text) != text
        ast.parse(mutant.applied(text))


def test_the_rules_of_a_sample_have_a_digest():
    assert len(rules()) == 16
