"""The report on TileLang's kernels: cells, counts, comparisons, what is not met; and the command without a GPU."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

import pytest
from sample_machine import MACHINE as SAMPLE

import tilelang_kernels
from launching.timing import Rounds, Summary
from tilelang_runs.judging import Judgement
from tilelang_runs.launchers import LAUNCHERS, PAIRS
from tilelang_runs.results import Kernel, Results
from tilelang_runs.work import Timed

MACHINE = replace(SAMPLE, date="2026-11-22", versions={})
OURS = [name for name, launcher in LAUNCHERS.items() if launcher.ours]


def timed(median: float) -> Timed:
    return Timed(Summary(median, median, median, median))


def kernel(name: str = "add", *, times=(), verdicts=(), **more) -> Kernel:
    """A kernel of which every launcher is right, and takes 1 µs if it is ours, else 2, but for what is said."""
    found = Kernel(name, "a feature", **more)
    found.verdicts = {launcher: Judgement("right") for launcher in LAUNCHERS} | dict(verdicts)
    found.host = {launcher: timed(1.0 if launcher in OURS else 2.0) for launcher in LAUNCHERS} | dict(times)
    return found


def large(**off: float) -> Kernel:
    found = kernel("gemm", operations=2 * 10**9)
    found.host = {}
    found.device = {
        name: timed(1000.0 * (1 + off.get(name.split()[-1], 0) * (name in OURS))) for name in LAUNCHERS
    }
    return found


def results(*kernels: Kernel) -> Results:
    return Results(MACHINE, Rounds(3, 10), {one.name: one for one in kernels})


def test_when_everything_is_right_and_faster_nothing_is_left_to_say():
    found = results(kernel(), large())
    assert found.failures == ()
    text = found.markdown()
    assert text.startswith("2026-11-22: a GPU, driver 580; a CPU, 2 cores")
    assert "What is not right" not in text
    assert "2 TFLOP/s" in text
    assert "both were measured on 1 kernels; ours is slower on none" in text


def test_a_cell_is_a_time_or_a_word():
    theirs = "TileLang nvrtc"
    for judgement, cell in (
        (Judgement("wrong", "x"), "**wrong**"),
        (Judgement("hung"), "**hung**"),
        (None, "-"),
    ):
        found = kernel(verdicts={theirs: judgement} if judgement else {})
        if judgement is None:
            del found.verdicts[theirs]
        assert found.cell(theirs) == cell
    assert kernel(times={theirs: timed(1.234)}).cell(theirs) == "1.23"
    assert kernel(times={theirs: Timed(absent="out of time")}).cell(theirs) == "right"


@pytest.mark.parametrize("verdict", ["wrong", "refused", "crashed", "hung", "not run"])
def test_ours_has_to_be_right(verdict: str):
    found = results(kernel(verdicts={"trunnion tvm_ffi": Judgement(verdict, "why")}))
    assert found.failures == (f"add, trunnion tvm_ffi: {verdict}: why",)
    assert f"- add, trunnion tvm_ffi: {verdict}: why" in found.markdown()
    assert results(kernel(verdicts={"TileLang cython": Judgement(verdict)})).failures == ()


def test_ours_has_to_refuse_what_it_cannot_say():
    refusing = dict.fromkeys(OURS, Judgement("refused", "a loop"))
    assert results(kernel(verdicts=refusing, refused="a loop")).failures == ()
    assert len(results(kernel(refused="a loop")).failures) == len(
        [one for one in OURS if LAUNCHERS[one].whole]
    )


def test_a_kernel_that_is_slower_is_named():
    found = results(kernel(times={"trunnion nvrtc": timed(3.0)}), kernel("other"))
    assert found.failures == ("trunnion nvrtc is slower than TileLang nvrtc: add (3.00 against 2.00)",)


def test_what_was_not_timed_is_listed_and_compared_with_nothing():
    found = results(kernel(times={"TileLang tvm_ffi": Timed(absent="hung: ended after 40 s")}))
    assert found.failures == ()
    assert "- add, TileLang tvm_ffi: hung: ended after 40 s" in found.markdown()
    assert "trunnion tvm_ffi and TileLang tvm_ffi: both were measured on 0 kernels" in found.markdown()


@pytest.mark.parametrize(("off", "close"), [(0.009, True), (-0.009, True), (0.011, False), (-0.011, False)])
def test_the_device_s_time_may_not_differ(off: float, close: bool):
    found = results(large(nvrtc=off))
    assert (found.failures == ()) is close
    if not close:
        assert found.failures == (
            f"gemm, trunnion nvrtc against TileLang nvrtc: {off:+.2%}, at most 1%: NOT MET",
        )


def test_the_device_s_time_is_compared_where_the_device_source_is_the_same():
    found = large()
    found.device["TileLang cutedsl"] = timed(1500.0)
    assert not results(found).failures  # each compiles CuTeDSL's text with a host function of its own
    found.device["TileLang cutedsl"] = timed(500.0)
    (failure,) = results(found).failures
    assert failure.startswith("gemm, trunnion cutedsl text against TileLang cutedsl: +100.00%")


def test_json_has_everything():
    facts = json.loads(results(kernel(verdicts={"TileLang nvrtc": Judgement("wrong", "x")}), large()).json())
    assert [one["name"] for one in facts["kernels"]] == ["add", "gemm"]
    assert facts["kernels"][0]["verdicts"]["TileLang nvrtc"] == {"verdict": "wrong", "reason": "x"}
    assert facts["kernels"][0]["host"]["trunnion nvrtc"]["time"]["median"] == 1.0


def test_pairs_are_ours_and_theirs():
    assert all(LAUNCHERS[ours].ours and not LAUNCHERS[theirs].ours for ours, theirs in PAIRS)
    assert {theirs for _, theirs in PAIRS} == {name for name in LAUNCHERS if name not in OURS}


def test_without_tilelang_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert tilelang_kernels.main([]) == 77
    assert capsys.readouterr().err.startswith("no TileLang")


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--json", "none/none.json"], ["--nonsense"]])
def test_wrong_options_are_refused(arguments: list[str]):
    with pytest.raises(SystemExit):
        tilelang_kernels.parse(arguments)


def test_no_script_is_called_as_what_it_imports():
    """The folder of the scripts comes first on their path: one called tilelang would be imported for TileLang."""
    assert tilelang_kernels._ROOT.joinpath("benchmarks").is_dir()
    assert not tilelang_kernels._ROOT.joinpath("benchmarks", "tilelang.py").exists()
