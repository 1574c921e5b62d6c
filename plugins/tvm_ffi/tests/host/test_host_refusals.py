"""The device compiler of the CPU target: what it refuses, it refuses by name and line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import (
    CompileError,
    ParameterMismatchError,
    ProgramError,
    UnsupportedFeatureError,
)
from trunnion.image.match import match_parameters
from trunnion.model.code import DeviceCode
from trunnion_tvm_ffi.compiler.host_compiler import CpuCompiler

if TYPE_CHECKING:
    from types import SimpleNamespace

# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("int k(const trunnion_block_t*) { return 0; }", "a kernel returns nothing"),
        ("void k(int) {}", "the last parameter of a kernel is `const trunnion_block_t*`"),
        ("void k() {}", "the last parameter of a kernel is `const trunnion_block_t*`"),
        ("void k(trunnion_block_t*) {}", "the last parameter of a kernel is `const trunnion_block_t*`"),
        ("void k(int&, const trunnion_block_t*) {}", "a kernel takes its arguments by value"),
        ("void k(int&&, const trunnion_block_t*) {}", "a kernel takes its arguments by value"),
        (
            "struct S { S(const S&); int x; };\nvoid k(S, const trunnion_block_t*) {}",
            "a type that is trivially copyable",
        ),
        ("void k(const trunnion_block_t*, ...) {}", "a kernel is a function"),
        ("int k;", "a kernel is a function"),
        ("void k(int, const trunnion_block_t*) {}\nvoid k(long, const trunnion_block_t*) {}", "overload"),
        ("template <typename T> void k(T, const trunnion_block_t*) {}", "k"),
        ("void other(const trunnion_block_t*) {}", "k"),
        ("#if 1\nvoid k(const trunnion_block_t*) {}", "unterminated"),
        ("void k(const trunnion_block_t*) {} /*", "unterminated comment"),
        ("namespace n { void k(const trunnion_block_t*) {}", "expected"),
    ],
)
def test_what_is_no_kernel_is_explained(host: SimpleNamespace, cxx: str, text: str, problem: str) -> None:
    with pytest.raises(CompileError) as caught:
        host.kernel(text)
    assert problem in caught.value.log
    assert caught.value.source == f"#include <trunnion/block.h>\n{text}"
    assert caught.value.compiler.startswith(cxx)


def test_a_mistake_is_shown_with_the_programs_lines(host: SimpleNamespace) -> None:
    code = DeviceCode(
        "c++",
        "#include <trunnion/block.h>\nvoid k(float* x, const trunnion_block_t* block) {\n  x[0] = missing;\n}\n",
        name="some/where/mine.cpp",
    )
    with pytest.raises(CompileError) as caught:
        host.compiled(code, kernels={"k": (host.pointer,)})
    assert caught.value.line == 3
    assert "mine.cpp:3:" in caught.value.log
    assert "> 3 |   x[0] = missing;" in str(caught.value)
    assert tempfile.gettempdir() not in caught.value.log


def test_a_32_bit_parameter_for_a_64_bit_value_is_a_mismatch(host: SimpleNamespace) -> None:
    """The most common mistake of all."""
    text = "#include <trunnion/block.h>\nvoid k(float* x, int n, const trunnion_block_t*) {}\n"
    asked = host.request(text, kernels={"k": (host.pointer, host.long)})
    with pytest.raises(ParameterMismatchError) as caught:
        match_parameters(asked.kernels, CpuCompiler().compile(asked))
    assert (caught.value.ordinal, caught.value.actual) == (1, "4 bytes at offset 8")
    fewer = replace(asked.kernels[0], parameters=(host.pointer,))
    with pytest.raises(ParameterMismatchError, match="the program passes 1 arguments"):
        match_parameters([fewer], CpuCompiler().compile(asked))


TEMPLATE = "#include <trunnion/block.h>\ntemplate <int N> void k(int* x, const trunnion_block_t*) {{ *x = N + {0}; }}\n"


@pytest.mark.parametrize("use", ["", "template void k<1>(int*, const trunnion_block_t*);\n"])
def test_a_template_of_two_parts_that_would_be_merged_is_refused(host: SimpleNamespace, use: str) -> None:
    """The linker would take either; a part that does not instantiate it does no harm."""
    parts = (TEMPLATE.format(1), TEMPLATE.format(2) + use)
    fields = {"kernels": {"k<1>": (host.pointer,)}, "parts": (0,)}
    if not use:
        assert host.compiled(*parts, **fields).kernels
        return
    with pytest.raises(ProgramError, match=r"'k<1>' is defined in code\[0\] and in code\[1\]"):
        host.compiled(*parts, **fields)


def test_a_function_of_two_parts_is_refused_by_the_linker(host: SimpleNamespace) -> None:
    text = 'extern "C" int twice() { return 0; }\n'
    with pytest.raises(CompileError, match=r"multiple definition|duplicate symbol"):
        host.compiled(text, text)


@pytest.mark.parametrize(
    ("fields", "field", "problem"),
    [
        ({"target": "sm_90a"}, "target", "expected 'cpu'"),
        ({"target": "cpu:native"}, "target", "expected one of 'cpu'"),
        ({"kernels": {"k; int x": ()}}, "kernels[0].name", "a C++ name"),
        ({"kernels": {"k": ()}, "parts": (1,)}, "kernels[0]", "part 1, of 1"),
        ({"threads": -1}, "options.threads", "expected 0"),
        ({"nothing": 1}, "options.nothing", "expected one of"),
    ],
)
def test_a_wrong_request_is_refused_with_its_field(
    host: SimpleNamespace, fields: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        host.compiled(host.scale, **fields)
    assert caught.value.field == field
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("code", "field"),
    [
        (DeviceCode("cuda", "text"), "code.language"),
        (DeviceCode("cubin", b"\x7fELF"), "code.language"),
        (DeviceCode("c++", "", includes=(("/x.h", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("../x.h", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("a//x.h", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("x\n.h", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("x" * 300, ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("x/" * 3000 + "y.h", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("trunnion/block.h", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("trunnion_glue.hpp", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("kernel.cc", ""),)), "code.includes[0]"),
        (DeviceCode("c++", "", includes=(("x", ""), ("x/y.h", ""))), "code.includes[1]"),
        (DeviceCode("c++", "", includes=(("x/y.h", ""), ("x", ""))), "code.includes[1]"),
        (DeviceCode("c++", "", includes=(("x.h", "1"), ("x.h", "2"))), "code.includes[1]"),
        (DeviceCode("c++", "", defines=(("A B", None),)), "code.defines[0]"),
        (DeviceCode("c++", "", options=("-march=native",)), "code.options"),
    ],
)
def test_code_that_cannot_be_compiled_is_refused_with_its_field(
    host: SimpleNamespace, code: DeviceCode, field: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        host.compiled(code)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "name",
    [
        "",
        "kernel.cu",
        "../up.cc",
        "a b.cc",
        'quo"te.cc',
        "-o",
        "trunnion_glue.cc",
        "x" * 300,
        "new\nline",
        "ü",
    ],
)
def test_any_name_of_the_code_is_only_a_name(host: SimpleNamespace, name: str) -> None:
    code = DeviceCode("c++", host.scale + "\n#warning here", name=name or "kernel.cu")
    image = host.compiled(code, kernels={"fill": ()})
    assert ("up.cc:10" if "up" in name else "kernel.cc:10") in image.log


def test_only_what_the_backend_loads_is_made(host: SimpleNamespace) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        host.compiled(host.scale, accepts=("cubin",))
    assert caught.value.features == ("cubin",)
    assert host.compiled(host.scale, accepts=()).kind == "host-object"
    with pytest.raises(UnsupportedFeatureError, match="without device code"):
        host.compiled()
