"""Laws of what a caller passes beside tensors: numbers of every type, addresses, bytes, and tensors left out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError, ProgramError, UnboundSymbolError
from trunnion.model.constant import const
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol
from trunnion.model.float_expr import real, sqrt
from trunnion.model.launch import Argument, KernelLaunch
from trunnion.model.params import Param, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace
from trunnion.testing.arithmetic import integer_range
from trunnion.testing.comparison import check_call, check_given, check_moving, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.laws import law
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.rounding import COMPLEX, FORMATS
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.strategies.float_edges import float_edges
from trunnion.testing.strategies.limits import Series, number_edges, wrong_numbers
from trunnion.testing.strategies.moved_edges import moved_edges
from trunnion.testing.strategies.numbers import Indexable, Pair, fits
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.strategies.struct_views import struct_views
from trunnion.testing.suite.test_launches import delivers, delivers_each, needing
from trunnion.testing.ways import Arguments

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from trunnion.model.window import AccessPolicyWindow
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_ONE = Const(1)


@law("V1", tier="launch", given=lambda _: number_edges())
def every_type(harness: Harness, series: Series) -> None:
    """A number arrives in its own type, a float rounded once to nearest even from a double; infinities and NaN too."""
    delivers_each(harness, series)
    harness.once(_check_specials)
    harness.once(_check_classes)


def _check_specials(harness: Harness) -> None:
    """Require that each type takes every infinity, NaN and zero that it has, complex ones each pair of them."""
    scalars = tuple(ScalarParam(kind, dtype(kind)) for kind in (*FORMATS, *COMPLEX))
    program = taking(*scalars)
    calls = (tuple(_special(one.dtype.name, turn) for one in scalars) for turn in range(len(_SPECIALS) ** 2))
    delivers_each(harness, Series(program, tuple(CallSpec(args=args, device=0) for args in calls)))


def _check_classes(harness: Harness) -> None:
    """Require that a number is taken in whatever class it comes that says what it is, Python's or NumPy's."""
    kinds = "float32", "float64", "int32", "complex64", "complex128", "bool"
    scalars = tuple(ScalarParam(kind, dtype(kind)) for kind in kinds)
    program = taking(*scalars)
    third = Fraction(1, 3)
    calls: list[tuple[object, ...]] = [(third, third, Indexable(-5), Pair(1.5, -2.5), third, True)]
    if find_spec("numpy") is not None:
        numpy: Any = import_module("numpy")
        calls.append((
            numpy.float16(1 / 3), numpy.longdouble(1) / 3, numpy.int8(-5), numpy.complex64(0.1 - 2.5j),
            numpy.clongdouble(0.1 - 2.5j), numpy.bool_(True),
        ))  # fmt: skip
        calls.append((*calls[-1][:-1], numpy.bool_(False)))
    delivers_each(harness, Series(program, tuple(CallSpec(args=args, device=0) for args in calls * 2)))


def _special(kind: str, turn: int) -> complex:
    """Return a number that a type holds, one after another by turns; 1 where it holds none of them."""
    if kind in COMPLEX:
        return complex(_special(COMPLEX[kind], turn), _special(COMPLEX[kind], turn // len(_SPECIALS)))
    held = [one for one in _SPECIALS if fits(kind, one)] or [1.0]
    return held[turn % len(held)]


_SPECIALS = (math.inf, -math.inf, math.nan, 0.0, -0.0)

_FIXED = frozenset({Capability.CONSTANTS_AND_OFFSETS, Capability.DYNAMIC_SHAPES})


def _fixed(harness: Harness) -> SearchStrategy[Series]:
    """Return calls with constants around what their types hold, and with offsets around both ends of their memory."""
    moved = moved_edges(
        workspace=Capability.WORKSPACE in harness.capabilities,
        nullable=Capability.NULLABLE_TENSORS in harness.capabilities,
    )
    return st.one_of(number_edges(constants=True), moved)


@law("V10", tier="launch", given=_fixed, requires=_FIXED)
def constants_and_offsets(harness: Harness, series: Series) -> None:
    """A constant arrives as its type holds it, and an address moved within its memory; further it is refused."""
    delivers_each(harness, series)
    harness.once(_check_moved_alone)
    harness.once(_check_too_large)


def _check_too_large(harness: Harness) -> None:
    """Require that core takes no constant that its type does not hold, one beyond among them: no backend meets it."""
    kinds = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
    wrong = [
        (kind, end) for kind in kinds for end in (integer_range(kind)[0] - 1, integer_range(kind)[1] + 1)
    ]
    for kind, value in (
        *wrong,
        ("int32", 1.0),
        ("int32", True),
        ("bool", 1),
        ("float32", "1"),
        ("float16", 65520.0),
    ):
        try:
            const(value, kind)  # type: ignore[arg-type]  # wrong kinds of numbers among them
        except ProgramError:
            continue
        harness.violation(f"{value!r} is taken for a constant {kind}")


def _check_moved_alone(harness: Harness) -> None:
    """Require that an address which is moved is that of each call's own memory, which nothing else points to."""
    count = Symbol("count", min=0)
    params = TensorParam("a", dtype("float32"), (Const(4),)), ScalarParam("count", dtype("int32"), count)
    there = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    output = TensorParam("o", dtype("float32"), (count,), access="write")
    alone: list[Workspace | TensorParam] = [output]
    if Capability.WORKSPACE in harness.capabilities:
        alone.append(Workspace("w", dtype("float32"), (count,)))
    for memory in alone:
        launch = KernelLaunch("k", (params[0], memory.at(_ONE)), (_ONE,) * 3, (_ONE,) * 3)
        outputs = (output,) if memory is output else ()
        program = KernelProgram("p", Signature(params, outputs), (CODE,), (launch,))
        check_moving(harness, Scenario(program, CallSpec(args=(there, 4096))))


_COMPUTED = frozenset({Capability.FLOAT_EXPRESSIONS, Capability.DYNAMIC_SHAPES})


@law("V11", tier="launch", given=lambda _: float_edges(), requires=_COMPUTED)
def float_expressions(harness: Harness, series: Series) -> None:
    """A floating-point expression is computed in doubles as it is written, rounded once, and finite, or refused."""
    delivers_each(harness, series)
    harness.once(_check_signs)
    harness.once(_check_roots)


def _check_roots(harness: Harness) -> None:
    """Require that a root is rounded once, where a power, or a reciprocal root, is rounded otherwise."""
    n = Symbol("n", min=0)
    scalar, root = ScalarParam("n", dtype("int32"), n), sqrt(n).cast("float64")
    program = KernelProgram(
        "p", Signature((scalar,)), (CODE,), (KernelLaunch("k", (root,), (_ONE,) * 3, (_ONE,) * 3),)
    )
    delivers_each(harness, Series(program, tuple(CallSpec(args=(value,), device=0) for value in _ROOTS)))


_ROOTS = (2921, 3, 5, 7, 2, 2**31 - 1)


def _check_signs(harness: Harness) -> None:
    """Make calls whose number is a zero of either sign, the one after the other."""
    n = Symbol("n", min=-9, max=9)
    tensor, scalar = TensorParam("a", dtype("float32"), (_ONE,)), ScalarParam("n", dtype("int32"), n)
    zero = (real(n) * 0.0).cast("float64")
    quotient = (1.0 / (1.0 / (real(n) * -1.0))).cast("float64")
    there = TensorSpec(dtype="float32", shape=(1,), strides=(1,))
    calls = tuple(CallSpec(args=(there, value)) for value in (1, 1, -1, 1, 0, 1, 0))
    for numbers in ((zero, quotient), (zero,)):  # alone, it is all that differs
        launch = KernelLaunch("k", numbers, (_ONE,) * 3, (_ONE,) * 3)
        program = KernelProgram("p", Signature((tensor, scalar)), (CODE,), (launch,))
        delivers_each(harness, Series(program, calls))


@law(
    "V8", tier="launch", given=lambda h: wrong_numbers(addresses=Capability.POINTER_PARAMS in h.capabilities)
)
def wrong_type(harness: Harness, series: Series) -> None:
    """A number that its type does not hold is refused by its name, and so is a bool for a number, or one for a bool."""
    delivers_each(harness, series)
    harness.once(_check_lookalikes)
    harness.once(_check_unwritable)
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_wide_symbol)


def _check_lookalikes(harness: Harness) -> None:
    """Require that what Python could make a number of, and is none of its kinds, is refused: NumPy's bools too."""
    kinds = "float32", "int32", "complex64"
    program = taking(*(ScalarParam(kind, dtype(kind)) for kind in kinds))
    wrong: list[object] = [Decimal(2), "2", b"2"]
    if find_spec("numpy") is not None:
        numpy: Any = import_module("numpy")
        wrong += [numpy.True_, numpy.array([2]), numpy.datetime64(2, "s")]
    good = (1.0, 1, 1.0)
    calls = ((*good[:place], one, *good[place + 1 :]) for place in range(len(good)) for one in wrong)
    delivers_each(
        harness, Series(program, tuple(CallSpec(args=args, device=0) for args in (good, *calls, good)))
    )


class _Unwritable(int):
    """A number that says nothing of itself."""

    def __repr__(self) -> str:
        raise ValueError("no text for this number")

    __str__ = __repr__


def _check_unwritable(harness: Harness) -> None:
    """Require that a number which no type holds is refused by its name too where its text is not to be had.

    Python itself writes no integer of more than `sys.get_int_max_str_digits` digits.
    """
    kinds = "int8", "uint64", "float32", "complex64"
    program = taking(*(ScalarParam(kind, dtype(kind)) for kind in kinds))
    good = (1, 1, 1.0, 1.0)
    with harness.loaded(program) as loaded:
        for place, wrong in itertools.product(
            range(len(kinds)), (10**5000, -(10**5000), _Unwritable(10**400))
        ):
            args = (*good[:place], wrong, *good[place + 1 :])
            for launch in (partial(loaded.call, args, device=0), partial(loaded.entry, *args, device=0)):
                observed = observe(harness, launch)
                error = observed.error
                named = isinstance(error, ArgumentError) and error.argument == kinds[place]
                harness.require(named, f"{kinds[place]}, given too great a number, raised {type(error)}")
                harness.require(not observed.launches, f"{kinds[place]}, given too great a number, launched")


def _check_wide_symbol(harness: Harness) -> None:
    """Require that a number which its type holds, but no symbol, is refused."""
    n = Symbol("n", min=0)
    tensor, scalar = TensorParam("a", dtype("float32"), (_ONE,)), ScalarParam("n", dtype("uint64"), n)
    program = taking(tensor, scalar)
    there = TensorSpec(dtype="float32", shape=(1,), strides=(1,))
    values = ((1 << 63) - 1, 1 << 63, 5, (1 << 64) - 1)
    delivers_each(harness, Series(program, tuple(CallSpec(args=(there, value)) for value in values)))


@law(
    "V2",
    tier="launch",
    given=needing(Capability.POINTER_PARAMS),
    requires=frozenset({Capability.POINTER_PARAMS}),
)
def addresses(harness: Harness, scenario: Scenario) -> None:
    """An address arrives as it was passed, and None as a null pointer; nothing is read at it."""
    delivers(harness, scenario)


@law(
    "V3",
    tier="launch",
    given=needing(Capability.STRUCT_PARAMS),
    requires=frozenset({Capability.STRUCT_PARAMS}),
)
def structs(harness: Harness, scenario: Scenario) -> None:
    """A struct arrives byte by byte, whatever object of the buffer protocol holds it.

    It is the caller's again when the call is over: nothing holds its buffer, be the call refused or bound.
    """
    delivers(harness, scenario)
    harness.once(_check_let_go)


_STRUCT = bytes(range(1, 13))


def _check_let_go(harness: Harness) -> None:
    """Require that whoever passed a struct's bytes may give them another size, once the call is over."""
    struct, number = StructParam("c", len(_STRUCT), 4), ScalarParam("n", dtype("int32"))
    program = taking(struct, number)
    held: tuple[bytearray, ...] = (bytearray(_STRUCT), bytearray(_STRUCT[1:]))  # the second is too short
    with harness.loaded(program) as loaded:
        for given, value in itertools.product(held, (5, 1 << 40, 5)):
            check_given(harness, program, Arguments(args=[given, value], device=0), loaded, first=False)
            try:
                given.extend(b"more")
            except BufferError as error:
                harness.violation(
                    f"a call with {value} is over, and a struct's buffer is still held: {error}"
                )
            del given[-4:]


_VIEWS = frozenset({Capability.TENSOR_VIEWS, Capability.DYNAMIC_SHAPES})


@law("V7", tier="launch", given=needing(*sorted(_VIEWS)), requires=_VIEWS)
def views(harness: Harness, scenario: Scenario) -> None:
    """A view arrives as address, extents and strides, laid out as in C, without those that are constant."""
    delivers(harness, scenario)


def _built(harness: Harness) -> SearchStrategy[Any]:
    """Return structs of anything, and of views where there are some."""
    drawn = needing(Capability.BUILT_STRUCTS)(harness)
    if not harness.capabilities >= _VIEWS:
        return drawn
    return drawn | struct_views(strided=Capability.STRIDED_TENSORS in harness.capabilities)


@law(
    "V9",
    tier="launch",
    given=_built,
    requires=frozenset({Capability.BUILT_STRUCTS}),
)
def built_structs(harness: Harness, scenario: Scenario) -> None:
    """A struct that the launcher builds reaches the kernel as C lays it out, or as its offsets say, zeros between."""
    delivers(harness, scenario)


_NULLABLE = frozenset({Capability.NULLABLE_TENSORS})


@law("V4", tier="launch", given=needing(Capability.NULLABLE_TENSORS), requires=_NULLABLE)
def absent_tensors(harness: Harness, scenario: Scenario) -> None:
    """A tensor that is left out arrives as a null pointer, and nothing of it is checked; without None all of it is.

    So it is with many of them.
    """
    delivers(harness, scenario)
    harness.once(_check_many)


_MANY = 33


def _check_many(harness: Harness) -> None:
    """Make calls of a program of many tensors, of which none, one, some or all are left out."""
    tensors = tuple(
        TensorParam(f"t{index}", dtype("float32"), (_ONE,), nullable=True) for index in range(_MANY)
    )
    program = KernelProgram(
        "p", Signature(tensors), (CODE,), (KernelLaunch("k", tensors, (_ONE,) * 3, (_ONE,) * 3),)
    )
    there = TensorSpec(dtype="float32", shape=(1,), strides=(1,))
    everywhere = range(_MANY)
    left_out = ((), (0,), (_MANY // 2,), (_MANY - 1,), tuple(everywhere[::2]), tuple(everywhere))
    calls = (
        CallSpec(args=tuple(None if at in one else there for at in everywhere), device=0) for one in left_out
    )
    delivers_each(harness, Series(program, tuple(calls)))


_PLACES = (("m",), ("n",), ("m", "n"), ("n", "m"), ("m + 1", "n"))
"""What a tensor's extents are, where a symbol has several places."""


@st.composite
def _several_places(draw: st.DrawFn) -> Scenario:
    """Draw symbols that stand in several tensors, of which some are left out, and one may say other numbers."""
    symbols = {name: Symbol(name, min=draw(st.sampled_from((0, 1)))) for name in "mn"}
    extents: dict[str, Expr] = {**symbols, "m + 1": symbols["m"] + 1}
    values = {"m": draw(st.integers(1, 5)), "n": draw(st.integers(1, 5))}
    values["m + 1"] = values["m"] + 1
    count = draw(st.integers(2, 4))
    odd = draw(st.integers(0, count))  # count: none
    params: list[Param] = []
    args: list[object] = []
    for index in range(count):
        places = draw(st.sampled_from(_PLACES))
        shape = tuple(extents[name] for name in places)
        strides = (shape[1], _ONE) if len(shape) > 1 and draw(st.booleans()) else None
        nullable = draw(st.integers(0, 4)) > 0
        params.append(TensorParam(f"t{index}", dtype("float32"), shape, strides=strides, nullable=nullable))
        given = tuple(values[name] + (index == odd) for name in places)
        there = TensorSpec(dtype="float32", shape=given, strides=row_major(given))
        args.append(None if nullable and index != odd and draw(st.integers(0, 2)) == 0 else there)
    # A program whose symbols nothing binds is refused when it is planned: here something always might.
    last = TensorParam("last", dtype("float32"), tuple(symbols.values()), nullable=True)
    shown = (values["m"], values["n"])
    params.append(last)
    there = TensorSpec(dtype="float32", shape=shown, strides=row_major(shown))
    args.append(there if draw(st.integers(0, 2)) == 0 else None)
    if draw(st.booleans()):
        params.append(ScalarParam("s", dtype("int16"), symbols["n"]))
        args.append(values["n"])
    launch = KernelLaunch("k", (*symbols.values(), last), (_ONE, _ONE, _ONE), (_ONE, _ONE, _ONE))
    return Scenario(
        KernelProgram("p", Signature(tuple(params)), (CODE,), (launch,)),
        CallSpec(args=tuple(args), device=draw(st.sampled_from((None, 0)))),
    )


@law(
    "V5",
    tier="launch",
    given=lambda _: _several_places(),
    requires=_NULLABLE | {Capability.DYNAMIC_SHAPES, Capability.STRIDED_TENSORS},
)
def candidates(harness: Harness, scenario: Scenario) -> None:
    """A symbol is bound by the first place that is there; if none is, UnboundSymbolError lists the places."""
    with harness.loaded(scenario.program) as loaded:
        check_call(harness, scenario, loaded)
        _, observed = harness.call(loaded, scenario.call)
        if isinstance(observed.error, UnboundSymbolError):
            harness.require(observed.error.candidates, f"{observed.error} lists no place")
    harness.once(_check_shown_twice)
    harness.once(_check_shown_by_a_stride)
    harness.once(_check_extents_of_two)


def _check_shown_twice(harness: Harness) -> None:
    """Require that a number shows what a tensor shows too, within the bounds of the symbol of both."""
    n = Symbol("n", multiple_of=4)
    number = ScalarParam("s", dtype("int64"), n)
    extent = TensorParam("x", dtype("float32"), (n,))
    stride = TensorParam("x", dtype("float32"), (Const(2), Const(4)), strides=(n, Const(1)))
    for tensor in (extent, replace(extent, nullable=True), stride, replace(stride, nullable=True)):
        launch = KernelLaunch("k", (tensor, n), (_ONE,) * 3, (_ONE,) * 3)
        program = KernelProgram("p", Signature((tensor, number)), (CODE,), (launch,))
        with harness.loaded(program) as loaded:
            for shown, value in itertools.product((8, 6, 0, None), (8, 4, 6, -4, -8, 3)):
                if shown is None and not tensor.nullable:
                    continue
                shape, strides = ((2, 4), (shown or 0, 1)) if tensor.strides else ((shown or 0,), (1,))
                spec = None if shown is None else TensorSpec(dtype="float32", shape=shape, strides=strides)
                call = CallSpec(args=(spec, value), device=0)
                check_call(harness, Scenario(program, call), loaded, first=False)


def _check_shown_by_a_stride(harness: Harness) -> None:
    """Require that a number which nothing but a stride shows is there where the tensor is, and its rows are several."""
    n = Symbol("n")
    for rows in (Const(2), Symbol("m")):
        tensor = TensorParam("x", dtype("float32"), (rows, Const(4)), strides=(n, Const(1)), nullable=True)
        launch = KernelLaunch("k", (tensor, n), (_ONE,) * 3, (_ONE,) * 3)
        program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
        specs = [TensorSpec(dtype="float32", shape=(count, 4), strides=(8, 1)) for count in (2, 1, 0)]
        calls = [CallSpec(args=(spec,), device=0) for spec in (specs[0], None, *specs, None)]
        delivers_each(harness, Series(program, tuple(calls)))


def _check_extents_of_two(harness: Harness) -> None:
    """Require that two tensors are of one extent wherever both are there, be it that one of them is empty."""
    n = Symbol("n")
    first = TensorParam("x", dtype("float32"), (n,))
    tensors = first, replace(first, name="y", nullable=True)
    program = taking(*tensors)
    one, *others = (TensorSpec(dtype="float32", shape=(count,), strides=(1,)) for count in (4, 4, 0, 5))
    pairs = [(a, b) for a in (one, others[1]) for b in (*others, None)]
    delivers_each(harness, Series(program, tuple(CallSpec(args=pair) for pair in pairs)))


@st.composite
def _map_over_none(draw: st.DrawFn, harness: Harness) -> Scenario:
    """Draw a map and a window over a tensor that is left out, of launches of which a call may skip all."""
    rows = draw(st.integers(1, 9))
    tensor = TensorParam("a", dtype("float16"), (Const(rows), Const(64)), nullable=True)
    given: list[tuple[str, Argument, AccessPolicyWindow | None]] = [
        ("m", tensor.tiled((1, 64)), None),
        ("n", tensor, None),
    ]
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities:
        given.append(("o", tensor, tensor.window()))
    names = [name for name, *_ in given]
    launches = tuple(
        KernelLaunch(
            f"k{name}", (argument,), (Symbol(name, min=0), _ONE, _ONE), (_ONE, _ONE, _ONE), window=window
        )
        for name, argument, window in given
    )
    params: tuple[Param, ...] = (
        tensor,
        *(ScalarParam(name, dtype("int32"), Symbol(name, min=0)) for name in names),
    )
    there = TensorSpec(dtype="float16", shape=(rows, 64), strides=(64, 1))
    args = (draw(st.sampled_from((None, None, there))), *(draw(st.integers(0, 1)) for _ in names))
    return Scenario(KernelProgram("p", Signature(params), (CODE,), launches), CallSpec(args=args, device=0))


@law(
    "V6",
    tier="driver",
    given=_map_over_none,
    requires=_NULLABLE | {Capability.TMA_TILED, Capability.DYNAMIC_SHAPES, Capability.MULTI_LAUNCH},
)
def maps_of_absent_tensors(harness: Harness, scenario: Scenario) -> None:
    """A map or a window over a tensor that is left out is an ArgumentError that names it, unless no launch reads it."""
    with harness.loaded(scenario.program) as loaded:
        facts, observed = harness.call(loaded, scenario.call)
        expected = expect(scenario.program, facts)
        if isinstance(expected, Refused):
            check_refused(harness, expected, observed)
            harness.require(isinstance(observed.error, ArgumentError), f"raised {observed.error!r}")
        else:
            check_call(harness, scenario, loaded, first=False)
