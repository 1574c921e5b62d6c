"""Module variables of a program: what they are, what they hold first, what is copied to them."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.capability import Capability
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols
from trunnion.model.module_variable import MOST_INIT_BYTES, CopyToVariable, ModuleVariable
from trunnion.model.params import TensorParam
from trunnion.model.plan import VariableArgument
from trunnion.model.plan.steps import CopyVariable, Launch, Phase
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Struct, array

CODE = DeviceCode("cuda", "//")


def builder() -> ProgramBuilder:
    return ProgramBuilder("p", CODE)


@pytest.mark.parametrize(
    ("kind", "shape", "init", "data"),
    [
        ("int32", (), 7, b"\7\0\0\0"),
        ("int16", (3,), -1, b"\xff" * 6),
        ("float32", (2, 2), [[1, 2], (3.0, 0.5)], struct.pack("<4f", 1, 2, 3, 0.5)),
        ("float32", (2,), np.array([1.0, 0.1]), struct.pack("<2f", 1.0, 0.1)),
        ("float16", (2,), np.array([1.0, 2.0], "float16"), struct.pack("<2e", 1.0, 2.0)),
        ("float64", (), np.float64(0.25), struct.pack("<d", 0.25)),
        ("bool", (2,), [True, False], b"\1\0"),
        ("complex64", (), 1 + 2j, struct.pack("<2f", 1.0, 2.0)),
        ("bfloat16", (), 1.0, b"\x80\x3f"),
        ("uint8", (4,), bytearray(b"abcd"), b"abcd"),
        ("uint8", (2, 2), np.arange(4, dtype="uint8").reshape(2, 2).T, b"\0\2\1\3"),
        ("int32", (2,), None, None),
    ],
)
def test_what_it_holds_first_is_taken_into_bytes(
    kind: str, shape: tuple[int, ...], init: Any, data: bytes | None
) -> None:
    assert ModuleVariable("v", kind, shape, init).init == data  # type: ignore[arg-type]  # spellings


def test_torch_s_tensors_are_taken_too() -> None:
    torch = pytest.importorskip("torch")
    given = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.bfloat16)
    assert ModuleVariable("v", "bfloat16", (2, 2), given).init == b"\x80\x3f\0\x40\x40\x40\x80\x40"  # type: ignore[arg-type]  # spellings


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"init": [1, 2]}, r"variable 'v'.init: got 2 members, expected 3"),
        ({"init": b"abc"}, r"variable 'v'.init: got 3 bytes, expected 12"),
        ({"init": "abc"}, r"variable 'v'.init: got str 'abc', expected 3 members"),
        (
            {"init": [1, 2, 2**31]},
            r"variable 'v'.init\[2\]: got 2147483648, expected a number that fits int32",
        ),
        (
            {"init": [1, 2, 0.5]},
            r"variable 'v'.init\[2\]: got float '0.5', expected a number that fits int32",
        ),
        ({"init": True}, r"variable 'v'.init: got bool 'True', expected a number that fits int32"),
        ({"init": [[1], 2, 3]}, r"variable 'v'.init\[0\]: got list, expected a number"),
        ({"shape": (0,)}, r"variable 'v'.shape\[0\]: got 0, expected 1 to"),
        (
            {"shape": 3},
            r"variable 'v'.shape: got 3, expected a sequence of integers, \(3,\) for one dimension",
        ),
        (
            {"shape": symbols("n")[0]},
            r"variable 'v'.shape: got Symbol, expected a sequence of integers, \(64,\) for one",
        ),
        ({"shape": (1 << 30, 1 << 30)}, r"variable 'v'.shape: got 4611686018427387904 bytes"),
        ({"dtype": "float31"}, r"variable 'v'.dtype: "),
        ({"name": ""}, "name: got"),
        ({"name": "a\0b"}, "name: a variable's name cannot hold a NUL character"),
        ({"code": 5}, r"variable 'v'.code: "),
        ({"shape": (MOST_INIT_BYTES,), "init": 0}, "copy a tensor to it instead"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ProgramError, match=problem):
        ModuleVariable(**{"name": "v", "dtype": "int32", "shape": (3,), **fields})


class Raising:
    def tolist(self) -> Any:
        raise OSError("no memory behind it")


def test_an_array_that_cannot_be_read_is_refused_with_its_reason() -> None:
    with pytest.raises(ProgramError, match="whose numbers cannot be read: no memory behind it"):
        ModuleVariable("v", "int32", (3,), Raising())  # type: ignore[arg-type]  # that is the point


def test_an_expression_of_one_is_refused() -> None:
    (n,) = symbols("n")
    with pytest.raises(ExprError, match="its address"):
        n + ModuleVariable("v", "int32")  # type: ignore[operator,arg-type]  # that is the point


# In a program -------------------------------------------------------------------------------------------------------


def filtered() -> KernelProgram:
    p = builder()
    (n,) = symbols("n")
    x, taps = p.input("x", "float32", (n,)), p.input("taps", "float32", (4, n))
    gain = p.variable("gain", "float32", (2,), init=[1, 2])
    filt = p.variable("ns::filter", "float32", (4, 4))
    p.launch("first", (x, gain), 1, 32)
    p.copy(filt, taps)
    p.launch("second", (filt, x), 1, 32)
    return p.build()


def test_a_program_s_plan_says_all_of_them() -> None:
    plan = filtered().plan()
    assert [(one.name, one.nbytes, one.init) for one in plan.variables] == [
        ("gain", 8, struct.pack("<2f", 1, 2)),
        ("ns::filter", 64, None),
    ]
    assert plan.requires >= {Capability.MODULE_VARIABLES}
    assert plan.launches[1].args[0] == VariableArgument(1)
    assert plan.kernels[1].parameters[0].description == "the address of a variable of float32 (8 bytes)"
    launching = [type(action) for action in plan.actions(Phase.LAUNCH)]
    assert launching == [Launch, CopyVariable, Launch]


def test_json_gives_it_back() -> None:
    program = filtered()
    assert KernelProgram.from_json(program.to_json()) == program
    other = DeviceCode("ptx", "//", name="other.ptx")
    p = ProgramBuilder("p", (CODE, other))
    variable = p.variable("gain", "float32", code=other)
    p.launch("k", (variable,), 1, 1)
    assert KernelProgram.from_json(p.build().to_json()) == p.build()
    assert p.build().plan().variables[0].part == 1


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"before": 1', '"before": 2', r"copies\[0\].before: got 2, expected 0 to 1"),
        ('"variable": 1', '"variable": 2', r"got variable 2, expected 0 to 1"),
        ('"init": "AACAPwAAAEA="', '"init": "AACAPwAAAEA"', r"variables\[0\].init: is not base64"),
        ('"init": "AACAPwAAAEA="', '"init": "AACAPw=="', r"init: got 4 bytes, expected 8"),
        ('"init": null', '"value": null', r"variables\[1\].init: is missing"),
    ],
)
def test_json_that_says_something_else_is_refused(old: str, new: str, problem: str) -> None:
    text = filtered().to_json()
    assert old in text
    with pytest.raises(ProgramError, match=problem):
        KernelProgram.from_json(text.replace(old, new))


def test_json_without_any_has_no_such_field() -> None:
    p = builder()
    p.launch("k", (), 1, 1)
    text = p.build().to_json()
    assert "variables" not in text
    assert "copies" not in text
    with pytest.raises(ProgramError, match="variables: got none, expected some, or no such field"):
        KernelProgram.from_json(text.rstrip().removesuffix("}") + ', "variables": []}')


def test_two_of_one_name_are_refused() -> None:
    p = builder()
    p.variable("v", "int32"), p.variable("v", "float32")
    p.launch("k", (), 1, 1)
    with pytest.raises(ProgramError, match=r"variables\[1\].name: two variables are called 'v'"):
        p.build()


def test_one_that_is_listed_twice_is_refused() -> None:
    one = ModuleVariable("v", "int32")  # type: ignore[arg-type]  # spellings
    p = builder()
    p.launch("k", (), 1, 1)
    with pytest.raises(ProgramError, match=r"variables\[1\].name: two variables are called 'v'"):
        replace(p.build(), variables=(one, one))


def test_another_program_s_is_refused() -> None:
    stranger, p = ModuleVariable("v", "int32"), builder()  # type: ignore[arg-type]  # spellings
    p.launch("k", (stranger,), 1, 1)
    with pytest.raises(ProgramError, match=r"launches\[0\].args\[0\]: 'v' is not a variable of this program"):
        p.build()


def test_another_program_s_is_refused_in_a_struct_too() -> None:
    stranger, p = ModuleVariable("v", "int32"), builder()  # type: ignore[arg-type]  # spellings
    p.launch("k", (Struct((("f", array(stranger)),)),), 1, 1)
    with pytest.raises(
        ProgramError, match=r"launches\[0\].args\[0\].f\[0\]: 'v' is not a variable of this program"
    ):
        p.build()


def test_a_part_that_the_program_has_not_is_refused() -> None:
    p = builder()
    p.variable("v", "int32", code=DeviceCode("cuda", "int x;"))
    p.launch("k", (), 1, 1)
    with pytest.raises(ProgramError, match=r"variables\[0\].code: is not a part of this program's code"):
        p.build()


# Copies -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"dtype": "int32"}, "got a tensor of int32, expected float32, as 'v' has"),
        ({"strides": (1,)}, "got a tensor with strides, expected a contiguous one"),
        ({"nullable": True}, "got a tensor that may be None"),
        ({"shape": (3,)}, r"got 3 elements, expected 4 elements in 't', as variable 'v' has"),
        ({"shape": ()}, "got the one element of a tensor without dimensions, expected 4 elements in 't'"),
    ],
)
def test_a_tensor_that_cannot_fit_is_refused_when_it_is_written(fields: dict[str, Any], problem: str) -> None:
    p = builder()
    variable = p.variable("v", "float32", (4,))
    tensor = TensorParam(**{"name": "t", "dtype": "float32", "shape": (4,), **fields})
    with pytest.raises(ProgramError, match=rf"copies\[0\].tensor: {problem}"):
        p.copy(variable, tensor)


def test_a_copy_that_no_launch_follows_is_refused() -> None:
    p = builder()
    variable, tensor = p.variable("v", "float32"), p.input("t", "float32", ())
    p.launch("k", (), 1, 1)
    p.copy(variable, tensor)
    with pytest.raises(
        ProgramError, match=r"copies\[0\].before: got 1, expected 0 to 0: a launch follows a copy"
    ):
        p.build()


def test_copies_stand_in_their_order_and_take_the_program_s_own_tensors() -> None:
    program = filtered()
    first = replace(program.copies[0], before=0)
    with pytest.raises(ProgramError, match=r"copies\[1\].before: got 0, expected 1 to 1"):
        replace(program, copies=(*program.copies, first))
    stranger = TensorParam("other", "float32", (16,))  # type: ignore[arg-type]  # spellings
    with pytest.raises(ProgramError, match=r"copies\[0\].tensor: 'other' is not a parameter"):
        replace(program, copies=(CopyToVariable(program.variables[1], stranger, 0),))
    with pytest.raises(ProgramError, match="got Workspace, expected a TensorParam"):
        builder().copy(program.variables[1], builder().workspace("w", "float32", (16,)))  # type: ignore[arg-type]  # that is the point


def test_an_output_can_be_copied_too() -> None:
    p = builder()
    variable, output = p.variable("v", "float32", (4,)), p.output("y", "float32", (4,))
    p.launch("k", (output,), 1, 1)
    p.copy(variable, output)
    p.launch("l", (), 1, 1)
    assert p.build().plan().copies[0].before == 1
