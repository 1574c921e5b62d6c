"""The direct entry of programs that allocate: outputs and workspaces, by the tensor library's own functions."""

from __future__ import annotations

import struct
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.errors import DriverError, LifecycleError
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


def allocating(outputs: int, workspaces: int) -> KernelProgram:
    """Return a program of one input, as many outputs of different types and ranks, and as many workspaces."""
    builder = ProgramBuilder("allocating", DeviceCode("cuda", "// no text", name="allocating.cu"))
    n = Symbol("n", max=2**31 - 1)
    x = builder.input("x", "float32", (n,))
    shapes: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("float64", (n, 2)),
        ("int8", ()),
        ("bfloat16", (0, n)),
    )
    made = [builder.output(f"y{index}", kind, shape) for index, (kind, shape) in enumerate(shapes[:outputs])]
    spaces = [builder.workspace(f"w{index}", "int32", (n + index,)) for index in range(workspaces)]
    builder.launch("fill", args=(x, *made, *spaces), grid=ceildiv(n, 256), block=256)
    return builder.build()


class Counting(HostRuntime):
    """torch on the host, with no quick way to allocate, that counts allocations; `before` runs within each."""

    def __init__(self, before: Callable[[], Any] = lambda: None) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []
        self._before = before

    def quick_allocator(self) -> None:
        return None

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        self.shapes.append(shape)
        self._before()
        return super().allocate(shape, dtype, device, stream)


class Changing(Counting):
    """One whose quick way is given."""

    def __init__(self, quick: Callable[..., Any]) -> None:
        super().__init__()
        self._quick = quick

    def quick_allocator(self) -> Any:
        return self._quick


@pytest.fixture
def ready(load: Callable[..., CppProgram], driver: Any) -> Callable[..., CppProgram]:
    def make(outputs: int, workspaces: int, runtime: Any = None) -> CppProgram:
        program = load(allocating(outputs, workspaces), runtime)
        program.preload(0)
        return program

    return make


def address(tensor: torch.Tensor) -> bytes:
    return struct.pack("<Q", tensor.data_ptr())


def test_outputs_are_the_librarys_own_tensors(ready: Any, driver: Any, general_calls: Any) -> None:
    program, x = ready(3, 0), torch.zeros(COUNT)
    with general_calls(program) as general:
        made = program.entry(x)
    assert not general
    assert type(made) is tuple
    assert [(type(one), one.dtype, tuple(one.shape), one.is_contiguous()) for one in made] == [
        (torch.Tensor, torch.float64, (COUNT, 2), True),
        (torch.Tensor, torch.int8, (), True),
        (torch.Tensor, torch.bfloat16, (0, COUNT), True),
    ]
    assert made[0].untyped_storage().nbytes() == COUNT * 16
    assert not made[0].requires_grad
    (launch,) = driver.launches
    assert launch.parameters[:3] == (address(x), address(made[0]), address(made[1]))


def test_one_output_is_returned_as_it_is(ready: Any, driver: Any, general_calls: Any) -> None:
    program = ready(1, 0)
    with general_calls(program) as general:
        first, second = program.entry(torch.zeros(7)), program.entry(torch.zeros(9))
    assert not general
    assert [tuple(made.shape) for made in (first, second)] == [(7, 2), (9, 2)]
    assert [launch.parameters[1] for launch in driver.launches] == [address(first), address(second)]


def test_workspaces_are_aligned_and_apart(ready: Any, driver: Any) -> None:
    runtime = Counting()
    program = ready(1, 2, runtime)
    y = program.entry(torch.zeros(COUNT))
    (launch,) = driver.launches
    first, second = (struct.unpack("<Q", one)[0] for one in launch.parameters[2:])
    assert launch.parameters[1] == address(y)
    assert first % 256 == second % 256 == 0
    assert abs(first - second) >= 4 * COUNT


def test_what_it_made_is_given_back(ready: Any, driver: Any, general_calls: Any) -> None:
    program = ready(2, 1)
    with general_calls(program) as general:
        made = [weakref.ref(one) for one in program.entry(torch.zeros(COUNT))]
    assert not general
    assert [ref() for ref in made] == [None, None]


def test_the_first_call_allocates_once(ready: Any, load: Any, driver: Any) -> None:
    runtime = Counting()
    program = load(allocating(1, 0), runtime)  # not prepared: its first call is the general entry's
    program.entry(torch.zeros(COUNT))
    assert not runtime.shapes
    program.entry(torch.zeros(COUNT))
    assert runtime.shapes == [(COUNT, 2)]
    assert len(driver.launches) == 2


def test_a_quick_way_that_fails_is_replaced(ready: Any, driver: Any, general_calls: Any) -> None:
    def quick(shape: Any, strides: Any, dtype: Any) -> Any:
        raise RuntimeError("not today")

    runtime = Changing(quick)
    program = ready(1, 0, runtime)
    with general_calls(program) as general:
        made = program.entry(torch.zeros(COUNT))
    assert not general
    assert runtime.shapes == [(COUNT, 2)]
    assert tuple(made.shape) == (COUNT, 2)


def test_the_quick_way_is_told_shape_strides_and_type(ready: Any, driver: Any) -> None:
    asked: list[tuple[Any, ...]] = []

    def quick(shape: Any, strides: Any, dtype: Any) -> Any:
        asked.append((shape, strides, dtype))
        return torch.empty_strided(shape, strides, dtype=dtype)

    ready(3, 1, Changing(quick)).entry(torch.zeros(COUNT))
    assert asked[:3] == [
        ((COUNT, 2), (2, 1), torch.float64),
        ((), (), torch.int8),
        ((0, COUNT), (COUNT, 1), torch.bfloat16),
    ]
    assert asked[3][1:] == ((1,), torch.uint8)


class RefusedError(Exception):
    pass


def test_what_the_library_raises_is_raised(ready: Any, driver: Any, general_calls: Any) -> None:
    def refuse() -> None:
        raise RefusedError

    program = ready(1, 1, Counting(refuse))
    with general_calls(program) as general, pytest.raises(RefusedError):
        program.entry(torch.zeros(COUNT))
    assert not general
    assert not driver.launches


def test_another_kind_of_tensor_is_left_to_the_general_entry(
    ready: Any, driver: Any, general_calls: Any
) -> None:
    def quick(shape: Any, strides: Any, dtype: Any) -> Any:
        return torch.nn.Parameter(torch.empty_strided(shape, strides, dtype=dtype))

    program = ready(1, 0, Changing(quick))
    with general_calls(program) as general:
        made = program.entry(torch.zeros(COUNT))
    assert len(general) == 1
    assert type(made) is torch.Tensor
    (launch,) = driver.launches
    assert launch.parameters[1] == address(made)


def test_a_failed_launch_keeps_nothing(ready: Any, driver: Any) -> None:
    made: list[Any] = []

    def quick(shape: Any, strides: Any, dtype: Any) -> Any:
        tensor = torch.empty_strided(shape, strides, dtype=dtype)
        made.append(weakref.ref(tensor))
        return tensor

    program = ready(2, 1, Changing(quick))
    driver.reset(failing_from=0)
    with pytest.raises(DriverError):
        program.entry(torch.zeros(COUNT))
    assert len(made) == 3
    assert [ref() for ref in made] == [None] * 3


def test_a_program_may_be_closed_while_a_call_of_it_allocates(ready: Any, driver: Any) -> None:
    """Whoever closes waits for calls under way, and one that allocates is not yet."""
    programs: list[CppProgram] = []

    def close() -> None:
        closing = threading.Thread(target=programs[0].close)
        closing.start()
        closing.join(60)
        assert not closing.is_alive()

    programs.append(ready(1, 0, Counting(close)))
    with pytest.raises(LifecycleError):
        programs[0].entry(torch.zeros(COUNT))
    assert not driver.launches
