"""Structs that the launcher builds: where C puts their fields, what is refused, and what a plan makes of them."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import pytest

from trunnion import DeviceCode, KernelProgram, ProgramBuilder, array, struct, symbols
from trunnion.errors import ProgramError
from trunnion.model.capability import Capability
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.plan import BuiltArgument, KernelField, MapArgument, PointerArgument
from trunnion.model.struct import Array, Struct, layout_of, leaves, pieces

N, M = symbols("n m")
_NUMBERS = {"bool": "c_bool", "int8": "c_int8", "int16": "c_int16", "int32": "c_int32", "int64": "c_int64"}
_NUMBERS |= {"float32": "c_float", "float64": "c_double"}


def scalar(kind: str) -> ScalarParam:
    return ScalarParam(f"of {kind}", kind)  # type: ignore[arg-type]  # the constructor reads spellings too


def ctype_of(value: Any) -> Any:
    """What ctypes, which knows C's rules, lays out for a struct."""
    if isinstance(value, Array):
        return ctype_of(value.values[0]) * len(value.values)
    if isinstance(value, Struct):
        fields = [(f"f{index}", ctype_of(one)) for index, (_, one) in enumerate(value.fields)]
        return type("C", (ctypes.Structure,), {"_fields_": fields})
    if isinstance(value, ScalarParam):
        return getattr(ctypes, _NUMBERS[value.dtype.name])
    return ctypes.c_void_p if isinstance(value, PointerParam) else ctypes.c_int64


@pytest.mark.parametrize(
    "fields",
    [
        ("int8", "int64"),
        ("int64", "int8"),
        ("int8", "int16", "int8", "int32"),
        ("bool", "float64", "bool"),
        ("int8",),
        ("pointer", "int32", "pointer", "int16"),
        ("int16", "expr", "int8"),
    ],
    ids="-".join,
)
def test_fields_lie_where_c_puts_them(fields: tuple[str, ...]) -> None:
    known: dict[str, Any] = {"pointer": PointerParam("p"), "expr": N + 1}
    values = [known[kind] if kind in known else scalar(kind) for kind in fields]
    plain = struct(*((str(index), one) for index, one in enumerate(values)))
    nested = struct(("a", scalar("int8")), ("b", plain), ("c", array(plain, plain)), ("d", scalar("int16")))
    for one in (plain, nested):
        wanted = ctype_of(one)
        assert one.layout.nbytes == ctypes.sizeof(wanted)
        assert one.layout.alignment == ctypes.alignment(wanted)
        assert list(one.places) == [getattr(wanted, name).offset for name, _ in wanted._fields_]


def test_what_is_larger_than_a_number_has_its_own_alignment() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    a = p.input("a", "float16", (N, 64))
    one = struct(
        ("flag", scalar("bool")),
        ("map", a.tiled((8, 64))),
        ("view", a.view()),
        ("given", StructParam("s", 24, 8)),
        ("half", scalar("float16")),
        ("scratch", p.workspace("w", "uint8", (N,))),
    )
    assert one.places == (0, 64, 192, 208, 232, 240)
    assert (one.layout.nbytes, one.layout.alignment) == (256, 64)


def test_an_empty_struct_is_a_byte_as_in_cpp() -> None:
    empty = struct()
    assert (empty.layout.nbytes, empty.layout.alignment, tuple(pieces(empty))) == (1, 1, ())
    holder = struct(("e", empty), ("es", array(empty, empty)), ("n", N.cast("int32")))
    assert (holder.places, holder.layout.nbytes) == ((0, 1, 4), 8)


def test_pieces_are_told_by_ascending_offsets() -> None:
    inner = struct(("x y", scalar("int8")), ("z", array(scalar("int16"), scalar("int16"))))
    one = struct(("late", inner), ("early", N), offsets={"late": 16, "early": 8}, nbytes=32)
    assert [(piece.offset, piece.path) for piece in pieces(one)] == [
        (8, ".early"),
        (16, ".late['x y']"),
        (18, ".late.z[0]"),
        (20, ".late.z[1]"),
    ]
    assert list(leaves(one)) == [piece.argument for piece in pieces(one)]
    assert list(leaves(N)) == [N]
    assert [(piece.offset, piece.path, piece.argument) for piece in pieces(N)] == [(0, "", N)]


def test_structs_are_values() -> None:
    def made(**said: Any) -> Struct:
        return struct(("a", N), ("b", array(scalar("int8"), scalar("int8"))), **said)

    assert made() == made()
    assert hash(made()) == hash(made())
    assert made() != made(nbytes=24)
    assert made() != made(offsets={"a": 0, "b": 9})
    assert array(N, M) != array(M, N)


def test_a_list_of_offsets_is_read_once() -> None:
    offsets = [8, 0]
    one = Struct((("a", N), ("b", M)), offsets)  # type: ignore[arg-type]  # what a caller may pass
    offsets.reverse()
    assert one.offsets == one.places == (8, 0)
    assert hash(one) == hash(struct(("a", N), ("b", M), offsets={"a": 8, "b": 0}))


@pytest.mark.parametrize(
    ("said", "field", "message"),
    [
        ({"offsets": {"a": 0, "b": 4}}, "struct.field 'b'", "got offset 4, expected a multiple of 8"),
        ({"offsets": {"a": 8, "b": 8}}, "struct.field 'b'", "field 'a' goes up to byte 12"),
        ({"offsets": {"b": 0, "a": 4}}, "struct.field 'a'", "field 'b' goes up to byte 8"),
        ({"offsets": {"a": 0}}, "struct.offsets", "got none for field 'b'"),
        ({"offsets": {"a": 0, "b": 8, "c": 16}}, "struct.offsets", "unknown"),
        ({"offsets": {"a": -4, "b": 8}}, "struct.offsets of field 'a'", "got -4"),
        ({"offsets": [0, 8]}, "struct.offsets", "expected a mapping"),
        ({"nbytes": 8}, "struct.field 'b'", "goes up to byte 16, beyond the struct's 8"),
        ({"nbytes": 20}, "struct.nbytes", "expected a multiple of the alignment 8"),
        ({"nbytes": 32768}, "struct.nbytes", "got 32768"),
        ({"alignment": 4}, "struct.alignment", "expected at least the 8 of its fields"),
        ({"alignment": 24}, "struct.alignment", "expected a power of two"),
        ({"alignment": 256}, "struct.alignment", "got 256"),
    ],
)
def test_wrong_layouts_are_refused_by_field_and_number(said: Any, field: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        struct(("a", scalar("int32")), ("b", N), **said)
    assert caught.value.field == field
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ([("a", N), ("a", N)], "struct.fields[1]", "two fields are called 'a'"),
        ([("a", 1.5)], "struct.field 'a'", "got float '1.5'"),
        (
            [{"a": N}],
            "struct.fields[0]",
            "got dict, expected a pair of a name and a value; write struct(*fields.items())",
        ),
        ([("a", {"b": N})], "struct.field 'a'", "; fields by name are struct(*fields.items())"),
        (
            [("a", [N, N])],
            "struct.field 'a'",
            "; values behind one another are a struct's field array(*values)",
        ),
        ([("a",)], "struct.fields[0]", "expected a pair of a name and a value"),
        (["ab"], "struct.fields[0]", "expected a pair of a name and a value"),
        ([(1, N)], "struct.fields[0]", "expected a text"),
        ([("", N)], "struct.fields[0]", "expected a text"),
        (
            [("a", StructParam("s", 32764, 4)), ("b", N.cast("int8"))],
            "struct.fields",
            "expected at most 32764",
        ),
    ],
)
def test_wrong_fields_are_refused(fields: Any, field: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        struct(*fields)
    assert caught.value.field == field
    assert message in caught.value.message


def test_wrong_arrays_are_refused() -> None:
    with pytest.raises(ProgramError, match="at least one"):
        array()
    with pytest.raises(ProgramError, match="of one type") as caught:
        array(N, N.cast("int32"))
    assert caught.value.field == "array[1]"
    with pytest.raises(ProgramError, match="as a field of a struct") as caught:
        KernelLaunch("k", (array(N),), 1, 1)  # type: ignore[arg-type]  # which the constructor refuses
    assert caught.value.field == "args[0]"
    with pytest.raises(ProgramError, match="expected at most 32764"):
        array(*[StructParam("s", 8192, 8)] * 4)


def test_structs_within_structs_have_an_end() -> None:
    one: Any = N
    for _ in range(32):
        one = struct(("in", one))
    with pytest.raises(ProgramError, match="within one another"):
        struct(("in", one))


def test_the_largest_struct_is_one() -> None:
    one = struct(("whole", StructParam("s", 32764, 4)))
    assert one.layout.nbytes == 32764
    assert layout_of(one) is one.layout


def program() -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    a = p.input("a", "float16", (N, 64), nullable=True)
    k = p.scalar("k", "float32")
    scratch = p.workspace("w", "uint8", (N,))
    inner = struct(("maps", array(a.tiled((8, 64)), a.tiled((16, 64)))), ("w", scratch))
    whole = struct(
        ("k", k), ("inner", inner), ("rows", N.cast("int32")), offsets={"inner": 64, "k": 4, "rows": 0}
    )
    p.launch("k", (whole, a), 1, 1)
    return p.build()


def test_a_program_with_structs_survives_json() -> None:
    assert KernelProgram.from_json(program().to_json()) == program()


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"fields": [', '"more": 1, "fields": [', "launches[0].args[0].struct"),
        ('"name": "maps"', '"name": "maps", "more": 1', "launches[0].args[0].struct.fields[1].value"),
        ('"nbytes": null', '"nbytes": "8"', "launches[0].args[0].struct"),
        ('"array": [', '"arrays": [', "launches[0].args[0].struct.fields[1].value"),
    ],
)
def test_json_that_differs_is_refused_where_it_does(old: str, new: str, field: str) -> None:
    text = program().to_json()
    assert old in text
    with pytest.raises(ProgramError) as caught:
        KernelProgram.from_json(text.replace(old, new))
    assert caught.value.field.startswith(field)


@pytest.mark.parametrize("within", ["struct", "array"])
def test_json_of_any_depth_is_refused(within: str) -> None:
    tree = json.loads(program().to_json())
    fields = tree["launches"][0]["args"][0]["struct"]["fields"]
    for _ in range(100):
        inner = {"array": [fields[0]["value"]]} if within == "array" else fields[0]["value"]
        fields[0]["value"] = {
            "struct": {
                "fields": [{"name": "in", "value": inner}],
                "offsets": None,
                "nbytes": None,
                "alignment": None,
            }
        }
    with pytest.raises(ProgramError, match="within one another"):
        KernelProgram.from_json(json.dumps(tree))


def test_a_plan_has_a_struct_in_pieces() -> None:
    plan = program().plan()
    built, _ = plan.launches[0].args
    assert isinstance(built, BuiltArgument)
    assert [(one.offset, one.size, one.path) for one in built.fields] == [
        (0, 4, ".rows"),
        (4, 4, ".k"),
        (64, 128, ".inner.maps[0]"),
        (192, 128, ".inner.maps[1]"),
        (320, 8, ".inner.w"),
    ]
    assert built.nbytes == 384
    assert built.maps == (0, 1)
    assert [type(one) for one in plan.launches[0].passed[2:]] == [
        MapArgument,
        MapArgument,
        *[PointerArgument] * 2,
    ]
    assert [encode.readers for encode in plan.encodes] == [(0,), (0,)]
    assert plan.workspaces[0].readers == (0,)
    parameter = plan.kernels[0].parameters[0]
    assert (parameter.size, parameter.alignment) == (384, 64)
    assert parameter.description == "a struct of the launcher's (384 bytes)"
    assert parameter.fields[0] == KernelField(0, ".rows", "int32 (4 bytes)")
    assert Capability.BUILT_STRUCTS in plan.requires


def test_what_stands_in_a_struct_belongs_to_the_program() -> None:
    other = ScalarParam("other", "int32")  # type: ignore[arg-type]  # the constructor reads spellings too
    for value, message in ((other, "is not a parameter"), (M, "does not stand in the signature")):
        p = ProgramBuilder("p", DeviceCode("cuda", "//"))
        p.input("a", "float16", (N, 64))
        p.launch("k", (struct(("in", struct(("x", value)))),), 1, 1)
        with pytest.raises(ProgramError, match=message) as caught:
            p.build()
        assert caught.value.field == "launches[0].args[0].in.x"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pairs_in_a_list_are_told_how_they_are_given(count: int):
    with pytest.raises(ProgramError, match=r"struct\(\*pairs\)"):
        struct([(name, symbols("n")[0]) for name in "abc"[:count]])


def test_a_path_is_told_as_offset_and_size() -> None:
    """As a kernel's body in the simulator asks for what reached it."""
    inner = [struct(("n", N.cast("int32")), ("b", array(*[N.cast("int16")] * 2))) for _ in range(2)]
    outer = struct(("last", N), ("in", array(*inner)), offsets={"last": 16, "in": 0})
    wanted = {"last": (16, 8), "in": (0, 16), "in[1]": (8, 8), "in[1].n": (8, 4), "in[1].b[1]": (14, 2)}
    assert {path: outer.place_of(path) for path in wanted} == wanted
    with pytest.raises(
        ProgramError, match=r"got 'in\[1\]\.bb', expected the path of a field; did you mean"
    ) as caught:
        outer.place_of("in[1].bb")
    assert caught.value.field == "path"
    with pytest.raises(ProgramError):
        outer.place_of(8)  # type: ignore[arg-type]  # which it checks
