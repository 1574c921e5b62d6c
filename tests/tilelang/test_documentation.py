"""The page on TileLang: its code runs, and its tables have all that the importer understands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from page_reading.blocks import page_source
from page_reading.tables import page

from trunnion_tilelang.compiler_flags import WITHOUT_EFFECT
from trunnion_tilelang.tir import _FOLLOWED, _STATEMENTS
from trunnion_tilelang.walk import ATTRIBUTES, INTRINSICS, PACKED

ROOT = Path(__file__).resolve().parents[2]
PAGE = page("tilelang")


def rows(head: str) -> list[str]:
    """Return the names in code in the first column of the table with this head."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [name for row in table for name in re.findall(r"`([\w.]+)`", row.split("|")[1])]


def test_its_code_runs():
    # TileLang reads the source of the functions that it is given: in the page itself, whose lines the blocks keep.
    source = page_source("docs/tilelang.md", PAGE)
    command = [sys.executable, "-W", "error", "-c", source]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("head", "table"),
    [
        ("statement", {*_STATEMENTS, *_FOLLOWED}),
        ("attribute", ATTRIBUTES),
        ("call", {*PACKED, *INTRINSICS} - {"tvm_call_packed"}),
    ],
    ids=["statements", "attributes", "calls"],
)
def test_its_tables_have_all_that_is_understood(head, table):
    assert sorted(rows(head)) == sorted(table)


def test_it_names_the_flags_that_are_left_out():
    assert "`-O0` to `-O3`" in PAGE
    levels = {f"-O{level}" for level in range(4)}
    others = {re.sub("^-+(expt-)?", "--expt-", word) for word in WITHOUT_EFFECT.keys() - levels}
    assert others == set(re.findall(r"`(--expt-[\w-]+)`", PAGE))
