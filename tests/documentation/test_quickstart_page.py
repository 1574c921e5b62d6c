"""The quickstart's tables list what the functions take: the same names, in the same order, with the same defaults."""

from __future__ import annotations

import inspect
import re

import pytest
from page_reading.tables import page

import trunnion

PAGE = page("quickstart")
_ROW = re.compile(r"^\| `(\w+)` \| (?:`(.+?)`)? *\| .+ \|$", re.MULTILINE)
_GIVEN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def rows(head: str) -> list[tuple[str, str]]:
    """Return the name and the default in each row of every table whose head starts so."""
    tables = [part.split("\n\n", 1)[0] for part in PAGE.split(f"\n| {head} | default |")[1:]]
    return [row for table in tables for row in _ROW.findall(table)]


@pytest.mark.parametrize(
    ("head", "function"),
    [
        ("`trunnion.compile`", trunnion.compile),
        ("`trunnion.load`", trunnion.load),
        ("calling it, or `bind`", trunnion.CompiledProgram.bind),
    ],
)
def test_a_table_lists_every_parameter_with_its_default(head, function):
    expected = [
        (name, "" if one.default is one.empty else repr(one.default).replace("'", '"'))
        for name, one in inspect.signature(function).parameters.items()
        if one.kind in _GIVEN and name != "self"
    ]
    assert rows(head) == expected


def test_what_is_by_name_only_stands_under_that_line():
    positional, by_name = PAGE.split("\n| `trunnion.compile` | default |")[1:3]
    assert "By name only" in positional
    parameters = inspect.signature(trunnion.compile).parameters
    assert [parameters[name].kind for name, _ in _ROW.findall(by_name.split("\n\n", 1)[0])] == [
        inspect.Parameter.KEYWORD_ONLY
    ] * (len(parameters) - len(_ROW.findall(positional.split("\n\n", 1)[0])))


def test_every_other_name_of_a_compiled_program_is_named():
    listed = PAGE.rsplit("The rest of it is", 1)[1]
    public = {name for name in vars(trunnion.CompiledProgram) if not name.startswith("_")}
    assert set(re.findall(r"`(\w+)(?:\(\w*\))?`", listed)) == public - {"bind", "from_artifact"}
