"""Gradients of operators, by a program or by a function."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, symbols
from trunnion.errors import ArgumentTypeError, ArgumentValueError, UnsupportedFeatureError


@pytest.fixture
def square(compiled, name, lib):
    return trunnion.torch_op(compiled("square"), name, backward=compiled("twice"), lib=lib)


def test_a_program_whose_names_say_what_it_takes_is_a_gradient(square):
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(square, x)
    torch.library.opcheck(square.default, (x,))
    y = square(x)
    assert not square(x.detach()).requires_grad
    y.sum().backward()  # whose gradient has stride 0
    assert torch.allclose(x.grad, 2 * x)


def test_what_is_changed_before_its_gradient_is_taken_is_noticed(square):
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = square(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_result_that_its_gradient_takes_is_kept_by_nobody_else(compiled, name, lib):
    """It and what keeps it for its gradient would keep each other, and their memory, until Python collects."""
    op = trunnion.torch_op(compiled("square"), name, backward=compiled("twice_of_result"), lib=lib)
    x = torch.full((3,), 2.0, dtype=torch.float64, requires_grad=True)
    y = op(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [8.0] * 3
    gc.collect()
    gc.disable()
    try:
        y = op(x)
        keeper = weakref.ref(y.grad_fn)
        del y
        assert keeper() is None
    finally:
        gc.enable()


def test_numbers_reach_it_and_what_has_no_gradient_gets_none(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, backward=compiled("gradient_of_scale"), lib=lib)
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: op(x, 3.0), x)
    torch.library.opcheck(op.default, (x, 3.0))


BIASED = """
#include <trunnion/block.h>

void biased(const double* x, const double* b, double* y, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (b == nullptr ? 0 : b[i]);
}
void back(const double* g, double* dx, double* db, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) dx[i] = db[i] = g[i];
}
"""


def test_of_a_tensor_that_is_left_out_there_is_no_gradient(name, lib):
    (n,) = symbols("n")
    p, q = (ProgramBuilder(one, DeviceCode("c++", BIASED)) for one in ("biased", "back"))
    x, b = p.input("x", "float64", (n,)), p.input("b", "float64", (n,), nullable=True)
    p.launch("biased", args=(x, b, p.output("y", "float64", (n,)), n), grid=1, block=1)
    g = q.input("grad_y", "float64", (n,))
    gradients = q.output("grad_x", "float64", (n,)), q.output("grad_b", "float64", (n,))
    q.launch("back", args=(g, *gradients, n), grid=1, block=1)
    forward, backward = trunnion.compile(p.build()), trunnion.compile(q.build())
    op = trunnion.torch_op(forward, name, backward=backward, lib=lib)
    x, b = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(op, (x, b))
    assert torch.autograd.gradcheck(lambda x: op(x, None), x)


TWO = """
#include <trunnion/block.h>

void two(const double* x, double* y, double* z, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) z[i] = 3 * (y[i] = 2 * x[i]);
}
void back(const double* g, double* dx, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) dx[i] = 2 * g[i];
}
"""


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # which torch uses itself
@pytest.mark.parametrize("cpp", [False, True])
def test_an_output_whose_gradient_the_program_does_not_take_has_none(name, cpp):
    (n,) = symbols("n")
    p, q = (ProgramBuilder(one, DeviceCode("c++", TWO)) for one in ("two", "back"))
    x = p.input("x", "float64", (n,))
    p.launch("two", args=(x, *(p.output(one, "float64", (n,)) for one in "yz"), n), grid=1, block=1)
    g = q.input("grad_y", "float64", (n,))
    q.launch("back", args=(g, q.output("grad_x", "float64", (n,)), n), grid=1, block=1)
    op = trunnion.torch_op(trunnion.compile(p.build()), name, backward=trunnion.compile(q.build()), cpp=cpp)
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    for call in (op, torch.compile(op, fullgraph=True, backend="aot_eager")):
        y, z = call(x)
        assert (y.requires_grad, z.requires_grad) == (True, False)
        (gradient,) = torch.autograd.grad((y + z).sum(), x)
        assert gradient.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="does not require grad"):
        op(x)[1].sum().backward()
    torch.library.opcheck(op.default, (x,))


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # which torch uses itself
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_it_is_compiled_both_ways(square, backend):
    @torch.compile(fullgraph=True, dynamic=True, backend=backend)
    def model(x):
        return (square(x + 1) * x).sum()

    for count in (3, 4, 7):
        x = torch.randn(count, dtype=torch.float64, requires_grad=True)
        (got,) = torch.autograd.grad(model(x), x)
        (want,) = torch.autograd.grad(((x + 1) ** 2 * x).sum(), x)
        assert torch.allclose(got, want)


def test_a_second_gradient_is_refused_by_name(square, name):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(square(x).sum(), x, create_graph=True)
    with pytest.raises(UnsupportedFeatureError) as caught:
        first.sum().backward()
    assert caught.value.features == ("double backward",)
    assert name in str(caught.value)


def test_a_function_of_torchs_form_is_a_gradient_and_may_be_differentiated(compiled, name, lib):
    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    op = trunnion.torch_op(
        compiled("square"),
        name,
        backward=lambda ctx, gradient: 2 * ctx.saved_tensors[0] * gradient,
        setup_context=keep,
        lib=lib,
    )
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, x)
    assert torch.autograd.gradgradcheck(op, x)


def test_without_a_gradient_torch_warns_when_one_is_asked_for(compiled, name, lib):
    op = trunnion.torch_op(compiled("square"), name, lib=lib)
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = op(x)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        y.sum().backward()


def test_a_gradient_of_what_writes_into_its_inputs_is_refused(compiled, name, lib):
    with pytest.raises(UnsupportedFeatureError, match="'total'; declare what it writes as an output"):
        trunnion.torch_op(compiled("add_into"), name, backward=print, lib=lib)


@pytest.mark.parametrize("cpp", [False, True])
def test_what_is_written_has_no_gradient_so_a_call_that_would_need_one_is_refused(compiled, name, cpp):
    op = trunnion.torch_op(compiled("add_into"), name, cpp=cpp)
    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    for args in ((x, y), (x, y * 1), (y, x)):
        with pytest.raises(UnsupportedFeatureError, match=r"a gradient.*torch\.no_grad"):
            op(*args)
    with pytest.raises(Exception, match="a gradient"):
        torch.compile(op, fullgraph=True, backend="aot_eager")(x, y)
    assert (x.tolist(), y.tolist()) == ([1.0] * 3, [1.0] * 3)
    with torch.no_grad():
        op(x, y)
        assert torch.compile(op, fullgraph=True, backend="aot_eager")(x, y) is None
    assert y.tolist() == [3.0] * 3


@pytest.mark.parametrize("cpp", [False, True])
def test_what_is_given_to_write_to_has_no_gradient(compiled, name, cpp):
    op = trunnion.torch_op(compiled("square"), name, cpp=cpp, backward=compiled("twice"))
    x, y = torch.ones(3).double(), torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for given, into in ((x, y), (y, x)):
        with pytest.raises(UnsupportedFeatureError, match="a gradient"):
            op.out(given, out=into)
    with torch.no_grad():
        op.out(x, out=y)
    assert y.tolist() == [1.0] * 3


def test_a_model_whose_parameters_require_gradients_is_exported_all_the_same(compiled, name, lib):
    op = trunnion.torch_op(compiled("add_into"), name, lib=lib)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            op(x * self.weight, self.total)
            return self.total * 2

    exported = torch.export.export(Model(), (torch.ones(3),))
    with torch.no_grad():
        assert exported.module()(torch.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("backward", "said"),
    [
        ("scale", "a parameter 'k', expected one of 'x', 'y', 'grad_y'"),
        ("square", "an output 'y', expected of 'grad_x' each at most once"),
    ],
)
def test_a_program_of_other_names_is_refused(compiled, name, lib, backward, said):
    with pytest.raises(ArgumentValueError) as caught:
        trunnion.torch_op(compiled("square"), name, backward=compiled(backward), lib=lib)
    assert said in str(caught.value)
    assert not hasattr(torch.ops.trunnion_tests, name.partition("::")[2])


def test_a_program_that_takes_no_gradient_is_refused(compiled, name, lib):
    (n,) = symbols("n")
    p = ProgramBuilder("blind", DeviceCode("c++", "void blind(const double*, double*, const void*) {}"))
    p.launch(
        "blind", args=(p.input("x", "float64", (n,)), p.output("grad_x", "float64", (n,))), grid=1, block=1
    )
    with pytest.raises(
        ArgumentValueError, match="no gradient among its parameters, expected one of 'grad_y'"
    ):
        trunnion.torch_op(compiled("square"), name, backward=trunnion.compile(p.build(), lazy=True), lib=lib)


def _gradient_that_takes(kind, called, *rest):
    (n,) = symbols("n")
    p = ProgramBuilder("odd", DeviceCode("c++", "void odd(const void*) {}"))
    if called != "grad_y":
        p.input("grad_y", "float64", (n,))
    getattr(p, kind)(called, *rest)
    p.launch("odd", args=(p.output("grad_x", "float64", (8,)),), grid=1, block=1)
    return trunnion.compile(p.build(), lazy=True)


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (("input", "k", "float64", (8,)), "a tensor of float64 for a parameter 'k', expected a float,"),
        (("scalar", "k", "int64"), "an integer for a parameter 'k', expected a float,"),
        (("struct", "k", 8, 8), "a struct of 8 bytes for a parameter 'k', expected a float,"),
        (("scalar", "x", "float64"), "a float for a parameter 'x', expected a tensor of float64,"),
        (
            ("input", "x", "float32", (8,)),
            "a tensor of float32 for a parameter 'x', expected a tensor of float64,",
        ),
        (("pointer", "y"), "an address for a parameter 'y', expected a tensor of float64,"),
        (("scalar", "grad_y", "float64"), "a float for a parameter 'grad_y', expected a tensor of float64,"),
    ],
)
def test_a_program_that_takes_something_else_by_a_name_is_refused(compiled, name, lib, taken, said):
    with pytest.raises(ArgumentValueError) as caught:
        trunnion.torch_op(compiled("scale"), name, backward=_gradient_that_takes(*taken), lib=lib)
    assert said in str(caught.value)
    assert not hasattr(torch.ops.trunnion_tests, name.partition("::")[2])


def test_a_number_may_be_of_another_width(compiled, name, lib):
    backward = _gradient_that_takes("scalar", "k", "float32")
    trunnion.torch_op(compiled("scale"), name, backward=backward, lib=lib)


def test_a_call_that_the_gradients_program_refuses_says_whose_gradient_it_is(name, lib):
    (n,) = symbols("n")
    p, q = (ProgramBuilder(one, DeviceCode("c++", BIASED)) for one in ("biased", "twice"))
    x, b = p.input("x", "float64", (n,)), p.input("b", "float64", (n,), nullable=True)
    p.launch("biased", args=(x, b, p.output("y", "float64", (n,)), n), grid=1, block=1)
    b, g = q.input("b", "float64", (n,)), q.input("grad_y", "float64", (n,))
    q.launch("biased", args=(b, g, q.output("grad_x", "float64", (n,)), n), grid=1, block=1)
    op = trunnion.torch_op(trunnion.compile(p.build()), name, backward=trunnion.compile(q.build()), lib=lib)
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ArgumentTypeError, match="argument 'b': got NoneType") as caught:
        op(x, None).sum().backward()
    assert caught.value.__notes__ == [f"in the gradient of the operator {name}, by the program 'twice'"]


def test_what_a_program_takes_its_names_say(compiled, name, lib):
    with pytest.raises(ArgumentTypeError, match="None: what a program for backward= takes"):
        trunnion.torch_op(compiled("square"), name, backward=compiled("twice"), setup_context=print, lib=lib)


def test_transforms_of_torch_func_are_refused_by_torch(square):
    x = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda x: square(x).sum())(x)


def test_a_gradient_that_writes_into_its_inputs_is_refused(compiled, name, lib):
    (n,) = symbols("n")
    p = ProgramBuilder("into", DeviceCode("c++", "void into(double*, const void*) {}"))
    g = p.input("grad_y", "float64", (n,), access="read_write")
    p.launch("into", args=(g,), grid=1, block=1)
    backward = trunnion.compile(p.build(), lazy=True)
    with pytest.raises(UnsupportedFeatureError, match="writes into 'grad_y'"):
        trunnion.torch_op(compiled("square"), name, backward=backward, lib=lib)


def test_a_gradient_for_another_kind_of_device_is_refused(compiled, name, lib):
    code = (DeviceCode("cuda", 'extern "C" __global__ void twice(double*, double*, double*, long long) {}'),)
    on_gpu = replace(compiled("twice").program, code=code)
    backward = trunnion.compile(on_gpu, "nvrtc", target="sm_90a", lazy=True)
    with pytest.raises(ArgumentValueError, match="a program for cuda, expected one for cpu"):
        trunnion.torch_op(compiled("square"), name, backward=backward, lib=lib)


def test_a_name_that_its_gradient_would_need_is_taken(compiled, name, lib):
    trunnion.torch_op(compiled("twice"), f"{name}_backward", lib=lib)
    with pytest.raises(ArgumentValueError, match=f"{name}_backward"):
        trunnion.torch_op(compiled("square"), name, backward=compiled("twice"), lib=lib)
    assert not hasattr(torch.ops.trunnion_tests, name.partition("::")[2])


def test_a_gradient_that_torch_cut_out_is_as_aligned_as_it_must_be(compiled, name, lib):
    (n,) = symbols("n")
    p = ProgramBuilder("twice", compiled("twice").program.code)
    x, g = p.input("x", "float64", (n,)), p.input("grad_y", "float64", (n,), alignment=16)
    p.launch("twice", args=(x, g, p.output("grad_x", "float64", (n,)), n), grid=1, block=1)
    op = trunnion.torch_op(compiled("square"), name, backward=trunnion.compile(p.build()), lib=lib)
    for call in (op, torch.compile(op, fullgraph=True, backend="aot_eager")):
        ours, theirs = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
        torch.cat([call(theirs), call(ours)]).sum().mul(2).backward(retain_graph=True)
        torch.cat([call(theirs), call(ours)]).backward(torch.arange(6, dtype=torch.float64))
        wanted = 2 * ours * (2 + torch.arange(3, 6))
        assert torch.allclose(ours.grad, wanted)
