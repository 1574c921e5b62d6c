"""Programs with many parameters and launches: what is written as a loop there does what each line would."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ArgumentError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv
from trunnion.model.program import DeviceCode
from trunnion.testing.strategies.calls import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.harness import Harness

_TENSORS, _LAUNCHES = 56, 32
_NULLABLE, _REVERSED = 20, 7  # the tensor that a call may leave out; the launch that is given all backwards
_GOOD = TensorSpec(dtype="float32", shape=(4,), strides=(1,))


def large_program() -> KernelProgram:
    """Return a program with two scalars among its many tensors, one of which a call may leave out."""
    p = ProgramBuilder("large", DeviceCode("cuda", "//"))
    n = Symbol("n", max=2**31 - 1)
    params = []
    for index in range(_TENSORS):
        if index in {9, 40}:
            params.append(p.scalar(f"s{index}", "int32"))
        kind = "int32" if index in {5, 30} else "float32"
        params.append(p.input(f"t{index}", kind, (n,), nullable=index == _NULLABLE))
    for index in range(_LAUNCHES):
        given = params[::-1] if index == _REVERSED else params
        p.launch(f"k{index}", tuple(given), ceildiv(n, 256), 256)
    return p.build()


def good_call(program: KernelProgram) -> list[Any]:
    tensors = {tensor.name: tensor for tensor in program.signature.tensors}
    return [
        replace(_GOOD, dtype=tensors[param.name].dtype.name) if param.name in tensors else 7
        for param in program.signature.params
    ]


PROGRAM = large_program()
NAMES = [param.name for param in PROGRAM.signature.params]
MISTAKES = {
    "type": {"dtype": "float64"},
    "rank": {"shape": (2, 2), "strides": (2, 1)},
    "extent": {"shape": (5,)},
    "layout": {"strides": (2,)},
    "device": {"device": 1},
}


@pytest.fixture(scope="module")
def loaded(harnesses: dict[str, Harness]) -> Iterator[dict[str, LoadedProgram]]:
    """The program, loaded by every backend."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(harness.loaded(PROGRAM)) for name, harness in harnesses.items()}


@pytest.mark.parametrize("absent", [False, True], ids=["whole", "without-one"])
def test_every_launch_is_given_every_parameter(
    harnesses: dict[str, Harness], loaded: dict[str, LoadedProgram], absent: bool
) -> None:
    specs = good_call(PROGRAM)
    if absent:
        specs[NAMES.index(f"t{_NULLABLE}")] = None
    for name, harness in harnesses.items():
        args = harness.arguments(specs)
        before = len(harness.observed_launches())
        loaded[name].entry(*args)
        wanted = [one if isinstance(one, int) else 0 if one is None else one.data_ptr() for one in args]
        launched = harness.observed_launches()[before:]
        found = [[int.from_bytes(data, "little") for data in one.parameters] for one in launched]
        assert found == [wanted[::-1] if index == _REVERSED else wanted for index in range(_LAUNCHES)], name


@pytest.mark.parametrize("blamed", ["t1", "t8", "t19", "t21", "t39", "t55"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_one_that_is_wrong_is_named(
    harnesses: dict[str, Harness], loaded: dict[str, LoadedProgram], mistake: str, blamed: str
) -> None:
    specs = good_call(PROGRAM)
    at = NAMES.index(blamed)
    specs[at] = replace(specs[at], **MISTAKES[mistake])
    for name, harness in harnesses.items():
        args = harness.arguments(specs)
        before = len(harness.observed_launches())
        with pytest.raises(ArgumentError) as caught:
            loaded[name].entry(*args)
        assert caught.value.argument == blamed, name
        assert len(harness.observed_launches()) == before, name
