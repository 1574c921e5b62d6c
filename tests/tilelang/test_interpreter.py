"""The interpreter of host functions, against launches worked out by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from tilelang_host import expressions, interpreter, values
from tilelang_host.interpreter import interpret
from tilelang_host.values import HostAssertion, Scalar, Scratch, Window


@pytest.fixture
def run(lowered, simulator):
    """Return what interprets a call of an entry, with a tensor for each shape or tensor that is given."""

    def called(name, *given):
        host = [torch.zeros(value) if isinstance(value, tuple) else value for value in given]
        placed = [simulator.tensor(value, 0) if isinstance(value, torch.Tensor) else value for value in host]
        return interpret(lowered(name), placed), placed

    return called


def half(*shape):
    return torch.zeros(shape, dtype=torch.float16)


def test_tensor_maps(run):
    (launch,), (a, b, c) = run("gemm_rows", half(300, 128), half(128, 192), (300, 192))
    first, second, result, rows = launch.parameters
    assert (first.mode, first.dtype, first.address, first.dims) == ("tiled", 6, a.data_ptr(), (128, 300))
    assert (first.strides, first.box, first.element_strides) == ((256,), ((64, 128),), (1, 1))
    assert first.modes == (0, 3, 2, 0)
    assert (second.address, second.dims, second.box) == (b.data_ptr(), (192, 128), ((64, 64),))
    assert (result, rows) == (c.data_ptr(), Scalar("int32", 300))
    assert (launch.grid, launch.block, launch.shared) == ((3, 3, 1), (256, 1, 1), 49152)


def test_an_im2col_map(run):
    (launch,), (image, weights, result) = run(
        "convolution", half(2, 16, 16, 64), half(576, 64), half(512, 64)
    )
    first, stored, read = launch.parameters
    assert (first.mode, first.dims, first.strides) == ("im2col", (64, 16, 16, 2), (128, 2048, 32768))
    assert first.box == ((-1, -1), (-1, -1), 64, 64)
    assert [one.address for one in (first, stored, read)] == [x.data_ptr() for x in (image, result, weights)]


def test_two_slots_of_one_name(run):
    launches, _ = run("two_boxes", half(128, 128), half(128, 128), (128, 128), (128, 128))
    assert [launch.parameters[1].box for launch in launches] == [((64, 64),), ((32, 64),)]


def test_workspaces_are_told_apart(run):
    (first, second), _ = run("workspaces", (100,), (100,))
    both = (Scratch(0, "float32", 400), Scratch(1, "int32", 404))
    assert first.parameters[:2] == second.parameters[:2] == both


@pytest.mark.parametrize(
    ("way", "kernel", "block"), [(1, "either_way_kernel", 128), (0, "either_way_kernel_1", 64)]
)
def test_conditions(run, way, kernel, block):
    (launch,), _ = run("either_way", (100,), way)
    assert (launch.kernel, launch.block) == (kernel, (block, 1, 1))


@pytest.mark.parametrize("steps", range(4))
def test_loops(run, steps):
    launches, _ = run("repeated_as_told", (100,), steps)
    assert [launch.parameters[2] for launch in launches] == [Scalar("int32", step) for step in range(steps)]


def test_attributes(run):
    (clustered,), _ = run("clusters", (5, 128), (5, 128))
    assert (clustered.cluster, clustered.grid) == ((4, 1, 1), (8, 1, 1))
    (cooperative,), _ = run("grid_sync", (512,), (512,), (512,))
    assert (cooperative.cooperative, cooperative.cluster) == (True, None)
    pair, _ = run("pdl_pair", (5,), (5,), (5,))
    assert [launch.pdl for launch in pair] == [False, True]


def test_a_window_lasts_until_another_replaces_it(run):
    (launch,), (x, _) = run("kept_in_l2", (100,), (100,))
    assert launch.window == Window(x.data_ptr(), 400, 0.5)
    (launch,), (_, z, _) = run("two_windows", (512,), (512,), (512,))
    assert launch.window == Window(z.data_ptr(), 2048, 0.25)


def test_numbers_are_of_the_type_that_the_kernel_takes(run):
    (launch,), _ = run("float_scalars", 0.1, 0.1, 0.1, torch.zeros((3, 32), dtype=torch.float64))
    taken = {scalar.dtype: scalar.value for scalar in launch.parameters[1:]}
    assert taken == {"float16": 0.0999755859375, "float32": 0.10000000149011612, "float64": 0.1}


def test_floors(run):
    (launch,), _ = run("odd_grid", (130,), (7,), (130,))
    assert launch.grid == (2, 3, 1)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("checked", ((300,), (300,)), "Assume: n % 128 == 0"),
        ("checked", ((128,), (128,)), "at least two blocks"),
        ("vector_add_dynamic", ((3,), (4,), (3,)), "b shape[0]"),
        ("vector_add_dynamic", ((3,), (3, 1), (3,)), "b ndim mismatch"),
        ("vector_add_dynamic", ((3,), half(3), (3,)), "b dtype mismatch"),
        ("vector_add_dynamic", ((3,), None, (3,)), "non-NULL pointer"),
        ("vector_add_dynamic", ((3,), (3,)), "num_args should be 3"),
        ("host_let", ((3,), 1.5), "expected integer"),
    ],
)
def test_assertions_hold_or_end_the_call(run, name, given, message):
    with pytest.raises(HostAssertion, match=message.replace("[", r"\[")):
        run(name, *given)


def test_a_nullable_buffer_may_be_missing(run):
    (launch,), (_, x, y) = run("unused_bias", None, (5,), (5,))
    assert launch.parameters == (x.data_ptr(), y.data_ptr(), Scalar("int32", 5))


@pytest.mark.parametrize("module", [values, expressions, interpreter])
def test_it_knows_nothing_of_what_it_is_compared_with(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert names
    assert not {name for name in names if name.startswith(("trunnion", "tilelang_corpus"))}
