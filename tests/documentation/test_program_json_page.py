"""The manual's JSON example is the program beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from trunnion import KernelProgram

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "program-json.md").read_text("utf-8")


def _block(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return block


def test_the_text_is_what_the_code_gives():
    names = {}
    exec(compile(_block("python"), "program-json.md", "exec"), names)
    assert json.loads(_block("json")) == json.loads(names["program"].to_json())
    assert KernelProgram.from_json(_block("json")) == names["program"]


def test_every_kind_of_argument_is_shown():
    shown = {kind for argument in json.loads(_block("json"))["launches"][0]["args"] for kind in argument}
    assert shown == {"map", "output", "param", "expr"}
