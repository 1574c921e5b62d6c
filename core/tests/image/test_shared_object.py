"""What a shared library says it needs, before it is loaded."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import CorruptArtifactError
from trunnion.image.elf import EHDR, SHDR, SYM
from trunnion.image.shared_object import defined_versions, needed_versions, shared_object_functions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "x.c").write_text(
        '#include <stdio.h>\n#include <math.h>\nvoid f(double x) { printf("%f", pow(x, x)); }\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "x.so", folder / "x.c", "-lm"], check=True)
    return folder / "x.so"


def test_the_versions_are_those_that_binutils_tell(library: Path) -> None:
    tool = shutil.which("readelf")
    assert tool, "binutils come with the compiler"
    told = subprocess.run([tool, "-V", library], capture_output=True, text=True, check=True).stdout
    needed = told[told.index("'.gnu.version_r'") :]
    assert needed_versions("x.so", library.read_bytes()) == tuple(
        sorted(set(re.findall(r"Name: (\S+)  Flags", needed)))
    )


def test_the_versions_that_it_defines_are_those_of_its_script(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("void f(void) {}\nvoid g(void) {}\n")
    (tmp_path / "x.map").write_text("OWN_1 { global: f; local: *; };\nOWN_1.1 { global: g; } OWN_1;\n")
    options = ["-shared", "-fPIC", f"-Wl,--version-script={tmp_path / 'x.map'}", "-Wl,-soname,libx.so.6"]
    subprocess.run(["cc", *options, "-o", tmp_path / "x.so", tmp_path / "x.c"], check=True)
    assert defined_versions("x.so", (tmp_path / "x.so").read_bytes()) == ("OWN_1", "OWN_1.1", "libx.so.6")


def test_no_byte_of_its_headers_is_believed(library: Path) -> None:
    good = library.read_bytes()
    for cut in range(0, len(good), 97):
        try:
            needed_versions("x.so", good[:cut])
        except CorruptArtifactError:
            continue
    for place in range(0, len(good), 11):
        changed = good[:place] + b"\xff" * 8 + good[place + 8 :]
        try:
            needed_versions("x.so", changed)
            defined_versions("x.so", changed)
        except CorruptArtifactError:
            continue


VERSIONS, SYMBOLS = 0x6FFFFFFE, 11


def hostile(kind: int, contents: bytes, strings: bytes, tables: int = 1) -> bytes:
    """Return a library whose first section is strings, and whose others are of one kind and all in one place."""
    start = EHDR.size + SHDR.size * (tables + 1)
    ident = b"\x7fELF\x02\x01\x01"
    header = EHDR.pack(ident, 3, 62, 1, 0, 0, EHDR.size, 0, EHDR.size, 0, 0, SHDR.size, tables + 1, 0)
    sections = SHDR.pack(0, 3, 0, 0, start, len(strings), 0, 0, 1, 0)
    sections += SHDR.pack(0, kind, 0, 0, start + len(strings), len(contents), 0, 0, 1, 0) * tables
    return header + sections + strings + contents


# Each word is 4: what hangs on an entry, and the entry after it, are the next word on.
OVERLAPPING = struct.pack("<I", 4) * (1 << 14)
ALL_NAMES = b"".join(struct.pack("<IHHII", 0, 0, 0, at, 16) for at in range(1 << 13))
FUNCTIONS = b"".join(SYM.pack(at, 0x12, 0, 1, 0, 0) for at in range(0, 1 << 16, 10))


@pytest.mark.parametrize(
    ("read", "data", "problem"),
    [
        (needed_versions, hostile(VERSIONS, OVERLAPPING, b"\0" * 8), "overlap"),
        (
            needed_versions,
            hostile(VERSIONS, struct.pack("<HHIII", 1, 0, 0, 16, 0) + ALL_NAMES, b"x" * (1 << 13) + b"\0"),
            "overlap",
        ),
        (needed_versions, hostile(VERSIONS, b"\0" * (1 << 20), b"\0", 1 << 14), "overlap"),
        (shared_object_functions, hostile(SYMBOLS, FUNCTIONS, b"__tvm_ffi_" * 6554 + b"\0"), "overlap"),
        (shared_object_functions, hostile(SYMBOLS, b"\0" * (1 << 20), b"\0", 1 << 14), "overlap"),
    ],
    ids=["versions", "names of versions", "tables of versions", "functions", "tables of functions"],
)
def test_what_overlaps_costs_no_more_than_its_length(
    read: Callable[[str, bytes], tuple[str, ...]], data: bytes, problem: str
) -> None:
    started = time.process_time()
    with pytest.raises(CorruptArtifactError, match=problem):
        read("x.so", data)
    assert time.process_time() - started < 2


def test_functions_are_those_with_the_prefix() -> None:
    names = b"\0__tvm_ffi_run\0__tvm_ffi__library_ctx\0other\0\xff\0__tvm_ffi_\xfe\0"
    starts = [at + 1 for at in range(len(names) - 1) if not names[at]]
    symbols = b"".join(SYM.pack(at, 0x12, 0, 1, 0, 0) for at in (*starts, 10_000))
    assert shared_object_functions("x.so", hostile(SYMBOLS, symbols, names)) == ("run", "\ufffd")
