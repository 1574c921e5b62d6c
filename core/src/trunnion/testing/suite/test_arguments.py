"""Laws of a call's arguments and of what it returns."""

from __future__ import annotations

import ast
import itertools
import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError, ArgumentTypeError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Check, ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.testing.arithmetic import integer_range
from trunnion.testing.comparison import check_call, check_expected, check_given, check_refused
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.laws import EVERY_WAY, law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.repeatable import BoundCall
from trunnion.testing.strategies import (
    Breakage,
    CallSpec,
    Scenario,
    TensorSpec,
    expressions,
    mistakes_of_each_kind,
    programs,
    scenarios,
)
from trunnion.testing.strategies.breakage import may_be_imaginary
from trunnion.testing.strategies.calls import AHEAD
from trunnion.testing.strategies.expressions import INTEGERS
from trunnion.testing.strategies.limits import narrow_operations, operations
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_launches import delivers_each
from trunnion.testing.ways import LOADS, Arguments, compiled_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.contract.adapter import BoundLaunch, LoadedProgram
    from trunnion.testing.harness import Harness
    from trunnion.testing.strategies.limits import Series

__all__: list[str] = []

_ONE = Const(1)
_DYNAMIC = frozenset({Capability.DYNAMIC_SHAPES})


def _broken(harness: Harness) -> st.SearchStrategy[Any]:
    return programs(harness.capabilities).flatmap(lambda p: st.tuples(st.just(p), mistakes_of_each_kind(p)))


def _with_one_mistake(
    example: tuple[KernelProgram, tuple[Breakage, ...]],
) -> Iterator[tuple[KernelProgram, tuple[Breakage, ...]]]:
    """Yield the right call alone, and with each mistake."""
    program, (right, *mistakes) = example
    yield program, (right,)
    for one in mistakes:
        yield program, (right, one)


@law("A1", tier="launch", given=_broken, parts=_with_one_mistake)
def wrong_arguments(harness: Harness, example: tuple[KernelProgram, tuple[Breakage, ...]]) -> None:
    """A call with a wrong argument raises the typed error that names it, and neither allocates nor launches.

    So it does after right calls that differ from it in nothing else, and where it is one of many. Tensors that require
    a gradient, or were made under ``torch.inference_mode()``, are as good as others.
    """
    harness.once(_check_many)
    harness.once(_check_packed)
    harness.once(_check_layouts)
    harness.once(_check_large_extents, each_way=False)
    harness.once(_check_alignments)
    harness.once(_check_classes)
    harness.once(_check_gradients)
    harness.once(_check_inference)
    harness.once(_check_sparse)
    harness.once(_check_many_addresses, each_way=False)
    harness.once(_check_words)
    program, (right, *mistakes) = example
    held: list[Any] = []
    with harness.loaded(program) as loaded:
        # How long a storage is may be asked where the address is new: see "What is checked" in docs/launching.md.
        for one in (*(right,) * 4, *sorted(mistakes, key=lambda one: not one.kind.endswith("storage"))):
            given = harness.given(one.call)
            for _ in range(1 + one.kind.endswith("storage")):
                facts, observed = harness.call_with(loaded, given)
                held += given, observed  # no memory of a right call is used again
                expected = expect(program, facts)
                # An address may be better aligned than the strategy imagined: then there is no mistake in the call.
                if isinstance(expected, Refused):
                    check_refused(harness, expected, observed)
                elif one is right:
                    check_expected(harness, program, facts, (expected, observed), first=False)


def _check_words(harness: Harness) -> None:
    """Require that a call which does not meet a condition is refused in the words that the program has for that."""
    nothing = Const(7).cast("int32") ^ 7  # it is 0, and nobody knows that before
    launch = KernelLaunch("k", (), (_ONE,) * 3, (_ONE,) * 3)
    checks = Check(_ONE, "what is met"), Check(nothing, "what is never met")
    program = KernelProgram("p", Signature((), (), checks), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        error = observe(harness, partial(loaded.call, (), device=0)).error
        told = isinstance(error, ArgumentError) and "what is never met" in str(error)
        harness.require(told, f"a condition, 'what is never met', is not met, and the call raised {error!r}")


def _check_packed(harness: Harness) -> None:
    """Require that a tensor of elements of less than a byte is refused in a storage that ends a byte before it."""
    tensor = TensorParam("a", dtype("float4_e2m1fn_x2"), (Const(32),))
    program = taking(tensor)
    good = TensorSpec(dtype="float4_e2m1fn_x2", shape=(32,), strides=(1,))
    with harness.loaded(program) as loaded:
        for spec in (good, good, replace(good, short=True, offset=AHEAD)):
            check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded, first=False)


def _check_layouts(harness: Harness) -> None:
    """Require that rows which lie too close are refused as those too far apart, but where there is no element."""
    shape = (Const(4), Const(3))
    tensor = TensorParam("a", dtype("float32"), shape)
    output = TensorParam("b", dtype("float32"), shape, access="write")
    program = taking(tensor, outputs=(output,))
    empty = TensorParam("a", dtype("float32"), (Const(4), Const(0)))
    without = taking(empty)
    good = TensorSpec(dtype="float32", shape=(4, 3), strides=(3, 1))
    with harness.loaded(program) as loaded:
        for strides in ((3, 1), (0, 1), (2, 1), (3, 0), (1, 4), (6, 2), (4, 1)):
            spec = replace(good, strides=strides)
            for call in (CallSpec(args=(spec,)), CallSpec(args=(good,), out=(spec,))):
                check_call(harness, Scenario(program, call), loaded, first=False)
    with harness.loaded(without) as loaded:
        for strides in ((1, 1), (0, 1), (16, 1), (16, 3), (0, 0)):
            spec = replace(good, shape=(4, 0), strides=strides)
            check_call(harness, Scenario(without, CallSpec(args=(spec,))), loaded, first=False)


def _check_large_extents(harness: Harness) -> None:
    """Require that an extent which has the right low 32 bits is refused, where no stride tells the difference."""
    program = taking(TensorParam("a", dtype("uint8"), (_ONE, Const(4))))
    good = TensorSpec(dtype="uint8", shape=(1, 4), strides=(4, 1))
    with harness.loaded(program) as loaded:
        for spec in (good, good, replace(good, shape=((1 << 32) + 1, 4), strides=(0, 1))):
            check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded, first=False)


def _check_alignments(harness: Harness) -> None:
    """Require that memory which is aligned well enough for one argument is refused where another asks for more."""
    tensors = (
        TensorParam("a", dtype("float32"), (Const(4),)),
        TensorParam("b", dtype("float32"), (Const(4),), alignment=64),
    )
    program = taking(*tensors)
    aligned = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    given = harness.given(CallSpec(args=(replace(aligned, shape=(8,)),)))
    (whole,) = given.args
    with harness.loaded(program) as loaded:
        for first, second in ((1, 0), (1, 0), (0, 1), (1, 1), (0, 0)):
            again = replace(given, args=[whole[start : start + 4] for start in (first, second)])
            check_given(harness, program, again, loaded, first=False)


def _check_classes(harness: Harness) -> None:
    """Require that a tensor of a class of its own, as parameters are, is as good as others, wherever it stands."""
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    output = TensorParam("b", dtype("float32"), (Const(4),), access="write")
    program = taking(tensor, outputs=(output,))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    with harness.loaded(program) as loaded:
        for out in (None, (spec,)):
            for _ in range(3):
                given = harness.given(CallSpec(args=(spec,), out=out))
                given.args, given.out = list(map(_own, given.args)), out and list(map(_own, given.out or ()))
                check_given(harness, program, given, loaded, first=False)


def _check_gradients(harness: Harness) -> None:
    """Require that a tensor that requires a gradient is as good as others; the simulator has none.

    No launch is autograd's, so an output requires a gradient only where the caller's destination does.
    """
    if harness.machine.tier == "sim":
        return
    import torch  # noqa: PLC0415 - tensors are torch's

    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    output = TensorParam("b", dtype("float32"), (Const(4),), access="write")
    program = taking(tensor, outputs=(output,))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    with harness.loaded(program) as loaded:
        for learning, out in ((True, None), (False, None), (False, (spec,))):
            for kind in (torch.Tensor.requires_grad_, torch.nn.Parameter) * 3:
                given = harness.given(CallSpec(args=(spec,), out=out))
                given.args, given.out = list(map(kind, given.args)), out and list(map(kind, given.out or ()))
                with torch.set_grad_enabled(learning):
                    facts, observed = harness.call_with(loaded, given)
                expected = expect(program, facts)
                assert isinstance(expected, Expected), expected
                check_expected(harness, program, facts, (expected, observed), first=False)
                learns = [one for one in observed.outputs if one.requires_grad and out is None]
                harness.require(not learns, "an output that nobody gave requires a gradient")


def _check_inference(harness: Harness) -> None:
    """Require that a tensor of inference mode, which has no version to ask for, is as good as others.

    So it is within that mode and outside of it, and after others at the same address.
    """
    import torch  # noqa: PLC0415 - tensors are torch's

    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    output = TensorParam("b", dtype("float32"), (Const(4),), access="write")
    program = taking(tensor, outputs=(output,))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    with harness.loaded(program) as loaded:
        for out in (None, (spec,)):
            with torch.inference_mode():
                inferred = harness.given(CallSpec(args=(spec,), out=out))
            ordinary = harness.given(CallSpec(args=(spec,), out=out))
            for given, within in (
                (ordinary, False),
                *itertools.product((inferred, ordinary), (True, True, False, False)),
            ):
                again = replace(given, args=list(given.args), out=out and list(given.out or ()))
                with torch.inference_mode(within):
                    check_given(harness, program, again, loaded, first=False)


def _check_sparse(harness: Harness) -> None:
    """Require that a tensor whose elements do not lie one behind the other is refused; the simulator has none."""
    if harness.machine.tier == "sim":
        return
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    program = taking(tensor)
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    (dense,) = harness.arguments((spec,))
    with harness.loaded(program) as loaded:
        for _ in range(2):
            check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded, first=False)
            observed = observe(harness, partial(loaded.entry, dense.to_sparse()))
            error = observed.error
            harness.require(
                isinstance(error, ArgumentError) and error.argument == "a",
                f"a sparse tensor raised {error!r}",
            )
            harness.require(not observed.launches, "a refused call launched")


_ADDRESSES = 1100
"""Addresses that are met one after another: more than a launcher would keep."""

_AT_ONCE = 50
"""Calls that are looked at together: no more launches than any machine tells of."""


def _check_many_addresses(harness: Harness) -> None:
    """Require that tensors are checked whatever number of others came before."""
    tensor = TensorParam("a", dtype("uint8"), (Const(4),), alignment=16)
    program = taking(tensor)
    good = TensorSpec(dtype="uint8", shape=(4,), strides=(1,))
    (whole,) = harness.arguments((replace(good, shape=(16 * _ADDRESSES,)),))
    with harness.loaded(program) as loaded:
        views = [whole[start : start + 4] for start in range(0, 16 * _ADDRESSES, 16)]
        for start in range(0, _ADDRESSES, _AT_ONCE):
            some = views[start : start + _AT_ONCE]
            observed = observe(harness, partial(list, map(loaded.entry, some)))
            harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
        for spec in (good, replace(good, offset=1), replace(good, short=True, offset=AHEAD)):
            check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded, first=False)


def _own(tensor: Any) -> Any:
    """Return a tensor over the same memory, of another class, whose tensors say that they require a gradient.

    So no machine needs autograd to be asked what becomes of such a tensor.
    """
    kind = type(tensor)
    made = tensor.as_subclass(type("Parameter", (kind,), {"requires_grad": True}))
    made.__dict__.update(tensor.__dict__)
    return made


_MANY = 33
_APART = 11
"""How many tensors lie between two numbers."""


def _check_many(harness: Harness) -> None:
    """Require that of many tensors and numbers the first, one in the midst and the last are checked."""
    params: list[TensorParam | ScalarParam] = []
    for index in range(_MANY):
        params.append(TensorParam(f"t{index}", dtype("float32"), (_ONE,)))
        if not (index + 1) % _APART:
            params.append(ScalarParam(f"s{index}", dtype("int32")))
    launch = KernelLaunch("k", tuple(params), (_ONE,) * 3, (_ONE,) * 3)
    program = KernelProgram("p", Signature(tuple(params)), (CODE,), (launch,))
    there = TensorSpec(dtype="float32", shape=(1,), strides=(1,))
    right = [there if isinstance(param, TensorParam) else 1 for param in params]
    with harness.loaded(program) as loaded:
        given = harness.given(CallSpec(args=tuple(right)))
        for place in (0, len(right) - 2):  # the first tensor, and the last
            for _ in range(4):
                check_given(harness, program, replace(given, args=list(given.args)), loaded, first=False)
            others = [*given.args[:place], *harness.arguments((there,)), *given.args[place + 1 :]]
            check_given(harness, program, replace(given, args=others), loaded, first=False)
        for place in (0, 1, _MANY // 2, len(right) - 2, len(right) - 1):
            for wrong in (None, replace(there, dtype="int32"), replace(there, shape=(2,))):
                args = (*right[:place], wrong, *right[place + 1 :])
                check_call(harness, Scenario(program, CallSpec(args=args)), loaded, first=False)


@st.composite
def _arithmetic(draw: st.DrawFn) -> Scenario:
    """Draw a program of scalars alone, whose arguments and checks are expressions that may have no value."""
    count = draw(st.integers(1, 3))
    symbols = [Symbol(f"n{index}", min=-(2**63)) for index in range(count)]
    kinds = [draw(st.sampled_from(("int8", "int32", "int64", "uint32", "uint8", "bool"))) for _ in symbols]
    params = tuple(
        ScalarParam(f"s{index}", kind, symbol)  # type: ignore[arg-type]  # reads spellings
        for index, (kind, symbol) in enumerate(zip(kinds, symbols, strict=True))
    )
    args = tuple(draw(expressions(symbols, 3)) for _ in range(draw(st.integers(1, 4))))
    narrow = draw(st.sampled_from((None, *INTEGERS)))
    if narrow is not None:
        args = (*args[:1], draw(st.sampled_from(symbols)).cast(narrow))
    checks = tuple(Check(draw(expressions(symbols, 2)), "c") for _ in range(draw(st.sampled_from((0, 0, 1)))))
    launch = KernelLaunch("k", args, (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    program = KernelProgram("p", Signature(params, (), checks), (CODE,), (launch,))
    edges = {"int8": 7, "int32": 31, "int64": 63, "uint32": 32, "uint8": 8}
    values: list[object] = []
    for kind in kinds:
        if kind == "bool":
            values.append(draw(st.booleans()))
            continue
        high = 2 ** edges[kind] - 1
        low = 0 if kind.startswith("u") else -high - 1
        near = st.integers(max(low, -9), 9)
        if narrow is not None:  # the ends of the type that one of them is cast to
            ends = integer_range(narrow)
            near = st.sampled_from(
                [x for end in ends for x in (end - 1, end, end + 1) if low <= x <= high] or [low]
            )
        values.append(draw(st.one_of(st.sampled_from((low, high, 0, 1)), near, near)))
    return Scenario(program, CallSpec(args=tuple(values), device=0))


@law("A2", tier="launch", given=lambda _: _arithmetic(), requires=_DYNAMIC)
def exact_arithmetic(harness: Harness, scenario: Scenario) -> None:
    """Integer expressions are exact in 64 bits: an overflow, a division by zero or a cast that loses raises."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
    harness.once(_check_casts)


def _check_casts(harness: Harness) -> None:
    """Require that a cast to each type takes the numbers at its ends, and none beyond."""
    narrow = [kind for kind in INTEGERS if kind != "int64"]
    symbols = [Symbol(f"n{index}", min=-(2**63)) for index, _ in enumerate(narrow)]
    params = tuple(ScalarParam(f"s{symbol.name}", dtype("int64"), symbol) for symbol in symbols)
    made = tuple(symbol.cast(kind) for symbol, kind in zip(symbols, narrow, strict=True))
    program = KernelProgram(
        "p", Signature(params), (CODE,), (KernelLaunch("k", made, (_ONE,) * 3, (_ONE,) * 3),)
    )
    ends = [integer_range(kind) for kind in narrow]
    rows = [[min(end[side], 2**63 - 1) for end in ends] for side in (0, 1)]
    with harness.loaded(program) as loaded:
        for side, row in enumerate(rows):
            beyond = [(*row[:at], row[at] + (-1, 1)[side], *row[at + 1 :]) for at, _ in enumerate(row)]
            for args in (row, *(one for one in beyond if max(one) < 2**63)):
                call = CallSpec(args=tuple(args), device=0)
                check_call(harness, Scenario(program, call), loaded, first=False)


@law("A5", tier="launch", given=lambda _: operations() | narrow_operations(), requires=_DYNAMIC)
def each_operation(harness: Harness, series: Series) -> None:
    """Each operation gives Python's number for every pair of signs, or is an ExprError where Python's is an error."""
    delivers_each(harness, series)


@st.composite
def _bounded(draw: st.DrawFn) -> Scenario:
    """Draw a program with one symbol of narrow bounds, and a value at their edges."""
    unit = draw(st.sampled_from((1, 2, 3, 8)))
    low = draw(st.integers(0, 5))
    high = low + draw(st.integers(2 * unit, 40))
    symbol = Symbol("n", min=low, max=high, multiple_of=unit)
    value = draw(
        st.sampled_from((low - 1, low, low + 1, high - 1, high, high + 1, unit, 2 * unit, 2 * unit + 1))
    )
    launch = KernelLaunch("k", (symbol,), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    if value < 0 or draw(st.booleans()):
        param: ScalarParam | TensorParam = ScalarParam("s", dtype("int32"), symbol)
        call = CallSpec(args=(value,), device=0)
    else:
        param = TensorParam("t", dtype("uint8"), (symbol,))
        call = CallSpec(args=(TensorSpec(dtype="uint8", shape=(value,), strides=(1,)),))
    return Scenario(KernelProgram("p", Signature((param,)), (CODE,), (launch,)), call)


@law("A3", tier="launch", given=lambda _: _bounded(), requires=_DYNAMIC)
def declared_bounds(harness: Harness, scenario: Scenario) -> None:
    """A symbol takes no value outside of its declared bounds, and none but the declared multiples."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
    harness.once(_check_unsigned)
    if Capability.STRIDED_TENSORS in harness.capabilities:
        harness.once(_check_bounded_stride)


def _check_bounded_stride(harness: Harness) -> None:
    """Require the same of a symbol that a stride shows."""
    n = Symbol("n", min=0, max=9)
    tensor = TensorParam("a", dtype("uint8"), (Const(2), _ONE), strides=(n, _ONE))
    launch = KernelLaunch("k", (tensor, n), (_ONE,) * 3, (_ONE,) * 3)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        for stride in (9, 10, 0, 1, 1 << 20):
            spec = TensorSpec(dtype="uint8", shape=(2, 1), strides=(stride, 1))
            check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded, first=False)


def _check_unsigned(harness: Harness) -> None:
    """Require that a number above all that a symbol takes is none below zero, which has the same 64 bits."""
    n = Symbol("n", min=-(2**63))
    params = tuple(ScalarParam(kind, dtype(kind), n) for kind in ("int64", "uint64"))
    launch = KernelLaunch("k", (*params, n), (_ONE,) * 3, (_ONE,) * 3)
    program = KernelProgram("p", Signature(params), (CODE,), (launch,))
    with harness.loaded(program) as loaded:
        for args in ((7, 7), (-1, 2**64 - 1), (-(2**63), 2**63), (7, 2**64 - 1), (2**63 - 1, 2**63 - 1)):
            check_call(harness, Scenario(program, CallSpec(args=args, device=0)), loaded)


@st.composite
def _named(draw: st.DrawFn, harness: Harness) -> tuple[Scenario, int, tuple[str, ...]]:
    """Draw a call, how many of its arguments go by position, and the others' names in some order."""
    scenario: Scenario = draw(scenarios(harness.capabilities).filter(lambda one: one.call.args))
    names = [param.name for param in scenario.program.signature.params]
    return scenario, *draw(
        st.integers(_first_named(names), len(names)).flatmap(
            lambda count: st.tuples(st.just(count), st.permutations(names[count:]).map(tuple))
        )
    )


def _first_named(names: list[str]) -> int:
    """Return the place of the first argument that can be named: none before one that cannot."""
    taken = [place for place, name in enumerate(names) if not _is_written_so(name)]
    return taken[-1] + 1 if taken else 0


def _is_written_so(name: str) -> bool:
    """Whether ``f(name=1)`` passes just that name: Python reads many letters as others, ``ﬁ`` as ``fi`` (PEP 3131)."""
    try:
        read = ast.parse(f"f({name}=1)", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    said = read.keywords if isinstance(read, ast.Call) else []
    return [one.arg for one in said] == [name] and name not in ("out", "stream", "device", "__debug__")


@law("A6", given=_named, ways=LOADS)
def named_arguments(harness: Harness, example: tuple[Scenario, int, tuple[str, ...]]) -> None:
    """Arguments go by position or by name, in any order; one of no such name, twice or missing is refused by name."""
    scenario, count, order = example
    program = scenario.program
    names = [param.name for param in program.signature.params]
    with harness.loaded(program) as loaded:
        args = harness.arguments(scenario.call.args)
        named = {name: args[names.index(name)] for name in order}
        words = {} if scenario.call.device is None else {"device": scenario.call.device}
        facts = harness.facts(args, device=scenario.call.device)
        expected = expect(program, facts)
        observed = observe(harness, lambda: loaded.entry(*args[:count], **named, **words))
        if isinstance(expected, Refused):
            check_refused(harness, expected, observed)
        else:
            check_expected(harness, program, facts, (expected, observed), first=False)
        for blamed, given in _misnamed(names, count, args, named):
            _check_named(harness, partial(loaded.entry, *args[:count], **given, **words), blamed)
        compiled = compiled_program(loaded)
        if compiled is not None and not isinstance(expected, Refused):
            held: list[BoundLaunch] = []
            bind = partial(compiled.bind, *args[:count], **named, **words)
            first = observe(harness, lambda: held.append(bind()))
            harness.require(first.error is None, f"a good call was refused: {first.error!r}")
            BoundCall(held[0], facts, first, expected).check(harness, program)
    harness.once(_check_one_by_name)
    harness.once(_check_words_by_name)


def _check_one_by_name(harness: Harness) -> None:
    """Require that the only argument of a program goes by its name as well."""
    tensor = TensorParam("only", dtype("float32"), (Const(4),))
    program = taking(tensor)
    given = harness.given(CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))
    facts, (argument,) = harness.facts(given.args), given.args
    expected = expect(program, facts)
    assert isinstance(expected, Expected), expected
    with harness.loaded(program) as loaded:
        observed = observe(harness, partial(loaded.entry, only=argument))
        check_expected(harness, program, facts, (expected, observed))
        _check_named(harness, partial(loaded.entry, argument, only=argument), "only")


def _check_words_by_name(harness: Harness) -> None:
    """Require that a call which names its arguments says the other words as well, in any order."""
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    output = TensorParam("b", dtype("float32"), (Const(4),), access="write")
    program = taking(tensor, outputs=(output,))
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    given = harness.given(CallSpec(args=(spec,), out=(spec,)), stream=harness.simulator.new_stream(0))
    facts, out = harness.facts(given.args, out=given.out), given.out or []
    expected = expect(program, facts)
    assert isinstance(expected, Expected), expected
    said = {"a": given.args[0], "out": tuple(out), "stream": given.stream, "device": 0}
    with harness.loaded(program) as loaded:
        for order in itertools.permutations(said):
            call = partial(loaded.entry, **{word: said[word] for word in order})
            observed = observe(harness, call, given_out=out)
            check_expected(harness, program, facts, (expected, observed), first=False)
            seen = [one.stream for one in observed.launches]
            harness.require(seen == [given.stream], f"launched on {seen}, expected {given.stream}")
            harness.require(observed.result is out[0], "the returned tensor is not the given one")


def _misnamed(
    names: list[str], count: int, args: list[Any], named: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a call may name that it must not, and the argument that is to blame."""
    yield "nobody", {**named, "nobody": 1}
    if count > _first_named(names):
        yield names[count - 1], {**named, names[count - 1]: args[count - 1]}
    if len(named) > 1:
        missing = names[count]
        yield missing, {name: value for name, value in named.items() if name != missing}


def _check_named(harness: Harness, call: Callable[[], Any], blamed: str) -> None:
    """Require that a call is refused for what it names, and does nothing."""
    observed = observe(harness, call)
    error = observed.error
    harness.require(isinstance(error, ArgumentTypeError), f"expected an ArgumentTypeError, got {error!r}")
    told = getattr(error, "argument", None)
    harness.require(told == blamed, f"blamed {told!a}, expected {blamed!a}")
    harness.require(not observed.launches and not observed.allocations, "a refused call did something")


@law(
    "O1",
    tier="launch",
    given=lambda harness: scenarios(harness.capabilities),
    ways=tuple(way for way in EVERY_WAY if way != "capture"),  # which has a stream of its own
)
def outputs(harness: Harness, scenario: Scenario) -> None:
    """A call returns None, its output or a tuple of them, each of the shape, type and device described."""
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused) or observed.error is not None:
            check_refused_or(harness, expected, observed.error)
            return
        forms = {0: type(None), 1: type(observed.result)}
        wanted = forms.get(len(expected.outputs), tuple)
        harness.require(isinstance(observed.result, wanted), f"returned a {type(observed.result).__name__}")
        harness.require(
            len(observed.outputs) == len(expected.outputs), f"returned {len(observed.outputs)} outputs"
        )
        for want, got in zip(expected.outputs, observed.outputs, strict=True):
            have: Any = harness.facts_of(got)
            seen = (have.dtype, have.shape, have.device)
            harness.require(
                seen == (want.dtype, want.shape, expected.device), f"output {want.name!a} is {seen}"
            )
            harness.require(got.is_contiguous(), f"output {want.name!a} is not contiguous")
        if observed.given_out is None:
            count = sum(1 for want in expected.outputs if 0 not in want.shape)
            count += sum(1 for one in expected.workspaces if one.nbytes)
            real, current = observed.allocations, harness.current_stream(expected.device)
            harness.require(len(real) <= count, f"{len(real)} allocations, expected {count} at most")
            wrong = [event.stream for event in real if event.stream != current]
            harness.require(not wrong, f"allocated under the streams {wrong}")
    harness.once(_check_large)


def _check_large(harness: Harness) -> None:
    """Require of an output beside which alignment is little that no more than its bytes are allocated."""
    program = taking(outputs=(TensorParam("large", dtype("float64"), (Const(4096),), access="write"),))
    with harness.loaded(program) as loaded:
        check_call(harness, Scenario(program, CallSpec(args=(), device=0)), loaded)


def check_refused_or(harness: Harness, expected: object, error: Exception | None) -> None:
    """Require that a refusal was due."""
    harness.require(
        isinstance(expected, Refused) and error is not None,
        f"expected {type(expected).__name__}, got {error!r}",
    )


@law("O2", tier="launch", given=lambda harness: scenarios(harness.capabilities))
def destinations(harness: Harness, scenario: Scenario) -> None:
    """Under ``out=`` a call returns the very tensors that were given, allocates nothing and binds no symbol.

    Memory that was good once is refused where a tensor shows it otherwise: negated, conjugated, or column by column,
    and so is that of one device by a call on another.
    """
    with harness.loaded(scenario.program) as loaded:
        facts, free = harness.call(loaded, CallSpec(args=scenario.call.args, device=scenario.call.device))
        expected = expect(scenario.program, facts)
        assume(isinstance(expected, Expected) and expected.outputs)
        if isinstance(expected, Refused):
            return
        call = harness.with_destinations(scenario.call, expected)
        facts, observed = harness.call(loaded, call)
        told = expect(scenario.program, facts)
        if isinstance(told, Refused):  # a map over an output needs an address that the caller's tensor lacks
            check_refused(harness, told, observed)
            return
        harness.require(free.error is None, f"without out= the call was refused: {free.error!r}")
        check_expected(harness, scenario.program, facts, (told, observed), first=False)
        given = observed.given_out or []
        same = len(given) == len(observed.outputs) and all(
            a is b for a, b in zip(given, observed.outputs, strict=True)
        )
        harness.require(same, "the returned tensors are not the given ones")
        count = sum(1 for one in told.workspaces if one.nbytes)
        harness.require(len(observed.allocations) <= count, "allocated although destinations were given")
        _check_seen_otherwise(harness, scenario, loaded, given)
        _check_from_elsewhere(harness, scenario, loaded, given)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_sized_by_a_number)
    harness.once(_check_one_element)
    harness.once(_check_no_output)
    harness.once(_check_in_place)


def _check_in_place(harness: Harness) -> None:
    """Require that a destination may be an argument, or lie in one: the caller knows what the kernel does with that."""
    tensor = TensorParam("a", dtype("float32"), (Const(8),))
    outputs = tuple(TensorParam(name, dtype("float32"), (Const(4),), access="write") for name in "bc")
    program = taking(tensor, outputs=outputs)
    same = taking(tensor, outputs=(replace(outputs[0], shape=(Const(8),)),))
    (given,) = harness.arguments((TensorSpec(dtype="float32", shape=(8,), strides=(1,)),))
    for one, out in ((same, [given]), (program, [given[4:], given[:4]])):
        with harness.loaded(one) as loaded:
            for _ in range(2):
                check_given(harness, one, Arguments(args=[given], out=out), loaded, first=False)


def _check_no_output(harness: Harness) -> None:
    """Require that a program without outputs refuses destinations, but none of them."""
    tensor = TensorParam("a", dtype("float32"), (Const(4),))
    program = taking(tensor)
    spec = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    with harness.loaded(program) as loaded:
        for out in (None, (spec,), (), (spec,), (spec, spec)):
            check_call(harness, Scenario(program, CallSpec(args=(spec,), out=out)), loaded, first=False)


def _check_seen_otherwise(
    harness: Harness, scenario: Scenario, loaded: LoadedProgram, given: list[Any]
) -> None:
    """Require that destinations which were good once are refused where other views are of the same memory."""
    for place, tensor in enumerate(given):
        for other in _seen_otherwise(tensor):
            out = [*given[:place], other, *given[place + 1 :]]
            again = replace(harness.given(replace(scenario.call, out=None)), out=out)
            facts, observed = harness.call_with(loaded, again)
            told = expect(scenario.program, facts)
            assert isinstance(told, Refused), facts
            check_refused(harness, told, observed)


def _check_one_element(harness: Harness) -> None:
    """Require the same of one element, which may be an imaginary part whatever its strides are."""
    output = TensorParam("b", dtype("float32"), (Const(1), Const(1)), access="write")
    program = taking(outputs=(output,))
    spec = TensorSpec(dtype="float32", shape=(1, 1), strides=(1, 1))
    scenario = Scenario(program, CallSpec(args=(), out=(spec,), device=0))
    with harness.loaded(program) as loaded:
        _, observed = harness.call(loaded, scenario.call)
        _check_seen_otherwise(harness, scenario, loaded, observed.given_out or [])


def _check_sized_by_a_number(harness: Harness) -> None:
    """Require that a destination has the extent that a number of the call says, beside tensors that are alike."""
    count = Symbol("count", min=0)
    params = TensorParam("a", dtype("float32"), (Const(4),)), ScalarParam("count", dtype("int32"), count)
    output = TensorParam("b", dtype("float32"), (count, Const(2)), access="write")
    fixed = TensorParam("c", dtype("float32"), (Const(4),), access="write")
    launch = KernelLaunch("k", (params[0], output, fixed, count), (_ONE,) * 3, (_ONE,) * 3)
    program = KernelProgram("p", Signature(params, (output, fixed)), (CODE,), (launch,))
    beside = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    with harness.loaded(program) as loaded:
        for wanted, rows in ((3, 3), (3, 3), (5, 5), (5, 3), (0, 0), (3, 5)):
            one = TensorSpec(dtype="float32", shape=(rows, 2), strides=(2, 1))
            for out in ((one, beside), (one, beside, one)):  # the second are too many
                check_call(harness, Scenario(program, CallSpec(args=(beside, wanted), out=out)), loaded)
        given, kept = harness.given(CallSpec(args=(beside, 3))), []
        for _ in range(3):  # the same arguments, and each time other destinations
            spec = TensorSpec(dtype="float32", shape=(3, 2), strides=(2, 1))
            kept.append(harness.given(CallSpec(args=(), out=(spec, beside), device=0)).out)
            again = replace(given, args=list(given.args), out=kept[-1])
            check_given(harness, program, again, loaded, first=False)


def _check_from_elsewhere(
    harness: Harness, scenario: Scenario, loaded: LoadedProgram, given: list[Any]
) -> None:
    """Require that destinations which were good once are refused by a call on another device, if there is one."""
    there = harness.given(_moved(scenario.call))
    facts, observed = harness.call_with(loaded, replace(there, out=given))
    told = expect(scenario.program, facts)
    if isinstance(told, Refused):
        check_refused(harness, told, observed)


def _moved(call: CallSpec) -> CallSpec:
    """Return a call with all that it names on the other device."""
    args = tuple(
        replace(one, device=1 - (one.device or 0)) if isinstance(one, TensorSpec) else one
        for one in call.args
    )
    device = None if call.device is None else 1 - call.device
    return replace(call, args=args, out=None, device=device)


def _seen_otherwise(tensor: Any) -> Iterator[Any]:
    """Yield other views of the very memory of a tensor, of its type and shape, that no output can be written to."""
    import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_complex() or (
        tensor.numel() == 1 and may_be_imaginary(dtype, tensor.shape, tensor.stride())
    ):
        yield torch._neg_view(tensor)  # noqa: SLF001 - torch has no public name for it
    if tensor.is_complex():
        yield tensor.conj()
    if sum(extent > 1 for extent in tensor.shape) > 1 and tensor.numel():
        steps = [math.prod(tensor.shape[:axis]) for axis in range(tensor.dim())]
        yield tensor.as_strided(tensor.shape, steps)
