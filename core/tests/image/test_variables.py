"""Module variables in an image: what a cubin and PTX say of them, and what is compared with a program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trunnion.contract.compiler import CompileRequest, DeviceImage, ImageVariable
from trunnion.contract.spec import Target
from trunnion.errors import CorruptArtifactError, ProgramError, UnknownVariableError, VariableMismatchError
from trunnion.image import (
    SyntheticKernel,
    SyntheticVariable,
    VariableInfo,
    read_cubin,
    read_ptx,
    synthetic_cubin,
)
from trunnion.image.elf import SYM, read_elf
from trunnion.image.match import match_variables
from trunnion.image.prebuilt import PrebuiltCompiler, PrebuiltImage
from trunnion.image.variables import image_variables
from trunnion.model.builder import ProgramBuilder
from trunnion.model.plan import VariableSlot
from trunnion.model.struct import array, leaves, struct

KERNELS = (SyntheticKernel(name="k"), SyntheticKernel(name="shared", static_smem_bytes=16))
VARIABLES = (
    SyntheticVariable(name="plain", nbytes=4),
    SyntheticVariable(name="filter", nbytes=12, constant=True, init=b"twelve bytes"),
    SyntheticVariable(name="_ZN2ns7counterE", nbytes=5, init=b"hello"),
    SyntheticVariable(name="zeros", nbytes=2, constant=True),
)
TARGET = Target("cuda", "sm_90a")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_the_reader_finds_what_was_written(arch: str) -> None:
    info = read_cubin(synthetic_cubin(KERNELS, arch, VARIABLES))
    assert info.variables == tuple(one.info() for one in VARIABLES)
    assert info.kernels == tuple(one.info(arch) for one in KERNELS)
    found = info.variable("filter")
    assert found is not None
    assert (found.nbytes, found.constant, found.managed, found.init) == (12, True, False, b"twelve bytes")
    assert info.variable("filte") is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": ""}, "name: "),
        ({"nbytes": 0}, "nbytes: 0, where 1 to"),
        ({"init": b"abc"}, "init: 3 bytes, where 4 are allowed"),
    ],
)
def test_what_no_image_can_hold_is_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ProgramError, match=problem):
        replace(VARIABLES[0], **fields)  # type: ignore[arg-type]  # each test's own field
    with pytest.raises(ProgramError, match="variables: two variables, or a kernel and a variable"):
        synthetic_cubin(KERNELS, "sm_90a", [SyntheticVariable(name="k", nbytes=1)])


def test_a_variable_beyond_its_section_is_corrupt() -> None:
    data = bytearray(synthetic_cubin(KERNELS, "sm_90a", VARIABLES))
    elf = read_elf(bytes(data))
    last = elf.symbols()[-1]
    place = elf.symbol_table().offset + last.index * SYM.size
    name, kind, other, section, value, _ = SYM.unpack_from(data, place)
    SYM.pack_into(data, place, name, kind, other, section, value, 1 << 40)
    with pytest.raises(CorruptArtifactError, match=r"variable 'zeros'.*1099511627776 bytes at"):
        read_cubin(bytes(data))


PTX = """.version 8.0
.target sm_90
.address_size 64
.const .align 4 .b8 filter[256];
.visible .global .align 4 .u32 counter = 5;
.global .attribute(.managed) .align 4 .u32 man;
.global .v4 .f32 lanes[2][3];
.visible .const .align 8 .u8 spaced [ 7 ] = {1, 2};
.global .u32 unsized[] = {1, 2};
.extern .global .u32 elsewhere;
.shared .align 4 .b8 scratch[64];
.visible .entry k() { .reg .b32 r; ret; }
"""


def test_ptx_says_their_sizes_where_it_says_extents() -> None:
    assert read_ptx(PTX).variables == (
        VariableInfo(name="filter", nbytes=256, constant=True),
        VariableInfo(name="counter", nbytes=4),
        VariableInfo(name="man", nbytes=4, managed=True),
        VariableInfo(name="lanes", nbytes=96),
        VariableInfo(name="spaced", nbytes=7, constant=True),
        VariableInfo(name="unsized", nbytes=None),
    )


def test_an_image_s_variables_go_by_their_exact_names() -> None:
    info = read_ptx(PTX)
    wanted = [("ns::counter", "counter"), ("unsized", "unsized")]
    assert image_variables(info, wanted) == (
        ImageVariable("ns::counter", "counter", 4),
        ImageVariable("unsized", "unsized", None),
    )
    with pytest.raises(UnknownVariableError, match="did you mean 'filter'") as caught:
        image_variables(info, [("filtr", "filtr")])
    assert caught.value.variables[:2] == ("filter", "counter")
    with pytest.raises(ProgramError, match=r"variables\[0\].name: 'man' is __managed__"):
        image_variables(info, [("man", "man")])


def slot(name: str, nbytes: int) -> VariableSlot:
    return VariableSlot(index=0, name=name, part=0, nbytes=nbytes, init=None)


def image(*variables: ImageVariable) -> DeviceImage:
    return DeviceImage(kind="cubin", data=b"", target=TARGET, kernels=(), variables=variables)


def test_sizes_are_compared_where_the_image_says_them() -> None:
    match_variables([slot("v", 8)], image(ImageVariable("v", "v", 8)))
    match_variables([slot("v", 8)], image(ImageVariable("v", "v", None)))
    with pytest.raises(VariableMismatchError) as caught:
        match_variables([slot("v", 8)], image(ImageVariable("v", "v", 4)))
    assert (caught.value.variable, caught.value.declared, caught.value.actual) == ("v", "8 bytes", "4 bytes")


@pytest.mark.parametrize("found", [(), ("w",), ("v", "w")])
def test_an_image_with_others_is_refused(found: tuple[str, ...]) -> None:
    with pytest.raises(ProgramError, match="in the request's order") as caught:
        match_variables([slot("v", 8)], image(*(ImageVariable(name, name, 8) for name in found)))
    assert caught.value.field == "image.variables"


def test_a_prebuilt_image_serves_variables_by_their_exact_names() -> None:
    cubin = PrebuiltImage(synthetic_cubin(KERNELS, "sm_90a", VARIABLES))
    p = ProgramBuilder("p", cubin.code)
    filt = p.variable("filter", "float32", (3,), init=1.0, code=cubin.code)
    p.copy(filt, p.input("x", "float32", (3,)))
    within = struct(("filters", array(struct(("one", filt)))))
    p.launch("k", (within,), 1, 1)
    program = cubin.serve(p.build())
    assert program.variables[0].code is None
    assert [*leaves(program.launches[0].args[0])] == [program.variables[0]]
    assert program.copies[0].variable is program.variables[0]
    plan = program.plan()
    request = CompileRequest(code=program.code, kernels=plan.kernels, variables=plan.variables, target=TARGET)
    made = PrebuiltCompiler().compile(request)
    assert made.variables == (ImageVariable("filter", "filter", 12),)
    assert made.symbols == ("k", "filter")
