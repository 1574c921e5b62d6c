"""Programs for the CPU at the command line: they truly run, with no GPU and no simulation."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trunnion
from trunnion import examples
from trunnion.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from forked_python.client import ForkedPython


def command(*words: str) -> SimpleNamespace:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(list(words))
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


def document(*words: str) -> Any:
    done = command(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact") / "axpy"
    trunnion.compile(examples.load("cpu_axpy").program).artifact.save(folder)
    return folder


def test_an_example_runs_without_being_simulated(forked_python: ForkedPython) -> None:
    """In a process of its own, where no simulated driver was loaded, and none is."""
    source = (
        "import sys\nfrom trunnion.cli import main\n"
        "status = main(['run', 'cpu_softmax', '--json'])\n"
        "from trunnion import sim\nassert sim.active() is None\nsys.exit(status)"
    )
    done = forked_python(source)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["device"], row["target"], row["ok"]) == ("CPU", "cpu", True)
    assert row["trace"] is None


def test_a_program_runs_with_arguments_from_files(tmp_path: Path) -> None:
    path = tmp_path / "axpy.json"
    path.write_text(examples.load("cpu_axpy").program.to_json(), "utf-8")
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    np.savez(tmp_path / "in.npz", x=x, y=y)
    words = (
        "--arg",
        "alpha=2.5",
        "--inputs",
        str(tmp_path / "in.npz"),
        "--outputs",
        str(tmp_path / "out.npz"),
    )
    row = document("run", str(path), *words)
    assert row["device"] == "CPU"
    assert row["launches"] is None
    assert np.load(tmp_path / "out.npz")["z"].tolist() == (2.5 * x + y).tolist()
    assert document("run", str(path), "--size", "n=7")["outputs"][0]["shape"] == [7]


def test_an_artifact_runs_too(artifact: Path) -> None:
    assert document("run", str(artifact))["device"] == "CPU"


@pytest.mark.parametrize(("option", "more"), [("--simulate", ()), ("--bodies", ("no_such_module",))])
def test_what_is_for_a_simulated_gpu_is_refused(option: str, more: tuple[str, ...]) -> None:
    done = command("run", "cpu_axpy", option, *more)
    assert done.returncode == 1
    assert "its kernels truly run" in done.stderr


def test_another_target_is_refused() -> None:
    done = command("run", "cpu_axpy", "--target", "sm_90a")
    assert done.returncode == 1
    assert done.stderr.startswith("UnsupportedFeatureError")


def test_an_object_of_the_host_is_inspected(artifact: Path) -> None:
    found = document("inspect", str(artifact))
    (image,) = found["images"]
    assert image["kind"] == "host-object"
    assert "trunnion_kernel_0" in image["definitions"]
    assert isinstance(image["references"], list)


def test_the_launcher_of_a_cpp_program_is_the_cpus() -> None:
    source = document("inspect", "cpu_axpy", "--host-source")["host_source"][0]["text"]
    assert "host_runtime.hpp" in source
