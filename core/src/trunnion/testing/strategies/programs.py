"""Random programs within a set of capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.capability import BACKEND_CAPABILITIES, Capability
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Expr, Symbol, ge, le, ne
from trunnion.model.facts import ATTRIBUTES, DeviceFact, device
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import (
    Check,
    Param,
    PointerParam,
    ScalarParam,
    Signature,
    StructParam,
    TensorParam,
)
from trunnion.model.program import KernelProgram
from trunnion.testing.rounding import SIZES
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.draft import Draft
from trunnion.testing.strategies.expressions import INTEGERS, expressions
from trunnion.testing.strategies.launches import draw_launches
from trunnion.testing.strategies.memory import draw_inputs, draw_outputs, draw_workspaces
from trunnion.testing.strategies.names import names
from trunnion.testing.strategies.variables import draw_copies, draw_variables

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CODE", "PARTS", "PROGRAM_CAPABILITIES", "programs", "taking"]

PROGRAM_CAPABILITIES = frozenset(Capability) - BACKEND_CAPABILITIES
"""The capabilities that a program can require."""

CODE = DeviceCode("cuda", "// a synthetic image stands for this text\n")
"""The device code of most random programs, and a part of all: laws never compile it."""


def taking(*params: Param, outputs: tuple[TensorParam, ...] = ()) -> KernelProgram:
    """Return a program that launches one thread, with all that its calls are given, then its outputs."""
    one = (Const(1),) * 3
    launch = KernelLaunch("k", (*params, *outputs), one, one)
    return KernelProgram("p", Signature(params, outputs), (CODE,), (launch,))


FACTS = tuple(map(DeviceFact, ATTRIBUTES))
"""The facts of a device that are attributes."""

PARTS = (
    CODE,
    DeviceCode("ptx", "// another part", name="other.ptx", target="sm_90a"),
    DeviceCode("cuda", CODE.source, includes=(("tile.h", "//"),), options=("-dc",), defines=(("TILE", "2"),)),
)
"""The parts of which a random program has one or more; laws compile none of them."""

_INT64_MAX = 2**63 - 1
_FEW = 12  # names cost time to draw; the others are these with a digit
_FEW_NAMES = st.lists(names(), min_size=_FEW, max_size=_FEW, unique=True)
_USUAL = frozenset(
    {
        Capability.DYNAMIC_SHAPES,
        Capability.STRIDED_TENSORS,
        Capability.MULTI_LAUNCH,
        Capability.TMA_TILED,
    }
)
_STRUCTS = ((1, 1), (3, 1), (8, 4), (24, 8), (64, 16), (64, 64), (200, 4), (4000, 8), (4352, 128))


@st.composite
def programs(
    draw: st.DrawFn,
    allowed: Iterable[Capability] = PROGRAM_CAPABILITIES,
    required: Iterable[Capability] = (),
) -> KernelProgram:
    """Draw a program that requires all of ``required`` and nothing outside of ``allowed``.

    Parameters
    ----------
    draw
        Hypothesis's.
    allowed
        Capabilities that the program may require.
    required
        Capabilities that it must require.
    """
    features = _draw_features(draw, frozenset(allowed), frozenset(required))
    draft = Draft(draw, _draw_code(draw), features)
    few = draw(_FEW_NAMES)
    draft.names = list(dict.fromkeys([*(name + tail for tail in ("2", "1") for name in few), *few]))
    if draft.wants(Capability.DYNAMIC_SHAPES):
        draft.extent_symbols += [_extent_symbol(draft) for _ in range(draw(st.integers(1, 3)))]
    if draft.wants(Capability.DEVICE_FACTS):
        draft.facts += draw(st.lists(st.sampled_from(FACTS), min_size=1, max_size=3, unique=True))
    draw_inputs(draft)
    _draw_scalars(draft)
    _draw_values(draft)
    draw_outputs(draft)
    draw_workspaces(draft)
    draw_variables(draft)
    params: list[Param] = draw(
        st.permutations([*draft.inputs, *draft.scalars, *draft.pointers, *draft.structs])
    )
    signature = Signature(tuple(params), tuple(draft.outputs), tuple(_draw_checks(draft)))
    launches = draw_launches(draft)
    copies = draw_copies(draft, len(launches))
    return KernelProgram(draft.name(), signature, draft.code, launches, tuple(draft.variables), copies)


def _draw_features(
    draw: st.DrawFn, allowed: frozenset[Capability], required: frozenset[Capability]
) -> frozenset[Capability]:
    """Draw what a program shall require: a few things beside what it must, or it would be too large to read."""
    must = set(required)
    if Capability.PREFERRED_CLUSTER in must:
        must.add(Capability.CLUSTER)  # the one is told in multiples of the other
    if Capability.COMPUTED_ATTRIBUTES in must and not must & {Capability.CLUSTER, Capability.PDL}:
        must.add(Capability.CLUSTER)
    may = sorted((allowed & PROGRAM_CAPABILITIES) - must)
    chosen = {capability for capability in may if draw(st.integers(1, 2 if capability in _USUAL else 6)) == 1}
    if Capability.PREFERRED_CLUSTER in chosen:
        chosen |= {Capability.CLUSTER} & allowed
    if Capability.CLUSTER not in chosen | must:
        chosen.discard(Capability.PREFERRED_CLUSTER)
    return _with_something_computed(frozenset(must | chosen), allowed | must)


def _with_something_computed(
    features: frozenset[Capability], allowed: frozenset[Capability]
) -> frozenset[Capability]:
    """Add an attribute that a call can decide, if it shall decide one; a cluster beside a preferred one is constant."""
    if Capability.COMPUTED_ATTRIBUTES not in features or Capability.PDL in features:
        return features
    constant = Capability.PREFERRED_CLUSTER in features
    if Capability.PDL not in allowed and (constant or Capability.CLUSTER not in allowed):
        return features - {Capability.COMPUTED_ATTRIBUTES}
    return features | {Capability.PDL if constant else Capability.CLUSTER}


def _draw_code(draw: st.DrawFn) -> tuple[DeviceCode, ...]:
    """Draw one part, or some that are linked, in any order."""
    count = choose(draw, (1, 1, 1, 2, 3))
    return (CODE,) if count == 1 else tuple(draw(st.permutations(PARTS[:count])))


def _extent_symbol(draft: Draft) -> Symbol:
    multiple = choose(draft.draw, (1, 1, 1, 2, 8))
    least = choose(draft.draw, (0, 1, 1, 2))
    greatest = choose(draft.draw, (_INT64_MAX, _INT64_MAX, 4096, 16))
    return Symbol(draft.name(), min=least, max=greatest, multiple_of=multiple)


def _draw_scalars(draft: Draft) -> None:
    for _ in range(draft.draw(st.integers(0, 3))):
        kind = choose(draft.draw, tuple(SIZES))
        symbol = None
        if kind == "bool" and draft.wants(Capability.DYNAMIC_SHAPES) and draft.draw(st.booleans()):
            low, high = choose(draft.draw, ((0, 1), (0, _INT64_MAX), (1, 1)))
            symbol = Symbol(draft.name(), min=low, max=high)
            draft.free_symbols.append(symbol)
        elif kind in INTEGERS and draft.wants(Capability.DYNAMIC_SHAPES) and draft.draw(st.booleans()):
            low, high = choose(draft.draw, ((0, _INT64_MAX), (-(2**63), _INT64_MAX), (1, 100), (-5, 2**33)))
            multiple = choose(draft.draw, (1, 1, 4))
            symbol = Symbol(draft.name(), min=low, max=high, multiple_of=multiple)
            if draft.extent_symbols and draft.draw(st.integers(0, 3)) == 0:
                symbol = choose(draft.draw, draft.extent_symbols)
            elif symbol not in draft.free_symbols:
                draft.free_symbols.append(symbol)
        draft.scalars.append(ScalarParam(draft.name(), kind, symbol))  # type: ignore[arg-type]  # reads spellings


def _draw_values(draft: Draft) -> None:
    """Draw addresses and structs."""
    draw = draft.draw
    for _ in range(draw(st.integers(1, 2)) if draft.wants(Capability.POINTER_PARAMS) else 0):
        alignment = choose(draw, (1, 1, 2, 16, 256))
        draft.pointers.append(PointerParam(draft.name(), nullable=draw(st.booleans()), alignment=alignment))
    for _ in range(draw(st.integers(1, 2)) if draft.wants(Capability.STRUCT_PARAMS) else 0):
        draft.structs.append(StructParam(draft.name(), *choose(draw, _STRUCTS)))


def _of_facts(draft: Draft) -> tuple[Expr, ...]:
    """Return conditions over the device, most of which hold on most."""
    fact = choose(draft.draw, draft.facts)
    held = le(choose(draft.draw, draft.extent_symbols), fact) if draft.extent_symbols else ne(fact, 3)
    return (ge(fact, 0), held, ne(device.multiprocessor_count, 114))


def _draw_checks(draft: Draft) -> list[Check]:
    checks = []
    for _ in range(choose(draft.draw, (0, 0, 0, 1, 2))):
        if draft.draw(st.integers(0, 3)) and draft.extent_symbols:
            symbol = choose(draft.draw, draft.extent_symbols)
            condition = choose(draft.draw, (le(symbol, 40), ne(symbol, 3), le(symbol, 8)))
        else:
            condition = draft.draw(expressions(draft.numbers, 2))
        if bool(draft.facts) and draft.draw(st.booleans()):
            condition = choose(draft.draw, _of_facts(draft))
        checks.append(Check(condition, draft.draw(names())))
    return checks
