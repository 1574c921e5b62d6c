"""Whole programs in TileLang's own idiom, which know nothing of trunnion, run by ``python -m trunnion_tilelang``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tilelang
import torch

from trunnion.sim.trace import Launched
from trunnion_tilelang.__main__ import main

PROGRAMS = Path(__file__).parent / "programs"
BACKENDS = ("nvrtc", "tvm_ffi", "cutedsl")


def vector(call, ordinal, dtype="float32"):
    return call.memory.view(call.pointer(ordinal), dtype, (call.grid[0] * 128,))


def add(call):
    vector(call, 2).copy_(vector(call, 0) + vector(call, 1))


def positive(call):
    vector(call, 1, "float16").copy_(vector(call, 0, "float16").clamp(min=0))


def gemm(call):
    """The product by the tiles that each block would load."""
    a, b = call.tensor_map(0), call.tensor_map(1)
    (rows, depth), (_, columns) = a.box_shape, b.box_shape
    c = call.memory.view(call.pointer(2), "float16", (256, 256))
    for y in range(0, 256, rows):
        for x in range(0, 256, columns):
            tiles = [a.load((k, y)).float() @ b.load((x, k)).float() for k in range(0, 128, depth)]
            c[y : y + rows, x : x + columns] = sum(tiles).half()


def softmax(call):
    rows = call.grid[0]
    x, y = (call.memory.view(call.pointer(i), "float32", (rows, 32 * rows)) for i in range(2))
    y.copy_(torch.softmax(x, dim=-1))


@pytest.fixture
def cuda(simulator, monkeypatch):
    """A simulated device for programs that name none, and bodies for their kernels."""
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "sm_90a")
    for body in (add, positive, gemm, softmax):
        simulator.register_body(f"{body.__name__}_kernel", body)
    with simulator.torch_mode():
        yield simulator


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["vector_add.py", "--length", "1024"], "1024 sums are right"),
        (["matmul.py"], "the product is right"),
        (["softmax.py"], "every row is right"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_program_runs_as_it_is(cuda, capsys, monkeypatch, backend, program, said):
    arguments, path = list(sys.argv), list(sys.path)
    try:
        main(["--backend", backend, str(PROGRAMS / program[0]), *program[1:]])
    finally:
        sys.modules.pop("activations", None)
    assert capsys.readouterr().out == f"{said}\n"
    assert (sys.argv, sys.path) == (arguments, path)
    assert tilelang.jit is vars(tilelang)["jit"]
    assert any(isinstance(event, Launched) for event in cuda.trace)


def test_a_program_may_be_a_module(cuda, capsys, monkeypatch):
    monkeypatch.chdir(PROGRAMS)
    main(["--backend", "nvrtc", "--no-cache", "-m", "vector_add", "--length", "256"])
    assert capsys.readouterr().out == "256 sums are right\n"


def test_what_a_program_raises_leaves_as_it_is_and_the_switch_is_off(tmp_path):
    (tmp_path / "broken.py").write_text("raise KeyError('mine')\n")
    with pytest.raises(KeyError, match="mine"):
        main([str(tmp_path / "broken.py")])
    assert tilelang.jit is vars(tilelang)["jit"]


def test_a_program_may_go_to_another_folder_before_it_says_its_kernels(cuda, capsys, monkeypatch, tmp_path):
    text = (PROGRAMS / "vector_add.py").read_text("utf-8")
    head, found, rest = text.partition("import tilelang\n")
    assert found
    (tmp_path / "wanders.py").write_text(f"{head}import os\n\nos.chdir('/')\n{found}{rest}")
    monkeypatch.chdir(tmp_path)
    main(["--backend", "nvrtc", "--no-cache", "wanders.py", "--length", "256"])
    assert capsys.readouterr().out == "256 sums are right\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: SCRIPT"),
        (["nowhere.py"], "there is no file nowhere.py"),
        (["-m"], "the following arguments are required: SCRIPT"),
    ],
)
def test_a_command_that_cannot_be_followed_is_an_error_of_usage(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_the_command_ends_as_the_program_does(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys, tilelang\nprint(__name__, sys.argv[1:], tilelang.jit.__wrapped__.__name__)\nsys.exit(3)\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "trunnion_tilelang",
            str(tmp_path / "program.py"),
            "--",
            "--backend",
            "its own",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (3, "__main__ ['--', '--backend', 'its own'] jit\n"), done.stderr
