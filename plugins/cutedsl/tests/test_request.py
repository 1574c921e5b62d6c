"""What is made of a request before any process starts: names, options, arguments, the host function's text."""

from __future__ import annotations

import ast
import dataclasses
import sys
from types import SimpleNamespace

import pytest

import trunnion
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import BackendUnavailableError, ProgramError, UnsupportedFeatureError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.constant import const
from trunnion.model.dtypes import DTYPES
from trunnion.model.expr import Symbol, ceildiv
from trunnion.model.float_expr import sqrt
from trunnion_cutedsl import release
from trunnion_cutedsl.compiler.answer import read_answer
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.compiler.diagnostics import raise_answer
from trunnion_cutedsl.compiler.dtypes import SPELLINGS
from trunnion_cutedsl.compiler.host_ir import HostIrError, LaunchFacts, read_launches
from trunnion_cutedsl.compiler.kernel_name import read_kernel_name
from trunnion_cutedsl.compiler.module_text import emit_host
from trunnion_cutedsl.compiler.options import read_options
from trunnion_cutedsl.compiler.request import read_request


def program(*, text="", args=lambda p: (), name="k", **fields):
    p = ProgramBuilder("p", DeviceCode("cutedsl", text, **{"name": "kernels.py", **fields}))
    p.launch(name, args=args(p), grid=1, block=32)
    return p.build()


def asked(whole, arch="sm_90a", **fields):
    plan = whole.plan()
    given = {"code": whole.code, "kernels": plan.kernels, "target": Target("cuda", arch), "plan": plan}
    return CompileRequest(**{**given, **fields})


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "function", "constants"),
    [
        ("gemm", "gemm", {}),
        ("gemm()", "gemm", {}),
        (" gemm(tile=128, name='a', flag=True, scale=-0.5, none=None) ", "gemm", {}),
        ("größe(n=1)", "größe", {"n": 1}),
    ],
)
def test_names_with_constants_are_read(text, function, constants):
    found = read_kernel_name(text, "kernels[0].name")
    assert found.function == function
    if "tile" in text:
        constants = {"tile": 128, "name": "a", "flag": True, "scale": -0.5, "none": None}
    assert dict(found.constants) == constants


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gemm<128>",
        "gemm(128)",
        "gemm(**x)",
        "gemm(a=b)",
        "gemm(a=[1])",
        "a.b()",
        "if",
        "gemm(a=1, a=2)",
        "(" * 999,
    ],
)
def test_names_that_are_none_are_refused(text):
    with pytest.raises(ProgramError, match="gemm") as caught:
        read_kernel_name(text, "kernels[0].name")
    assert caught.value.field == "kernels[0].name"


def test_a_name_is_what_python_makes_of_it():
    """It writes a ligature as its letters, wherever an identifier stands."""
    for text in ("\ufb01x", "\ufb01x(tile=1)"):
        assert read_kernel_name(text, "kernels[0].name").function == "fix"


@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "-0x1" + "0" * 300])
def test_a_constant_that_nobody_could_write_down_is_refused(number):
    with pytest.raises(ProgramError, match=r"bits for 'tile', expected at most 1024") as caught:
        read_kernel_name(f"gemm(tile={number})", "kernels[0].name")
    assert caught.value.field == "kernels[0].name"


# Options ----------------------------------------------------------------------------------------------------------


def test_the_caller_s_options_go_over_the_program_s():
    words = ("--opt-level=2", "--generate-line-info")
    assert read_options(words, {}).words == words
    assert read_options(words, {"opt_level": 1}).words == ("--opt-level=1", "--generate-line-info")
    assert read_options(words, {"generate_line_info": False, "seconds": 3}).words == ("--opt-level=2",)
    assert read_options((), {"seconds": 3}).seconds == 3
    assert read_options(words, {"opt_level": 1, "opt-level": 1}).words[0] == "--opt-level=1"
    assert read_options((), {"ptxas_options": "-v -O1"}).words == ("--ptxas-options=-v -O1",)


@pytest.mark.parametrize(
    ("words", "given", "field"),
    [
        (("opt-level=2",), {}, "code.options[0]"),
        (("--opt-level=2", "--opt-level=3"), {}, "code.options[1]"),
        (("--opt-level=4",), {}, "code.options[0]"),
        (("--generate-line-info=1",), {}, "code.options[0]"),
        (("--dump-dir=/",), {}, "code.options[0]"),
        ((), {"keep_cubin": True}, "options.keep_cubin"),
        ((), {"unknown": False}, "options.unknown"),
        ((), {"ptxas_options": "it's"}, "options.ptxas_options"),
        ((), {"seconds": 0}, "options.seconds"),
        ((), {"seconds": True}, "options.seconds"),
        ((), {"opt-level": 1, "opt_level": 2}, "options.opt_level"),
        ((), {"generate_line_info": True, "generate-line-info": False}, "options.generate-line-info"),
        ((), {"generate_line_info": False, "generate-line-info": True}, "options.generate-line-info"),
    ],
)
def test_other_options_are_refused_by_name(words, given, field):
    with pytest.raises(ProgramError) as caught:
        read_options(words, given)
    assert caught.value.field == field


# Requests ---------------------------------------------------------------------------------------------------------


def test_every_type_has_a_spelling_or_none():
    assert set(SPELLINGS) == set(DTYPES)


def test_what_divides_a_dimension_follows_through_products():
    n, k = Symbol("n"), Symbol("k", multiple_of=8)
    whole = program(
        args=lambda p: (
            p.input("shown", "int8", (n, k)).view(),
            p.input("a", "float32", (n * 4, k * 3, k + 16)).view(),
            p.input("b", "float32", (ceildiv(k, 3), 6)).view(),
        )
    )
    shown, a, b = (one for one in read_request(asked(whole)).kernels[0].parameters)
    assert shown.divisors == (1, 8, 8, 1)
    assert a.divisors[:4] == (4, 24, 8, 24 * 8)
    assert (b.divisors[0], b.shape, b.strides) == (1, (None, 6), (6, 1))


def test_constants_are_numbers_and_moved_addresses_are_pointers_of_no_more_than_an_element_s_alignment():
    n = Symbol("n")

    def args(p):
        x = p.input("x", "float16", (n,), alignment=128)
        return (x, x.at(n - 1), const(0.5, "bfloat16"), const(7), const(None))

    kernel = read_request(asked(program(args=args))).kernels[0]
    assert [(one.kind, one.dtype, getattr(one, "alignment", None)) for one in kernel.parameters] == [
        ("pointer", "Float16", 128),
        ("pointer", "Float16", 2),
        ("scalar", "BFloat16", None),
        ("scalar", "Int64", None),
        ("pointer", "Uint8", 1),
    ]


def test_floating_point_expressions_are_numbers_of_their_types():
    n = Symbol("n")

    def args(p):
        p.input("x", "float16", (n,))
        return ((1 / sqrt(n)).cast("float32"), n / 3, (n / 3).cast("bfloat16"))

    kernel = read_request(asked(program(args=args))).kernels[0]
    assert [(one.kind, one.dtype) for one in kernel.parameters] == [
        ("scalar", "Float32"),
        ("scalar", "Float64"),
        ("scalar", "BFloat16"),
    ]


def test_a_constant_that_cutedsl_has_no_number_for_is_refused_by_its_place():
    with pytest.raises(ProgramError) as caught:
        read_request(asked(program(args=lambda _: (const(1, "int32"), const(1j, "complex64")))))
    assert "args[1]" in caught.value.field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"target": Target("cuda", "compute_90a")}, "target"),
        ({"target": Target("cpu")}, "target"),
        ({"plan": None}, "plan"),
        ({"kernels": ()}, "kernels"),
    ],
)
def test_what_it_cannot_compile_for_is_refused(change, field):
    with pytest.raises(ProgramError) as caught:
        read_request(asked(program(), **change))
    assert caught.value.field == field


def test_a_backend_that_loads_no_cubin_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="it makes cubins"):
        read_request(asked(program(), accepts=("ptx",)))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"defines": (("A", "1"),)}, "code.defines"),
        ({"includes": (("a.h", ""),)}, "code.includes[0]"),
        ({"includes": (("trunnion.py", ""),)}, "code.includes[0]"),
        ({"includes": (("../a.py", ""),)}, "code.includes[0]"),
        ({"includes": (("/a.py", ""),)}, "code.includes[0]"),
        ({"includes": (("trunnion/a.py", ""),)}, "code.includes[0]"),
        ({"includes": (("a.py", "x = 1"), ("a.py", "x = 2"))}, "code.includes[1]"),
        ({"includes": (("kernels.py", ""),)}, "code.includes[0]"),
    ],
)
def test_what_python_has_not_is_refused(fields, field):
    with pytest.raises(ProgramError) as caught:
        read_request(asked(program(**fields)))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("scale.py", "scale.py"),
        ("a/b/scale.py", "scale.py"),
        ("kernel.cu", "kernels.py"),
        ("trunnion_host.py", "kernels.py"),
    ],
)
def test_lines_are_named_by_the_code_s_own_name_if_it_is_one(name, file):
    assert read_request(asked(program(name="k", text="", includes=(), defines=()))).file_name == "kernels.py"
    p = ProgramBuilder("p", DeviceCode("cutedsl", "", name=name))
    p.launch("k", args=(), grid=1, block=32)
    assert read_request(asked(p.build())).file_name == file


def test_only_known_imports_leave_an_image_to_be_used_again():
    compiler = CuteDslCompiler()
    known = "import math\nfrom __future__ import annotations\nfrom cutlass.cute import arch\nimport tiles, sizes.one\n"
    includes = (("tiles.py", "import json\n"), ("sizes/one.py", "from . import two\n"))
    assert compiler.environment(asked(program(text=known, includes=includes))) == {}
    strange = asked(program(text=known + "import numpy.linalg\n", includes=includes))
    first, again = (compiler.environment(strange) for _ in range(2))
    assert list(first) == ["imported numpy"]
    assert first != again
    for text, names in {
        "import os, time\n": ["imported os", "imported time"],
        "from importlib import import_module\n": ["imported importlib"],
        "x = __import__('numpy')\n": ["used __import__"],
        "x = open('size').read()\n": ["used open"],
        "exec(compile('import os', '', 'exec'))\n": ["used exec"],
    }.items():
        assert list(compiler.environment(asked(program(text=known + text, includes=includes)))) == names
    held = (("tiles.py", "from os import environ\n"), includes[1])
    assert list(compiler.environment(asked(program(text=known, includes=held)))) == ["imported os"]
    assert compiler.environment(asked(program(text="def broken("))) == {}


def test_a_kernel_is_compiled_for_one_cluster_that_no_call_decides():
    n = Symbol("n")
    p = ProgramBuilder("p", DeviceCode("cutedsl", ""))
    p.scalar("n", "int32", symbol=n)
    p.launch("k", args=(), grid=n, block=32, cluster=n)
    with pytest.raises(ProgramError, match="a cluster that each call decides for 'k'") as caught:
        read_request(asked(p.build()))
    assert caught.value.field == "launches[0].cluster"
    p = ProgramBuilder("p", DeviceCode("cutedsl", ""))
    p.scalar("n", "int32", symbol=n)
    p.launch("k", args=(), grid=2, block=32, cluster=2, pdl=n)
    assert read_request(asked(p.build())).kernels[0].cluster == (2, 1, 1)


# The host function ------------------------------------------------------------------------------------------------


def test_the_host_function_launches_each_kernel_with_what_is_its_own():
    kernels = [
        {
            "parameters": [{"kind": "tensor"}, {"kind": "map"}],
            "block": (64, 2, 1),
            "cluster": (2, 1, 1),
            "cooperative": True,
        },
        {"parameters": [], "block": None, "cluster": None, "cooperative": False},
    ]
    text = emit_host(kernels)
    (function,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    assert [one.arg for one in function.args.args] == ["p0_0", "p0_1", "b1_x", "b1_y", "b1_z", "stream"]
    assert "kernels[0](*arguments[0](p0_0, make_map(0, 1, p0_1)))" in text
    assert "grid=[2, 1, 1], block=[64, 2, 1], cluster=[2, 1, 1], cooperative=True, stream=stream" in text
    assert "block=[b1_x, b1_y, b1_z], stream=stream" in text


class _Operation:
    def __init__(self, text, name="llvm.func"):
        self.text, self.operation = text, SimpleNamespace(name=name)

    def __str__(self):
        return self.text


CONFIG = "!llvm.ptr, !llvm.struct<(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32)>"
LAUNCH = f"""
%1 = llvm.mlir.constant(4096 : i64) : i64
%2 = llvm.mlir.constant(64 : i32) : i32
%3 = llvm.getelementptr %9[0, 2] : (!llvm.ptr) -> {CONFIG}
llvm.store %1, %3 : i64, !llvm.ptr
%4 = llvm.getelementptr %9[0, 1, 0] : (!llvm.ptr) -> {CONFIG}
llvm.store %2, %4 : i32, !llvm.ptr
%5 = llvm.getelementptr %9[0, 1, 1] : (!llvm.ptr) -> {CONFIG}
llvm.store %2, %5 : i32, !llvm.ptr
%6 = llvm.getelementptr %9[0, 1, 2] : (!llvm.ptr) -> {CONFIG}
llvm.store %block, %6 : i32, !llvm.ptr
%7 = llvm.mlir.addressof @kernels_gemm_0 : !llvm.ptr
%8 = llvm.load %7 : !llvm.ptr -> !llvm.ptr
%10 = llvm.call @_cudaLaunchKernelEx(%9, %8, %11) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
"""


def module(*texts):
    return SimpleNamespace(body=SimpleNamespace(operations=[_Operation(text) for text in texts]))


def test_shared_memory_and_block_are_read_from_the_host_s_launches():
    found = read_launches(module("nothing", LAUNCH))
    assert found == [LaunchFacts("gemm_0", 4096, None)]
    assert read_launches(module(LAUNCH.replace("%block", "%2"))) == [
        LaunchFacts("gemm_0", 4096, (64, 64, 64))
    ]


@pytest.mark.parametrize(
    "text", ["", LAUNCH.replace("%1, %3", "%0, %3"), LAUNCH.replace("kernels_", "others_")]
)
def test_a_host_that_is_written_otherwise_is_an_error(text):
    with pytest.raises(HostIrError):
        read_launches(module(text))


def test_two_launching_functions_are_an_error():
    with pytest.raises(HostIrError, match="2 functions"):
        read_launches(module(LAUNCH, LAUNCH))


# What is installed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "is not installed; run: pip install"),
        ("4.6.1", "which has no TensorMap"),
        ("5.0.0", "which this does not know"),
        ("4.7.0", None),
        ("4.12.0.dev3", None),
    ],
)
def test_another_release_is_refused_by_name(monkeypatch, version, said):
    monkeypatch.setattr(release, "_version", lambda _: version)
    assert release.probe_compiler().usable is (said is None)
    if said is None:
        assert release.require_release() == version
        return
    with pytest.raises(BackendUnavailableError, match=said):
        CuteDslCompiler().compile(asked(program()))


def test_a_package_that_cannot_be_imported_is_said_so():
    with pytest.raises(BackendUnavailableError, match="cannot be imported"):
        raise_answer(read_answer({"unusable": "ImportError: libc"}), read_request(asked(program())))


def test_announcing_it_imports_nothing():
    spec = trunnion.default_registry().compiler("cutedsl")
    assert spec.runs_source
    assert spec.languages == ("cutedsl",)
    assert "cutlass" not in sys.modules


def test_an_image_with_other_facts_is_the_same_kernel():
    kernel = trunnion.contract.compiler.ImageKernel("k", "k_0", ())
    assert dataclasses.replace(kernel, dynamic_smem_bytes=5) == kernel


@pytest.mark.parametrize(
    ("extent", "divisor"), [(6, 6), (1 << 20, 1 << 20), (1048579, 1), (3 << 20, 1 << 20), (1048578, 2)]
)
def test_what_is_said_to_divide_a_stride_divides_it(extent, divisor):
    n, m = Symbol("n"), Symbol("m")

    def view(p):
        return (p.input("x", "float32", (n, extent, m)).view(),)

    (parameter,) = read_request(asked(program(text="def k(x): pass", args=view))).kernels[0].parameters
    assert parameter.divisors[3] == divisor
    assert extent % parameter.divisors[3] == 0


GOOD = {"kernels": [{"symbol": "k_0", "dynamic_smem_bytes": 8, "block": None}], "log": "said", "seconds": 0.1}


def test_an_answer_is_read():
    answer = read_answer(GOOD)
    assert [(one.symbol, one.dynamic_smem_bytes) for one in answer.kernels] == [("k_0", 8)]
    assert (answer.log, answer.refused, answer.unusable, answer.failed) == ("said", None, None, None)
    failed = read_answer(
        {
            "failed": {
                "kind": "E",
                "text": "x" * 10**6,
                "lines": [{"file": "k.py", "line": 3, "text": "\ud800"}],
            }
        }
    ).failed
    assert failed.lines == (("k.py", 3, "\\ud800"),)
    assert len(failed.text) < 10**5


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"kernels": 5},
        {"kernels": [5]},
        {"kernels": [{}]},
        {"kernels": [{"symbol": "k_0", "dynamic_smem_bytes": "zz"}]},
        {"kernels": [{"symbol": "k_0", "dynamic_smem_bytes": -1}]},
        {"refused": [1]},
        {"unusable": None},
        {"failed": 3},
        {"failed": {"kind": "A", "text": "", "lines": [{"file": "k.py", "line": 1e99, "text": ""}]}},
        {"failed": {"kind": "A", "text": "", "lines": [{"file": "k.py", "line": -5, "text": ""}]}},
        {"failed": {"kind": "A", "text": "", "lines": [{"file": 1}]}},
    ],
    ids=str,
)
def test_an_answer_that_is_none_is_refused(head):
    with pytest.raises(ProgramError, match=r"^answer"):
        read_answer(head)
