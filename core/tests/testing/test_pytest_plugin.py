"""The suite under pytest: its options, what they refuse, and what a red law prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = Path(__file__).parents[1] / "faulty_backend"


def suite(folder, *options, **environment):
    path = os.pathsep.join([str(FAULTY), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-m", "pytest", "--pyargs", "trunnion.testing.suite.test_attributes"]
    quiet = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder), "-k", "L9["]
    return subprocess.run(
        [*command, *quiet, *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
        timeout=300,
    )


def test_a_red_law_prints_its_report_alone(tmp_path):
    options = ["--trunnion-examples", "2", "--trunnion-no-shrink", "--trunnion-seed", "7"]
    done = suite(tmp_path, "--trunnion-backend", "faulty", *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "L9 on faulty, by way of " in done.stdout
    assert "This program shows it again:" in done.stdout
    assert "hypothesis" not in done.stdout


def test_the_examples_that_are_asked_for_are_checked_and_the_draws_are_told(tmp_path):
    report = tmp_path / "report.xml"
    options = ["--trunnion-examples", "2", "--junit-xml", str(report)]
    done = suite(tmp_path, "--trunnion-backend", "nvrtc", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    said = report.read_text("utf-8")
    assert 'name="digest"' in said
    assert 'name="examples"' in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trunnion-examples", "0"], "expected at least 1"),
        (["--trunnion-seed", "-1"], "expected 0 to 4294967295"),
        (["--trunnion-tier", "gpu"], "a GPU that torch can use"),
        (["--trunnion-tier", "cpu", "--trunnion-backend", "nvrtc"], "on cpu launch: tvm_ffi"),
    ],
)
def test_what_cannot_be_is_one_usage_error(tmp_path, options, said):
    done = suite(tmp_path, *options, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(said) == 1
