"""Random programs within a set of capabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.capability import BACKEND_CAPABILITIES, Capability
from trunnion.model.expr import Expr, Symbol, as_expr, le, ne
from trunnion.model.params import Check, Param, ScalarParam, Signature, TensorParam
from trunnion.model.program import DeviceCode, KernelProgram
from trunnion.testing.rounding import SIZES
from trunnion.testing.strategies.expressions import INTEGERS, expressions, extents
from trunnion.testing.strategies.launches import draw_launches
from trunnion.testing.strategies.maps import draw_mapped_tensor
from trunnion.testing.strategies.names import names

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ELEMENT_TYPES", "PROGRAM_CAPABILITIES", "Draft", "programs"]

PROGRAM_CAPABILITIES = frozenset(Capability) - BACKEND_CAPABILITIES
"""The capabilities that a program can require."""

ELEMENT_TYPES = (*SIZES, "float8_e4m3fn", "float8_e5m2", "complex64")
"""The element types that are drawn for tensors."""

CODE = DeviceCode("cuda", "// a synthetic image stands for this text\n")
"""The device code of every random program: laws never compile it."""

_INT64_MAX = 2**63 - 1
_MOST_STRIDE_SYMBOLS = 4


@dataclass
class Draft:
    """The parts of a program while it is drawn."""

    draw: st.DrawFn
    """Hypothesis's."""

    features: frozenset[Capability]
    """What the program shall require."""

    names: list[str] = field(default_factory=list)
    """Names not yet given away."""

    extent_symbols: list[Symbol] = field(default_factory=list)
    """Symbols that extents bind."""

    free_symbols: list[Symbol] = field(default_factory=list)
    """Symbols that strides or scalars bind."""

    inputs: list[TensorParam] = field(default_factory=list)
    """Input tensors."""

    mapped: list[TensorParam] = field(default_factory=list)
    """The tensors, inputs and outputs, that tensor maps can read."""

    scalars: list[ScalarParam] = field(default_factory=list)
    """Scalars."""

    outputs: list[TensorParam] = field(default_factory=list)
    """Outputs."""

    def name(self) -> str:
        """Return a name that nothing else has."""
        return self.names.pop()

    @property
    def symbols(self) -> list[Symbol]:
        """Every symbol."""
        return [*self.extent_symbols, *self.free_symbols]

    def wants(self, capability: Capability) -> bool:
        """Whether the program shall require a capability."""
        return capability in self.features


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
    must = frozenset(required)
    may = sorted((frozenset(allowed) & PROGRAM_CAPABILITIES) - must)
    draft = Draft(draw, must | {capability for capability in may if draw(st.booleans())})
    draft.names = draw(st.lists(names(), min_size=24, max_size=24, unique=True))
    if draft.wants(Capability.DYNAMIC_SHAPES):
        draft.extent_symbols += [_extent_symbol(draft) for _ in range(draw(st.integers(1, 3)))]
    _draw_inputs(draft)
    _draw_scalars(draft)
    _draw_outputs(draft)
    params: list[Param] = draw(st.permutations([*draft.inputs, *draft.scalars]))
    signature = Signature(tuple(params), tuple(draft.outputs), tuple(_draw_checks(draft)))
    return KernelProgram(draft.name(), signature, (CODE,), draw_launches(draft))


def _extent_symbol(draft: Draft) -> Symbol:
    multiple = draft.draw(st.sampled_from((1, 1, 1, 2, 8)))
    least = draft.draw(st.sampled_from((0, 1, 1, 2)))
    greatest = draft.draw(st.sampled_from((_INT64_MAX, _INT64_MAX, 4096, 16)))
    return Symbol(draft.name(), min=least, max=greatest, multiple_of=multiple)


def _draw_inputs(draft: Draft) -> None:
    for count in range(draft.draw(st.integers(0 if not draft.features else 1, 3))):
        rank = draft.draw(st.integers(0, 3))
        shape = [draft.draw(extents(draft.extent_symbols)) for _ in range(rank)]
        if count == 0:
            shape = [*draft.extent_symbols, *shape[: 3 - len(draft.extent_symbols)]]
        kind = draft.draw(st.sampled_from(ELEMENT_TYPES))
        alignment = draft.draw(st.sampled_from((None, None, None, 16, 128)))
        strided = draft.wants(Capability.STRIDED_TENSORS) and (count == 0 or draft.draw(st.booleans()))
        strides = _draw_strides(draft, shape) if strided else None
        access = draft.draw(st.sampled_from(("read", "read_write", "write")))
        draft.inputs.append(_tensor(draft, kind, shape, strides=strides, access=access, alignment=alignment))
    if draft.wants(Capability.TMA_TILED):
        for _ in range(draft.draw(st.integers(1, 2))):
            draft.mapped.append(draw_mapped_tensor(draft))
            draft.inputs.append(draft.mapped[-1])


def _tensor(draft: Draft, kind: str, shape: list[Expr], **fields: object) -> TensorParam:
    return TensorParam(draft.name(), kind, tuple(shape), **fields)  # type: ignore[arg-type]  # reads spellings


def _draw_strides(draft: Draft, shape: list[Expr]) -> tuple[Expr, ...]:
    """Draw strides: padded rows, another order of the dimensions, numbers, or symbols of their own."""
    form = draft.draw(st.sampled_from(("padded", "reversed", "numbers", "symbols")))
    if form == "numbers":
        return tuple(as_expr(draft.draw(st.sampled_from((1, 0, 2, 7, 16)))) for _ in shape)
    if (
        form == "symbols"
        and draft.wants(Capability.DYNAMIC_SHAPES)
        and len(draft.free_symbols) + len(shape) <= _MOST_STRIDE_SYMBOLS
    ):
        own = [
            Symbol(draft.name(), min=0, max=draft.draw(st.sampled_from((_INT64_MAX, 4096)))) for _ in shape
        ]
        draft.free_symbols += own
        return tuple(own)
    steps: list[Expr] = []
    step = as_expr(1 if form == "reversed" else draft.draw(st.sampled_from((1, 2))))
    for extent in shape if form == "reversed" else reversed(shape):
        steps.append(step)
        step = step * extent
    return tuple(steps) if form == "reversed" else tuple(reversed(steps))


def _draw_scalars(draft: Draft) -> None:
    for _ in range(draft.draw(st.integers(0, 3))):
        kind = draft.draw(st.sampled_from(tuple(SIZES)))
        symbol = None
        if kind in INTEGERS and draft.wants(Capability.DYNAMIC_SHAPES) and draft.draw(st.booleans()):
            low, high = draft.draw(
                st.sampled_from(((0, _INT64_MAX), (-(2**63), _INT64_MAX), (1, 100), (-5, 2**33)))
            )
            multiple = draft.draw(st.sampled_from((1, 1, 4)))
            symbol = Symbol(draft.name(), min=low, max=high, multiple_of=multiple)
            if draft.extent_symbols and draft.draw(st.integers(0, 3)) == 0:
                symbol = draft.draw(st.sampled_from(draft.extent_symbols))
            elif symbol not in draft.free_symbols:
                draft.free_symbols.append(symbol)
        draft.scalars.append(ScalarParam(draft.name(), kind, symbol))  # type: ignore[arg-type]  # reads spellings


def _draw_outputs(draft: Draft) -> None:
    for _ in range(draft.draw(st.integers(0, 2))):
        rank = draft.draw(st.integers(0, 3))
        shape = [draft.draw(extents(draft.extent_symbols)) for _ in range(rank)]
        draft.outputs.append(
            _tensor(draft, draft.draw(st.sampled_from(ELEMENT_TYPES)), shape, access="write")
        )
    if draft.wants(Capability.TMA_TILED) and draft.draw(st.booleans()):
        draft.mapped.append(draw_mapped_tensor(draft, output=True))
        draft.outputs.append(draft.mapped[-1])


def _draw_checks(draft: Draft) -> list[Check]:
    checks = []
    for _ in range(draft.draw(st.sampled_from((0, 0, 1, 2)))):
        if draft.draw(st.integers(0, 3)) and draft.extent_symbols:
            symbol = draft.draw(st.sampled_from(draft.extent_symbols))
            condition = draft.draw(st.sampled_from((le(symbol, 40), ne(symbol, 3), le(symbol, 8))))
        else:
            condition = draft.draw(expressions(draft.symbols, 2))
        checks.append(Check(condition, draft.draw(names())))
    return checks
