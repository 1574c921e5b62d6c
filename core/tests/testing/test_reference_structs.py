"""The oracle's structs: laid out as a C compiler's ctypes does, and compared with what arrives byte by byte."""

from __future__ import annotations

import ctypes

import pytest

from trunnion import DeviceCode, ProgramBuilder, Symbol, array, struct
from trunnion.model.capability import Capability
from trunnion.model.struct import Array, Struct
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.trace import Launched
from trunnion.testing.delivery import compare_launches, locate_workspaces
from trunnion.testing.draws import for_examples
from trunnion.testing.expected import (
    Address,
    CallSignature,
    Expected,
    ExpectedStruct,
    ExpectedView,
    TensorFacts,
)
from trunnion.testing.harness import Harness
from trunnion.testing.laws import LawViolation
from trunnion.testing.reference import expect
from trunnion.testing.reference_needs import needs_of
from trunnion.testing.reference_structs import fields_of, size_and_alignment
from trunnion.testing.strategies import programs

N = Symbol("n")
HARNESS = Harness(spec=None, machine=None, law_id="V9")  # type: ignore[arg-type]  # it only raises


def program():
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x, k = p.input("x", "float32", (N, 4)), p.scalar("k", "float16")
    scratch = p.workspace("w", "uint8", (N,))
    inner = struct(("small", N.cast("int8")), ("view", x.view()), ("w", scratch))
    p.launch("k", (struct(("k", k), ("inner", inner), ("n", array(N.cast("int32"), N.cast("int32")))),), 1, 1)
    return p.build()


def expected():
    facts = TensorFacts(dtype="float32", shape=(5, 4), strides=(4, 1), address=0x1000, device=0)
    told = expect(program(), CallSignature(args=(facts, 1.0)))
    assert isinstance(told, Expected)
    return told.launches[0]


def test_a_struct_is_laid_out_by_cs_rules():
    built = program().launches[0].args[0]

    class View(ctypes.Structure):
        _fields_ = (("address", ctypes.c_uint64), ("rows", ctypes.c_int32))

    class Inner(ctypes.Structure):
        _fields_ = (("small", ctypes.c_int8), ("view", View), ("w", ctypes.c_void_p))

    class Outer(ctypes.Structure):
        _fields_ = (("k", ctypes.c_uint16), ("inner", Inner), ("n", ctypes.c_int32 * 2))

    assert size_and_alignment(built) == (ctypes.sizeof(Outer), ctypes.alignment(Outer))
    start = Outer.inner.offset
    places = [0, *(start + one.offset for one in (Inner.small, Inner.view, Inner.w)), Outer.n.offset]
    assert [offset for offset, _ in fields_of(built)] == [*places, Outer.n.offset + 4]
    assert size_and_alignment(struct()) == (1, 1)
    said = struct(("a", N), ("b", N), offsets={"a": 8, "b": 0}, nbytes=64, alignment=16)
    assert size_and_alignment(said) == (64, 16)
    assert [offset for offset, _ in fields_of(said)] == [8, 0]
    assert {Capability.BUILT_STRUCTS, Capability.TENSOR_VIEWS, Capability.WORKSPACE} <= needs_of(program())


def test_what_stands_in_a_struct_is_told():
    (parameter,) = expected().parameters
    assert parameter == ExpectedStruct(
        48,
        (
            (0, 2, bytes.fromhex("003c")),
            (8, 1, b"\5"),
            (16, 16, ExpectedView(Address("x"), b"\5\0\0\0", b"")),
            (32, 8, Address("w", workspace=True)),
            (40, 4, b"\5\0\0\0"),
            (44, 4, b"\5\0\0\0"),
        ),
    )
    assert expected().leaves[-1] == b"\5\0\0\0"


def launched(data):
    shape = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": None, "dynamic_smem_bytes": 0}
    return Launched(
        kernel="s",
        library=1,
        device=0,
        stream=0,
        parameters=(bytes(data),),
        attributes=LaunchAttributes(),
        **shape,
    )


def compare(data):
    want, have = expected(), launched(data)
    where = {Address("x"): 0x1000, **locate_workspaces((want,), (have,))}
    compare_launches(HARNESS, (want,), (have,), where, {("k", 0): "s"})


RIGHT = (
    bytes.fromhex("003c") + bytes(6) + b"\5" + bytes(7) + (0x1000).to_bytes(8, "little") + b"\5" + bytes(7)
    + (0x9000).to_bytes(8, "little") + b"\5\0\0\0" * 2
)  # fmt: skip


def test_what_is_right():
    compare(RIGHT)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (0, "offset 0"),
        (2, "between the fields"),
        (8, "offset 8"),
        (9, "between"),
        (17, "offset 16"),
        (28, "between"),
        (44, "offset 44"),
    ],
)
def test_each_wrong_byte_is_seen(place, said):
    wrong = bytearray(RIGHT)
    wrong[place] ^= 1
    with pytest.raises(LawViolation, match=said):
        compare(wrong)


def test_another_size_is_seen():
    with pytest.raises(LawViolation, match="the struct has 56 bytes, expected 48"):
        compare(RIGHT + bytes(8))


def test_drawn_structs_are_of_every_form():
    found = []
    needed = ("built_structs", "tma_tiled", "tensor_views", "workspace", "pointer_params", "struct_params")
    for_examples(programs(required=[*map(Capability, needed)]), 60, found.append, seed=1)
    launches = [launch for program in found for launch in program.launches]
    structs = [one for launch in launches for one in launch.args if isinstance(one, Struct)]
    seen = set()
    pending = [(0, one) for one in structs]
    while pending:
        depth, one = pending.pop()
        inner = [value for _, value in one.fields] if isinstance(one, Struct) else list(one.values)
        seen |= {type(one).__name__, f"depth {depth}", *(type(value).__name__ for value in inner)}
        if isinstance(one, Struct):
            seen |= {f"offsets {one.offsets is not None}", f"fields {min(len(one.fields), 2)}"}
        pending += [(depth + 1, value) for value in inner if isinstance(value, (Struct, Array))]
    wanted = {
        "Struct",
        "Array",
        "TensorParam",
        "Workspace",
        "ScalarParam",
        "PointerParam",
        "StructParam",
        "Cast",
    }
    wanted |= {
        "TiledTensorMap",
        "TensorView",
        "depth 2",
        "offsets True",
        "offsets False",
        "fields 0",
        "fields 1",
    }
    assert wanted <= seen
