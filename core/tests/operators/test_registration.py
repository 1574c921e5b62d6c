"""A program as an operator of torch: called, compiled, exported, refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, eq, examples, ge, gt, lt, select, symbols
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ProgramError,
    UnsupportedFeatureError,
)
from trunnion.operators.registration import PLACES

opcheck = torch.library.opcheck


@pytest.mark.parametrize("example", examples.CPU_EXAMPLES)
def test_torch_finds_nothing_wrong_with_an_example(example, name, lib):
    one = examples.load(example)
    op = trunnion.torch_op(trunnion.compile(one.program), name, lib=lib)
    for inputs in (one.inputs, *one.edges):
        args = inputs(torch.Generator().manual_seed(0), "cpu")
        results = op(*args)
        assert one.largest_error(results, args) <= one.tolerance
        opcheck(op.default, args)
    made = results if isinstance(results, tuple) else (results,)
    names = [argument.name for argument in op.out._schema.arguments if argument.kwarg_only]
    opcheck(op.out, args, dict(zip(names, map(torch.empty_like, made), strict=True)))


def _rows(x, bias, most, negate):
    value = (-x if negate else x) + (0 if bias is None else bias)
    return value[:, : most or None].contiguous(), value.double().sum(dim=1)


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("bias", [None, torch.arange(5.0)])
def test_torch_finds_nothing_wrong_with_inputs_of_any_strides(compiled, name, lib, permuted, bias):
    op = trunnion.torch_op(compiled("rows"), name, lib=lib)
    assert str(op.default._schema).endswith(
        "(Tensor x, Tensor? bias, SymInt most, bool negate) -> (Tensor, Tensor)"
    )
    x = torch.randn(5, 3).t() if permuted else torch.randn(3, 5)
    for made, expected in zip(op(x, bias, 2, True), _rows(x, bias, 2, True), strict=True):
        assert torch.allclose(made, expected)
    opcheck(op.default, (x, bias, 2, True))
    opcheck(op.default, (x, bias, 0, False))


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # which torch uses itself
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_it_is_compiled_once_for_ten_shapes(compiled, name, lib, backend):
    op = trunnion.torch_op(compiled("rows"), name, lib=lib)
    counter = CompileCounterWithBackend(backend)

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def model(x):
        y, sums = op(x.t() + 1, None, 0, True)
        return y * 2, sums

    for m in range(3, 13):
        x = torch.randn(m + 4, m)
        for made, expected in zip(model(x), _rows(x.t() + 1, None, 0, True), strict=True):
            assert torch.allclose(made, expected * (2 if made.ndim > 1 else 1), atol=1e-5)
    assert counter.frame_count == 1


def test_what_it_writes_into_is_known(compiled, name, lib):
    op = trunnion.torch_op(compiled("add_into"), name, lib=lib)
    assert str(op.default._schema).endswith("(Tensor x, Tensor(a!) total) -> ()")
    assert op.overloads() == ["default"]
    x, total = torch.ones(4), torch.zeros(4)
    opcheck(op.default, (x, total.clone()))
    assert op(x, total) is None
    assert total._version == 1

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(x):
        total = torch.zeros_like(x)
        op(x, total)
        op(x, total)
        return total

    assert model(x).tolist() == [2.0] * 4
    saved = torch.ones(4, requires_grad=True)
    product = (saved * total).sum()
    op(x, total)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    with torch.inference_mode():
        op(x, torch.zeros(4))


@pytest.mark.parametrize("cpp", [False, True])
def test_what_it_writes_into_beside_its_results_is_counted_in_each_overload(compiled, name, cpp):
    op = trunnion.torch_op(compiled("add_and_give"), name, cpp=cpp)
    x, total, y, z = torch.ones(4), torch.zeros(4), torch.zeros(4), torch.zeros(4)
    assert [one.tolist() for one in op(x, total)] == [[1.0] * 4, [2.0] * 4]
    assert (total._version, x._version) == (1, 0)
    op.out(x, total, y=y, z=z)
    assert [one.tolist() for one in (total, y, z)] == [[2.0] * 4, [2.0] * 4, [4.0] * 4]
    assert [one._version for one in (x, total, y, z)] == [0, 2, 1, 1]


@pytest.mark.parametrize("program", ["add_and_give_keyset", "add_and_give_library"])
def test_an_output_may_be_called_as_what_counts_writes_calls_things(compiled, name, program):
    op = trunnion.torch_op(compiled(program), name, cpp=True)
    names = [argument.name for argument in op.out._schema.arguments if argument.kwarg_only]
    out = {one: torch.zeros(4) for one in names}
    op.out(torch.ones(4), torch.zeros(4), **out)
    assert [one.tolist() for one in out.values()] == [[1.0] * 4, [2.0] * 4]
    assert [one._version for one in out.values()] == [1, 1]


@pytest.mark.parametrize("program", ["add_and_give_of_mode", "add_and_give_of_view"])
def test_an_argument_may_be_called_as_what_torch_adds_to_those_of_what_writes(compiled, name, lib, program):
    op = trunnion.torch_op(compiled(program), name, lib=lib)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(x):
        total, y, z = (torch.zeros_like(x) for _ in range(3))
        op(x, total)
        op.out(x, total, **dict(zip(names, (y, z), strict=True)))
        return total, y, z

    names = [argument.name for argument in op.out._schema.arguments if argument.kwarg_only]
    assert [one.tolist() for one in model(torch.ones(4))] == [[2.0] * 4, [2.0] * 4, [4.0] * 4]


@pytest.mark.parametrize("overload", ["default", "out"])
@pytest.mark.parametrize("cpp", [False, True])
def test_what_it_writes_while_no_gradient_is_recorded_is_counted_as_well(compiled, name, cpp, overload):
    """As an optimizer's step writes: what was saved before, it changes all the same."""
    if overload == "default":
        op, saved = trunnion.torch_op(compiled("add_into"), name, cpp=cpp), torch.zeros(4)
        write = partial(op, torch.ones(4), saved)
    else:
        op, saved = trunnion.torch_op(compiled("scale"), name, cpp=cpp), torch.zeros(4).double()
        write = partial(op.out, torch.ones(4).double(), 3.0, out=saved)
    product = (saved * torch.ones_like(saved, requires_grad=True)).sum()
    with torch.no_grad():
        write()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_out_is_an_overload_that_returns_nothing_and_is_made_functional(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    x, y = torch.ones(4).double(), torch.zeros(4).double()
    assert op.out(x, 3.0, out=y) is None
    assert (y._version, y.tolist()) == (1, [3.0] * 4)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(x):
        y = torch.zeros_like(x)
        op.out(x, 3.0, out=y)
        return y + 1

    assert model(x).tolist() == [4.0] * 4
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        with pytest.raises(
            ArgumentValueError, match=r"argument 'y' \(out\): got extent 5 along dimension 0, expected 4"
        ):
            op.out(fake, 3.0, out=torch.empty(5).double())
        with pytest.raises(
            ArgumentTypeError, match=r"got a tensor of torch\.float32, expected one of float64"
        ):
            op.out(fake, 3.0, out=torch.empty(4))
        with pytest.raises(ArgumentValueError, match="to write into"):
            op.out(fake, 3.0, out=torch.empty(8).double()[::2])
    for given, into in (
        (x, x.to("meta")),
        (x.to("meta"), x),
    ):  # torch asks the fake, as one of them is on meta
        with pytest.raises(ArgumentValueError, match=r"argument 'y' \(out\): got a tensor on "):
            op.out(given, 3.0, out=into)


def test_an_address_is_an_integer_and_a_struct_the_list_of_its_bytes(compiled, name, lib):
    op = trunnion.torch_op(compiled("clamp"), name, lib=lib)
    x, weights = torch.tensor([-3.0, 0.5, 3.0]), torch.tensor([1, 2, 3], dtype=torch.int32)
    limits = [*struct.pack("<ff", -1, 1)]
    assert op(x, limits, None).tolist() == [-1.0, 0.5, 1.0]
    assert op(x, limits, weights.data_ptr()).tolist() == [-1.0, 1.0, 3.0]
    opcheck(op.default, (x, limits, weights.data_ptr()))
    assert torch.compile(op, fullgraph=True, backend="aot_eager")(x, limits, None).tolist() == [
        -1.0,
        0.5,
        1.0,
    ]
    with pytest.raises(ArgumentValueError, match="0 to 255"):
        op(x, [*limits[:-1], 256], None)
    for given in (x, x.to("meta")):
        with pytest.raises(ArgumentValueError, match="argument 'range': got 7 bytes, expected 8"):
            op(given, limits[:-1], None)


def _even():
    n, k = (Symbol(one, min=2, multiple_of=2) for one in "nk")
    p = ProgramBuilder("even", DeviceCode("c++", EVEN))
    x, total = p.input("x", "float32", (n,)), p.input("total", "float32", (n,))
    p.scalar("k", "int32", k)
    p.launch("even", args=(x, total, p.output("y", "float32", (n - 2,)), n, k), grid=1, block=1)
    return trunnion.compile(p.build())


EVEN = """
#include <trunnion/block.h>

void even(const float* x, const float* t, float* y, int64_t n, int64_t k, const trunnion_block_t*) {
  for (int64_t i = 0; i < n - 2; ++i) y[i] = x[i] + t[i] * k;
}
"""


def test_what_only_memory_knows_is_asserted_when_the_graph_runs(name, lib):
    op = trunnion.torch_op(_even(), name, lib=lib)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(x, k, count):
        return op(x[x > 0], torch.ones(count.item()), k.item())

    two, four = torch.tensor(2), torch.tensor(4)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        assert model(torch.ones(4), two, four).tolist() == [3.0] * 2
        for wrong in ((torch.ones(4), two, two), (torch.ones(4), torch.tensor(3), four)):
            with pytest.raises((RuntimeError, ArgumentValueError)):
                model(*wrong)


def _copying(extent=lambda n: n, check=None):
    (n,) = symbols("n")
    p = ProgramBuilder("copy", DeviceCode("c++", COPY))
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (extent(n),))
    if check is not None:
        p.check(check(n), "what fits")
    p.launch("copy", args=(x, y, n, extent(n)), grid=1, block=1)
    return trunnion.compile(p.build())


COPY = """
#include <trunnion/block.h>

void copy(const float* x, float* y, int64_t n, int64_t made, const trunnion_block_t*) {
  for (int64_t i = 0; i < made; ++i) y[i] = i < n ? x[i] : 0;
}
"""


def _traced(op):
    """Return an operator of what is greater than 0, as a graph."""
    torch._dynamo.reset()
    return torch.compile(lambda x: op(x[x > 0]) + 1, fullgraph=True, backend="aot_eager")


@pytest.fixture
def captured():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield


@pytest.mark.usefixtures("captured")
@pytest.mark.parametrize(
    ("check", "fits", "wrong"),
    [
        (lambda n: eq(n % 128, 0), (128, 256), 129),
        (lambda n: lt(n, 1000), (5, 999), 1000),
        (lambda n: n - 5, (4, 6), 5),
        (lambda n: lt(n, 1000) * ge(n, 3), (3, 999), 2),
        (lambda n: select(gt(n, 8), lt(n, 100), 1), (8, 99), 100),
    ],
)
def test_a_check_of_what_only_memory_knows_is_asserted(name, lib, check, fits, wrong):
    op = trunnion.torch_op(_copying(check=check), name, lib=lib)
    model = _traced(op)
    for count in fits:
        assert torch.equal(model(torch.ones(count)), torch.full((count,), 2.0))
    with pytest.raises(ArgumentValueError, match="what fits"):
        op(torch.ones(wrong))
    with pytest.raises(RuntimeError):
        model(torch.ones(wrong))


@pytest.mark.usefixtures("captured")
@pytest.mark.parametrize(
    "extent",
    [
        lambda n: select(gt(n, 8), 8, n),
        lambda n: select(gt(n, 8), n - 5, n + 1),
        lambda n: n + gt(n, 8) * 2,
        lambda n: select(gt(n, 8), select(lt(n, 10), 1, n), 2),
    ],
)
def test_a_choice_by_what_only_memory_knows_is_part_of_the_graph(name, lib, extent):
    op = trunnion.torch_op(_copying(extent), name, lib=lib)
    model = _traced(op)
    for count in (1, 8, 9, 20):
        assert torch.equal(model(torch.ones(count)), op(torch.ones(count)) + 1)


@pytest.mark.usefixtures("captured")
def test_strides_of_as_many_rows_as_only_memory_knows(name, lib):
    n, s = symbols("n s")
    p = ProgramBuilder("copy", DeviceCode("c++", COPY))
    x, y = p.input("x", "float32", (n, 3), strides=(s, 1)), p.output("y", "float32", (n, 3))
    p.launch("copy", args=(x, y, n * 3, n * 3), grid=1, block=1)
    op, x = trunnion.torch_op(trunnion.compile(p.build()), name, lib=lib), torch.randn(5, 3)
    torch._dynamo.reset()
    model = torch.compile(lambda x: op(x[x[:, 0] > 0]), fullgraph=True, backend="aot_eager")
    for one in (x, x.abs(), -x.abs()):
        assert torch.equal(model(one), one[one[:, 0] > 0])


@pytest.mark.usefixtures("captured")
def test_what_is_written_to_is_of_as_many_elements_as_only_memory_knows(name, lib):
    op = trunnion.torch_op(_copying(), name, lib=lib)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(x, count):
        y = torch.zeros(count.item())
        op.out(x[x > 0], out=y)
        return y

    assert model(torch.ones(4), torch.tensor(4)).tolist() == [1.0] * 4
    with pytest.raises((RuntimeError, ArgumentValueError)):
        model(torch.ones(4), torch.tensor(3))


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # which torch uses itself
@pytest.mark.parametrize("program", ["poke", "poke_and_give"])  # the other's result is read by nobody
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_takes_an_address_is_called_as_often_as_it_is_written_and_in_that_order(
    compiled, name, lib, backend, program
):
    op, memory = trunnion.torch_op(compiled(program), name, lib=lib), torch.zeros(4)
    there = memory.data_ptr()

    @torch.compile(fullgraph=True, dynamic=True, backend=backend)
    def model(x):
        op(x, there)
        op(x + 1, there)
        op(x, there)
        return x * 2

    assert model(torch.ones(4)).tolist() == [2.0] * 4
    assert memory.tolist() == [121.0] * 4


def test_what_takes_an_address_is_registered_as_torch_wants_it(compiled, name, lib):
    op, memory = trunnion.torch_op(compiled("poke"), name, lib=lib), torch.zeros(4)
    opcheck(op.default, (torch.ones(4), memory.data_ptr()))


def test_defaults_are_given_to_the_program(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, defaults={"k": 2.0}, lib=lib)
    x = torch.ones(3).double()
    assert op(x).tolist() == op(x, k=2.0).tolist() == [2.0] * 3
    assert op(x, 4.0).tolist() == [4.0] * 3
    out = torch.zeros(3).double()
    op.out(x, out=out)
    assert out.tolist() == [2.0] * 3
    opcheck(op.default, (x,))
    assert torch.compile(op, fullgraph=True, backend="aot_eager")(x).tolist() == [2.0] * 3
    assert torch.vmap(op)(torch.ones(2, 3).double()).tolist() == [[2.0] * 3] * 2


def test_autocast_casts_where_it_is_asked_to(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, autocast=torch.float64, lib=lib)
    with torch.autocast("cpu"):
        assert op(torch.ones(3), 2.0).tolist() == [2.0] * 3
    with pytest.raises(ArgumentTypeError, match="expected one of float64"):
        op(torch.ones(3), 2.0)


def test_autocast_is_to_floats_as_torch_casts_nothing_else(compiled, name, lib):
    with pytest.raises(ArgumentValueError, match="int32, expected a dtype of floats"):
        trunnion.torch_op(compiled("scale"), name, autocast=torch.int32, lib=lib)


@pytest.mark.parametrize("given", [5, [("k", 2.0)], "k", {5: 2.0}])
def test_defaults_that_are_no_mapping_of_names_are_refused(compiled, name, lib, given):
    for call in (trunnion.torch_op, trunnion.torch_stub):
        with pytest.raises(ArgumentTypeError, match=r"'defaults'.*a mapping from parameters' names"):
            call(compiled("scale"), name, defaults=given)


def test_whether_it_is_cpp_is_said_by_a_bool(compiled, name):
    with pytest.raises(ArgumentTypeError, match="'cpp'"):
        trunnion.torch_op(compiled("scale"), name, cpp="no")


def test_autocast_of_what_is_written_is_refused_as_the_copy_alone_would_be_written(compiled, name, lib):
    with pytest.raises(UnsupportedFeatureError, match=r"autocast.*'total'"):
        trunnion.torch_op(compiled("add_into"), name, autocast=torch.float32, lib=lib)
    assert not hasattr(torch.ops.trunnion_tests, name.partition("::")[2])


def test_of_several_tags_the_one_that_is_none_is_told(compiled, name):
    with pytest.raises(
        ArgumentTypeError, match=r"'tags': got str 'core' in a list, expected a list of torch\.Tag's"
    ):
        trunnion.torch_op(compiled("scale"), name, tags=[torch.Tag.core, "core"])


def test_tags_are_torchs(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, tags=(torch.Tag.cudagraph_unsafe,), lib=lib)
    for overload in (op.default, op.out):
        assert {torch.Tag.cudagraph_unsafe, torch.Tag.needs_exact_strides} <= {*overload.tags}


def test_a_lazy_negative_is_resolved_before_the_program_sees_it(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    assert op(torch._neg_view(torch.ones(3).double()), 2.0).tolist() == [-2.0] * 3


def test_a_lazy_negative_to_write_to_is_refused_by_torch_and_stays_as_it_was(compiled, name, lib):
    op, memory = trunnion.torch_op(compiled("scale"), name, lib=lib), torch.zeros(3).double()
    with pytest.raises(RuntimeError):
        op.out(torch.ones(3).double(), 2.0, out=torch._neg_view(memory))
    assert memory.tolist() == [0.0] * 3


def test_a_list_of_tensors_and_a_call_without_any_are_refused_by_torch(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Tensor' for argument 'x'.*'list'"):
        op([torch.ones(3).double()], 2.0)
    with pytest.raises(NotImplementedError, match="no tensor arguments"):
        op(None, 2.0)


def test_it_is_exported_with_sizes_that_are_open(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)

    class Model(torch.nn.Module):
        def forward(self, x):
            return op(x + 1, 3.0)

    sizes = ({0: torch.export.Dim("n")},)
    exported = torch.export.export(Model(), (torch.ones(8).double(),), dynamic_shapes=sizes)
    assert exported.module()(torch.ones(3).double()).tolist() == [6.0] * 3


def test_a_call_under_fake_tensors_runs_nothing(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    with FakeTensorMode():
        made = op(torch.empty(1 << 40, dtype=torch.float64), 2.0)
        assert tuple(made.shape) == (1 << 40,)
    assert op(torch.empty(5, dtype=torch.float64, device="meta"), 2.0).device.type == "meta"


def test_an_operator_goes_with_its_library_and_its_name_is_free_again(compiled):
    for _ in range(2):
        library = torch.library.Library("trunnion_tests", "FRAGMENT")
        op = compiled("scale").as_torch_op("trunnion_tests::goes", lib=library)
        assert op(torch.ones(2).double(), 2.0).tolist() == [2.0, 2.0]
        library._destroy()


ADD = """
#include <trunnion/block.h>
void vector_add(const float* a, const float* b, float* c, int n, const trunnion_block_t* block) {
  for (int i = block->index[0] * block->block[0], e = i + block->block[0]; i < e && i < n; ++i) c[i] = a[i] + b[i];
}
"""


def test_one_operator_runs_on_each_kind_of_device(name, lib):
    on_gpu = examples.load("vector_add").program
    on_cpu = trunnion.compile(replace(on_gpu, code=(DeviceCode("c++", ADD),)))
    compiled_on_gpu = trunnion.compile(on_gpu, "nvrtc", target="sm_90a", lazy=True)
    op = trunnion.torch_op([compiled_on_gpu, on_cpu], name, lib=lib)
    a = torch.randn(1000)
    assert torch.equal(op(a, a), a + a)
    torch.library.opcheck(op.default, (a, a))
    with FakeTensorMode():
        away = torch.empty(5, device="cuda")
        assert op(away, away).device.type == "cuda"
    with pytest.raises(ArgumentValueError, match="one, for an operator in C"):
        trunnion.torch_op([compiled_on_gpu, on_cpu], f"{name}_in_cpp", cpp=True)


def test_programs_of_one_operator_are_for_several_kinds_and_of_equal_signatures(compiled, name, lib):
    other = trunnion.compile(examples.load("vector_add").program, "nvrtc", target="sm_90a", lazy=True)
    with pytest.raises(ArgumentValueError, match="2 programs for cpu and cpu"):
        trunnion.torch_op([compiled("scale"), compiled("square")], name, lib=lib)
    with pytest.raises(ArgumentValueError, match="under a dispatch key one alone"):
        trunnion.torch_op([compiled("scale"), other], name, dispatch_key="CPU", lib=lib)
    with pytest.raises(ProgramError, match="'vector_add' for cuda, whose signature differs"):
        trunnion.torch_op([compiled("scale"), other], name, lib=lib)


def test_a_program_without_a_tensor_is_refused(name, lib):
    (n,) = symbols("n")
    p = ProgramBuilder("count", DeviceCode("c++", "void count(float* y, int64_t n, const void*) {}"))
    p.scalar("n", "int64", n)
    p.launch("count", args=(p.output("y", "float32", (n,)), n), grid=1, block=1)
    with pytest.raises(ProgramError, match="count: has no tensor among its parameters"):
        trunnion.torch_op(trunnion.compile(p.build(), lazy=True), name, lib=lib)


NO_PLACES = (
    "Undefined",
    "CompositeImplicitAutograd",
    "Autograd",
    "AutogradCPU",
    "AutocastCPU",
    "ADInplaceOrView",
    "Functionalize",
    "FuncTorchBatched",
    "Meta",
    "BackendSelect",
    "SparseCPU",
)


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        ({"vmap": "each"}, "vmap"),
        ({"tags": "core"}, "tags"),
        ({"lib": "mine"}, "lib"),
        ({"autocast": "float16"}, "autocast"),
        ({"setup_context": print}, "setup_context"),
        ({"backward": 3}, "backward"),
        ({"backward": print, "setup_context": 3}, "setup_context"),
        ({"cpp": True, "tags": (torch.Tag.core,)}, "tags"),
        ({"dispatch_key": "Nonsense"}, "dispatch_key"),
        ({"dispatch_key": 7}, "dispatch_key"),
        *(({"dispatch_key": key}, "dispatch_key") for key in NO_PLACES),
        ({"lib": torch.library.Library("trunnion_others", "FRAGMENT")}, "lib"),
    ],
)
def test_what_is_no_option_is_refused_by_its_name_and_nothing_is_registered(
    compiled, name, lib, words, argument
):
    with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
        trunnion.torch_op(compiled("scale"), name, **{"lib": None if "cpp" in words else lib} | words)
    assert caught.value.argument == argument
    assert not hasattr(torch.ops.trunnion_tests, name.partition("::")[2])


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd"])
def test_a_key_by_which_torch_finds_it_is_taken(compiled, name, lib, key):
    op = trunnion.torch_op(compiled("scale"), name, dispatch_key=key, lib=lib)
    assert torch.equal(op(torch.ones(2, dtype=torch.float64), 2.0), 2 * torch.ones(2, dtype=torch.float64))


def test_every_key_that_may_be_named_is_torchs():
    assert [key for key in PLACES if torch._C._parse_dispatch_key(key) is None] == []


def test_what_is_no_program_is_refused(compiled, lib, name):
    for given in (compiled("scale").program, [], ["scale"]):
        with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
            trunnion.torch_op(given, name, lib=lib)
        assert caught.value.argument == "program"
    for function in (
        trunnion.torch_op,
        trunnion.torch_stub,
        partial(trunnion.export_torch_op, folder="none"),
    ):
        with pytest.raises(ArgumentTypeError, match=r"as trunnion\.compile returns it"):
            function(compiled("scale").program, name)


def test_a_name_that_torch_knows_is_refused(compiled, name, lib):
    trunnion.torch_op(compiled("scale"), name, lib=lib)
    with pytest.raises(ArgumentValueError, match=r"a name that torch has no operator of; .* as its lib="):
        trunnion.torch_op(compiled("scale"), name, lib=lib)
    for namespace in ("load_library", "higher_order", "__name__"):  # which torch.ops has for something else
        with pytest.raises(ArgumentValueError, match="a namespace of your own"):
            trunnion.torch_op(compiled("scale"), f"{namespace}::a")


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # which torch uses itself
def test_forward_mode_is_refused_rather_than_taken_for_zero(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    x = torch.ones(3).double()
    with pytest.raises(UnsupportedFeatureError, match="forward-mode differentiation"):
        torch.func.jvp(lambda x: op(x, 2.0), (x,), (x,))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(UnsupportedFeatureError):
        op.out(x, 2.0, out=torch.empty_like(x))
    assert op(x, 2.0).tolist() == [2.0] * 3


def test_an_error_of_a_call_is_the_programs_own(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    with pytest.raises(ArgumentValueError, match="argument 'x': got 2 dimensions"):
        op(torch.ones(2, 2).double(), 2.0)
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="2 dimensions, shape"):
        torch.compile(op, fullgraph=True, backend="eager")(torch.ones(2, 2).double(), 2.0)


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
@pytest.mark.parametrize("example", ["vector_add", "affine", "histogram", "two_boxes"])
def test_a_simulated_tensor_reaches_the_program_by_the_key_of_the_cpu(simulator, example, backend, name, lib):
    one = examples.load(example)
    op = trunnion.torch_op(
        trunnion.compile(one.program, backend, target="sm_90a"), name, dispatch_key="CPU", lib=lib
    )
    with simulator.torch_mode():
        args = one.inputs(torch.Generator().manual_seed(0), "cuda:0")
        given = [[*value] if isinstance(value, bytes) else _plain(value) for value in args]
        for kernel, body in one.bodies.items():
            simulator.register_body(kernel, body)
        assert one.largest_error(op(*given), args) <= one.tolerance
        for kernel in one.bodies:
            simulator.unregister_body(kernel)


def _plain(value):
    return value.__index__() if type(value).__name__ == "Address" else value
