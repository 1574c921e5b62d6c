"""Operators in C++: a library of torch's stable ABI, beside a launcher that knows nothing of torch."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, examples, symbols
from trunnion.errors import ArgumentValueError, ArtifactError, CorruptArtifactError, UnsupportedFeatureError
from trunnion.operators.library import OPERATOR, load_operator, operator_files
from trunnion.operators.schema import OperatorName, OperatorSchema
from trunnion.toolchain.host_headers import ffi_files
from trunnion.toolchain.torch_files import find_torch_files

HOST = Path(__file__).with_name("host_program") / "model.cc"


@pytest.mark.parametrize("example", examples.CPU_EXAMPLES)
def test_torch_finds_nothing_wrong_with_an_example(example, name):
    one = examples.load(example)
    op = trunnion.torch_op(trunnion.compile(one.program), name, cpp=True)
    for inputs in (one.inputs, *one.edges):
        args = inputs(torch.Generator().manual_seed(0), "cpu")
        results = op(*args)
        assert one.largest_error(results, args) <= one.tolerance
    torch.library.opcheck(op.default, args)
    made = results if isinstance(results, tuple) else (results,)
    names = [argument.name for argument in op.out._schema.arguments if argument.kwarg_only]
    outs = dict(zip(names, map(torch.empty_like, made), strict=True))
    torch.library.opcheck(op.out, args, outs)
    op.out(*args, **outs)
    assert one.largest_error(tuple(outs.values()), args) <= one.tolerance
    assert {out._version for out in outs.values()} == {1}


def test_every_kind_of_argument_reaches_the_launcher(compiled, name):
    op = trunnion.torch_op(compiled("rows"), name, cpp=True)
    python = compiled("rows")
    bias = torch.arange(5.0)
    for x in (torch.randn(3, 5), torch.randn(5, 3).t()):
        for rest in ((bias, 2, True), (None, 0, False)):
            for got, want in zip(op(x, *rest), python(x, *rest), strict=True):
                assert torch.equal(got, want)
                assert got.stride() == want.stride()
            torch.library.opcheck(op.default, (x, *rest))


def test_an_address_and_bytes_reach_the_launcher(compiled, name):
    op = trunnion.torch_op(compiled("clamp"), name, cpp=True)
    x, weights = torch.tensor([-3.0, 0.5, 3.0]), torch.tensor([1, 2, 3], dtype=torch.int32)
    limits = [*struct.pack("<ff", -1, 1)]
    assert op(x, limits, None).tolist() == [-1.0, 0.5, 1.0]
    assert op(x, limits, weights.data_ptr()).tolist() == [-1.0, 1.0, 3.0]
    expected = (
        "ValueError: argument 'range': got a number that is no byte, expected bytes, as a list: 0 to 255 each"
    )
    with pytest.raises(RuntimeError, match=expected):
        op(x, [*limits[:-1], 256], None)
    with pytest.raises(RuntimeError, match="ValueError: argument 'range'"):
        op(x, limits[:-1], None)


def test_what_it_writes_into_is_counted(compiled, name):
    op = trunnion.torch_op(compiled("add_into"), name, cpp=True)
    x, total = torch.ones(4), torch.zeros(4)
    assert op(x, total) is None
    assert (total.tolist(), total._version) == ([1.0] * 4, 1)
    torch.library.opcheck(op.default, (x, total))


def test_gradients_batches_graphs_and_empty_tensors(compiled, name):
    op = trunnion.torch_op(compiled("square"), name, cpp=True, backward=compiled("twice"))
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, x)
    assert torch.equal(torch.vmap(op)(x.detach().view(2, 2)), x.detach().view(2, 2) ** 2)
    assert torch.compile(op, fullgraph=True, backend="aot_eager")(x.detach()).tolist() == op(x).tolist()
    assert op(torch.empty(0).double()).shape == (0,)
    assert op(torch._neg_view(torch.ones(2).double())).tolist() == [1.0, 1.0]


def test_a_refusal_says_whose_it_is_in_the_launchers_words(compiled, name):
    op = trunnion.torch_op(compiled("square"), name, cpp=True)
    with pytest.raises(RuntimeError, match=f"{name}: TypeError: argument 'x': got a tensor of float32"):
        op(torch.ones(3))
    with pytest.raises(RuntimeError, match="ValueError: argument 'x': got 2 dimensions"):
        op(torch.ones(3, 3).double())
    assert op(torch.ones(3).double()).tolist() == [1.0] * 3


def test_python_and_other_libraries_find_their_allocator_again(compiled, name):
    op, python = trunnion.torch_op(compiled("square"), name, cpp=True), compiled("square")
    x = torch.full((3,), 2.0).double()
    for call in (python, op, python, op):
        assert call(x).tolist() == [4.0] * 3


LOADING = """
import sys, torch, tvm_ffi
torch.ops.load_library(sys.argv[1])
op = torch.ops.elsewhere.square
assert op(torch.full((3,), 2.0).double()).tolist() == [4.0] * 3
assert "trunnion" not in sys.modules
"""


def test_a_folder_is_an_operator_where_there_is_no_trunnion(compiled, tmp_path, forked_python):
    made = trunnion.export_torch_op(compiled("square"), "elsewhere::square", tmp_path / "square")
    assert {file.name for file in made.parent.iterdir()} == {"launcher.so", "operator.so"}
    again = trunnion.export_torch_op(compiled("square"), "elsewhere::square", tmp_path / "again")
    assert again.read_bytes() == made.read_bytes()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = forked_python(LOADING, made, env=environment)
    assert done.returncode == 0, done.stderr
    with pytest.raises(ArtifactError, match="something is at"):
        trunnion.export_torch_op(compiled("square"), "elsewhere::square", tmp_path / "square")


def test_the_launcher_asks_for_nothing_of_torchs(compiled, tmp_path):
    made = trunnion.export_torch_op(compiled("square"), "elsewhere::square", tmp_path / "square")
    needed = [_needed(made.with_name(name)) for name in ("launcher.so", OPERATOR)]
    assert "libtorch_cpu.so" not in needed[0]
    assert {"libtorch_cpu.so", "libtvm_ffi.so"} <= needed[1]
    assert not any(
        str(find_torch_files().folder).encode() in file.read_bytes() for file in made.parent.iterdir()
    )


def _needed(file):
    done = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True)
    return {line.partition("[")[2].strip("]") for line in done.stdout.splitlines() if "NEEDED" in line}


# One model is compiled, of a few elements: headers compiled for the next one, and vectors, only take time.
QUICKLY = {
    "aot_inductor.precompile_headers": False,
    "cpp_cache_precompile_headers": False,
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp.vec_isa_ok": False,
    "compile_threads": 1,
}


@pytest.mark.filterwarnings("ignore")  # of torch's own compiler
def test_a_program_in_cpp_runs_what_torch_compiled_ahead_of_time(compiled, tmp_path):
    made = trunnion.export_torch_op(compiled("square"), "trunnion_aoti::square", tmp_path / "square")
    op = trunnion.torch_op(compiled("square"), "trunnion_aoti::square", cpp=True)

    class Model(torch.nn.Module):
        def forward(self, x):
            return op(x + 1) * 2

    sizes = ({0: torch.export.Dim("n")},)
    exported = torch.export.export(Model(), (torch.ones(8).double(),), dynamic_shapes=sizes)
    package = torch._inductor.aoti_compile_and_package(
        exported, package_path=str(tmp_path / "model.pt2"), inductor_configs=QUICKLY
    )
    home = Path(torch.__file__).parent
    folders = [home / "include", home / "include" / "torch" / "csrc" / "api" / "include"]
    libraries = home / "lib"
    ffi = Path(ffi_files("tests").library).parent
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            *(f"-I{folder}" for folder in folders),
            HOST,
            "-o",
            tmp_path / "host",
            f"-L{libraries}",
            "-ltorch",
            "-ltorch_cpu",
            "-lc10",
            f"-Wl,-rpath,{libraries}",
        ],
        check=True,
    )
    done = subprocess.run(
        [tmp_path / "host", made, package],
        env={**os.environ, "LD_LIBRARY_PATH": str(ffi)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "5 elements\n"), done.stderr


def test_a_launcher_that_is_python_is_refused_by_name(tmp_path, name):
    program = trunnion.compile(examples.load("vector_add").program, "nvrtc", target="sm_90a")
    for call in (
        lambda: trunnion.torch_op(program, name, cpp=True),
        lambda: trunnion.export_torch_op(program, name, tmp_path / "add"),
    ):
        with pytest.raises(UnsupportedFeatureError) as caught:
            call()
        assert caught.value.features == ("an operator in C++: it is Python",)
    assert not (tmp_path / "add").exists()


TURN = """
#include <trunnion/block.h>
struct alignas(16) C { double r, i; };
void turn(float*, C, const trunnion_block_t*) {}
"""


def test_a_complex_number_is_refused_by_name(name):
    (n,) = symbols("n")
    p = ProgramBuilder("turn", DeviceCode("c++", TURN))
    x, c = p.input("x", "float32", (n,), access="read_write"), p.scalar("c", "complex128")
    p.launch("turn", args=(x, c), grid=1, block=1)
    program = trunnion.compile(p.build())
    with pytest.raises(UnsupportedFeatureError, match="'c' is complex128"):
        trunnion.torch_op(program, name, cpp=True)


def test_two_programs_are_no_operator_in_cpp(compiled, name):
    with pytest.raises(ArgumentValueError, match="2 programs for cpu and cpu"):
        trunnion.torch_op([compiled("square"), compiled("square")], name, cpp=True)


def test_a_library_whose_launcher_is_none_says_so(compiled, name):
    named = OperatorName.of(name)
    program = compiled("square")
    files = operator_files(program, named, OperatorSchema(program.program.signature, {}), "CPU")
    with pytest.raises(CorruptArtifactError, match="cannot load its launcher"):
        load_operator({**files, "launcher.so": b"no library"}, named, "tests")


def test_what_is_no_library_is_an_error_of_ours(compiled, name):
    with pytest.raises(CorruptArtifactError, match="cannot be loaded"):
        load_operator({OPERATOR: b"no library"}, OperatorName.of(name), "tests")
