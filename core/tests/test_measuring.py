"""Layouts that a device compiler is asked for: read from an image with no device, refused where they do not fit."""

from __future__ import annotations

import re
from typing import Any

import pytest

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Registry, Symbol, array, const, measured, struct
from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel, ImageParameter
from trunnion.contract.spec import CompilerSpec, Target
from trunnion.errors import (
    ArgumentTypeError,
    CompileError,
    CorruptArtifactError,
    DeviceRequirementError,
    ProgramError,
    UnsupportedFeatureError,
)
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.model.struct import Array, Struct, layout_of

N = Symbol("n")
SOURCE = """
namespace ns {
struct alignas(64) Map { char opaque[128]; };
struct Base { int tag; };
template <int N> struct Inner { short flags[N]; long long rows; };
template <int N, typename T> struct Params : Base {
  const float* x; char skipped; T n; Map map; Inner<N> inner[2];
#ifdef WIDE
  alignas(256) char wide;
#endif
};
#pragma pack(push, 1)
struct Packed { char first; long long second; };
#pragma pack(pop)
}
extern "C" __global__ void f(const __grid_constant__ ns::Params<3, int> p, float* y) { *y = p.n; }
"""
TYPE = "ns::Params<3, int>"
CODE = DeviceCode("cuda", SOURCE, target="sm_90a")


def inner(rows: Any = N) -> Struct:
    return struct(("rows", rows), ("flags", array(*[N.cast("int16")] * 3)))


def test_a_type_is_measured_down_through_structs_and_arrays() -> None:
    p = ProgramBuilder("p", CODE)
    x, a = p.input("x", "float32", (N,)), p.input("a", "float16", (N, 64))
    value = struct(
        ("n", N.cast("int32")), ("x", x), ("map", a.tiled((8, 64))), ("inner", array(inner(), inner(N + 1)))
    )
    found = measured(value, TYPE, CODE)
    assert found.offsets == (20, 8, 64, 192)
    assert (found.nbytes, found.alignment) == (256, 64)
    assert [name for name, _ in found.fields] == [name for name, _ in value.fields]
    assert found.fields[3][1] == array(
        *(measured(one, "ns::Inner<3>", CODE) for one in (inner(), inner(N + 1)))
    )
    assert measured(inner(), "ns::Inner<3>", CODE).offsets == (8, 0)
    p.launch("f", args=(found, p.output("y", "float32", ())), grid=1, block=1)
    built = trunnion.compile(p.build(), target="sm_90a")
    assert built.kernels["f"].parameters[0].size == 256


def test_elements_of_an_array_may_name_different_members_if_all_say_how_large_they_are() -> None:
    """By C's rules they are of other sizes; each is measured by the members that it names itself."""
    code = DeviceCode(
        "cuda", "struct E { int a; float b; double c; }; struct T { E e[3]; };", target="sm_90a"
    )
    a, b, c = ("a", N.cast("int32")), ("b", const(1.0, "float32")), ("c", const(1.0, "float64"))
    with pytest.raises(ProgramError, match=r"say nbytes= and alignment=, or ask measured\(\)") as caught:
        array(struct(a), struct(b), struct(c))
    assert caught.value.field == "array[2]"
    equal: dict[str, Any] = {"nbytes": 16, "alignment": 8}
    alike = array(*(struct(one, **equal) for one in (a, b, c)))
    each = array(*(measured(struct(one), "E", code) for one in (a, b, c)))
    for value in (alike, each):
        found = measured(struct(("e", value)), "T", code)
        elements = found.fields[0][1]
        assert isinstance(elements, Array)
        assert [one.offsets for one in elements.values if isinstance(one, Struct)] == [(0,), (4,), (8,)]
        assert [layout_of(one).nbytes for one in elements.values] == [16] * 3
    same_size = measured(struct(("e", array(struct(b), struct(a), struct(b)))), "T", code).fields[0][1]
    assert same_size == array(*(measured(struct(one), "E", code) for one in (b, a, b)))


@pytest.mark.parametrize("values", [(N, N.cast("int32")), (struct(("a", N)), N.cast("int32"))])
def test_of_elements_that_are_no_structs_nothing_more_is_said(values: tuple[Any, ...]) -> None:
    with pytest.raises(ProgramError, match=r"of one type$"):
        array(*values)


def test_the_code_is_compiled_as_the_program_is() -> None:
    value = struct(("n", N))
    assert measured(value, "ns::Params<3, long long>", CODE).offsets == (24,)
    assert measured(
        value,
        "T",
        DeviceCode("cuda", "struct T { char c[W]; long long n; };", defines=(("W", "17"),)),
        target="sm_80",
    ).offsets == (24,)
    header = DeviceCode("cuda", '#include "t.h"', includes=(("t.h", "struct T { int a; long long n; };"),))
    assert measured(value, "T", header, target="sm_100a").nbytes == 16


@pytest.mark.parametrize(
    ("value", "name", "field", "message"),
    [
        (struct(("n", N)), TYPE, "field 'n'", "got 8 bytes, where the member has 4"),
        (struct(("inner", array(inner()))), TYPE, "field 'inner'", "got 16 bytes, where the member has 32"),
        (struct(("second", N)), "ns::Packed", "field 'second'", "got offset 1, expected a multiple of 8"),
    ],
)
def test_what_does_not_fit_is_refused_by_field(value: Struct, name: str, field: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        measured(value, name, CODE)
    assert caught.value.field.endswith(field)
    assert name in caught.value.field


KINDS = """
enum class Mode : unsigned char { a, b };
class Half { unsigned short bits; };
struct Kinds {
  float f; int i; const float* p; long long l; unsigned long long u; double d; const volatile unsigned c; Mode mode;
  Half h; unsigned short bits; bool flag; float many[2]; float2* pairs;
  void* __restrict__ r; const float* const __restrict__ s; float* __restrict__ t[2]; int& ref;
};
"""


def kinds_of(*fields: tuple[str, Any]) -> Struct:
    return measured(struct(*fields), "Kinds", DeviceCode("cuda", "struct float2;" + KINDS, target="sm_90a"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("f", const(1, "int32"), "got int32, where the member is a floating-point number"),
        ("f", N.cast("uint32"), "got uint32, where the member is a floating-point number"),
        ("i", const(0.5, "float32"), "got float32, where the member is an integer"),
        ("i", trunnion.real(N).cast("float32"), "got float32, where the member is an integer"),
        ("c", const(0.5, "float32"), "got float32, where the member is an unsigned integer"),
        ("p", const(1, "int64"), "got int64, where the member is a pointer"),
        ("p", N, "got int64, where the member is a pointer"),
        ("p", const(1j, "complex64"), "got complex64, where the member is a pointer"),
        ("pairs", const(0.5, "float64"), "got float64, where the member is a pointer"),
        ("r", const(0.5, "float64"), "got float64, where the member is a pointer"),
        ("s", const(1, "int64"), "got int64, where the member is a pointer"),
        ("d", const(None), "got a pointer, where the member is a floating-point number"),
        ("d", N, "got int64, where the member is a floating-point number"),
    ],
)
def test_what_is_of_another_kind_is_refused_though_its_size_fits(name: str, value: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        kinds_of((name, value))
    assert caught.value.field == f"'Kinds'.field {name!r}"
    assert "say offsets=" in str(caught.value)


def test_a_kind_is_compared_within_an_array_too() -> None:
    with pytest.raises(ProgramError, match="got int32, where") as caught:
        kinds_of(("many", array(const(1.0, "float32"), const(1, "int32"))))
    assert caught.value.field == "'Kinds'.field 'many[1]'"


def test_what_may_be_meant_is_taken() -> None:
    """An address as ``CUdeviceptr`` or ``intptr_t``, 16 bits of a float, an enumeration's number, any sign."""
    p = ProgramBuilder("p", CODE)
    x, scale = p.input("x", "float32", (N,)), p.scalar("scale", "float32")
    found = kinds_of(
        ("f", scale), ("i", const(1, "uint32")), ("p", x), ("u", x.at(1)), ("l", x),
        ("c", N.cast("int32")), ("mode", const(1, "uint8")), ("h", const(1.0, "float16")),
        ("d", (trunnion.real(N) / 2).cast("float64")),
        ("bits", const(1.0, "bfloat16")), ("flag", const(True, "bool")), ("pairs", const(None)),
        ("r", x), ("s", const(None)), ("t", array(x, x.at(1))),
    )  # fmt: skip
    assert found.places[:4] == (0, 4, 8, 24)


HOLES = """
struct Inner { int a; int b; };
struct alignas(16) Vector { float v[4]; };
struct Holes { char c; const float* x; int n; float eps; Inner inner[2]; Vector last; int tail; alignas(32) int far; };
"""


@pytest.mark.parametrize(
    ("left", "field", "hole"),
    [
        ("x", "", "bytes 1 to 15 of 128, behind 'c'"),
        ("eps", "", "bytes 20 to 23 of 128, behind 'n'"),
        ("last", "", "bytes 40 to 63 of 128, behind 'inner'"),
        ("far", "", "bytes 68 to 127 of 128, behind 'tail'"),
        ("inner[1].b", ".field 'inner[1]'", "bytes 4 to 7 of 8, behind 'inner[1].a'"),
        ("inner[1].a", ".field 'inner[1]'", "bytes 0 to 3 of 8, at its start"),
    ],
)
def test_a_member_that_nobody_names_is_refused_where_all_have_to_be(left: str, field: str, hole: str) -> None:
    x = ProgramBuilder("p", CODE).input("x", "float32", (N,))
    one, real = const(1, "int32"), const(1.0, "float32")

    def element(index: int) -> Struct:
        named = [(name, one) for name in "ab" if f"inner[{index}].{name}" != left]
        return struct(*named, nbytes=8, alignment=4)

    fields = [
        ("c", const(1, "int8")), ("x", x), ("n", one), ("eps", real), ("inner", array(element(0), element(1))),
        ("last", struct(("v", array(*[real] * 4)), alignment=16)), ("tail", one), ("far", one),
    ]  # fmt: skip
    code = DeviceCode("cuda", HOLES, target="sm_90a")
    given = struct(*(pair for pair in fields if pair[0] != left))
    assert measured(given, "Holes", code).layout.nbytes == 128
    with pytest.raises(ProgramError, match=re.escape(hole)) as caught:
        measured(given, "Holes", code, complete=True)
    assert caught.value.field == f"'Holes'{field}"


def test_padding_is_no_member_that_is_missing() -> None:
    code = DeviceCode("cuda", "struct P { char c; double d; short s; alignas(32) int a; };", target="sm_90a")
    fields = [
        ("c", const(1, "int8")),
        ("d", const(1.0, "float64")),
        ("s", const(1, "int16")),
        ("a", const(1, "int32")),
    ]
    assert measured(struct(*fields), "P", code, complete=True).places == (0, 8, 16, 32)
    nothing = DeviceCode("cuda", "struct E {}; struct T { E e; int a; };", target="sm_90a")
    assert measured(struct(("e", struct()), fields[3]), "T", nothing, complete=True).places == (0, 4)
    for source, field in (
        ("struct T { char c; };", ""),
        ("struct E { char c; }; struct T { E e; int a; };", "field 'e'"),
        ("struct E { char c; }; struct T { E e[2]; int a; };", "field 'e[0]'"),
    ):
        # Its size is that of a type without members.
        members = (
            [("e", array(struct(), struct()) if "[2]" in source else struct()), fields[3]] if field else []
        )
        with pytest.raises(ProgramError, match="got no field for bytes 0 to 0 of 1") as caught:
            measured(struct(*members), "T", DeviceCode("cuda", source, target="sm_90a"), complete=True)
        assert caught.value.field.endswith(field)
    with pytest.raises(ArgumentTypeError, match="a bool"):
        measured(struct(*fields), "P", code, complete=1)  # type: ignore[arg-type]  # which it checks


def test_a_name_that_is_no_member_is_refused() -> None:
    with pytest.raises(ProgramError, match="the name of a C\\+\\+ member") as caught:
        measured(struct(("n", inner()), ("a b", N)), TYPE, CODE)
    assert caught.value.field == "struct.field 'a b'"


MEMBERS = """
struct Couple { float first, second; };
struct Row { int begin; };
class Q { float hidden; public: Row row[2]; Couple pair; int bits : 3; float& other; float scale; float* address; };
"""


@pytest.mark.parametrize(
    ("value", "name", "field", "message"),
    [
        (struct(("scal", N)), "Q", "'Q'.field 'scal'", "has no member \"scal\"; did you mean 'scale'?"),
        (struct(("zzz", N)), "Q", "'Q'.field 'zzz'", 'has no member "zzz"; name a public member'),
        (
            struct(("row", array(*(struct(("bigin", N.cast("int32"))),) * 2))),
            "Q",
            "'Q'.field 'row[0].bigin'",
            "has no member \"bigin\"; did you mean 'begin'?",
        ),
        (
            struct(("scale", const(1.0, "float32")), ("pair", array(*[const(1.0, "float32")] * 2))),
            "Q",
            "'Q'.field 'pair'",
            "operand types are: Couple [ int ]); pass one value, for a pointer a tensor or an address, for a class",
        ),
        (
            struct(("address", array(N))),
            "Q",
            "'Q'.field 'address'",
            "; pass one value, for a pointer a tensor or an address, for",
        ),
        (struct(("hidden", const(1.0, "float32"))), "Q", "'Q'.field 'hidden'", "inaccessible; name a public member"),
        (struct(("bits", N.cast("int32"))), "Q", "'Q'.field 'bits'", "bit field; a bit-field has no place of its own"),
        (struct(("n", N)), "Cuple", "'Cuple'", "identifier \"Cuple\" is undefined; did you mean 'Couple'?"),
    ],
)  # fmt: skip
def test_what_the_compiler_refuses_of_the_probe_is_told_by_field(
    value: Struct, name: str, field: str, message: str
) -> None:
    """In a sentence, without the probe, which nobody wrote; after a fault of the code's own, the code is shown."""
    with pytest.raises(ProgramError) as caught:
        measured(value, name, DeviceCode("cuda", MEMBERS, target="sm_90a"))
    assert caught.value.field == field
    assert message in str(caught.value)
    assert "trunnion_measur" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(CompileError, match=r"kernel.cu\(5\): error"):
        measured(value, name, DeviceCode("cuda", f"{MEMBERS}struct Wrong {{ Unknown a; }};", target="sm_90a"))


def test_what_is_asked_is_checked() -> None:
    with pytest.raises(ArgumentTypeError, match="a Struct"):
        measured(N, TYPE, CODE)  # type: ignore[arg-type]  # which it checks
    with pytest.raises(ArgumentTypeError, match="a DeviceCode"):
        measured(struct(("n", N)), TYPE, SOURCE)  # type: ignore[arg-type]  # which it checks
    with pytest.raises(UnsupportedFeatureError, match="a cubin of cuda"):
        measured(struct(("n", N)), TYPE, CODE, registry=Registry(()))
    for other in (DeviceCode("ptx", "//"), DeviceCode("cubin", b"\x7fELF")):
        with pytest.raises(UnsupportedFeatureError, match=f"code in {other.language}"):
            measured(struct(("n", N)), TYPE, other)


class _Blind(DeviceCompiler):
    """Makes an image without the numbers."""

    def compile(self, request: Any) -> DeviceImage:
        (kernel,) = request.kernels
        assert request.options == {"fast": True}
        made = synthetic_cubin([SyntheticKernel(name=kernel.name, parameters=(ImageParameter(0, 0, 8),))])
        image = ImageKernel(kernel.name, kernel.name, (ImageParameter(0, 0, 8),))
        return DeviceImage(kind="cubin", data=made, target=request.target, kernels=(image,))

    def fingerprint(self) -> str:
        return "blind"

    def default_target(self) -> Target | None:
        return None


def test_an_image_without_the_numbers_is_refused_and_a_target_is_asked_for() -> None:
    registry = Registry(())
    registry.register(
        CompilerSpec(
            name="blind", contract_version=3, languages=("cuda",), targets=("cuda",), produces=("cubin",),
            load_compiler=lambda: _Blind,
        )
    )  # fmt: skip
    said: dict[str, Any] = {"registry": registry, "options": {"blind": {"fast": True}}}
    with pytest.raises(CorruptArtifactError, match="no 6 numbers"):
        measured(struct(("n", N)), "T", DeviceCode("cuda", "//"), target="sm_90a", **said)
    with pytest.raises(DeviceRequirementError, match="name one"):
        measured(struct(("n", N)), "T", DeviceCode("cuda", "//"), **said)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (5, "expected {plugin: {option: value}}"),
        ({"nvrtc": 5}, "expected {plugin: {option: value}}"),
        ({"nvrtcc": {"std": "c++20"}}, "expected only nvrtc"),
        ({"include_path": "/x"}, "expected options by plugin"),
    ],
)
def test_options_are_refused_as_they_are_when_the_program_is_compiled(options: Any, message: str) -> None:
    """What reaches no compiler in silence might have made another layout."""
    with pytest.raises(ProgramError) as caught:
        measured(struct(("n", N)), TYPE, CODE, compiler="nvrtc", target="sm_90a", options=options)
    assert caught.value.field == "options"
    assert message in str(caught.value)
