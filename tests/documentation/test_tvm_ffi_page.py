"""The TVM-FFI page names the versions that the code refuses to go below, and the functions that a module exports."""

from __future__ import annotations

import re
from pathlib import Path

from trunnion import DeviceCode, KernelProgram, ProgramBuilder, examples
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.toolchain.host_headers import LEAST_FFI
from trunnion.toolchain.torch_release import LEAST_TORCH

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tvm-ffi.md").read_text("utf-8")


def in_place() -> KernelProgram:
    """Return a program that allocates nothing: such launchers export more."""
    builder = ProgramBuilder("in_place", DeviceCode("cuda", "// not compiled"))
    x = builder.input("x", "float32", (8,), access="read_write")
    builder.launch("k", args=(x,), grid=1, block=8)
    return builder.build()


def test_the_least_versions_are_the_code_s() -> None:
    rows = dict(re.findall(r"^\| (\S+) ([\d.]+) or later ", PAGE, re.MULTILINE))
    assert rows["apache-tvm-ffi"] == ".".join(map(str, LEAST_FFI))
    assert rows["torch"] == ".".join(map(str, LEAST_TORCH))


def test_every_export_is_in_the_table_or_named_as_not_for_others() -> None:
    table, own = PAGE.partition("| function | arguments | returns |")[2].split("\n\n")[:2]
    programs = [*(examples.load(name).program for name in ("vector_add", "segment_sum")), in_place()]
    texts = [emit_launcher(program.plan()) for program in programs]
    exported = set(re.findall(r"^TRUNNION_EXPORT __tvm_ffi_(\w+)\(", "\n".join(texts), re.MULTILINE))
    assert "main" in exported
    named = [*re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE), *re.findall(r"`(\w+)`", own)]
    assert sorted(named) == sorted(exported)
