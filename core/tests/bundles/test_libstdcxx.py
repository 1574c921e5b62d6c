"""The libstdc++ of this process: the newest version of its symbols, and none where there is none."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from trunnion.bundles import libstdcxx
from trunnion.bundles.libstdcxx import installed_libstdcxx, newest_libstdcxx


def test_it_is_what_the_library_itself_lists() -> None:
    ctypes.CDLL("libstdc++.so.6")
    maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    (mapped,) = {line.split()[-1] for line in maps if "/libstdc++.so.6" in line}
    told = subprocess.run(["readelf", "-V", mapped], capture_output=True, text=True, check=True).stdout
    newest = max(map(int, re.findall(r"Name: GLIBCXX_3\.4\.(\d+)", told)))
    assert installed_libstdcxx.__wrapped__() == f"3.4.{newest}"


@pytest.mark.parametrize(
    ("library", "inside"), [("libghost_nowhere.so", ""), ("libc.so.6", "nobody"), ("libc.so.6", "printf")]
)
def test_where_there_is_none_nothing_is_said(
    library: str, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libstdcxx, "_LIBRARY", library)
    monkeypatch.setattr(libstdcxx, "_INSIDE", inside)
    assert installed_libstdcxx.__wrapped__() == ""


def test_the_newest_is_that_of_the_greatest_number() -> None:
    assert newest_libstdcxx(["GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "GLIBCXX_3.4", "CXXABI_1.3.99"]) == "3.4.30"
    assert newest_libstdcxx(["GLIBC_2.34", "GLIBCXX_LDBL_3.4.99", "GLIBCXX_"]) == ""
