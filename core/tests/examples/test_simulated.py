"""Every example on the simulated driver: its artifact, and bodies that get only what the launches delivered."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

import trunnion
from trunnion.errors import DriverError, TrunnionError
from trunnion.examples import EXAMPLES, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.artifacts.artifact import Artifact
    from trunnion.compiled import CompiledProgram
    from trunnion.examples import Example
    from trunnion.model.program import KernelProgram
    from trunnion.sim import Simulator


@pytest.fixture(scope="module", params=EXAMPLES)
def artifact(request: pytest.FixtureRequest) -> tuple[Example, Artifact]:
    example = load(request.param)
    return example, trunnion.compile(example.program, target="sm_90a").artifact


@pytest.fixture
def built(
    simulator: Simulator, artifact: tuple[Example, Artifact]
) -> Iterator[tuple[Example, CompiledProgram]]:
    example, files = artifact
    with trunnion.load(files) as program:
        register(simulator, example, program)
        yield example, program


def register(simulator: Simulator, example: Example, program: CompiledProgram) -> None:
    for kernel in program.artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, example.bodies[kernel.name])


def error(simulator: Simulator, example: Example, program: CompiledProgram, seed: int = 0) -> float:
    with simulator.torch_mode(), simulator.reraise():
        args = example.inputs(torch.Generator().manual_seed(seed), "cuda:0")
        return example.largest_error(program(*args), args)


def test_the_numbers_are_right(simulator: Simulator, built: tuple[Example, CompiledProgram]) -> None:
    example, program = built
    for seed in range(2):
        assert error(simulator, example, program, seed) <= example.tolerance


def test_the_edges_are_right_on_the_second_device(
    simulator: Simulator, built: tuple[Example, CompiledProgram]
) -> None:
    example, program = built
    with simulator.torch_mode(), simulator.reraise():
        for seed, edge in enumerate(example.edges):
            args = edge(torch.Generator().manual_seed(seed), "cuda:1")
            assert example.largest_error(program(*args), args) <= example.tolerance


def with_launch(program: KernelProgram, index: int, **fields: object) -> KernelProgram:
    launches = list(program.launches)
    launches[index] = replace(launches[index], **fields)
    return replace(program, launches=tuple(launches))


def with_args(program: KernelProgram, index: int, **args: object) -> KernelProgram:
    """Return the program with some arguments of a launch replaced: ``a3`` is the fourth."""
    given = list(program.launches[index].args)
    for name, value in args.items():
        given[int(name[1:])] = value
    return with_launch(program, index, args=tuple(given))


def _unzeroed(program: KernelProgram, index: int, position: int) -> KernelProgram:
    """Return the program with one workspace that is not zeroed, wherever it is used."""
    old = program.launches[index].args[position]
    launches = [
        replace(one, args=tuple(replace(arg, zeroed=False) if arg == old else arg for arg in one.args))
        for one in program.launches
    ]
    return replace(program, launches=tuple(launches))


def _swapped(program: KernelProgram, index: int, first: int, second: int) -> KernelProgram:
    args = program.launches[index].args
    return with_args(program, index, **{f"a{first}": args[second], f"a{second}": args[first]})


def _unfilled(program: KernelProgram) -> KernelProgram:
    """Return the program with outputs that nothing fills."""
    text = re.sub(r'"fill": -?[0-9.]+', '"fill": null', program.to_json())
    assert text != program.to_json()
    return type(program).from_json(text)


WRONG = {
    "split_k, workspace not zeroed": ("split_k", lambda p: _unzeroed(p, 0, 2)),
    "grid_sync, counter not zeroed": ("grid_sync", lambda p: _unzeroed(p, 0, 3)),
    "split_k, launches swapped": ("split_k", lambda p: replace(p, launches=p.launches[::-1])),
    "pdl_pair, launches swapped": ("pdl_pair", lambda p: replace(p, launches=p.launches[::-1])),
    "cluster_norm, no cluster": ("cluster_norm", lambda p: with_launch(p, 0, cluster=None)),
    "affine, strides swapped": ("affine", lambda p: _swapped(p, 0, 3, 4)),
    "histogram, outputs swapped": ("histogram", lambda p: _swapped(p, 1, 0, 1)),
    "histogram, share on the opposite condition": (
        "histogram",
        lambda p: with_launch(p, 1, when=1 - p.launches[1].when),
    ),
    "histogram, nothing filled": ("histogram", _unfilled),
    "segment_sum, nothing filled": ("segment_sum", _unfilled),
    "two_boxes, maps of one box": (
        "two_boxes",
        lambda p: with_args(p, 1, a0=p.launches[0].args[0]),
    ),
    "two_boxes, outputs swapped": (
        "two_boxes",
        lambda p: with_args(with_args(p, 0, a1=p.launches[1].args[1]), 1, a1=p.launches[0].args[1]),
    ),
    "im2col_conv, corners swapped": (
        "im2col_conv",
        lambda p: with_args(
            p,
            0,
            a0=replace(
                p.launches[0].args[0],
                pixel_box_lower_corner=p.launches[0].args[0].pixel_box_lower_corner[::-1],
                pixel_box_upper_corner=p.launches[0].args[0].pixel_box_upper_corner[::-1],
            ),
        ),
    ),
    "im2col_conv, lower corner for upper": (
        "im2col_conv",
        lambda p: with_args(
            p,
            0,
            a0=replace(
                p.launches[0].args[0],
                pixel_box_upper_corner=p.launches[0].args[0].pixel_box_lower_corner,
            ),
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_program_that_says_something_else_is_found_wrong(simulator: Simulator, case: str) -> None:
    name, spoil = WRONG[case]
    example = load(name)
    with trunnion.compile(spoil(example.program), target="sm_90a") as program:
        register(simulator, example, program)
        try:
            found = error(simulator, example, program)
        except DriverError:
            return  # a body touched what is not its own: found as well
        except TrunnionError:
            raise
        except (RuntimeError, TypeError):
            return  # a body got tensors that do not fit together
    assert not found <= example.tolerance
