"""``trunnion demo``: green where all is right, red and exit status 1 where anything is not."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import Capability, compilation, examples
from trunnion.cli import demo as command
from trunnion.cli import exhibits, main, place
from trunnion.examples import CPU_EXAMPLES, EXAMPLES, load
from trunnion.registry import Registry, default_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trunnion.examples import Example
    from trunnion.sim import Simulator

_NO_GPU = "import torch; torch.cuda.is_available = lambda: False\n"
_COMMAND = "import sys; from trunnion.cli import main; sys.exit(main({words!r}))"

_SPECS = tuple(spec for spec in default_registry().backends() if spec.probe().usable)
_BACKENDS = tuple(spec.name for spec in _SPECS if "cuda" in spec.targets)
_BROUGHT = tuple(
    name
    for spec in default_registry().compilers()
    if spec.probe().usable
    for name in exhibits.brought_by(spec)
)
_SIMULATED = tuple((backend, name) for backend in _BACKENDS for name in (*EXAMPLES, *_BROUGHT))
_ON_CPU = tuple((spec.name, name) for spec in _SPECS if "cpu" in spec.targets for name in CPU_EXAMPLES)
_ONE_ON_CPU = CPU_EXAMPLES[:1]
_ONE_ON_CPU_EACH = tuple((backend, name) for backend, name in _ON_CPU if name in _ONE_ON_CPU)


def fresh_demo(*words: str) -> Any:
    """Run the demo in a fresh process, without a GPU even if there is one."""
    source = _NO_GPU + _COMMAND.format(words=["demo", *words])
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture
def demo(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that runs the demo in this process, of two examples, one of them on the CPU, or of those named.

    The examples may be changed first.
    """

    def run(
        *words: str,
        names: Sequence[str] = ("vector_add",),
        changed: Callable[[Example], Example] | None = None,
    ) -> SimpleNamespace:
        monkeypatch.setattr(place, "gpu_name", str)
        for module in (command, exhibits):
            monkeypatch.setattr(module, "brought_by", lambda _compiler: {})
        monkeypatch.setattr(examples, "EXAMPLES", tuple(names))
        monkeypatch.setattr(examples, "CPU_EXAMPLES", _ONE_ON_CPU)
        if changed is not None:
            monkeypatch.setattr(examples, "load", lambda name: changed(load(name)))
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = main(["demo", *words])
        return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())

    return run


def rows(done: Any) -> list[dict[str, Any]]:
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The artifacts of a demo, and what it said."""
    folder = tmp_path_factory.mktemp("built")
    done = fresh_demo("--json", "--save", str(folder))
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
    done = fresh_demo("--json", "--artifacts", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    after = rows(done)
    assert {row["sha256"] for row in after} == {row["sha256"] for row in before}
    assert all(row["ok"] and row["compile_seconds"] is None for row in after)


def test_a_changed_artifact_is_red(
    built: tuple[Path, list[dict[str, Any]]], demo: Callable[..., Any], tmp_path: Path
) -> None:
    folder, _ = built
    for backend, name in itertools.product(_BACKENDS, ("vector_add", "affine")):
        shutil.copytree(folder / backend / name, tmp_path / backend / name)
    images = list(tmp_path.rglob("vector_add/*.cubin"))
    assert len(images) == len(_BACKENDS)
    for image in images:
        data = bytearray(image.read_bytes())
        data[-1] ^= 1
        image.write_bytes(data)
    done = demo("--json", "--artifacts", str(tmp_path), names=EXAMPLES)
    assert done.returncode == 1
    wrong = [row for row in rows(done) if not row["ok"]]
    assert sorted((row["backend"], row["name"]) for row in wrong) == sorted(
        (backend, "vector_add") for backend in _BACKENDS
    )
    assert len(rows(done)) == 2 * len(_BACKENDS)
    assert all("CorruptArtifactError" in row["problem"] for row in wrong)


def swapped(name: str, i: int, j: int) -> Callable[[Example], Example]:
    """Return the change that swaps two arguments of the one launch of the example of that name."""

    def changed(example: Example) -> Example:
        if example.name != name:
            return example
        (launch,) = example.program.launches
        args = list(launch.args)
        args[i], args[j] = args[j], args[i]
        program = replace(example.program, launches=(replace(launch, args=tuple(args)),))
        return replace(example, program=program)

    return changed


def test_a_wrong_kernel_on_the_cpu_turns_the_demo_red(demo: Callable[..., Any]) -> None:
    """There it is the kernel itself that runs."""
    done = demo("--json", changed=swapped("cpu_axpy", 1, 2))
    assert done.returncode == 1
    wrong = [row for row in rows(done) if not row["ok"]]
    assert {row["name"] for row in wrong} == {"cpu_axpy"}
    assert all(row["largest_error"] > row["tolerance"] for row in wrong)


def test_two_swapped_maps_turn_the_demo_red(demo: Callable[..., Any]) -> None:
    """Both are 128 bytes, so the build cannot know; the kernel's body reads what the launch delivered."""
    done = demo(names=("vector_add", "hopper_gemm"), changed=swapped("hopper_gemm", 0, 1))
    assert done.returncode == 1
    assert "WRONG" in done.stdout
    every = 2 * len(_BACKENDS) + len(_ONE_ON_CPU_EACH)
    *_, table_end, verdict = done.stdout.splitlines()
    assert f"{every - len(_BACKENDS)} of {every} as the reference says" in verdict
    assert table_end.startswith("hopper_gemm on") or "─" in table_end


def test_a_gpu_is_passed_over_on_demand(demo: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool | None] = []
    choose = command.choose_place

    def chosen(*, simulate: bool | None) -> Any:
        asked.append(simulate)
        return choose(simulate=True)

    monkeypatch.setattr(command, "choose_place", chosen)
    assert demo("--json", "--simulate").returncode == 0
    assert demo("--json").returncode == 0
    assert asked == [True, None]


def test_swapped_parameters_of_different_sizes_are_refused_by_the_build(demo: Callable[..., Any]) -> None:
    done = demo("--json", changed=swapped("vector_add", 0, 3))
    assert done.returncode == 1
    wrong = [row for row in rows(done) if not row["ok"]]
    assert sorted(row["backend"] for row in wrong) == sorted(_BACKENDS)
    assert all(row["problem"].startswith("ParameterMismatchError") for row in wrong)
    assert all(row["launches"] is None for row in wrong)


def test_a_wrong_body_turns_the_demo_red(demo: Callable[..., Any]) -> None:
    def changed(example: Example) -> Example:
        return replace(example, bodies={symbol: lambda _call: None for symbol in example.bodies})

    done = demo("--json", changed=changed)
    assert done.returncode == 1
    assert {(row["backend"], row["name"]) for row in rows(done) if row["ok"]} == set(_ONE_ON_CPU_EACH)


_SOME = ("vector_add", "hopper_gemm", "split_k")


@pytest.fixture
def _smaller_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a backend that can do less than another one."""
    registry = Registry()
    targets = {"cuda": frozenset({Capability.DYNAMIC_SHAPES})}
    registry.register(replace(registry.backend("nvrtc"), name="smaller", targets=targets))
    for module in (trunnion, compilation):
        monkeypatch.setattr(module, "default_registry", lambda: registry)


@pytest.mark.usefixtures("_smaller_backend")
def test_what_a_backend_does_not_declare_it_refuses_and_that_is_not_red(demo: Callable[..., Any]) -> None:
    done = demo("--json", names=_SOME[:2])
    assert done.returncode == 0, done.stderr
    found = {(row["backend"], row["name"]): (row["ok"], row["refused"]) for row in rows(done)}
    assert found["smaller", "vector_add"] == (True, False)
    assert found["smaller", "hopper_gemm"] == (False, True)
    assert found["nvrtc", "hopper_gemm"] == (True, False)


@pytest.mark.usefixtures("_smaller_backend")
def test_a_backend_asked_for_by_name_must_run_everything(demo: Callable[..., Any]) -> None:
    done = demo("--backend", "smaller", names=_SOME)
    assert done.returncode == 1
    able = [name for name in _SOME if load(name).program.plan().requires <= {Capability.DYNAMIC_SHAPES}]
    assert 0 < len(able) < len(_SOME)
    refused = len(_SOME) - len(able)
    assert f"{len(able)} of {len(_SOME)} as the reference says, {refused} refused" in done.stdout


def test_an_unknown_backend_is_one_message(demo: Callable[..., Any]) -> None:
    done = demo("--backend", "nonsense")
    assert done.returncode == 1
    assert done.stderr.startswith("UnknownBackendError: ")
    assert "Traceback" not in done.stderr


def test_no_usable_backend_says_why(demo: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunnion, "default_registry", lambda: Registry([]))
    done = demo()
    assert done.returncode == 1
    assert "pip install 'trunnion[all]'" in done.stderr


def test_a_folder_without_artifacts_is_refused(demo: Callable[..., Any], tmp_path: Path) -> None:
    done = demo("--artifacts", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("ArtifactError: got no artifact")


@pytest.mark.parametrize("backend", ["nv*", "*", "**", "/abs", "..", "[n]vrtc", "."])
def test_the_backend_of_artifacts_is_a_name_and_no_pattern(
    demo: Callable[..., Any], tmp_path: Path, backend: str
) -> None:
    (tmp_path / "nvrtc" / "vector_add").mkdir(parents=True)
    done = demo("--artifacts", str(tmp_path), "--backend", backend)
    assert done.returncode == 1
    assert done.stderr.startswith("ArtifactError: got no artifact")
