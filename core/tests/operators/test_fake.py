"""What a fake says, of tensors without memory and of sizes that nobody knows yet, is what a call gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from trunnion.errors import ArgumentError, ExprError, TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import ceildiv, gcd, lt, maximum, minimum, select, symbols
from trunnion.model.facts import device
from trunnion.operators.fake import FakeCall
from trunnion.testing.strategies import BytesSpec, TensorSpec, scenarios


def outputs(plan, *args):
    return FakeCall(plan, ("cpu",), args).outputs()


def structure(tensors):
    return [(tuple(map(int, one.shape)), tuple(map(int, one.stride())), one.dtype) for one in tensors]


@pytest.fixture
def plan(compiled):
    return compiled("rows").program.plan()


@pytest.mark.parametrize("most", [0, 2, 100])
@pytest.mark.parametrize("permuted", [False, True])
def test_it_says_what_comes_back(compiled, plan, most, permuted):
    x = torch.randn(5, 3).t() if permuted else torch.randn(3, 5)
    made = compiled("rows")(x, None, most, True)
    for one in (x, x.to("meta")):
        assert structure(outputs(plan, one, None, most, True)) == structure(made)
    with FakeTensorMode() as mode:
        assert structure(outputs(plan, mode.from_tensor(x), None, most, True)) == structure(made)


WRONG = {
    "dtype": (torch.ones(3, 5).double(), None, 0, True),
    "rank": (torch.ones(5), None, 0, True),
    "extent": (torch.ones(3, 5), torch.ones(4), 0, True),
    "layout": (torch.ones(3, 5), torch.ones(10)[::2], 0, True),
    "range": (torch.ones(3, 5), None, 1 << 40, True),
    "negative": (torch.ones(3, 5), None, -1, True),
    "a bool": (torch.ones(3, 5), None, 1, 2),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_refuses_in_the_words_of_the_call(compiled, plan, case):
    with pytest.raises(ArgumentError) as told:
        compiled("rows")(*WRONG[case])
    with pytest.raises(type(told.value)) as fake:
        outputs(plan, *WRONG[case])
    assert str(fake.value) == str(told.value)


def test_it_refuses_a_tensor_on_another_device(plan):
    with FakeTensorMode() as mode:
        away = mode.from_tensor(torch.ones(3, 5)).to("meta")
        with pytest.raises(ArgumentError, match="a tensor on cpu, expected meta, where 'x' lies"):
            outputs(plan, away, mode.from_tensor(torch.ones(5)), 0, True)
    with pytest.raises(ArgumentError, match=r"expected a tensor on a CUDA device; call .to\('cuda'\)"):
        FakeCall(plan, ("cuda",), (torch.ones(3, 5), None, 0, True)).outputs()


def _symbolic(mode, shape):
    """Return a tensor each extent of which is a symbol."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * len(shape))
    return mode.from_tensor(torch.ones(shape), symbolic_context=context)


@pytest.mark.parametrize(
    ("expression", "guards"),
    [
        (lambda m, n: m * n + 3, 0),
        (lambda m, n: ceildiv(m, 4) * (n // 2) - n % 3, 0),
        (lambda m, n: minimum(m, n) + maximum(m, 2), 0),
        (lambda m, n: (m + n).cast("int32"), 0),
        (lambda m, n: (m & 3) + (n | 8) + (m ^ n), 0),
        (lambda m, n: (m << 2) + (n >> 1), 0),
        (lambda m, n: n << m, 1),
        (lambda m, n: gcd(m, 10) + n, 1),
        (lambda m, n: select(lt(m, n), m, n * 2), 1),
    ],
)
def test_a_symbol_stays_a_symbol(expression, guards):
    from trunnion.operators.shapes import symbolic_value

    m, n = symbols("m n")
    expr = expression(slots_of(m, 0), slots_of(n, 1))
    env = ShapeEnv()
    x = _symbolic(FakeTensorMode(shape_env=env), (5, 7))
    before = len(env.guards)
    value = symbolic_value(expr, tuple(x.shape), ("m", "n"))
    assert isinstance(value, torch.SymInt)
    assert int(value.node.hint) == symbolic_value(expr, (5, 7), ("m", "n"))
    assert len(env.guards) - before == guards


@pytest.mark.parametrize(
    "expression", [lambda m, n: m // n, lambda m, n: m % n, ceildiv, lambda m, n: m + 1 // (n * 2)]
)
def test_a_division_by_what_is_known_to_be_zero_is_refused(expression):
    from trunnion.operators.shapes import symbolic_value

    expr = expression(*map(slots_of, symbols("m n"), range(2)))
    x = _symbolic(FakeTensorMode(shape_env=ShapeEnv()), (5,))
    with pytest.raises(ExprError, match="zero"):
        symbolic_value(expr, (x.shape[0], 0), ("m", "n"))


def slots_of(symbol, index):
    from trunnion.model.expr import Slot

    return Slot(index, symbol.min, symbol.max)


def test_bounds_that_every_number_keeps_are_no_guards(compiled):
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    x = mode.from_tensor(torch.ones(6).double(), symbolic_context=None)
    before = len(env.guards)
    with mode:
        (made,) = FakeCall(compiled("scale").program.plan(), ("cpu",), (x, 2.0)).outputs()
    assert made.shape == x.shape
    assert len(env.guards) == before


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")  # torch's own word
@given(scenarios())
def test_of_drawn_programs_it_says_the_same_whether_sizes_are_known(scenario):
    args = scenario.call.args
    plan = scenario.program.plan()
    known = [_meta(one) for one in args]
    env = ShapeEnv()
    with FakeTensorMode(shape_env=env) as mode:
        unknown = [
            mode.from_tensor(torch.empty_strided(one.shape, one.strides, dtype=one.kind, device="meta"))
            if isinstance(one, TensorSpec)
            else _meta(one)
            for one in args
        ]
        told = _told(plan, unknown)
    assert _told(plan, known) == told


def _meta(one):
    if isinstance(one, TensorSpec):
        return torch.empty_strided(one.shape, one.strides, dtype=one.kind, device="meta")
    return [*one.data] if isinstance(one, BytesSpec) else one


def _told(plan, args):
    """Return what a fake says: structures, or the class of its refusal."""
    if not any(isinstance(one, torch.Tensor) for one in args):
        return None
    try:
        return structure(FakeCall(plan, ("cuda",), args).outputs())
    except TrunnionError as error:
        return type(error)


def test_what_a_device_decides_is_for_the_call_to_judge():
    p = ProgramBuilder("sized", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n, 2)), p.output("y", "float32", (n,))
    p.check(lt(n, 100), "fewer than 100 rows")
    p.check(lt(device.multiprocessor_count, n), "more rows than multiprocessors")
    p.launch("k", (x, y, p.workspace("w", "int8", (device.warp_size,))), device.multiprocessor_count, 32)
    plan = p.build().plan()
    assert structure(outputs(plan, torch.ones(3, 2))) == [((3,), (1,), torch.float32)]
    with pytest.raises(ArgumentError, match="fewer than 100 rows"):
        outputs(plan, torch.ones(100, 2))
