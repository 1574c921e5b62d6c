"""``trunnion demo``: green where all is right, red and exit status 1 where anything is not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trunnion import Capability
from trunnion.examples import CPU_EXAMPLES, EXAMPLES, load
from trunnion.registry import default_registry

if TYPE_CHECKING:
    from pathlib import Path

_NO_GPU = "import torch; torch.cuda.is_available = lambda: False\n"
_COMMAND = "import sys; from trunnion.cli import main; sys.exit(main({words!r}))"

_SPECS = tuple(spec for spec in default_registry().backends() if spec.probe().usable)
_BACKENDS = tuple(spec.name for spec in _SPECS if "cuda" in spec.targets)
_SIMULATED = tuple((backend, name) for backend in _BACKENDS for name in EXAMPLES)
_ON_CPU = tuple((spec.name, name) for spec in _SPECS if "cpu" in spec.targets for name in CPU_EXAMPLES)


def demo(*words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the demo in a fresh process, without a GPU even if there is one, after some statements."""
    source = _NO_GPU + before + "\n" + _COMMAND.format(words=["demo", *words])
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=300
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The artifacts of a demo, and what it said."""
    folder = tmp_path_factory.mktemp("built")
    done = demo("--json", "--save", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, rows(done)


def test_every_example_agrees_with_its_reference(built: tuple[Path, list[dict[str, Any]]]) -> None:
    assert {(row["backend"], row["name"]) for row in built[1]} == {*_SIMULATED, *_ON_CPU}
    for row in built[1]:
        assert row["ok"]
        assert row["largest_error"] <= row["tolerance"]
        assert row["device"] == ("CPU" if row["name"] in CPU_EXAMPLES else "simulated")
        # Nobody counts launches on the CPU: the softmax there skips one of those that it is written with.
        assert row["launches"] is None if row["name"] in CPU_EXAMPLES else row["launches"] >= 1
        assert row["compile_seconds"] > 0
        assert len(row["sha256"]) == 64
        assert row["problem"] == ""


def test_saved_artifacts_run_elsewhere_under_the_same_digest(
    built: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, before = built
    done = demo("--json", "--artifacts", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    after = rows(done)
    assert {row["sha256"] for row in after} == {row["sha256"] for row in before}
    assert all(row["ok"] and row["compile_seconds"] is None for row in after)


def test_a_changed_artifact_is_red(built: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    folder, _ = built
    for source in folder.rglob("*"):
        target = tmp_path / source.relative_to(folder)
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
    for source in folder.rglob("*"):
        if source.is_file():
            (tmp_path / source.relative_to(folder)).write_bytes(source.read_bytes())
    images = list(tmp_path.rglob("vector_add/*.cubin"))
    assert len(images) == len(_BACKENDS)
    for image in images:
        data = bytearray(image.read_bytes())
        data[-1] ^= 1
        image.write_bytes(data)
    done = demo("--json", "--artifacts", str(tmp_path))
    assert done.returncode == 1
    wrong = [row for row in rows(done) if not row["ok"]]
    assert sorted((row["backend"], row["name"]) for row in wrong) == sorted(
        (backend, "vector_add") for backend in _BACKENDS
    )
    assert all("CorruptArtifactError" in row["problem"] for row in wrong)


_SWAPPED = """
import dataclasses
from trunnion import examples
original = examples.load

def load(name):
    example = original(name)
    if name != {name!r}:
        return example
    (launch,) = example.program.launches
    args = list(launch.args)
    args[{i}], args[{j}] = args[{j}], args[{i}]
    swapped = dataclasses.replace(launch, args=tuple(args))
    return dataclasses.replace(example, program=dataclasses.replace(example.program, launches=(swapped,)))

examples.load = load
"""


def test_a_wrong_kernel_on_the_cpu_turns_the_demo_red() -> None:
    """There it is the kernel itself that runs."""
    done = demo("--json", before=_SWAPPED.format(name="cpu_axpy", i=1, j=2))
    assert done.returncode == 1
    wrong = [row for row in rows(done) if not row["ok"]]
    assert {row["name"] for row in wrong} == {"cpu_axpy"}
    assert all(row["largest_error"] > row["tolerance"] for row in wrong)


def test_two_swapped_maps_turn_the_demo_red() -> None:
    """Both are 128 bytes, so the build cannot know; the kernel's body reads what the launch delivered."""
    done = demo(before=_SWAPPED.format(name="hopper_gemm", i=0, j=1))
    assert done.returncode == 1
    assert "WRONG" in done.stdout
    every = len(_SIMULATED) + len(_ON_CPU)
    assert f"{every - len(_BACKENDS)} of {every} as the reference says" in done.stdout


def test_swapped_parameters_of_different_sizes_are_refused_by_the_build() -> None:
    done = demo("--json", before=_SWAPPED.format(name="vector_add", i=0, j=3))
    assert done.returncode == 1
    wrong = [row for row in rows(done) if not row["ok"]]
    assert sorted(row["backend"] for row in wrong) == sorted(_BACKENDS)
    assert all(row["problem"].startswith("ParameterMismatchError") for row in wrong)
    assert all(row["launches"] is None for row in wrong)


def test_a_wrong_body_turns_the_demo_red() -> None:
    before = (
        "import dataclasses\nfrom trunnion import examples\noriginal = examples.load\n"
        "def load(name):\n"
        "    example = original(name)\n"
        "    nothing = {symbol: (lambda call: None) for symbol in example.bodies}\n"
        "    return dataclasses.replace(example, bodies=nothing)\n"
        "examples.load = load"
    )
    done = demo("--json", before=before)
    assert done.returncode == 1
    assert {(row["backend"], row["name"]) for row in rows(done) if row["ok"]} == set(_ON_CPU)


_WITH_A_SMALLER_BACKEND = """
import dataclasses
import trunnion
from trunnion import Capability

registry = trunnion.default_registry()
whole = registry.backend("nvrtc")
registry.register(dataclasses.replace(whole, name="smaller", targets={"cuda": frozenset({Capability.DYNAMIC_SHAPES})}))
"""


def test_what_a_backend_does_not_declare_it_refuses_and_that_is_not_red() -> None:
    done = demo("--json", before=_WITH_A_SMALLER_BACKEND)
    assert done.returncode == 0, done.stderr
    found = {(row["backend"], row["name"]): (row["ok"], row["refused"]) for row in rows(done)}
    assert found["smaller", "vector_add"] == (True, False)
    assert found["smaller", "hopper_gemm"] == (False, True)
    assert found["nvrtc", "hopper_gemm"] == (True, False)


def test_a_backend_asked_for_by_name_must_run_everything() -> None:
    done = demo("--backend", "smaller", before=_WITH_A_SMALLER_BACKEND)
    assert done.returncode == 1
    able = [name for name in EXAMPLES if load(name).program.plan().requires <= {Capability.DYNAMIC_SHAPES}]
    assert 0 < len(able) < len(EXAMPLES)
    refused = len(EXAMPLES) - len(able)
    assert f"{len(able)} of {len(EXAMPLES)} as the reference says, {refused} refused" in done.stdout


def test_an_unknown_backend_is_one_message() -> None:
    done = demo("--backend", "nonsense")
    assert done.returncode == 1
    assert done.stderr.startswith("UnknownBackendError: ")
    assert "Traceback" not in done.stderr


def test_no_usable_backend_says_why() -> None:
    before = "import trunnion; from trunnion.registry import Registry; trunnion.default_registry = lambda: Registry([])"
    done = demo(before=before)
    assert done.returncode == 1
    assert "pip install 'trunnion[all]'" in done.stderr


def test_a_folder_without_artifacts_is_refused(tmp_path: Path) -> None:
    done = demo("--artifacts", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("ArtifactError: got no artifact")
