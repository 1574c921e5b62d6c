from __future__ import annotations

import trunnion
from window import SIZES, Finding, OneKernel, TwoKernels, reader, verdict


def finding(name: str, without: tuple[float, ...], windowed: tuple[float, ...]) -> Finding:
    return Finding(experiment=name, mebibytes=16, without=without, windowed=windowed)


def test_the_gain_is_that_of_the_medians_over_all_phases() -> None:
    assert finding("a", (10.0, 30.0, 12.0), (6.0, 5.0, 100.0)).gain == 2.0


def test_the_verdict_is_the_best_size_of_each_experiment() -> None:
    found = [finding("a", (3.0,), (2.0,)), finding("a", (4.0,), (2.0,)), finding("b", (1.0,), (2.0,))]
    assert verdict(found) == {"a": 2.0, "b": 0.5}
    assert found[-1].row() == "| b | 16 | 1 | 2 | 0.50 |"


def test_with_and_without_differ_in_the_window_alone() -> None:
    for experiment in (OneKernel(), TwoKernels()):
        (without,), (windowed,) = (
            experiment.program(window=window).plan().launches for window in (False, True)
        )
        assert without.window is None
        assert windowed.window is not None
        assert (without.kernel, without.args, without.grid) == (windowed.kernel, windowed.args, windowed.grid)
    assert all(size < 30 for size in SIZES)  # what an H200 can set aside is 37.5 MiB


def test_the_kernel_takes_what_the_program_passes() -> None:
    program = trunnion.compile(reader(4, 32, window=False), "nvrtc", target="sm_90a")
    assert [kernel.symbol for kernel in program.artifact.manifest.kernels] == ["reread"]
