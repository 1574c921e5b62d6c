"""The page on the CPU says what is so: fields, options, architectures, capabilities."""

from __future__ import annotations

import re
from pathlib import Path

from trunnion import Capability, default_registry
from trunnion.codegen.cpp.build import runtime_folder
from trunnion_tvm_ffi.compiler.host_option_table import OPTIONS
from trunnion_tvm_ffi.compiler.host_options import MOST_THREADS, option_words
from trunnion_tvm_ffi.compiler.host_request import _ARCHITECTURES

PAGE = Path(__file__, "../../../docs/cpu.md").resolve().read_text("utf-8")
TABLES = [line for line in PAGE.splitlines() if line.startswith("| ")]


def test_every_capability_is_in_the_table_with_the_right_answer() -> None:
    declared = default_registry().backend("tvm_ffi").targets["cpu"]
    said = {}
    for line in TABLES:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`(\w+)`", cells[0]):
            if name in set(Capability) and cells[1].startswith(("yes", "no")):
                said[name] = cells[1].startswith("yes")
    assert said == {capability.value: capability in declared for capability in Capability}


def test_every_option_is_named() -> None:
    for option in OPTIONS:
        word = option.spelled("")
        assert f"`{word}" in PAGE, word
    assert f"at most {MOST_THREADS}" in PAGE
    assert f"`{' '.join(option_words((), {}, 'code'))}`" in PAGE


def test_every_architecture_is_named() -> None:
    for architectures in _ARCHITECTURES.values():
        for architecture in architectures:
            assert f'"cpu:{architecture}"' in PAGE


def test_every_field_of_a_block_is_in_the_table() -> None:
    header = Path(runtime_folder(), "trunnion", "block.h").read_text("utf-8")
    structure = header[header.index("typedef struct") : header.index("} trunnion_block_t;")]
    fields = re.findall(r"^  (\w+\*? \w+(?:\[3\])?);$", structure, re.MULTILINE)
    assert len(fields) == 5
    assert [f"`{field}`" for field in fields] == [
        found
        for found in re.findall(r"^\| (`[\w* \[\]]+`) \|", PAGE, re.MULTILINE)
        if found.strip("`") in fields
    ]
