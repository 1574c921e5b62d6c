"""Levels of processors, with a list of features that says what it is told."""

from __future__ import annotations

import pytest

from trunnion.toolchain import processor
from trunnion.toolchain.processor import LEVELS, lacking_features, level_features

V2 = "pni ssse3 sse4_1 sse4_2 popcnt"
V3 = f"{V2} avx avx2 bmi1 bmi2 fma"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(("flags", "highest"), [("fpu sse2", 0), (V2, 1), (V3, 2), (V4, 3)])
def test_each_level_holds_on_those_above_it(tmp_path, monkeypatch, flags, highest):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\nbugs : avx512f\n")
    monkeypatch.setattr(processor, "_LISTED", tmp_path / "cpuinfo")
    assert [not lacking_features(level) for level in LEVELS] == [n <= highest for n in range(len(LEVELS))]


def test_what_lacks_is_named(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(f"flags : {V4.replace('pni', '').replace('avx512cd', '')}\n")
    monkeypatch.setattr(processor, "_LISTED", tmp_path / "cpuinfo")
    assert lacking_features("x86-64-v4") == ("sse3", "avx512cd")


def test_without_a_list_nothing_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(processor, "_LISTED", tmp_path / "nothing")
    assert lacking_features("x86-64-v3") == level_features("x86-64-v3")
    assert lacking_features("x86-64") == level_features("armv9-a") == ()
