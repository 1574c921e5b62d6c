"""Kernels of the CuTeDSL target: what TileLang's text lacks is added by position, and compiling imports no TileLang."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
import tilelang.language as T
import torch

import trunnion
from trunnion import errors
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import PointerParam
from trunnion.model.program import KernelProgram
from trunnion.registry import default_registry
from trunnion_tilelang import from_prim_func, jit
from trunnion_tilelang.compiler_flags import CompilerFlags
from trunnion_tilelang.cutedsl_source import cutedsl_code, cutedsl_launch, helper_modules
from trunnion_tilelang.lowering import lower
from trunnion_tilelang.nodes import DeviceFunction, HostFunction, Module, Seq, Var
from trunnion_tilelang.tir import artifact_module

TARGET = {"kind": "cutedsl", "arch": "sm_90a"}


def copy():
    m = T.dynamic("m")

    @T.prim_func
    def copied(
        A: T.Tensor((m, 128), "float16"), B: T.Tensor((m, 128), "float16"), C: T.Tensor((m,), "float16")
    ):
        with T.Kernel(T.ceildiv(m, 64), threads=128) as bx:
            tile = T.alloc_shared((64, 128), "float16")
            T.copy(A[bx * 64, 0], tile)
            T.copy(tile, B[bx * 64, 0])
            for i in T.Parallel(64):
                C[bx * 64 + i] = tile[i, 0]

    return copied


def module(text, *kernels):
    functions = {
        name: DeviceFunction(
            name,
            name,
            tuple(Var(i, "x", "handle") for i in range(count)),
            (),
            frozenset(),
            cooperative=False,
            pdl=False,
            maps=frozenset(maps),
        )
        for name, count, maps in kernels
    }
    host = HostFunction("main", (), Seq(None, ()), (), callee_allocates=False)
    return Module(host=host, kernels=functions, source=text, language="cutedsl", target="sm_90a")


def annotations(code, name):
    (function,) = (
        node
        for node in ast.parse(code.source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return [ast.unparse(one.annotation) if one.annotation else "" for one in function.args.args]


def test_a_kernel_compiles_and_its_parameters_are_in_the_image():
    program = from_prim_func(copy(), TARGET)
    (kernel,) = trunnion.compile(program, trust=True).artifact.manifest.kernels
    assert [parameter.size for parameter in kernel.parameters] == [16, 128, 16, 4]
    (code,) = program.code
    assert (code.language, code.name, code.target) == ("cutedsl", "copied.py", "sm_90a")
    theirs = artifact_module(lower(copy(), TARGET).artifact).source.splitlines()
    ours = code.source.splitlines()[-len(theirs) :]
    assert [line for line, own in zip(theirs, ours, strict=True) if line != own] == [
        theirs[1]
    ]  # the function's head


def test_compiling_it_imports_no_tilelang():
    """All that it is made from is in the program, so a cache may keep the image."""
    program = from_prim_func(copy(), TARGET)
    plan = program.plan()
    request = CompileRequest(
        code=program.code, kernels=plan.kernels, target=Target("cuda", "sm_90a"), plan=plan
    )
    assert default_registry().compiler("cutedsl").load_compiler()().environment(request) == {}
    for name, text in program.code[0].includes:
        imported = {
            node.module or ""
            for node in ast.walk(ast.parse(text, name))
            if isinstance(node, ast.ImportFrom) and not node.level
        }
        assert not {one for one in imported if one.startswith(("tilelang", "tvm", "torch"))}, name


def test_a_program_from_json_compiles_where_there_is_no_tilelang():
    text = from_prim_func(copy(), TARGET).to_json()
    source = (
        "import sys\nfrom importlib import util\nimport trunnion\n"
        "sys.path[:] = [path for path in sys.path if 'tilelang' not in path and 'tlsite' not in path]\n"
        "program = trunnion.KernelProgram.from_json(sys.stdin.read())\n"
        "assert trunnion.compile(program, trust=True).image('cubin')\n"
        "assert not {'tilelang', 'tvm'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], input=text, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert KernelProgram.from_json(text) == from_prim_func(copy(), TARGET)


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_any_backend_launches_it(simulator, backend):
    def body(call):
        x, y = (call.memory.view(call.view(i, (None,), (1,)).address, "float32", (256,)) for i in range(2))
        y.copy_(x * 2)

    @jit(out_idx=1, target=TARGET, backend=backend)
    def maker():
        n = T.dynamic("n")

        @T.prim_func
        def doubled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
                for i in T.Parallel(128):
                    B[bx * 128 + i] = A[bx * 128 + i] * 2

        return doubled

    simulator.register_body("doubled_kernel_0", body)
    kernel = maker()
    with simulator.torch_mode():
        given = torch.arange(256.0, device="cuda")
        assert torch.equal(kernel(given), given * 2)
    assert kernel.compiled.backend == backend


# The text ---------------------------------------------------------------------------------------------------------


def test_maps_are_annotated_by_their_positions():
    text = (
        "@cute.kernel\ndef one(é_desc, b_desc, a_desc):\n  pass\n"
        "@cute.kernel\ndef two(a_desc,\n    b_desc): pass\n"
    )
    code = cutedsl_code(
        module(text, ("one", 3, {0, 2}), ("two", 2, {1})), CompilerFlags(("--opt-level=2",)), "k"
    )
    said = "cutlass.GridConstant[cuda.TensorMap]"
    assert annotations(code, "one") == [said, "", said]
    assert annotations(code, "two") == ["", said]
    assert code.options == ("--opt-level=2",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def other(x): pass", "got no function 'one' with 1 parameters"),
        ("def one(x, y): pass", "got no function 'one' with 1 parameters"),
        ("def one(x:\n  pass", "TileLang wrote CuTeDSL text that is no Python, in line 1"),
        (f"def one(x):\n  x = {'+'.join(['1'] * 20_000)}", "TileLang wrote CuTeDSL text that is no Python"),
        (f"def one(x):\n  x = {'-' * 20_000}1", "TileLang wrote CuTeDSL text that is no Python"),
    ],
)
def test_a_text_without_its_kernel_is_refused(text, message):
    with pytest.raises(errors.ProgramError, match=message):
        cutedsl_code(module(text, ("one", 1, {0})), CompilerFlags(), "k")


def test_macros_are_refused_and_the_compiler_refuses_other_flags():
    with pytest.raises(errors.ProgramError, match="compile_flags: got macros"):
        from_prim_func(copy(), TARGET, compile_flags="-DX")
    with pytest.raises(errors.ProgramError, match="lineinfo"):
        trunnion.compile(from_prim_func(copy(), TARGET, compile_flags="-lineinfo"), trust=True)


def test_fast_mathematics_is_in_the_text():
    @T.prim_func
    def grown(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = T.exp(A[i])

    (fast,) = from_prim_func(grown, TARGET, {"tl.enable_fast_math": True}).code
    (plain,) = from_prim_func(grown, TARGET).code
    assert "fastmath=True" in fast.source
    assert "fastmath=True" not in plain.source
    assert fast.options == plain.options == ()


def test_a_bare_address_is_refused():
    launch = KernelLaunch("k", (PointerParam("somewhere"),), 1, 32)
    with pytest.raises(errors.ProgramError, match="got the address 'somewhere'"):
        cutedsl_launch(launch)


def test_the_helper_modules_are_those_of_the_installed_tilelang():
    names = [name for name, _ in helper_modules()]
    assert "tilelang_cutedsl/__init__.py" in names
    assert "tilelang_cutedsl/cpasync.py" in names


def test_missing_helper_modules_are_an_error_that_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "tilelang").mkdir()
    (tmp_path / "tilelang" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "tilelang", raising=False)
    with pytest.raises(errors.ProgramError, match=r"install trunnion-tilelang\[tilelang\]"):
        helper_modules()
