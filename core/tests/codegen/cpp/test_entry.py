"""The general entry of a C++ launcher refuses what the Python launcher refuses, in its words."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import Launched

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi

CODE = DeviceCode("cuda", "//")
ON_CUDA = "a tensor on a CUDA device"


def one_tensor(*, outputs: int = 0) -> KernelProgram:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    made = [p.output(f"y{index}", "float32", (n,)) for index in range(outputs)]
    p.launch("k", (x, *made), 1, 32)
    return p.build()


def with_number(kind: str) -> KernelProgram:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    a = p.pointer("a", nullable=True) if kind == "pointer" else p.scalar("a", kind)
    p.launch("k", (x, a), 1, 32)
    return p.build()


def every_other() -> KernelProgram:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    p.launch("k", (p.input("x", "float32", (n,), strides=(2,)),), 1, 32)
    return p.build()


def of_numbers() -> KernelProgram:
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.pointer("a"), p.scalar("n", "int32")), 1, 32)
    return p.build()


def on_device() -> Any:
    return torch.zeros(4, 3, device="cuda:0")[:, 0].contiguous()


def refused(program: Any, *args: Any) -> ArgumentError:
    """Return the error of a call, which each way in raises alike."""
    said = []
    for call in (lambda: program.entry(*args), lambda: program.call(args)):
        with pytest.raises(ArgumentError) as caught:
            call()
        said.append(caught.value)
    assert (type(said[0]), str(said[0])) == (type(said[1]), str(said[1]))
    return said[0]


@pytest.mark.parametrize("outputs", [0, 1, 2])
@pytest.mark.parametrize("more", [(None,), (0,), (0, 0), (None, None, None, None), (0, 0, None, True)])
def test_arguments_beyond_the_signature_are_refused(
    launcher: Any, outputs: int, more: tuple[Any, ...]
) -> None:
    error = refused(launcher(one_tensor(outputs=outputs)), on_device(), *more)
    assert type(error) is ArgumentTypeError
    assert str(error) == f"got {1 + len(more)} arguments, expected 1 ('x')"


@pytest.mark.parametrize(
    ("kind", "value", "got", "expected"),
    [
        ("complex64", bytes(16), "bytes", "a number that fits complex64"),
        ("complex128", bytearray(16), "bytearray", "a number that fits complex128"),
        ("uint64", ctypes.c_void_p(2**63 + 8), "c_void_p", f"an integer, 0 to {2**64 - 1}"),
        ("pointer", ctypes.c_void_p(8), "c_void_p", f"an integer, 0 to {2**64 - 1}"),
        ("pointer", ctypes.c_void_p(2**63 + 8), "c_void_p", f"an integer, 0 to {2**64 - 1}"),
    ],
)
def test_what_only_prepared_numbers_look_like_is_refused(
    launcher: Any, kind: str, value: Any, got: str, expected: str
) -> None:
    error = refused(launcher(with_number(kind)), on_device(), value)
    assert type(error) is ArgumentTypeError
    assert error.got.startswith(got)
    assert error.expected == expected


@pytest.mark.parametrize(
    ("kind", "value"), [("complex64", 1 - 2j), ("uint64", 2**64 - 1), ("pointer", 2**64 - 256)]
)
def test_the_numbers_themselves_are_taken(simulator: Any, launcher: Any, kind: str, value: Any) -> None:
    program, given = launcher(with_number(kind)), on_device()
    program.entry(given, value)
    program.call((given, value))
    program.bind((given, value))()
    assert len([event for event in simulator.trace if isinstance(event, Launched)]) == 3


@pytest.mark.parametrize("outputs", [0, 1])
def test_a_tensor_that_is_nowhere_is_on_another_device(launcher: Any, outputs: int) -> None:
    error = refused(launcher(one_tensor(outputs=outputs)), torch.empty(4, device="meta"))
    assert type(error) is ArgumentValueError
    assert (error.argument, error.got, error.expected) == ("x", "a tensor on meta", ON_CUDA)


def test_an_array_is_no_tensor_wherever_it_lies(launcher: Any) -> None:
    error = refused(launcher(one_tensor()), np.zeros(4, np.float32))
    assert type(error) is ArgumentTypeError
    assert (error.argument, error.got, error.expected) == ("x", "ndarray", "a tensor")


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_an_output_that_no_memory_holds_is_refused(simulator: Any, launcher: Any, dtype: str) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    p.scalar("n", "int64", n)
    p.launch("k", (p.input("x", "float32", (4,)), p.output("y", dtype, (n, 2))), 1, 32)
    program, args = launcher(p.build()), (2**62, on_device())
    for call, given in ((program.entry, args), (program.call, (args,))):
        with pytest.raises(ArgumentValueError) as caught:
            simulator.call(call, *given)
        assert caught.value.got == f"arguments that ask for an output of shape ({2**62}, 2)"


def test_half_of_a_complex_tensor_is_taken_unless_it_is_negated(simulator: Any, launcher: Any) -> None:
    """What it shows by DLPack is the same."""
    program = launcher(every_other())
    x = torch.zeros(8, device="cuda:0")[::2]
    for _ in range(3):
        program.entry(x)
    assert len([one for one in simulator.trace if isinstance(one, Launched)]) == 3
    lazy = torch.zeros(4, dtype=torch.complex64, device="cuda:0").conj().imag
    assert lazy.is_neg()
    error = refused(program, lazy)
    assert type(error) is ArgumentTypeError
    assert error.argument == "x"
    assert "lazy" in str(error)


def test_a_call_of_numbers_alone_says_what_any_call_does(simulator: Any, launcher: Any) -> None:
    program = launcher(of_numbers())
    for args in ((4096, 3), (np.int64(4096), np.int32(3))):
        program.call(args, device=0)
    first, second = [one for one in simulator.trace if isinstance(one, Launched)]
    assert first.parameters == second.parameters
    for args in ((4096, 2**31), (4096, True), (4096,), (4096, 3, 0), ("4096", 3)):
        said = []
        for call in (
            lambda a=args: program.call(a, device=0),
            lambda a=args: program.call(a, device=0, stream=0),
        ):
            with pytest.raises(ArgumentError) as caught:
                call()
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]
    with pytest.raises(ArgumentError):
        program.call((4096, 3), device=99)
    assert len([one for one in simulator.trace if isinstance(one, Launched)]) == 2
