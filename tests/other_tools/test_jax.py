"""JAX calls a program, inside of what it compiles itself; on the CPU, where kernels truly run."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from page_reading.blocks import page_source

import trunnion
from trunnion import DeviceCode, ProgramBuilder, device, examples, gt, symbols
from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceRequirementError,
    ProgramError,
    UnsupportedFeatureError,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jax.md"
CODE = """
#include <trunnion/block.h>
void mix(const float* x, float k, const float* b, float* y, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) y[i] = k * x[i] + (b == nullptr ? 0 : b[i]);
}
"""


def mix_program(names=("x", "k", "b")):
    """A number between two tensors, one of which may be left out: not how XLA orders its arguments."""
    (n,) = symbols("n")
    p = ProgramBuilder("mix", DeviceCode("c++", CODE))
    x, k = p.input(names[0], "float32", (n,)), p.scalar(names[1], "float32")
    b = p.input(names[2], "float32", (n,), nullable=True)
    p.launch("mix", args=(x, k, b, p.output("y", "float32", (n,)), n), grid=1, block=1)
    return p.build()


@functools.cache
def called(name):
    program = mix_program() if name == "mix" else examples.load(name).program
    return trunnion.jax_call(trunnion.compile(program))


@pytest.fixture
def wide():
    """Types of 64 bits, which JAX narrows otherwise."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def test_it_runs_inside_of_what_jax_compiles():
    axpy = called("cpu_axpy")

    @jax.jit
    def model(x):
        return axpy(2.0, x + 1, x) * 3

    for count in (1, 5, 0, 2000):
        x = jnp.arange(count, dtype=jnp.float32)
        assert jnp.allclose(model(x), (2 * (x + 1) + x) * 3)


def test_an_argument_goes_by_whatever_name_it_has():
    mix = trunnion.jax_call(trunnion.compile(mix_program(("self", "args", "named"))))
    found = mix(self=jnp.ones(3), args=2.0, named=None)
    assert found.tolist() == [2, 2, 2]


def test_outputs_and_workspaces_are_sized_by_the_model(wide):
    softmax = called("cpu_softmax")
    for shape in ((3, 4), (1, 1), (300, 1000), (0, 4)):
        x = jax.random.normal(jax.random.key(0), shape, dtype=jnp.float32)
        y, peaks = jax.jit(lambda x: softmax(x, 0))(x)
        assert (y.shape, peaks.shape, peaks.dtype) == (shape, shape[1:], jnp.int64)
        assert jnp.allclose(y, jax.nn.softmax(x, axis=1), atol=1e-6)
        assert jnp.allclose(softmax(x, 1)[0], jax.nn.log_softmax(x, axis=1), atol=1e-5)


def test_numbers_between_tensors_and_what_is_left_out_reach_the_program():
    mix, x = called("mix"), jnp.arange(4, dtype=jnp.float32)
    assert jnp.array_equal(jax.jit(lambda x: mix(x, 2.5, x))(x), 3.5 * x)
    assert jnp.array_equal(mix(x, 2.5, None), 2.5 * x)


def test_a_function_in_the_place_of_one_that_is_gone_is_another_one(monkeypatch):
    """Python gives a new object the address of an old one, and XLA keeps what it was told for good."""
    monkeypatch.setattr("trunnion.operators.jax_call.id", lambda _: 7, raising=False)
    program, x = trunnion.compile(mix_program()), jnp.ones(1)
    for _ in range(3):
        function = trunnion.jax_call(program)
        assert jax.eval_shape(lambda x, function=function: function(x, 2.0, None), x).shape == (1,)


def test_a_batch_is_called_member_by_member():
    axpy, x = called("cpu_axpy"), jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    assert jnp.array_equal(jax.vmap(lambda x: axpy(2.0, x, x))(x), 3 * x)
    assert jnp.array_equal(jax.jit(jax.vmap(lambda x: axpy(2.0, x, x), in_axes=1))(x), 3 * x.T)


def test_arguments_go_by_name_too():
    mix, x = called("mix"), jnp.arange(4, dtype=jnp.float32)
    assert jnp.array_equal(jax.jit(mix, static_argnames="k")(x, k=2.5, b=x), 3.5 * x)
    with pytest.raises(ArgumentTypeError, match="argument 'factor': got it by name"):
        mix(x, factor=2.5, b=None)
    with pytest.raises(ArgumentTypeError, match="argument 'b': got nothing"):
        mix(x, k=2.5)
    for word in ("out", "stream", "device"):
        with pytest.raises(
            ArgumentTypeError, match=f"argument '{word}': .*XLA allocates, and says the stream"
        ):
            mix(x, 2.5, x, **{word: None})


def test_a_gradient_is_refused_by_jax():
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: called("cpu_axpy")(2.0, x, x).sum())(jnp.ones(3))


def test_a_number_travels_as_a_double():
    third = 1 / 3
    assert called("mix")(jnp.ones(1, jnp.float32), third, None)[0] == jnp.float32(third)


def test_no_bit_of_a_double_is_lost_on_the_way(wide):
    code = """#include <trunnion/block.h>
    void add(const double* x, double k, double* y, const trunnion_block_t*) { *y = *x + k; }"""
    p = ProgramBuilder("add", DeviceCode("c++", code))
    x, k = p.input("x", "float64", (1,)), p.scalar("k", "float64")
    p.launch("add", args=(x, k, p.output("y", "float64", (1,))), grid=1, block=1)
    function, zero = trunnion.jax_call(trunnion.compile(p.build())), jnp.zeros(1, jnp.float64)
    for value in (1 / 3, 1 + 2**-52, 1e300):  # none so small that XLA has the processor flush it
        assert float(function(zero, value)[0]) == value


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((jnp.ones(3), jnp.ones(3), jnp.ones(3)), "argument 'alpha'"),
        ((2.0, jnp.ones(3), jnp.ones(4)), "got extent 4 along dimension 0, expected 3"),
        ((2.0, jnp.ones((3, 1)), jnp.ones(3)), "got 2 dimensions"),
        ((2.0, jnp.ones(3, jnp.int32), jnp.ones(3)), "got a tensor of int32, expected one of float32"),
        ((2.0, [1.0], jnp.ones(1)), "got list, expected a tensor"),
        ((2.0, None, jnp.ones(1)), "got NoneType, expected a tensor"),
        ((2.0, jnp.ones(3)), "got 2 arguments, expected 3"),
    ],
)
def test_a_wrong_call_is_refused_while_jax_traces(args, said):
    with pytest.raises(ArgumentError) as caught:
        called("cpu_axpy")(*args)
    assert said in str(caught.value)


def test_a_number_that_jax_traces_is_refused():
    with pytest.raises(ArgumentTypeError, match="static_argnums"):
        jax.jit(lambda k, x: called("cpu_axpy")(k, x, x))(2.0, jnp.ones(3))


def test_an_output_that_jax_would_narrow_is_refused():
    with pytest.raises(DeviceRequirementError, match="jax_enable_x64"):
        called("cpu_softmax")(jnp.ones((2, 2)), 0)


def _with(*args, outputs=1, **words):
    (n,) = symbols("n")
    p = ProgramBuilder("odd", DeviceCode("c++", "void odd(const void*) {}"))
    p.input("x", "float32", (n,), **words)
    for kind, *rest in args:
        getattr(p, kind)("more", *rest)
    for place in range(outputs):
        p.output(f"y{place}", "float32", (n,))
    p.launch("odd", args=(), grid=1, block=1)
    return trunnion.compile(p.build(), lazy=True)


@pytest.mark.parametrize(
    ("program", "feature"),
    [
        (_with(access="write"), "a tensor that is written"),
        (_with(("pointer",)), "addresses"),
        (_with(("struct", 8, 8)), "structs by value"),
        (_with(("scalar", "complex64")), "complex numbers"),
        *(
            (_with(("input", kind, ())), "tensors of complex numbers or of pairs of 4-bit floats")
            for kind in ("complex32", "complex64", "complex128", "float4_e2m1fn_x2")
        ),
        *(
            (_with(("output", kind, ())), "tensors of complex numbers or of pairs of 4-bit floats")
            for kind in ("complex64", "float4_e2m1fn_x2")
        ),
    ],
)
def test_what_jax_has_not_is_refused_by_name(program, feature):
    with pytest.raises(UnsupportedFeatureError) as caught:
        trunnion.jax_call(program)
    assert caught.value.features == (feature,)


def test_a_program_without_outputs_and_what_is_none_are_refused():
    with pytest.raises(ProgramError, match="has no output"):
        trunnion.jax_call(_with(outputs=0))
    with pytest.raises(ArgumentTypeError):
        trunnion.jax_call(mix_program())


def test_a_launcher_that_is_python_is_refused():
    program = trunnion.compile(examples.load("vector_add").program, "nvrtc", target="sm_90a")
    with pytest.raises(UnsupportedFeatureError, match="it is Python"):
        trunnion.jax_call(program)


def test_workspaces_that_would_not_be_aligned_are_refused():
    (n,) = symbols("n")
    p = ProgramBuilder("two", DeviceCode("cuda", 'extern "C" __global__ void two(float*, float*, float*) {}'))
    p.input("x", "float32", (n,))
    spaces = [p.workspace(name, "float32", (n,)) for name in "ab"]
    p.launch("two", args=(*spaces, p.output("y", "float32", (n,))), grid=1, block=1)
    with pytest.raises(UnsupportedFeatureError, match="make one workspace of them"):
        trunnion.jax_call(trunnion.compile(p.build(), "tvm_ffi", target="sm_90a"))


def _for_each_multiprocessor(extent, **words):
    (n,) = symbols("n")
    p = ProgramBuilder("wide", DeviceCode("cuda", 'extern "C" __global__ void wide(float*, float*) {}'))
    p.input("x", "float32", (n,))
    space = p.workspace("space", "float32", (extent(n),))
    p.launch("wide", args=(space, p.output("y", "float32", (n,))), block=1, **words)
    return trunnion.compile(p.build(), "tvm_ffi", target="sm_90a")


@pytest.mark.parametrize(
    "words", [{"grid": device.multiprocessor_count}, {"grid": 1, "when": gt(device.warp_size, 31)}]
)
def test_a_launch_of_which_the_device_decides_has_its_workspace(monkeypatch, words):
    """Without a driver: nothing is loaded."""
    monkeypatch.setattr("trunnion.operators.jax_call._loaded", lambda program: None)
    monkeypatch.setattr("trunnion.operators.jax_call._JaxCall._target", lambda call, args: "none")
    program = _for_each_multiprocessor(lambda n: 256 * n, **words)
    traced = jax.make_jaxpr(trunnion.jax_call(program))(jnp.ones(4096, jnp.float32))
    # 4096 x 256 x 4 bytes, and room to align them
    assert [str(out.aval) for out in traced.eqns[0].outvars] == [
        "float32[4096]",
        f"uint8[{4096 * 256 * 4 + 256}]",
    ]


def test_a_workspace_whose_size_the_device_decides_is_refused():
    program = _for_each_multiprocessor(lambda n: n * device.multiprocessor_count, grid=1)
    with pytest.raises(UnsupportedFeatureError, match="'space': say the size") as caught:
        trunnion.jax_call(program)
    assert caught.value.features == ("a workspace whose size facts of the device decide",)


def test_the_code_of_its_page_runs():
    source = page_source("docs/jax.md", PAGE.read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


WIDE = """
#include <trunnion/block.h>
void high(const float* x, uint64_t u, float* y, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (float)(u >> 60);
}
"""


@pytest.mark.parametrize("u", [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_number_may_have_all_64_bits(u):
    """jax-tvm-ffi knows no number without a sign: it ended such a call in `std::bad_cast`."""
    (n,) = symbols("n")
    p = ProgramBuilder("high", DeviceCode("c++", WIDE))
    x, given = p.input("x", "float32", (n,)), p.scalar("u", "uint64")
    p.launch("high", args=(x, given, p.output("y", "float32", (n,)), n), grid=1, block=1)
    high = trunnion.jax_call(trunnion.compile(p.build()))
    for _ in range(2):
        assert jax.jit(lambda x: high(x, u))(jnp.ones(2)).tolist() == [1 + (u >> 60)] * 2
    assert high(jnp.ones(2), 1 << 60).tolist() == [2, 2]
