"""The TVM-FFI page names the versions that the code refuses to go below, and the functions that a module exports."""

from __future__ import annotations

import re
from pathlib import Path

from trunnion import examples
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.toolchain.host_headers import LEAST_FFI
from trunnion_tvm_ffi.availability import LEAST_TORCH

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tvm-ffi.md").read_text("utf-8")


def test_the_least_versions_are_the_code_s() -> None:
    rows = dict(re.findall(r"^\| (\S+) ([\d.]+) or later ", PAGE, re.MULTILINE))
    assert rows["apache-tvm-ffi"] == ".".join(map(str, LEAST_FFI))
    assert rows["torch"] == ".".join(map(str, LEAST_TORCH))


def test_the_table_of_exports_is_complete() -> None:
    table = PAGE.partition("| function | arguments | returns |")[2].partition("\n\n")[0]
    text = emit_launcher(examples.load("vector_add").program.plan())
    exported = set(re.findall(r"^TRUNNION_EXPORT __tvm_ffi_(\w+)\(", text, re.MULTILINE))
    assert "main" in exported
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == exported
