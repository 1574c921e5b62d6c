"""What a shared library says it needs, before it is loaded."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import CorruptArtifactError
from trunnion.image.shared_object import defined_versions, needed_versions

if TYPE_CHECKING:
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
