"""``trunnion run``: a program, an artifact, an example; what it says, and what it refuses."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, examples
from trunnion.cli import main, place

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("simulator")  # of two devices, which `trunnion run` takes as it finds it


def run(*words: str) -> SimpleNamespace:
    """Run one program in this process, without a GPU even if there is one."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch.object(place, "gpu_name", str):
        status = main(["run", *words])
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


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
    (launch,) = report["launches"]
    assert (launch["kernel"], launch["grid"], launch["ran"]) == ("vector_add", [4, 1, 1], False)
    assert launch["parameters"][3] == (1000).to_bytes(4, "little").hex()
    assert report["outputs"] == [{"name": "c", "dtype": "float32", "shape": [1000]}]
    assert report["trace"]["counts"]["Launched"] == 1
    assert {event["type"] for event in report["trace"]["events"]} == set(report["trace"]["counts"])


def test_an_empty_program_launches_nothing(program: Path) -> None:
    (symbol,) = examples.load("vector_add").program.signature.symbols()
    done = run(str(program), "--simulate", "--json", "--size", f"{symbol.name}=0")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["launches"] == []
    assert "Launched" not in report["trace"]["counts"]


def test_the_report_for_people_says_the_same(program: Path) -> None:
    done = run(str(program), "--simulate")
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
    assert "vector_add has no body, so it computed nothing" in done.stdout
    assert "Launched" in done.stdout


def test_bodies_come_from_a_file(program: Path, tmp_path: Path) -> None:
    bodies = tmp_path / "bodies.py"
    bodies.write_text("def body(call):\n    print('ran')\n\nBODIES = {'vector_add': body}\n", "utf-8")
    done = run(str(program), "--simulate", "--bodies", str(bodies))
    assert done.returncode == 0, done.stderr
    assert "ran" in done.stdout
    assert "computed nothing" not in done.stdout


BODIES = """
def body(call):
    length = call.scalar(3, "int32")
    a, b, c = (call.memory.view(call.pointer(i), "float32", (length,)) for i in range(3))
    c[:] = a + b

BODIES = {"vector_add": body}
"""


def test_arguments_come_from_files_and_outputs_go_to_one(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bodies.py").write_text(BODIES, "utf-8")
    a, b = (np.arange(5, dtype=np.float32) * factor for factor in (1, 10))
    np.save(tmp_path / "a.npy", a)
    np.savez(tmp_path / "rest.npz", b=b)
    words = ["--arg", f"a={tmp_path / 'a.npy'}", "--inputs", str(tmp_path / "rest.npz")]
    outputs = tmp_path / "out.npz"
    words += ["--bodies", str(tmp_path / "bodies.py"), "--outputs", str(outputs)]
    done = run(str(program), "--simulate", "--json", *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["sizes"] == {"n": 5}, "bound by what is given"
    assert report["given"] == ["a", "b"]
    assert report["launches"][0]["ran"]
    assert report["saved"] == {"path": str(outputs), "names": {"c": "c"}}
    assert np.load(outputs)["c"].tolist() == (a + b).tolist()


def test_a_seed_makes_the_contents(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bodies.py").write_text(BODIES, "utf-8")
    saved = []
    for i, seed in enumerate((1, 1, 2)):
        path = tmp_path / f"{i}.npz"
        words = ["--bodies", str(tmp_path / "bodies.py"), "--seed", str(seed), "--outputs", str(path)]
        done = run(str(program), "--simulate", *words)
        assert done.returncode == 0, done.stderr
        saved.append(np.load(path)["c"])
    assert np.array_equal(saved[0], saved[1])
    assert not np.array_equal(saved[0], saved[2])


def test_an_example_keeps_its_outputs_too(tmp_path: Path) -> None:
    done = run("vector_add", "--simulate", "--json", "--seed", "3", "--outputs", str(tmp_path / "o.npz"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["trace"]["counts"]["Launched"] == 1
    assert set(np.load(tmp_path / "o.npz")) == set(report["saved"]["names"].values())


def test_arguments_that_do_not_fit_are_refused_by_the_call(program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(5))
    done = run(str(program), "--simulate", "--json", "--arg", f"a={tmp_path / 'a.npy'}")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["attributes"]["argument"] == "a"
    assert "float64" in error["attributes"]["got"]


def test_what_a_body_raises_is_json_too(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "bodies.py"
    text = "def body(call):\n    print('noise')\n    raise ZeroDivisionError('in a body')\n"
    path.write_text(f"{text}\nBODIES = {{'vector_add': body}}\n", "utf-8")
    done = run(str(program), "--simulate", "--json", "--bodies", str(path))
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert (error["type"], error["message"]) == ("ZeroDivisionError", "in a body")
    assert "bodies.py" in error["traceback"]
    assert "noise" in done.stderr


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    bad = "\x1b]0;owned\x07\u202e\nx"
    p = ProgramBuilder(bad, DeviceCode("cuda", 'extern "C" __global__ void k(const float* x, float* y) {}'))
    x = p.input(bad, "float32", (Symbol(bad),))
    y = p.output(f"{bad}2", "float32", (Symbol(bad),))
    p.launch("k", args=(x, y), grid=1, block=32)
    path = tmp_path / f"{bad}.json"
    path.write_text(p.build().to_json(), "utf-8")
    good = run(str(path), "--simulate", "--target", "sm_90a", "--outputs", str(tmp_path / bad))
    assert good.returncode == 0, good.stderr
    wrong = run(str(path), "--simulate", "--target", "sm_90a", "--arg", f"{bad}=none")
    assert wrong.returncode == 1
    for text in (good.stdout, good.stderr, wrong.stdout, wrong.stderr):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "\\x1b]0;owned\\x07\\u202e\\nx" in good.stdout


def test_an_image_is_nothing_to_run(tmp_path: Path) -> None:
    (tmp_path / "x.cubin").write_bytes(b"\x7fELF")
    done = run(str(tmp_path / "x.cubin"), "--simulate")
    assert done.returncode == 1
    assert "trunnion inspect" in done.stderr


@pytest.mark.parametrize("words", [["--seed", "-1"], ["--seed", "x"], ["--nonsense"], ["--size"]])
def test_mistyped_options_exit_with_2(words: list[str]) -> None:
    done = run("vector_add", "--simulate", "--json", *words)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["type"] == "UsageError"


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
        (["vector_add", "--simulate", "--bodies", ".relative"], "ProgramError: --bodies: got '.relative'"),
        (["vector_add", "--simulate", "--bodies", "a..b"], "ProgramError: --bodies: got 'a..b'"),
        (["vector_add", "--simulate", "--arg", "a=x"], "ArgumentValueError: argument '--arg'"),
        (["vector_add", "--simulate", "--inputs", "x"], "ArgumentValueError: argument '--inputs'"),
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


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "cuda:sm_120"])
def test_a_target_that_the_simulated_device_is_not_is_told_as_that(program: Path, target: str) -> None:
    done = run(str(program), "--simulate", "--target", target)
    assert done.returncode == 1
    said = (
        f"DeviceRequirementError: needs a device of {target.removeprefix('cuda:')}, got a simulated sm_90a; "
    )
    assert done.stderr.startswith(said), done.stderr
    assert "trunnion.sim.start(arch=...)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("target", ["sm_90", "sm_90a"])
def test_a_target_that_the_simulated_device_runs_is_run(program: Path, target: str) -> None:
    assert run(str(program), "--simulate", "--target", target).returncode == 0


@pytest.mark.parametrize("target", ["garbage", "cuda:foo", "sm_9999", "rocm:gfx90a", "Sm 90"])
def test_a_target_that_is_none_is_told_what_one_looks_like(program: Path, target: str) -> None:
    done = run(str(program), "--simulate", "--target", target)
    assert done.returncode == 1
    assert target in done.stderr or target.partition(":")[0] in done.stderr
    assert "sm_90" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_device_compiler_is_offered_as_a_backend(program: Path) -> None:
    """What core itself announces is a device compiler, which nothing has loaded before."""
    done = run(str(program), "--simulate", "--backend", "nonsense")
    assert "UnknownBackendError: unknown backend 'nonsense'; installed: " in done.stderr
    assert "prebuilt" not in done.stderr


def test_who_launches_and_who_compiles_may_both_be_named() -> None:
    words = ("vector_add", "--simulate", "--backend", "cutedsl", "--compiler")
    done = run(*words, "nvrtc", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["backend"] == "cutedsl"
    assert "UnknownBackendError: unknown device compiler 'nonsense'" in run(*words, "nonsense").stderr


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
    assert done.stderr.startswith("ProgramError: ")
    assert "is no program: it is neither text nor a device image" in done.stderr
    path.write_text("[]", "utf-8")
    assert run(str(path), "--simulate").stderr.startswith("ProgramError: ")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of the vector add."""
    folder = tmp_path_factory.mktemp("artifact") / "vector_add"
    trunnion.compile(examples.load("vector_add").program, target="sm_90a").artifact.save(folder)
    return folder


def test_an_artifact_runs_and_keeps_its_digest(program: Path, artifact: Path) -> None:
    first = run(str(program), "--simulate", "--json", "--target", "sm_90a")
    second = run(str(artifact), "--simulate", "--json")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["sha256"] == json.loads(first.stdout)["sha256"]
    assert json.loads(second.stdout)["compile_seconds"] is None


@pytest.mark.parametrize("words", [["--backend", "x"], ["--target", "sm_90a"]])
def test_an_artifact_takes_no_backend_and_no_target(artifact: Path, words: list[str]) -> None:
    done = run(str(artifact), "--simulate", *words)
    assert done.stderr.startswith("ProgramError: an artifact has its backend")


PITCHED = """
def body(call):
    rows, columns, pitch = (call.scalar(i, "int64") for i in (2, 3, 4))
    x = call.memory.view(call.pointer(0), "float32", (rows, columns), (pitch, 1))
    call.memory.view(call.pointer(1), "float32", (rows, columns))[:] = 2 * x

BODIES = {"twice": body}
"""


@pytest.mark.parametrize("words", [[], ["--size", "pitch=11"]])
def test_symbols_among_strides_do_not_change_what_is_computed_on(tmp_path: Path, words: list[str]) -> None:
    code = DeviceCode(
        "cuda", 'extern "C" __global__ void twice(float*, float*, long long, long long, long long) {}'
    )
    p = ProgramBuilder("twice", code)
    m, n, pitch = Symbol("m"), Symbol("n"), Symbol("pitch")
    x = p.input("x", "float32", (m, n), strides=(pitch, 1))
    p.launch("twice", args=(x, p.output("y", "float32", (m, n)), m, n, pitch), grid=1, block=32)
    (tmp_path / "twice.json").write_text(p.build().to_json(), "utf-8")
    (tmp_path / "bodies.py").write_text(PITCHED, "utf-8")
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "x.npy", array)
    words = [*words, "--arg", f"x={tmp_path / 'x.npy'}", "--bodies", str(tmp_path / "bodies.py")]
    done = run(str(tmp_path / "twice.json"), "--simulate", "--outputs", str(tmp_path / "o.npz"), *words)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "o.npz")["y"], 2 * array)
    done = run(str(tmp_path / "twice.json"), "--simulate", *words[-4:], "--size", "pitch=3")
    assert done.returncode == 1
    assert done.stderr.startswith("ArgumentValueError: argument 'x'"), done.stderr
    assert "overlap" in done.stderr


def test_a_refusal_that_was_answered_is_in_the_document_alone(program: Path) -> None:
    report = json.loads(run(str(program), "--simulate", "--json").stdout)["trace"]
    assert report["counts"]["CallRefused"] == len(report["refused"]) > 0
    assert all(row["answered"] == (row["status"] == "INVALID_CONTEXT") for row in report["refused"])
    said = run(str(program), "--simulate").stdout
    assert "efused" not in said


@pytest.mark.parametrize("example", [False, True])
def test_a_launch_is_told_with_its_arguments(program: Path, example: bool) -> None:
    what = "vector_add" if example else str(program)
    report = json.loads(run(what, "--simulate", "--json").stdout)
    (event,) = [one for one in report["trace"]["events"] if one["type"] == "Launched"]
    *tensors, length = event["arguments"]
    assert [one["name"] for one in tensors] == ["a", "b", "c"]
    assert [one["value"].to_bytes(8, "little").hex() for one in tensors] == event["parameters"][:3]
    assert (length["name"], length["type"]) == ("n", "int32")
    assert length["value"].to_bytes(4, "little").hex() == event["parameters"][3]
    lines = [line.replace("│", " ").split() for line in run(what, "--simulate").stdout.splitlines()]
    assert ["launch", "0:", "vector_add"] in lines
    assert ["n", "expression", "int32", str(length["value"])] in lines
    assert ["dynamic", "shared", "memory", "0", "bytes"] in lines
    assert ["a", "tensor", "float32*"] in [line[:3] for line in lines]


def test_a_body_that_did_not_run_is_mentioned(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bodies.py").write_text(
        "from trunnion import sim\nsim.active().register_body('vector_ad', print)\n" + BODIES, "utf-8"
    )
    words = [str(program), "--simulate", "--bodies", str(tmp_path / "bodies.py")]
    done = run(*words)
    report = json.loads(run(*words, "--json").stdout)
    assert done.returncode == 0, done.stderr
    assert "the body of 'vector_ad' did not run" in done.stdout.replace("\n", " ")
    assert "vector_ad" in report["unused_bodies"]
    assert "vector_add" not in report["unused_bodies"]


def test_bodies_are_refused_where_kernels_truly_run(program: Path, tmp_path: Path) -> None:
    """They would be imported, which runs them, and then be of no use to anybody."""
    (tmp_path / "bodies.py").write_text("raise SystemExit('imported')")
    with patch.object(place, "gpu_name", lambda: "GPU 0"), redirect_stdout(io.StringIO()) as out:
        status = main(["run", str(program), "--bodies", str(tmp_path / "bodies.py"), "--json"])
    error = json.loads(out.getvalue())["error"]
    assert (status, error["type"]) == (1, "ArgumentValueError")
    assert error["message"].startswith(
        "argument '--bodies': got it without --simulate, expected --simulate too"
    )
