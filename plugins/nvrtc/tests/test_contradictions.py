"""What a program says twice, or smuggles past its target, is refused, and so is what is no text at all."""

from __future__ import annotations

from typing import Any

import pytest

from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.options import merge_options
from trunnion_nvrtc.compiler.program import Program
from trunnion_nvrtc.compiler.ptxas_table import PTXAS_OPTIONS

KERNEL = 'extern "C" __global__ void k(float* x) { x[0] = 1; }'
CALLS = 'extern "C" __device__ float h(float); extern "C" __global__ void k(float* x) { x[0] = h(x[0]); }'


def build(*code: DeviceCode, target: str = "sm_90a", **named: Any) -> DeviceImage:
    wanted = CompileRequest(
        code=code,
        kernels=(KernelSignature("k", ()),),
        target=Target.parse(target),
        options=named,
        accepts=("cubin", "ptx"),
    )
    return NvrtcCompiler().compile(wanted)


@pytest.mark.parametrize(
    "word",
    [
        "-arch=sm_80",
        "--gpu-name=sm_80",
        "-ewp",
        "-h",
        "-V",
        "--machine=32",
        "-m=64",
        "-c",
        "-o=x",
        "-e=k",
        "-O9",
    ],
)
def test_ptxas_is_told_nothing_about_its_target(word: str) -> None:
    with pytest.raises(ProgramError, match="supported: opt-level"):
        merge_options((f"--ptxas-options={word}",), {})
    with pytest.raises(ProgramError, match="supported: opt-level"):
        merge_options((), {"ptxas-options": ["-v", word]})


VALUES = {
    "": "",
    "true|false": "=true",
    "[0-4]": "=3",
    "[0-9]|10": "=5",
    "[a-z]{2,8}": "=cg",
    r"\d{1,4}": "=2",
}


@pytest.mark.parametrize(("long", "short", "value"), PTXAS_OPTIONS, ids=lambda one: one)
def test_ptxas_knows_every_option_of_the_table(long: str, short: str, value: str) -> None:
    for name in filter(None, (long, short)):
        word = f"--ptxas-options=--{name}{VALUES.get(value, '=32')}"
        if name == short:
            word = word.replace("=--", "=-", 1)
        image = build(DeviceCode("cuda", KERNEL, options=(word,)))
        assert image.data.startswith(b"\x7fELF")


@pytest.mark.parametrize("target", ["compute_90", "compute_90a", "sm_90a"])
@pytest.mark.parametrize("parts", [(CALLS,), (CALLS, "__device__ int z;")])
def test_a_function_that_nobody_defines(target: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(CompileError, match=r"\bh\b"):
        build(*(DeviceCode("cuda", part) for part in parts), target=target)


def test_what_the_driver_defines_is_in_ptx() -> None:
    prints = '#include "m.h"\nextern "C" __global__ void k(float* x) { printf("%f", x[0]); free(malloc(8)); }'
    code = DeviceCode("cuda", prints, includes=(("m.h", ""),))
    assert b".extern .func" in build(code, target="compute_90").data


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"defines": (("A", "1"), ("A", "2"))}, "code.defines[1]"),
        ({"defines": (("A", None), ("B", "1"), ("A", "2"))}, "code.defines[2]"),
        ({"defines": (("A(x)", "x"), ("A", "x"))}, "code.defines[1]"),
        ({"includes": (("a.h", "int a;"), ("a.h", "int b;"))}, "code.includes[1]"),
    ],
)
def test_what_is_said_twice(more: dict[str, Any], field: str) -> None:
    with pytest.raises(ProgramError) as caught:
        build(DeviceCode("cuda", KERNEL, **more))
    assert caught.value.field == field


def test_the_same_macro_twice_is_once() -> None:
    assert build(DeviceCode("cuda", KERNEL, defines=(("A", "1"), ("A", None), ("A", "1")))).kind == "cubin"


def test_two_names_of_one_option() -> None:
    with pytest.raises(ProgramError) as caught:
        merge_options((), {"rdc": True, "relocatable-device-code": False})
    assert caught.value.field == "options.relocatable-device-code"
    with pytest.raises(ProgramError):
        merge_options((), {"lineinfo": True, "generate-line-info": False})
    same = merge_options(("--rdc=false",), {"rdc": True, "relocatable_device_code": "true"})
    assert same == {"relocatable-device-code": ("true",)}


@pytest.mark.parametrize("target", ["sm_090a", "sm_090", "compute_090a"])
def test_an_architecture_has_one_spelling(target: str) -> None:
    with pytest.raises(ProgramError, match="sm_90a"):
        build(DeviceCode("cuda", KERNEL), target=target)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((None,), "source"),
        ((KERNEL, None), "name"),
        ((KERNEL, "k.cu", {"a": "b"}), "headers"),
        ((KERNEL, "k.cu", 5), "headers"),
        ((KERNEL, "k.cu", ["ab"]), "headers[0]"),
        ((KERNEL, "k.cu", [("a", 5)]), "headers[0]"),
        ((KERNEL, "k.cu", [("a", "b", "c")]), "headers[0]"),
    ],
)
def test_a_program_of_other_types(arguments: tuple[Any, ...], field: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Program(*arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(("options", "field"), [([5], "options[0]"), (5, "options"), ("-G", "options")])
def test_options_of_other_types(options: Any, field: str) -> None:
    with Program(KERNEL) as program, pytest.raises(ProgramError) as caught:
        program.run(options)
    assert caught.value.field == field


def test_a_name_and_an_output_of_other_types() -> None:
    with Program(KERNEL) as program:
        with pytest.raises(ProgramError):
            program.add_name_expression(None)  # type: ignore[arg-type]  # the point of the test
        program.compile(["-arch=sm_90a"])
        with pytest.raises(ProgramError):
            program.get_lowered_name(5)  # type: ignore[arg-type]  # the point of the test
        with pytest.raises(ProgramError, match="no text"):
            _ = program.get_cubin().text
