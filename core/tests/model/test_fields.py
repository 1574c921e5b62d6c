"""What a caller passes who uses no type checker: a `ProgramError` that names the field, never a bare TypeError."""

from __future__ import annotations

import copy
import dataclasses
import enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.contract.spec import BackendSpec, CompilerSpec, Target
from trunnion.errors import ProgramError, TrunnionError
from trunnion.messages import describe
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Binary, Cast, Const, Op, Select, Slot, Symbol
from trunnion.model.fields import flag, instance, integer, members, text
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Check, ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.tensormap import TiledTensorMap
from trunnion.model.window import AccessPolicyWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

N = Symbol("n")
X = TensorParam("x", dtype("float32"), (N, Const(64)))
LAUNCH = KernelLaunch("k", (X,), 1, 1)
CODE = DeviceCode("cuda", "text")

GOOD: Mapping[Callable[..., object], dict[str, Any]] = {
    Const: {"value": 1},
    Symbol: {"name": "n", "min": 1, "max": 8, "multiple_of": 2},
    Binary: {"op": Op.ADD, "left": N, "right": N},
    Select: {"condition": N, "then": N, "otherwise": N},
    Cast: {"operand": N, "to": dtype("int32")},
    TensorParam: {
        "name": "x",
        "dtype": "float32",
        "shape": (N, 4),
        "strides": (4, 1),
        "access": "read",
        "alignment": 16,
    },
    ScalarParam: {"name": "s", "dtype": "int32", "symbol": N},
    Check: {"condition": N, "message": "n is not 0"},
    Signature: {
        "params": (X,),
        "outputs": (TensorParam("y", dtype("int8"), (N,)),),
        "checks": (Check(N, "m"),),
    },
    TiledTensorMap: {
        "tensor": X,
        "box_dim": (8, 64),
        "element_strides": (1, 1),
        "interleave": "NONE",
        "swizzle": "NONE",
        "l2_promotion": "NONE",
        "oob_fill": "NONE",
        "dtype": "float32",
        "element_offset": 0,
        "shape": (N, 64),
        "strides": (64, 1),
        "label": "tile",
    },
    KernelLaunch: {
        "kernel": "k",
        "args": (X, 1, N),
        "grid": (N, 1),
        "block": 32,
        "dynamic_smem_bytes": 0,
        "cluster": (1, 1, 1),
        "cooperative": False,
        "pdl": True,
    },
    DeviceCode: {
        "language": "cuda",
        "source": "text",
        "name": "k.cu",
        "includes": (("a.h", "text"),),
        "options": ("-G",),
        "defines": (("A", None), ("B", "1")),
        "target": "sm_90a",
    },
    KernelProgram: {"name": "p", "signature": Signature((X,)), "code": (CODE,), "launches": (LAUNCH,)},
    Target: {"kind": "cuda", "arch": "sm_90a"},
    BackendSpec: {
        "name": "acme",
        "contract_version": 1,
        "targets": {"cuda": frozenset()},
        "accepts": ("cubin",),
        "load_wrapper": lambda: None,
        "load_adapter": lambda: None,
    },
    CompilerSpec: {
        "name": "acme",
        "contract_version": 1,
        "languages": ("cuda",),
        "targets": ("cuda",),
        "produces": ("cubin",),
        "load_compiler": lambda: None,
    },
}
"""For each public constructor, a value of each field."""

UNCHECKED = {(BackendSpec, "load_wrapper"), (BackendSpec, "load_adapter"), (CompilerSpec, "load_compiler")}
"""Callables, which the registry calls."""

JUNK = (
    None,
    1.5,
    True,
    "",
    "junk",
    b"bytes",
    -7,
    (),
    [],
    {},
    ("a",),
    (None,),
    (1.5,),
    object(),
    float("nan"),
    10**6000,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)
CASES = [(make, field) for make, fields in GOOD.items() for field in fields if (make, field) not in UNCHECKED]


@pytest.mark.parametrize("make", GOOD, ids=lambda make: make.__name__)
def test_the_good_values_are_good(make: Callable[..., object]) -> None:
    make(**GOOD[make])


@pytest.mark.parametrize(("make", "field"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_junk_in_any_field_is_refused_by_its_name(make: Callable[..., object], field: str) -> None:
    refused = 0
    for junk in JUNK:
        try:
            made = make(**{**GOOD[make], field: junk})
        except ProgramError as error:
            refused += 1
            named = (
                junk in ((), []) or field in error.field.replace("[", ".").split(".") or field in str(error)
            )
            assert named, f"{junk!r}: {error}"  # noqa: PT017 - to be refused is one of two right ends
            assert len(str(error)) < 2000  # noqa: PT017 - to be refused is one of two right ends
        else:
            hash(made) if make not in (BackendSpec, CompilerSpec) else repr(made)
    assert refused >= 5


@pytest.mark.parametrize(
    ("make", "field", "junk"),
    [
        (KernelLaunch, "cooperative", "no"),
        (KernelLaunch, "pdl", 1),
        (KernelLaunch, "pdl", None),
        (DeviceCode, "options", "-G"),
        (DeviceCode, "options", (1,)),
        (DeviceCode, "language", 5),
        (DeviceCode, "name", None),
        (DeviceCode, "target", None),
        (DeviceCode, "target", "sm 90"),
        (DeviceCode, "includes", ("ab",)),
        (DeviceCode, "includes", (("a.h", None),)),
        (DeviceCode, "defines", (("A", 1),)),
        (DeviceCode, "source", "\ud800"),
        (DeviceCode, "source", "a\0b"),
        (TensorParam, "alignment", True),
        (TensorParam, "alignment", 2.0),
        (TensorParam, "alignment", 1 << 5000),
        (ScalarParam, "symbol", N + 1),
        (ScalarParam, "symbol", "n"),
        (Symbol, "min", 1.0),
        (Symbol, "max", True),
        (Symbol, "multiple_of", 2.0),
        (Check, "message", None),
        (Signature, "outputs", (ScalarParam("s", dtype("int32")),)),
        (Signature, "params", (N,)),
        (Signature, "params", X),
        (Signature, "checks", (N,)),
        (KernelProgram, "code", ()),
        (KernelProgram, "code", ("text",)),
        (KernelProgram, "launches", LAUNCH),
        (KernelProgram, "launches", ("k",)),
        (TiledTensorMap, "label", None),
        (TiledTensorMap, "strides", ("a", 1)),
        (TiledTensorMap, "tensor", "x"),
        (KernelLaunch, "cluster", (0, 1)),
        (KernelLaunch, "cluster", (-2,)),
        (KernelLaunch, "dynamic_smem_bytes", 1 << 32),
        (Binary, "right", 1),
        (Binary, "op", "+"),
        (Cast, "to", "int32"),
        (BackendSpec, "targets", {"cuda": ("pdl", "levitation")}),
        (BackendSpec, "targets", {"CUDA": ()}),
        (BackendSpec, "contract_version", "1"),
        (BackendSpec, "accepts", "cubin"),
        (CompilerSpec, "languages", "cuda"),
    ],
    ids=lambda part: getattr(
        part, "__name__", part if isinstance(part, str) and part.isprintable() else "junk"
    ),
)
def test_what_looks_right_but_is_not(make: Callable[..., object], field: str, junk: object) -> None:
    with pytest.raises(ProgramError) as caught:
        make(**{**GOOD[make], field: junk})
    assert field in str(caught.value)


def test_an_output_is_contiguous_for_the_launcher_allocates_it() -> None:
    strided = TensorParam("y", dtype("float32"), (N,), (2,))
    with pytest.raises(ProgramError, match="stride") as caught:
        Signature((X,), (strided,))
    assert caught.value.field.startswith("outputs[0]")


def test_a_slot_never_stands_in_a_program() -> None:
    slot = Slot(0, 0, 8)
    y = TensorParam("y", dtype("int8"), (N,))
    for make in (
        lambda: KernelProgram("p", Signature((X,)), (CODE,), (KernelLaunch("k", (X,), slot, 1),)),
        lambda: KernelProgram("p", Signature((X,)), (CODE,), (KernelLaunch("k", (X, slot + N), 1, 1),)),
        lambda: KernelProgram(
            "p", Signature((X,)), (CODE,), (KernelLaunch("k", (y.tiled((16,), element_offset=slot),), 1, 1),)
        ),
        lambda: TensorParam("y", dtype("int8"), (slot,)),
        lambda: Check(slot, "m"),
    ):
        with pytest.raises(ProgramError):
            make()


@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.input("x", "float32", (4,), colour="red"),
        lambda p: p.input("x", "float32", None),
        lambda p: p.output(None, "float32", (4,)),
        lambda p: p.scalar("s", None),
        lambda p: p.scalar("s", "int32", "n"),
        lambda p: p.check(None, "m"),
        lambda p: p.check(N, None),
        lambda p: p.launch("k", None, 1, 1),
        lambda p: p.launch("k", 5, 1, 1),
        lambda p: p.launch("k", (), None, 1),
        lambda p: p.launch("k", (), 1, 1, colour="red"),
        lambda p: p.launch(None, (), 1, 1),
        lambda p: p.input("x", "float32", (4,)).tiled(64),
        lambda p: p.input("x", "float32", (4,)).tiled((4,), colour="red"),
        lambda p: p.build(),
        lambda p: ProgramBuilder("p", None),
        lambda p: ProgramBuilder("p", ("text",)).build(),
        lambda p: ProgramBuilder(None, CODE).build(),
        lambda p: DeviceCode.from_file(None),
        lambda p: DeviceCode.from_file("kernel.txt"),
        lambda p: DeviceCode.from_file("no-such-file.cu"),
        lambda p: DeviceCode.from_file(__file__, "cuda", colour="red"),
        lambda p: Target.parse(None),
        lambda p: KernelProgram.from_json(None),
    ],
)
def test_every_way_in_is_checked(call: Callable[[ProgramBuilder], object]) -> None:
    with pytest.raises(ProgramError):
        call(ProgramBuilder("p", CODE))


@given(st.sampled_from(CASES), ANYTHING)
def test_anything_at_all_is_refused_or_taken(case: tuple[Callable[..., object], str], junk: object) -> None:
    make, field = case
    try:
        make(**{**GOOD[make], field: junk})
    except TrunnionError as error:
        assert isinstance(error, ProgramError)  # noqa: PT017 - to be refused is one of two right ends


class Word(enum.StrEnum):
    A = "a'b"


def test_text_gives_plain_text() -> None:
    for odd in (
        Word.A,
        type("Odd", (str,), {"__repr__": lambda self: "raise SystemExit", "__str__": lambda self: "no"})(
            "a'b"
        ),
    ):
        plain = text(odd, "name")
        assert type(plain) is str
        assert plain == "a'b"


def test_text_joins_surrogate_pairs_that_json_would_join() -> None:
    assert text("\ud83d\ude00", "name") == "\U0001f600"
    assert text("\ude00\ud83d", "name") == "\ude00\ud83d"


@pytest.mark.parametrize("value", [None, b"a", 1, "", ["a"]])
def test_text_refuses(value: object) -> None:
    with pytest.raises(ProgramError) as caught:
        text(value, "name")
    assert caught.value.field == "name"


def test_text_may_be_empty_where_that_is_said() -> None:
    assert text("", "label", least=0) == ""


@pytest.mark.parametrize(
    "value", [None, 1.0, True, "1", 10**6000, -(10**6000)], ids=lambda v: type(v).__name__
)
def test_integer_refuses(value: object) -> None:
    with pytest.raises(ProgramError) as caught:
        integer(value, "min")
    assert caught.value.field == "min"
    assert len(str(caught.value)) < 200


def test_integer_keeps_to_its_limits() -> None:
    assert integer(3, "x", 3, 5) == 3
    for wrong in (2, 6):
        with pytest.raises(ProgramError, match="3 to 5"):
            integer(wrong, "x", 3, 5)


@pytest.mark.parametrize("value", [None, 0, 1, "true"])
def test_flag_refuses(value: object) -> None:
    with pytest.raises(ProgramError):
        flag(value, "pdl")
    assert flag(value=True, field="pdl") is True


@pytest.mark.parametrize("value", [None, 1, "text", b"bytes", {"a": 1}, {1}, N])
def test_members_refuses_what_is_no_sequence(value: object) -> None:
    with pytest.raises(ProgramError):
        members(value, "options")


def test_members_takes_sequences_and_iterators() -> None:
    assert members([1, 2], "x") == (1, 2)
    assert members(iter((1, 2)), "x") == (1, 2)
    assert members((), "x") == ()


@given(ANYTHING)
def test_describe_is_short_for_anything(value: object) -> None:
    assert len(describe(value)) < 300


def test_describe_names_type_and_value() -> None:
    assert describe(1.5) == "float '1.5'"
    assert describe(None) == "NoneType"
    assert describe("a") == "str 'a'"
    assert describe(10**6000) == "an integer of 19932 bits"


def test_an_array_of_no_dimensions_is_no_sequence() -> None:
    with pytest.raises(ProgramError, match="expected a sequence"):
        members(np.array(1), "box_dim")


def test_a_type_of_one_s_own_making_is_refused() -> None:
    forged = dataclasses.replace(dtype("float32"), itemsize=8)
    with pytest.raises(ProgramError, match="no row of the table"):
        dtype(forged)
    assert dtype(copy.deepcopy(dtype("float32"))) is not None


@pytest.mark.parametrize(
    ("kind", "named"), [(AccessPolicyWindow, "an AccessPolicyWindow"), (TensorParam, "a TensorParam")]
)
def test_a_class_is_named_with_its_article(kind: type, named: str) -> None:
    with pytest.raises(ProgramError, match=f"expected {named}$"):
        instance(1, kind, "field")
