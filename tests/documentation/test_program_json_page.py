"""The manual's JSON example is the program beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion import KernelProgram

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "program-json.md").read_text("utf-8")


def _block(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return block


def test_the_text_is_what_the_code_gives():
    names = {}
    exec(compile(_block("python"), "program-json.md", "exec"), names)
    assert json.loads(_block("json")) == json.loads(names["program"].to_json())
    assert KernelProgram.from_json(_block("json")) == names["program"]


def _kinds(value: Any) -> Iterator[str]:
    """Yield the kind of an argument, and those of what is in it if it is a struct or an array."""
    (kind,) = value
    yield kind
    within = {
        "struct": lambda: [one["value"] for one in value["struct"]["fields"]],
        "array": lambda: value["array"],
    }
    for one in within.get(kind, list)():
        yield from _kinds(one)


def test_every_kind_of_argument_is_shown_and_described():
    launches = json.loads(_block("json"))["launches"]
    shown = {kind for launch in launches for argument in launch["args"] for kind in _kinds(argument)}
    described = PAGE.rpartition("```")[2]
    assert shown == {
        "map", "output", "param", "workspace", "variable", "view", "at", "const", "float", "expr", "struct", "array"
    }  # fmt: skip
    assert all(f'`{{"{kind}": ' in described for kind in shown)


def test_what_few_programs_have_is_shown():
    document = json.loads(_block("json"))
    assert document["copies"]
    assert {variable["init"] is None for variable in document["variables"]} == {True, False}
    assert any(output["fill"] is not None for output in document["outputs"])
    (first, *_), *_ = (launch["grid"] for launch in document["launches"])
    assert "device." in first
    assert "occupancy(" in first
    described = PAGE.rpartition("```")[2]
    for table in ("variables", "copies"):
        assert f"`{table}`" in described
        assert all(f'"{name}"' in described for row in document[table] for name in row)
