from __future__ import annotations

import copy
import math
import pickle
import struct
from typing import Any

import pytest

from trunnion.errors import ProgramError, UnboundSymbolError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.plan import Source
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Struct
from trunnion.model.workspace import Workspace

N, M = Symbol("n"), Symbol("m")


def builder() -> ProgramBuilder:
    return ProgramBuilder("p", DeviceCode("cuda", "//"))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"nbytes": 0, "alignment": 1}, "nbytes"),
        ({"nbytes": 32768, "alignment": 1}, "nbytes"),
        ({"nbytes": 12, "alignment": 8}, "nbytes"),
        ({"nbytes": 12, "alignment": 3}, "alignment"),
        ({"nbytes": True, "alignment": 1}, "nbytes"),
    ],
)
def test_a_struct_is_whole(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ProgramError) as caught:
        StructParam("s", **fields)
    assert caught.value.field == f"struct 's'.{where}"


@pytest.mark.parametrize("fields", [{"alignment": 0}, {"alignment": 24}, {"nullable": 1}])
def test_a_pointer_is_whole(fields: dict[str, Any]) -> None:
    with pytest.raises(ProgramError) as caught:
        PointerParam("p", **fields)
    assert caught.value.field == f"pointer 'p'.{next(iter(fields))}"


def test_only_outputs_are_filled_and_only_inputs_left_out() -> None:
    with pytest.raises(ProgramError) as caught:
        Signature((TensorParam("x", "float32", (N,), fill=0),))  # type: ignore[arg-type]  # spellings too
    assert caught.value.field == "params[0].fill"
    with pytest.raises(ProgramError) as caught:
        Signature((), (TensorParam("x", "float32", (4,), nullable=True),))  # type: ignore[arg-type]  # spellings too
    assert caught.value.field == "outputs[0].nullable"


@pytest.mark.parametrize(("dtype", "fill"), [("int8", 300), ("bool", 1), ("float16", 1e9), ("float32", "0")])
def test_a_fill_is_a_value_of_the_type(dtype: str, fill: Any) -> None:
    with pytest.raises(ProgramError) as caught:
        builder().output("y", dtype, (4,), fill=fill)
    assert caught.value.field == "tensor 'y'.fill"


@pytest.mark.parametrize(
    "fill",
    [
        0,
        True,
        -0.0,
        1.5,
        math.nan,
        math.inf,
        -math.inf,
        complex(1, -2),
        complex(1, math.nan),
        complex(math.nan, -0.0),
    ],
)
def test_every_fill_reads_back_from_json(fill: Any) -> None:
    p = builder()
    kind = "bool" if fill is True else "complex64" if isinstance(fill, complex) else "float32"
    p.launch("k", (p.output("y", kind, (), fill=fill),), 1, 1)
    program = p.build()
    again = type(program).from_json(program.to_json())
    assert again == program
    assert again.plan().tensors[0].fill == program.plan().tensors[0].fill
    if isinstance(fill, complex):
        raw = struct.pack("<2f", fill.real, fill.imag)
        assert program.plan().tensors[0].fill == raw


def filled(fill: complex, kind: str = "float32") -> TensorParam:
    return TensorParam("y", kind, (N,), fill=fill)  # type: ignore[arg-type]  # the constructor reads spellings too


def filling(output: TensorParam) -> KernelProgram:
    launch = KernelLaunch("k", (output,), 1, 1)  # type: ignore[arg-type]  # the constructor takes integers too
    signature = Signature((TensorParam("x", "float32", (N,)),), (output,))  # type: ignore[arg-type]  # spellings too
    return KernelProgram("p", signature, (DeviceCode("cuda", "//"),), (launch,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (filled(0.0), filled(-0.0)),
        (filled(complex(0.0, 1.0), "complex64"), filled(complex(-0.0, 1.0), "complex64")),
        (filled(1), filled(2)),
        (filled(0.0), TensorParam("y", "float32", (N,))),  # type: ignore[arg-type]  # spellings too
    ],
)
def test_fills_of_other_bits_are_other_fills(one: TensorParam, other: TensorParam) -> None:
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (filled(math.nan), filled(-math.nan)),
        (filled(math.nan), pickle.loads(pickle.dumps(filled(math.nan)))),  # noqa: S301 - our own bytes
        (filled(complex(1, math.nan), "complex64"), copy.deepcopy(filled(complex(1, math.nan), "complex64"))),
        (filled(1), filled(1.0)),
        (filled(0.1), filled(struct.unpack("f", struct.pack("f", 0.1))[0])),
    ],
)
def test_fills_of_the_same_bits_are_one_fill(one: TensorParam, other: TensorParam) -> None:
    """However the number was written, and wherever it was read: programs, plans, their texts and their hashes too."""
    assert one == other
    assert len({one, other}) == 1
    first, second = (filling(output) for output in (one, other))
    assert first == second
    assert first.to_json() == second.to_json()
    assert first.plan() == second.plan()
    assert first.plan().hash == second.plan().hash
    assert type(first).from_json(first.to_json()) == first
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(first.plan())) == first.plan()  # noqa: S301 - our own bytes


@pytest.mark.parametrize("kind", ["int8", "uint64", "bool"])
def test_a_symbol_stands_for_an_integer_or_a_boolean(kind: str) -> None:
    assert ScalarParam("s", kind, N).symbol is N  # type: ignore[arg-type]  # the constructor reads spellings


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "complex64"])
def test_a_symbol_stands_for_no_other_number(kind: str) -> None:
    with pytest.raises(ProgramError) as caught:
        ScalarParam("s", kind, N)  # type: ignore[arg-type]  # the constructor reads spellings
    assert caught.value.field.endswith("symbol")


def test_a_symbol_may_be_bound_by_any_tensor_that_is_there() -> None:
    p = builder()
    a = p.input("a", "float32", (N,), nullable=True)
    b = p.input("b", "float32", (N, M))
    p.launch("k", (a, b), 1, 1)
    first, second = p.build().plan().bindings
    assert first.candidates == (Source("shape", 0, 0), Source("shape", 1, 0))
    assert second.candidates == ()


def test_a_symbol_that_only_an_absent_tensor_has_is_still_a_plan() -> None:
    p = builder()
    p.launch("k", (p.input("a", "float32", (N,), nullable=True),), N, 1)
    (binding,) = p.build().plan().bindings
    assert binding.candidates == (binding.source,)


@pytest.mark.parametrize("symbol", [M, Symbol("n", max=7)])
@pytest.mark.parametrize(
    "argument",
    [
        lambda w: w,
        lambda w: w.at(0),
        lambda w: w.view(),
        lambda w: w.tiled((8, 64)),
        lambda w: w.tiled((8, 64), shape=(64, 64), strides=(64, 1)),
        lambda w: Struct((("map", w.tiled((8, 64), shape=(64, 64), strides=(64, 1))),)),
    ],
)
def test_a_symbol_of_a_workspace_must_be_bound(symbol: Symbol, argument: Any) -> None:
    p = builder()
    p.input("x", "int8", (N,))
    p.launch("k", (argument(p.workspace("w", "int8", (symbol, 64))),), 1, 1)
    with pytest.raises(ProgramError, match="does not stand in the signature") as caught:
        p.build()
    assert caught.value.field.startswith("launches[0].args[0]")


def test_a_symbol_of_an_output_must_be_bound() -> None:
    p = builder()
    p.output("y", "int8", (N,))
    p.launch("k", (), 1, 1)
    with pytest.raises(
        UnboundSymbolError, match=r"'n' has no value: no input has it.*add a parameter that does"
    ):
        p.build()


def test_equal_workspaces_are_one_and_unequal_ones_differ_in_name() -> None:
    p = builder()
    p.launch("k", (p.workspace("w", "int8", (64,)), p.workspace("w", "int8", (64,))), 1, 1)
    p.launch("l", (p.workspace("v", "int8", (64,)).tiled((64,)),), 1, 1)
    program = p.build()
    assert [workspace.name for workspace in program.workspaces] == ["w", "v"]
    assert [slot.readers for slot in program.plan().workspaces] == [(0,), (1,)]
    p.launch("m", (p.workspace("w", "int8", (65,)),), 1, 1)
    with pytest.raises(ProgramError, match="two workspaces are called 'w'"):
        p.build()


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"alignment": 3}, "alignment"),
        ({"alignment": 1 << 21}, "alignment"),
        ({"zeroed": 1}, "zeroed"),
        ({"shape": (-1,)}, "shape[0]"),
        ({"dtype": "float17"}, "dtype"),
    ],
)
def test_a_workspace_is_whole(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Workspace("w", **{"dtype": "int8", "shape": (4,), **fields})
    assert caught.value.field == f"workspace 'w'.{where}"


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [
        ("float", "float32"),
        ("fp32", "float32"),
        ("f16", "float16"),
        ("half", "float16"),
        ("bf16", "bfloat16"),
        ("double", "float64"),
        ("int", "int32"),
        ("i64", "int64"),
        ("u8", "uint8"),
        ("uint32_t", "uint32"),
        ("np.float32", "float32"),
    ],
)
def test_another_tongue_s_name_of_a_type_is_answered_with_ours(spelling: str, meant: str) -> None:
    with pytest.raises(ProgramError) as caught:
        builder().input("x", spelling, (N,))
    assert str(caught.value).endswith(f"; did you mean {meant!r}?")


def test_an_unknown_field_is_answered_with_the_nearest() -> None:
    for make, meant in (
        (lambda p: p.input("x", "float32", (N,), algnment=16), "alignment"),
        (lambda p: p.launch("k", (), 1, 1, dynamic_smem=8), "dynamic_smem_bytes"),
        (lambda p: p.input("x", "float32", (N, 64)).tiled((8, 8), swizle="128B"), "swizzle"),
        (lambda p: p.input("y", "float32", (N,), access="writes"), "write"),
    ):
        with pytest.raises(ProgramError) as caught:
            make(builder())
        assert str(caught.value).endswith(f"; did you mean {meant!r}?")
