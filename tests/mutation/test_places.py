"""Where C++ is mutated and what is left out of Python, what a copy of the sources is, and the order of a sample."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from mutation_trials import cpp_mutants
from mutation_trials.draw import drawn
from mutation_trials.mutant import edit
from mutation_trials.sample import Place, sampled
from mutation_trials.scope import GROUPS, ROOT, group_of, left_out, mutated_files
from mutation_trials.tree import Tree


def others(text):
    """Return each text that a C++ text can become, by family."""
    found = []
    for place in cpp_mutants.places("x.hpp", text):
        seen = {place.make(random.Random(seed)) for seed in range(20)}  # noqa: S311 - a sample
        found += sorted((place.family, mutant.applied(text)) for mutant in seen)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b;", {"a <= b;", "a > b;"}),
        ("a && b;", {"a || b;"}),
        ("x = 7;", {"x = 6;", "x = 8;"}),
        ("x = 0;", {"x = 1;"}),
        ("x = 0x10u;", {"x = 15u;", "x = 17u;"}),
        ("if (f(a)) g;", {"if (true) g;", "if (false) g;"}),
        ("return !(a);", {"return (a);"}),
        ("return true;", {"return false;"}),
        ("x = a << 8;", {"x = a >> 8;", "x = a << 7;", "x = a << 9;"}),
        ("{\n  f(a);\n}", {"{\n  ;\n}"}),
        ("{\n  x.y = a;\n}", {"{\n  ;\n}"}),
        ("{\n  return;\n}", set()),
        ("// a < 1\n", set()),
        ("\"a < 1\" /* 1\n */ '1'", set()),
        ("#if A < 1\n#define B \\\n  1\n#endif", set()),
        ("std::array<T, n> x;", set()),
        ('text << "got " << (a < 1);', set()),
        ("void describe_it(int a) {\n  if (a < 1) f();\n}", set()),
        ("static_assert(a < 1);", set()),
        ("x = 1.5e3 + 0x1p64 - y1;", {"x = 1.5e3 - 0x1p64 - y1;", "x = 1.5e3 + 0x1p64 + y1;"}),
    ],
)
def test_cpp_places(text, expected):
    assert {other for _, other in others(text)} == expected


def test_each_place_of_the_cpp_runtime_gives_another_text():
    mutants = drawn("cpp", 1, 10_000)
    assert len({mutant.id for mutant in mutants}) == len(mutants) > 1000
    assert {mutant.family for mutant in mutants} == {
        "comparison", "connective", "arithmetic", "number", "constant", "negation", "condition", "statement",
    }  # fmt: skip
    for mutant in mutants[:100]:
        text = (ROOT / mutant.path).read_text("utf-8")
        assert mutant.applied(text) != text
        assert mutant.diff().startswith(f"{mutant.path}:{mutant.line}\n- ")


def regions(text, path="x.py"):
    lines = text.splitlines()
    return {(lines[one.start[0] - 1][one.start[1] : one.end[1]], one.reason) for one in left_out(path, text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise E(f'{a + 1}', b + 1)", {("f'{a + 1}'", "message")}),
        ("x = ValueError(f'{a + 1}')", {("f'{a + 1}'", "message")}),
        ("out.line(f'{a + 1}')", set()),
        ("s = shorten(x, 3 + 4)", {("3 + 4", "message")}),
        ("_MAX_SHOWN = 80", {("_MAX_SHOWN = 80", "message")}),
        ("@functools.lru_cache(8)\ndef f(): ...", {("@functools.lru_cache(8)", "cache")}),
        ("@dataclass(frozen=True)\nclass A: ...", {("@dataclass(frozen=True)", "declaration")}),
        ("@property\ndef f(): ...", set()),
        ("x: int | None = 1", {("int | None", "annotation")}),
        ("def f(a: int | None) -> b | c: ...", {("int | None", "annotation"), ("b | c", "annotation")}),
        ("zip(a, b, strict=True)", {("strict=True", "declaration")}),
        ("raise E('ä', f'{1}')", {("f'{1}'", "message")}),
        ("yield f'{a + 1}'", set()),
    ],
)
def test_what_is_left_out(text, expected):
    assert regions(text) == expected


def test_what_the_rules_of_maps_yield_is_a_message():
    path = "core/src/trunnion/model/tensormap/tiled_rules.py"
    assert regions("yield f'{a + 1}'", path) == {("f'{a + 1}'", "message")}


def test_what_no_backend_takes_part_in_is_left_out():
    text = (
        "def check_digest(a):\n    return a + 1\n\n\ndef open(a, *, trusted=False):\n    try:\n        b = a + 1\n"
        "        if b > 1:\n            raise E(b)\n        return f(b, 1 if trusted else None)\n"
        "    except F as e:\n        raise E from e\n"
    )
    found = {
        (line, one.reason)
        for one in left_out("core/src/trunnion/artifacts/artifact.py", text)
        for line in range(one.start[0], one.end[0] + 1)
    }
    whole = {(line, "trust") for line in (1, 2)}
    refusals = {(line, "document") for line in (8, 9, 11, 12)}
    assert found == {*whole, (5, "trust"), (10, "trust"), *refusals}
    assert regions(text) == set()


def test_every_pattern_of_a_group_is_of_some_file():
    for group, patterns in GROUPS.items():
        for pattern in patterns:
            found = list(ROOT.glob(pattern))
            assert found, pattern
            assert {group_of(path.relative_to(ROOT).as_posix()) for path in found} == {group}
    assert len(list(mutated_files("python"))) > 50


def test_a_beginning_of_a_sample_has_its_share_of_each_stratum():
    sizes = {("a", "x"): 100, ("a", "y"): 50, ("b", "x"): 10}

    def place(path, family, line):
        made = edit(path, f"{line} ", f"{line} 1", operator=family, family=family)
        return Place(path=path, family=family, where=(line, 0), make=lambda generator: made)

    places = [place(*stratum, line) for stratum, size in sizes.items() for line in range(size)]
    one, other = list(sampled(places, 1)), list(sampled(places, 2))
    assert {mutant.id for mutant in one} == {mutant.id for mutant in other}
    assert one != other
    assert one == list(sampled(reversed(places), 1))
    for most in (16, 32, 80):
        found = Counter((mutant.path, mutant.family) for mutant in one[:most])
        assert all(abs(found[stratum] - size * most / 160) <= 1.5 for stratum, size in sizes.items()), found


def test_a_copy_is_mutated_and_the_repository_is_not(tmp_path):
    tree = Tree(tmp_path / "tree", ROOT)
    path = "core/src/trunnion/model/interval.py"
    text = (ROOT / path).read_text("utf-8")
    mutant = edit(path, text, text + "x = 1\n", operator="planted", family="planted")
    with tree.mutated(mutant):
        assert (tree.folder / path).read_text("utf-8") == text + "x = 1\n"
        assert (ROOT / path).read_text("utf-8") == text
    assert (tree.folder / path).read_text("utf-8") == text
