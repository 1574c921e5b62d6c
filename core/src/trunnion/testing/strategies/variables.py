"""Random module variables, and copies to them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.model.expr import Const, Symbol
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.params import TensorParam
from trunnion.testing.rounding import SIZES
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.names import names

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.testing.strategies.draft import Draft

__all__ = ["draw_copies", "draw_variables"]

_SHAPES = ((), (1,), (3,), (2, 4), (64,))


def draw_variables(draft: Draft) -> None:
    """Draw variables: with what they hold first, or without, and inputs that are copied to some of them.

    Parameters
    ----------
    draft
        The program; it takes them.
    """
    draw = draft.draw
    if not draft.wants(Capability.MODULE_VARIABLES):
        return
    plain = names().filter(lambda name: "\0" not in name)
    for name in draw(st.lists(plain, min_size=1, max_size=3, unique=True)):
        kind, shape = choose(draw, tuple(SIZES)), choose(draw, _SHAPES)
        nbytes = SIZES[kind] * math.prod(shape)
        contents = st.one_of(st.just(bytes(nbytes)), *[st.binary(min_size=nbytes, max_size=nbytes)] * 2)
        init = draw(contents) if draw(st.booleans()) else None
        variable = ModuleVariable(name, kind, shape, init, code=choose(draw, (None, *draft.code)))  # type: ignore[arg-type]  # reads spellings
        draft.variables.append(variable)
        if draw(st.booleans()):
            draft.copied.append((variable, _source(draft, variable)))


def _source(draft: Draft, variable: ModuleVariable) -> TensorParam:
    """Draw an input that has as many elements as a variable, or has in some calls."""
    extents: list[Expr] = [Const(extent) for extent in variable.shape]
    if draft.wants(Capability.DYNAMIC_SHAPES) and draft.draw(st.integers(0, 1)) == 0:
        count = variable.count
        extents = [Symbol(draft.name(), min=max(count - 1, 0), max=count)]
        draft.extent_symbols += extents  # type: ignore[arg-type]  # which it is
    source = TensorParam(draft.name(), variable.dtype, tuple(extents))
    draft.inputs.append(source)
    return source


def draw_copies(draft: Draft, launches: int) -> tuple[CopyToVariable, ...]:
    """Draw before which launch each variable is copied to, some of them twice.

    Parameters
    ----------
    draft
        The program.
    launches
        How many launches it has.
    """
    draw = draft.draw
    places = [
        (place, variable, source)
        for variable, source in draft.copied
        for place in draw(st.lists(st.integers(0, launches - 1), min_size=1, max_size=2))
    ]
    places.sort(key=lambda one: one[0])
    return tuple(CopyToVariable(variable, source, place) for place, variable, source in places)
