"""``trunnion run``: a program, an artifact, an example; what it says, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trunnion import DeviceCode, ProgramBuilder, Symbol, examples

if TYPE_CHECKING:
    from pathlib import Path

_NO_GPU = "import torch; torch.cuda.is_available = lambda: False\n"
_COMMAND = "import sys; from trunnion.cli import main; sys.exit(main({words!r}))"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run one program in a fresh process, without a GPU even if there is one."""
    source = _NO_GPU + _COMMAND.format(words=["run", *words])
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vector add as JSON."""
    path = tmp_path_factory.mktemp("program") / "vector_add.json"
    path.write_text(examples.load("vector_add").program.to_json(), "utf-8")
    return path


def test_an_example_is_compared_with_its_reference() -> None:
    done = run("vector_add", "--simulate", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["ok"]
    assert facts["largest_error"] == 0


def test_a_program_is_launched_with_the_sizes_that_are_given(program: Path) -> None:
    (symbol,) = examples.load("vector_add").program.signature.symbols()
    done = run(str(program), "--simulate", "--json", "--size", f"{symbol.name}=1000")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["sizes"] == {symbol.name: 1000}
    assert report["launches"][0].startswith("vector_add: grid (")
    assert report["outputs"][0].endswith("float32 [1000]")


def test_an_empty_program_launches_nothing(program: Path) -> None:
    (symbol,) = examples.load("vector_add").program.signature.symbols()
    done = run(str(program), "--simulate", "--json", "--size", f"{symbol.name}=0")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["launches"] == []


def test_the_report_for_people_says_the_same(program: Path) -> None:
    done = run(str(program), "--simulate")
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
    assert "vector_add: grid" in done.stdout
    assert "it has no body, so it computed nothing" in done.stdout


def test_bodies_come_from_a_file(program: Path, tmp_path: Path) -> None:
    bodies = tmp_path / "bodies.py"
    bodies.write_text("def body(call):\n    print('ran')\n\nBODIES = {'vector_add': body}\n", "utf-8")
    done = run(str(program), "--simulate", "--bodies", str(bodies))
    assert done.returncode == 0, done.stderr
    assert "ran" in done.stdout
    assert "computed nothing" not in done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nonsense", "--simulate"], "ProgramError: got 'nonsense', expected a file"),
        (["vector_add", "--simulate", "--bodies", "no_such_module"], "ProgramError: --bodies: no module"),
        (
            ["vector_add", "--simulate", "--bodies", "json"],
            "ProgramError: --bodies: 'json' has no mapping BODIES",
        ),
        (["vector_add", "--simulate", "--bodies", "missing.py"], "ProgramError: --bodies: cannot read"),
        (["vector_add", "--simulate", "--backend", "nonsense"], "UnknownBackendError: "),
        (["vector_add", "--simulate", "--size", "m"], "ArgumentValueError: argument '--size'"),
        (["vector_add", "--simulate", "--size", "m=3"], "ArgumentValueError: argument '--size'"),
        (["vector_add"], "DeviceRequirementError: needs a CUDA GPU"),
        (["", "--simulate"], "ProgramError: got '', expected a file"),
    ],
)
def test_what_is_wrong_is_one_message(words: list[str], error: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(error), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("value", [2**31, 10**12, 10**20 - 1, -1])
def test_a_size_beyond_its_symbols_bounds_is_one_message(program: Path, value: int) -> None:
    done = run(str(program), "--simulate", "--size", f"n={value}")
    assert done.returncode == 1
    assert done.stderr.startswith("ArgumentValueError: argument '--size'"), done.stderr
    assert str(value) in done.stderr
    assert str(2**31 - 1) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("value", [10**12, 10**18])
def test_tensors_that_no_memory_holds_are_one_message(tmp_path: Path, value: int) -> None:
    code = DeviceCode("cuda", 'extern "C" __global__ void copy(const float* x, float* y) {}')
    p = ProgramBuilder("copy", code)
    n = Symbol("n")
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n, 64))
    p.launch("copy", args=(x, y), grid=1, block=32)
    path = tmp_path / "copy.json"
    path.write_text(p.build().to_json(), "utf-8")
    done = run(str(path), "--simulate", "--size", f"n={value}")
    assert done.returncode == 1
    assert done.stderr.startswith("ArgumentValueError: argument '--size'"), done.stderr
    assert str(value * 260) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("bodies", ["{'vector_add': 5}", "{5: print}"])
def test_a_body_that_is_no_function_is_refused_by_name(program: Path, tmp_path: Path, bodies: str) -> None:
    path = tmp_path / "bodies.py"
    path.write_text(f"BODIES = {bodies}\n", "utf-8")
    done = run(str(program), "--simulate", "--bodies", str(path))
    assert done.returncode == 1
    assert done.stderr.startswith("ProgramError: --bodies: "), done.stderr
    assert ("'vector_add'" if "vector" in bodies else "5") in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff")
    done = run(str(path), "--simulate")
    assert done.stderr.startswith("ProgramError: cannot read")
    path.write_text("[]", "utf-8")
    assert run(str(path), "--simulate").stderr.startswith("ProgramError: ")


def test_an_artifact_runs_and_keeps_its_digest(program: Path, tmp_path: Path) -> None:
    first = run(str(program), "--simulate", "--json")
    source = (
        "import trunnion; from trunnion import sim; sim.start()\n"
        "from trunnion.model.program import KernelProgram\n"
        f"program = KernelProgram.from_json(open({str(program)!r}).read())\n"
        f"trunnion.compile(program).artifact.save({str(tmp_path / 'artifact')!r})"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=120)
    second = run(str(tmp_path / "artifact"), "--simulate", "--json")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["sha256"] == json.loads(first.stdout)["sha256"]


def test_an_artifact_takes_no_backend_and_no_target(tmp_path: Path) -> None:
    done = run(str(tmp_path), "--simulate", "--backend", "x")
    assert done.stderr.startswith("ProgramError: an artifact has its backend")
