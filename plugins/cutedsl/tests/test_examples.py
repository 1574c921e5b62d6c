"""Every example of this plugin on the simulated driver: real cubins, bodies that get what the launches delivered."""

from __future__ import annotations

import dataclasses
from importlib import import_module

import pytest
import torch

import trunnion
from trunnion.model.view import TensorView
from trunnion.registry import default_registry

MODULES = default_registry().compiler("cutedsl").examples


@pytest.fixture(scope="module", params=MODULES, ids=lambda module: module.rpartition(".")[2])
def artifact(request):
    example = import_module(request.param).EXAMPLE
    return example, trunnion.compile(example.program, "cutedsl", target="sm_90a", trust=True).artifact


@pytest.fixture
def built(simulator, artifact):
    example, files = artifact
    with trunnion.load(files) as program:
        register(simulator, example, program)
        yield example, program


def register(simulator, example, program):
    for kernel in program.artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, example.bodies[kernel.name])


def error(simulator, example, program, inputs, device="cuda:0"):
    with simulator.torch_mode(), simulator.reraise():
        args = inputs(torch.Generator().manual_seed(7), device)
        return example.largest_error(program(*args), args)


def test_the_numbers_are_right(simulator, built):
    example, program = built
    assert error(simulator, example, program, example.inputs) <= example.tolerance


def test_the_edges_are_right_on_the_second_device(simulator, built):
    example, program = built
    for edge in example.edges:
        assert error(simulator, example, program, edge, "cuda:1") <= example.tolerance


def test_its_name_is_that_of_its_module(artifact):
    example, _ = artifact
    assert f"trunnion_cutedsl.examples.{example.name}" in MODULES
    assert example.program.name == example.name


def test_an_extent_that_is_wrong_by_one_is_seen(simulator):
    """What a view carries is what the body gets: a launch that is given another length computes something else."""
    example = import_module(MODULES[0]).EXAMPLE
    (launch,) = example.program.launches
    whole = launch.args[2].memory
    short = dataclasses.replace(whole, shape=(whole.shape[0] - 1,))
    other = dataclasses.replace(launch, args=(*launch.args[:2], TensorView(short)))
    signature = dataclasses.replace(example.program.signature, outputs=(short,))
    wrong = dataclasses.replace(example.program, signature=signature, launches=(other,))
    with trunnion.compile(wrong, "cutedsl", target="sm_90a", trust=True) as program:
        register(simulator, example, program)
        assert error(simulator, example, program, example.inputs) > example.tolerance
