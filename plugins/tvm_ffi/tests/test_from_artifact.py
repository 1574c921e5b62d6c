"""A built program taken up again where there is no compiler; and its module, called as anybody's."""

from __future__ import annotations

import sys

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, ceildiv, errors, examples, symbols
from trunnion_tvm_ffi import from_module

pytestmark = pytest.mark.tvm_ffi_abi

SOURCE = """#include <trunnion/block.h>
extern "C" void affine(const float* x, double by, float* y, int64_t n, const trunnion_block_t* block) {
  for (int64_t i = block->index[0]; i < n; i += block->grid[0]) y[i] = x[i] * (float)by + 1;
}
"""
LOAD = """
import subprocess, sys
import torch, trunnion, tvm_ffi
def refuse(*_, **__):
    raise AssertionError("a process was started")
subprocess.Popen = refuse
with trunnion.CompiledProgram.from_artifact(sys.argv[1]) as program:
    print(type(program).__name__, program.target, program(torch.arange(3.0), 2.0).tolist())
"""


@pytest.fixture(scope="module")
def affine(tmp_path_factory):
    """Return a program for the CPU, and the folder of its artifact."""
    (n,) = symbols("n")
    p = ProgramBuilder("affine", DeviceCode("c++", SOURCE))
    x, by = p.input("x", "float32", (n,)), p.scalar("by", "float64")
    y = p.output("y", "float32", (n,))
    p.launch("affine", (x, by, y, n), grid=ceildiv(n, 2), block=1)
    folder = tmp_path_factory.mktemp("affine") / "artifact"
    program = p.build()
    with trunnion.compile(program, "tvm_ffi", target="cpu") as compiled:
        compiled.artifact.save(folder)
    return program, folder


def test_it_runs_where_there_is_no_compiler(affine, forked_python):
    environment = {"PATH": "", "CXX": "none", "CC": "none", "PYTHONPATH": ":".join(sys.path)}
    done = forked_python(LOAD, affine[1], env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split(maxsplit=2) == ["CompiledProgram", "cpu", "[1.0, 3.0, 5.0]\n"]


def test_a_launcher_for_a_device_is_taken_up_too(simulator, tmp_path, monkeypatch):
    example = examples.load("vector_add")
    with trunnion.compile(example.program, "tvm_ffi", target="sm_90a") as compiled:
        compiled.artifact.save(tmp_path / "artifact")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "none")
    simulator.register_body("vector_add", example.bodies["vector_add"])
    with trunnion.CompiledProgram.from_artifact(tmp_path / "artifact") as again, simulator.torch_mode():
        assert again.plan.symbol_map == {"n": (0, 0, 0)}
        a = torch.ones(10, device="cuda")
        assert again(a, a).tolist() == [2] * 10


def test_our_own_module_is_called_as_anybody_s(affine):
    program, folder = affine
    path = folder / "launcher.so"
    x = torch.arange(5.0)
    main = from_module(path, signature=program.signature, returns="callee")
    assert torch.equal(main(x, 3.0), 3 * x + 1)
    into = from_module(path, "main_out", program.signature)
    out = torch.zeros(5)
    assert into(x, 3.0, out=out) is out
    assert torch.equal(out, 3 * x + 1)
    assert torch.equal(from_module(path)(x, 3.0), 3 * x + 1)
    with pytest.raises(errors.ArgumentTypeError) as caught:
        main(x.double(), 3.0)
    assert caught.value.argument == "x"
    with pytest.raises(TypeError, match="float64") as caught:
        from_module(path)(x.double(), 3.0)
    assert any("main" in note for note in caught.value.__notes__)
