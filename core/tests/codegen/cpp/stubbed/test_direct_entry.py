"""The direct entry: what it takes by itself, and what it leaves to the general one."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv
from trunnion.torch_runtime import HostRuntime

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.codegen.cpp.program import CppProgram
    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi

COUNT = 1000


def every_plain_kind() -> KernelProgram:
    """Return a program with a parameter of every kind that the direct entry takes."""
    builder = ProgramBuilder("every", DeviceCode("cuda", "// no text", name="every.cu"))
    n = Symbol("n", max=2**31 - 1)
    given = (
        builder.input("x", "float32", (n,)),
        builder.input("y", "int32", (n,), nullable=True),
        builder.scalar("small", "int32"),
        builder.scalar("great", "int64"),
        builder.scalar("octet", "uint8"),
        builder.scalar("single", "float32"),
        builder.scalar("double", "float64"),
        builder.scalar("half", "float16"),
        builder.scalar("flag", "bool"),
    )
    builder.launch("every", args=given, grid=ceildiv(n, 256), block=256)
    return builder.build()


@pytest.fixture
def program(load: Callable[..., CppProgram], driver: Any) -> CppProgram:
    program = load(every_plain_kind())
    program.preload(0)
    return program


def plain() -> list[Any]:
    y = torch.zeros(COUNT, dtype=torch.int32)
    return [torch.zeros(COUNT), y, -5, 2**40, 200, 0.5, -2.5, 1.5, True]


def changed(**values: Any) -> list[Any]:
    names = ("x", "y", "small", "great", "octet", "single", "double", "half", "flag")
    return [values.get(name, value) for name, value in zip(names, plain(), strict=True)]


def outcome(entry: Callable[..., Any], args: list[Any]) -> tuple[Any, ...]:
    try:
        return ("returned", entry(*args))
    except (ArgumentError, LifecycleError) as error:
        return (type(error), str(error), getattr(error, "argument", None))


def test_it_is_a_function_of_cpythons_own_convention(program: CppProgram) -> None:
    assert type(program.entry).__name__ == "builtin_function_or_method"
    assert program.entry.__name__ == "entry"


def test_every_plain_kind_arrives_as_it_was_given(
    program: CppProgram, driver: Any, general_calls: Any
) -> None:
    args = plain()
    with general_calls(program) as general:
        assert program.entry(*args) is None
    assert not general
    (launch,) = driver.launches
    assert launch.parameters == (
        struct.pack("<Q", args[0].data_ptr()),
        struct.pack("<Q", args[1].data_ptr()),
        struct.pack("<i", -5),
        struct.pack("<q", 2**40),
        struct.pack("<B", 200),
        struct.pack("<f", 0.5),
        struct.pack("<d", -2.5),
        struct.pack("<e", 1.5),
        struct.pack("<?", True),
    )
    assert (launch.grid, launch.block, launch.stream) == ((4, 1, 1), (256, 1, 1), 0)


PLAIN = {
    "nothing for a tensor that may be left out": ({"y": None}, 1, bytes(8)),
    "the least integer": ({"great": -(2**63)}, 3, struct.pack("<q", -(2**63))),
    "the greatest integer": ({"great": 2**63 - 1}, 3, struct.pack("<q", 2**63 - 1)),
    "an integer for a float": ({"single": 3}, 5, struct.pack("<f", 3.0)),
    "a great integer for a double": ({"double": 2**53 + 1}, 6, struct.pack("<d", float(2**53 + 1))),
    "minus zero": ({"double": -0.0}, 6, struct.pack("<d", -0.0)),
    "infinity": ({"single": float("inf")}, 5, struct.pack("<f", float("inf"))),
    "false": ({"flag": False}, 8, b"\0"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_it_takes(program: CppProgram, driver: Any, name: str, general_calls: Any) -> None:
    values, ordinal, wanted = PLAIN[name]
    with general_calls(program) as general:
        program.entry(*changed(**values))
    assert not general
    (launch,) = driver.launches
    assert launch.parameters[ordinal] == wanted


class Index:
    def __index__(self) -> int:
        return 7


HANDED_ON: dict[str, Any] = {
    "an integer of numpy": ({"small": np.int64(7)}, 2, struct.pack("<i", 7)),
    "an object that is an integer": ({"small": Index()}, 2, struct.pack("<i", 7)),
    "a float of numpy": ({"single": np.float32(0.5)}, 5, struct.pack("<f", 0.5)),
    "a bool of numpy": ({"flag": np.bool_(True)}, 8, b"\1"),
    "a vast integer for a double": ({"double": 2**70}, 6, struct.pack("<d", 2.0**70)),
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_the_general_entry_takes(program: CppProgram, driver: Any, name: str, general_calls: Any) -> None:
    values, ordinal, wanted = HANDED_ON[name]
    with general_calls(program) as general:
        got = outcome(program.entry, changed(**values))
    assert len(general) == 1
    assert got == ("returned", None)
    (launch,) = driver.launches
    assert launch.parameters[ordinal] == wanted


def test_it_takes_a_parameter_of_a_module(program: CppProgram, driver: Any, general_calls: Any) -> None:
    parameter = torch.nn.Parameter(torch.zeros(COUNT))
    with general_calls(program) as general:
        assert program.entry(*changed(x=parameter)) is None
    assert not general
    (launch,) = driver.launches
    assert launch.parameters[0] == struct.pack("<Q", parameter.data_ptr())


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.zeros(COUNT)


def without_storage() -> torch.Tensor:
    tensor = torch.zeros(COUNT)
    tensor.untyped_storage().resize_(0)
    return tensor


REFUSED: dict[str, tuple[Callable[[], list[Any]], type[Exception]]] = {
    "no arguments": (list, ArgumentTypeError),
    "too few": (lambda: plain()[:-1], ArgumentTypeError),
    "too many": (lambda: [*plain(), 1], ArgumentTypeError),
    "nothing for a tensor": (lambda: changed(x=None), ArgumentTypeError),
    "an integer for a tensor": (lambda: changed(x=3), ArgumentTypeError),
    "text for a tensor": (lambda: changed(x="tensor"), ArgumentTypeError),
    "another type": (lambda: changed(x=torch.zeros(COUNT).double()), ArgumentTypeError),
    "another rank": (lambda: changed(x=torch.zeros(COUNT, 1)), ArgumentValueError),
    "other extents": (lambda: changed(x=torch.zeros(COUNT - 1)), ArgumentValueError),
    "strides": (lambda: changed(x=torch.zeros(2 * COUNT)[::2]), ArgumentValueError),
    "a tensor without memory": (lambda: changed(x=torch.zeros(COUNT, device="meta")), ArgumentError),
    "a fake tensor": (lambda: changed(x=fake()), ArgumentTypeError),
    "a sparse tensor": (lambda: changed(x=torch.zeros(COUNT).to_sparse()), ArgumentTypeError),
    "a tensor of another library's layout": (
        lambda: changed(x=torch.zeros(COUNT).to_mkldnn()),
        ArgumentTypeError,
    ),
    "a nested tensor": (
        lambda: changed(x=torch.nested.nested_tensor([torch.zeros(3)], layout=torch.jagged)),
        ArgumentTypeError,
    ),
    "a tensor whose storage is gone": (lambda: changed(x=without_storage()), ArgumentTypeError),
    "a lazily negated tensor": (
        lambda: changed(x=torch.zeros(COUNT, dtype=torch.cfloat).conj().imag),
        ArgumentError,
    ),
    "true for an integer": (lambda: changed(small=True), ArgumentTypeError),
    "a float for an integer": (lambda: changed(small=1.0), ArgumentTypeError),
    "a tensor for an integer": (lambda: changed(small=torch.tensor(3)), ArgumentTypeError),
    "an integer beyond its type": (lambda: changed(small=2**31), ArgumentValueError),
    "an integer below its type": (lambda: changed(octet=-1), ArgumentValueError),
    "an integer beyond 64 bits": (lambda: changed(great=2**63), ArgumentValueError),
    "a vast integer": (lambda: changed(great=-(10**40)), ArgumentValueError),
    "true for a float": (lambda: changed(double=True), ArgumentTypeError),
    "text for a float": (lambda: changed(double="1"), ArgumentTypeError),
    "a float beyond its type": (lambda: changed(half=1e6), ArgumentValueError),
    "an integer beyond every double": (lambda: changed(double=10**400), ArgumentValueError),
    "an integer for a bool": (lambda: changed(flag=1), ArgumentTypeError),
    "nothing for a bool": (lambda: changed(flag=None), ArgumentTypeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses_as_the_general_entry_does(
    program: CppProgram, driver: Any, name: str, general_calls: Any
) -> None:
    make, kind = REFUSED[name]
    args = make()
    with general_calls(program) as general:
        got = outcome(program.entry, args)
    assert len(general) == 1
    assert issubclass(got[0], kind), got
    assert got == outcome(lambda *given: program.call(given), args)
    assert not driver.launches
    program.entry(*plain())
    assert len(driver.launches) == 1


def test_inside_transforms_of_functions_tensors_are_refused(program: CppProgram, driver: Any) -> None:
    rest = plain()[1:]

    def called(x: torch.Tensor) -> torch.Tensor:
        assert type(x) is torch.Tensor
        with pytest.raises(ArgumentTypeError) as refused:
            program.entry(x, *rest)
        assert refused.value.argument == "x"
        return x.sum()

    torch.func.vmap(called)(torch.zeros(3, COUNT))
    torch.func.grad(called)(torch.zeros(COUNT))
    assert not driver.launches


def test_one_lazily_negated_element_is_refused(load: Any, driver: Any, general_calls: Any) -> None:
    builder = ProgramBuilder("one", DeviceCode("cuda", "// no text", name="one.cu"))
    builder.launch("one", args=(builder.input("x", "float32", (Symbol("n"),)),), grid=1, block=1)
    program = load(builder.build())
    program.preload(0)
    for _ in range(2):
        with pytest.raises(ArgumentTypeError) as refused:
            program.entry(torch._neg_view(torch.ones(1)))
        assert refused.value.argument == "x"
    assert not driver.launches
    with general_calls(program) as general:
        program.entry(torch.ones(2))
        program.entry(torch.ones(1))  # looks like one that is
    assert not general
    assert len(driver.launches) == 2


NAMES = ("x", "y", "small", "great", "octet", "single", "double", "half", "flag")


@pytest.mark.parametrize("positional", range(len(NAMES) + 1))
def test_it_takes_names_in_any_order(
    program: CppProgram, driver: Any, general_calls: Any, positional: int
) -> None:
    args = plain()
    named = dict(reversed(list(zip(NAMES, args, strict=True))[positional:]))
    program.entry(*args)
    with general_calls(program) as general:
        assert program.entry(*args[:positional], **named, stream=None, device=0, out=None) is None
    assert not general
    by_position, by_name = driver.launches
    assert by_name == by_position


WRONG_NAMES: dict[str, tuple[int, list[str], str, str]] = {
    "unknown": (8, ["more"], "more", "one of 'x', 'y'"),
    "twice": (8, ["x", "flag"], "x", "twice"),
    "missing": (7, ["flag"], "half", "got nothing"),
}


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_wrong_names_are_refused(program: CppProgram, driver: Any, name: str) -> None:
    positional, names, argument, words = WRONG_NAMES[name]
    with pytest.raises(ArgumentTypeError, match=words) as refused:
        program.entry(*plain()[:positional], **dict.fromkeys(names, True))
    assert refused.value.argument == argument
    assert not driver.launches


def test_the_first_call_prepares_the_device_by_the_general_entry(
    load: Any, driver: Any, general_calls: Any
) -> None:
    program = load(every_plain_kind())
    with general_calls(program) as general:
        program.entry(*plain())
        program.entry(*plain())
    assert len(general) == 1
    assert len(driver.launches) == 2


def every_odd_kind() -> KernelProgram:
    """Return a program with a parameter of every kind that needs more than one of the generic ones, and outputs."""
    builder = ProgramBuilder("odd", DeviceCode("cuda", "// no text", name="odd.cu"))
    n = Symbol("n", max=2**31 - 1)
    given = (
        builder.input("x", "complex64", (n,)),
        builder.scalar("wide", "uint64"),
        builder.scalar("single", "complex64"),
        builder.scalar("double", "complex128"),
        builder.pointer("place", alignment=16),
        builder.pointer("nowhere", nullable=True),
        builder.struct("bytes", 24, 8),
        builder.output("y", "float32", (n,)),
        builder.output("z", "int32", (n,)),
    )
    builder.launch("odd", args=given, grid=ceildiv(n, 256), block=256)
    return builder.build()


def odd(**values: Any) -> list[Any]:
    names = ("x", "wide", "single", "double", "place", "nowhere", "bytes")
    x = torch.zeros(COUNT, dtype=torch.complex64)
    args = (x, 2**63 + 5, 1.5 - 2j, 0.25 + 4j, 2**63 + 32, None, bytes(range(24)))
    return [values.get(name, value) for name, value in zip(names, args, strict=True)]


def test_every_odd_kind_arrives_as_it_was_given(
    load: Callable[..., CppProgram], driver: Any, general_calls: Any
) -> None:
    program = load(every_odd_kind())
    program.preload(0)
    out = torch.zeros(COUNT), torch.zeros(COUNT, dtype=torch.int32)
    with general_calls(program) as general:
        assert program.entry(*odd(), out=out, stream=0) == out
        made = program.entry(*odd(nowhere=48, wide=7))
    assert not general
    assert [one.dtype for one in made] == [torch.float32, torch.int32]
    given, own = driver.launches
    assert given.parameters[1:] == (
        struct.pack("<Q", 2**63 + 5),
        struct.pack("<2f", 1.5, -2),
        struct.pack("<2d", 0.25, 4),
        struct.pack("<Q", 2**63 + 32),
        bytes(8),
        bytes(range(24)),
        *(struct.pack("<Q", one.data_ptr()) for one in out),
    )
    assert (own.parameters[1], own.parameters[5]) == (struct.pack("<Q", 7), struct.pack("<Q", 48))


LAZY: dict[str, Callable[[], torch.Tensor]] = {
    "conjugated": lambda: torch.zeros(COUNT, dtype=torch.complex64).conj(),
    "beyond its storage": lambda: shrunk(torch.zeros(COUNT, dtype=torch.complex64)),
}


def shrunk(tensor: torch.Tensor) -> torch.Tensor:
    tensor.untyped_storage().resize_(8)
    return tensor


ODD: dict[str, Callable[[], dict[str, Any]]] = {
    **{name: lambda make=make: {"x": make()} for name, make in LAZY.items()},
    "a number below": lambda: {"wide": -1},
    "a number beyond": lambda: {"wide": 2**64},
    "an address below": lambda: {"place": -16},
    "an address that is not aligned": lambda: {"place": 8},
    "no address": lambda: {"place": None},
    "an address beyond": lambda: {"nowhere": 2**64},
    "too few bytes": lambda: {"bytes": bytes(23)},
    "text for bytes": lambda: {"bytes": "x" * 24},
    "text for a complex number": lambda: {"single": "1j"},
    "a complex number beyond": lambda: {"single": complex(1e39, 0)},
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_kind_is_refused_as_by_the_general_entry(
    load: Callable[..., CppProgram], driver: Any, name: str
) -> None:
    program = load(every_odd_kind())
    args = odd(**ODD[name]())
    program.entry(*odd())
    driver.reset()
    got = outcome(program.entry, args)
    assert issubclass(got[0], ArgumentError), got
    assert got == outcome(lambda *given: program.call(given), args)
    assert not driver.launches


def test_destinations_are_refused_as_by_the_general_entry(
    load: Callable[..., CppProgram], driver: Any
) -> None:
    program = load(every_odd_kind())
    y, z = torch.zeros(COUNT), torch.zeros(COUNT, dtype=torch.int32)
    program.entry(*odd())
    driver.reset()
    for out in (
        (y,),
        (y, z, z),
        (z, y),
        (y[1:], z),
        (y, torch.zeros(2 * COUNT, dtype=torch.int32)[::2]),
        (y, 3),
        (shrunk(y.clone()), z),
        (y, y),
    ):
        with pytest.raises(ArgumentError) as direct:
            program.entry(*odd(), out=out)
        with pytest.raises(ArgumentError) as general:
            program.call(odd(), out=out)
        assert str(direct.value) == str(general.value)
    assert not driver.launches


class Interrupted(HostRuntime):
    """A tensor library in the middle of which a signal's handler raises something, once."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._errors = [error]

    def room(self, tensor: Any) -> int:
        if self._errors:
            raise self._errors.pop()
        return super().room(tensor)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, TimeoutError, SystemExit]
)  # none that tensor libraries raise
def test_what_a_signal_s_handler_raises_arrives(
    load: Callable[..., CppProgram], driver: Any, error: type[BaseException]
) -> None:
    program = load(every_plain_kind(), Interrupted(error("of a handler")))
    program.preload(0)
    with pytest.raises(error, match="of a handler"):
        program.entry(*plain())
    assert not driver.launches
    program.entry(*plain())
    assert len(driver.launches) == 1


def test_a_runtime_error_of_a_handler_arrives_too(load: Callable[..., CppProgram], driver: Any) -> None:
    """A tensor library's says that a tensor has no memory: but this one has, as the general entry finds."""
    program = load(every_plain_kind(), Interrupted(RuntimeError("of a handler")))
    program.preload(0)
    with pytest.raises(RuntimeError, match="of a handler"):
        program.entry(*plain())
    driver.reset()
    program.entry(*plain())
    assert len(driver.launches) == 1


class Without(HostRuntime):
    """A tensor library whose tensors have no memory."""

    def room(self, tensor: Any) -> int:
        raise RuntimeError("no storage")


def test_what_a_tensor_library_raises_is_explained(load: Callable[..., CppProgram], driver: Any) -> None:
    program = load(every_plain_kind(), Without())
    program.preload(0)
    with pytest.raises(ArgumentError):
        program.entry(*plain())
    assert not driver.launches
