"""Random launches over a program's parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.model.expr import Cast, Const, Expr, ceildiv, maximum, minimum
from trunnion.model.launch import Argument, KernelLaunch
from trunnion.model.params import ScalarParam, TensorParam
from trunnion.model.tensormap import TiledTensorMap
from trunnion.testing.strategies.expressions import INTEGERS, expressions
from trunnion.testing.strategies.maps import draw_map
from trunnion.testing.strategies.names import names

if TYPE_CHECKING:
    from trunnion.testing.strategies.programs import Draft

__all__ = ["draw_launches"]


def draw_launches(draft: Draft) -> tuple[KernelLaunch, ...]:
    """Draw one launch, or up to four of up to three kernels.

    Parameters
    ----------
    draft
        Everything but the launches.
    """
    draw = draft.draw
    several = draft.wants(Capability.MULTI_LAUNCH)
    launches: list[KernelLaunch] = []
    maps: list[TiledTensorMap] = []
    for index in range(draw(st.integers(2, 4)) if several else 1):
        again = index > 0 and draw(st.booleans())
        if again:
            earlier = draw(st.sampled_from(launches))
            args = tuple(_like(draft, argument, maps) for argument in earlier.args)
            kernel = earlier.kernel
        else:
            args = tuple(_argument(draft, maps) for _ in range(draw(st.integers(0, 6))))
            if index == 0 and draft.wants(Capability.TMA_TILED):
                args = (*args, _map(draft, maps))
            kernel = draw(
                names().filter(lambda name: "\0" not in name and all(name != x.kernel for x in launches))
            )
        launches.append(_launch(draft, kernel, args, first=index == 0))
    return tuple(launches)


def _launch(draft: Draft, kernel: str, args: tuple[Argument, ...], *, first: bool) -> KernelLaunch:
    draw = draft.draw
    grid: tuple[Expr, ...] = tuple(_grid_extent(draft) for _ in range(draw(st.integers(1, 3))))
    cluster = None
    if draft.wants(Capability.CLUSTER) and (first or draw(st.booleans())):
        width = draw(st.sampled_from((1, 2, 4)))
        cluster = (Const(width), Const(draw(st.sampled_from((1, 1, 2)))), Const(1))
        wide = (*grid, Const(1))[:2]
        grid = (wide[0] * width, wide[1] * cluster[1])
    return KernelLaunch(
        kernel,
        args,
        grid,  # type: ignore[arg-type]  # the constructor fills it up to three
        _block(draft),  # type: ignore[arg-type]  # ditto
        dynamic_smem_bytes=_smem(draft),
        cluster=cluster,
        cooperative=draft.wants(Capability.COOPERATIVE) and (first or draw(st.booleans())),
        pdl=draft.wants(Capability.PDL) and (first or draw(st.booleans())),
    )


def _grid_extent(draft: Draft) -> Expr:
    draw = draft.draw
    if draw(st.booleans()) and draft.extent_symbols:
        symbol = draw(st.sampled_from(draft.extent_symbols))
        unit = draw(st.sampled_from((1, 4, 8)))
        return draw(st.sampled_from((symbol + 0, ceildiv(symbol, unit), symbol // unit, maximum(symbol, 1))))
    return Const(
        draw(st.sampled_from((1, 1, 2, 3, 0)) if draw(st.integers(0, 2)) == 0 else st.integers(1, 4))
    )


def _block(draft: Draft) -> tuple[Expr, ...]:
    draw = draft.draw
    if draft.extent_symbols and draw(st.integers(0, 3)) == 0:
        symbol = draw(st.sampled_from(draft.extent_symbols))
        return (draw(st.sampled_from((maximum(symbol, 1), minimum(symbol + 1, 64) * 8, symbol + 31))),)
    numbers = draw(st.sampled_from(((1,), (32,), (128,), (1024,), (8, 4), (2, 3, 5), (16, 1, 64))))
    return tuple(Const(number) for number in numbers)


def _smem(draft: Draft) -> Expr:
    draw = draft.draw
    if draft.extent_symbols and draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(draft.extent_symbols)) * draw(st.sampled_from((4, 1024)))
    return Const(draw(st.sampled_from((0, 0, 16, 49152, 49153, 100_000))))


def _argument(draft: Draft, maps: list[TiledTensorMap]) -> Argument:
    draw = draft.draw
    choices: list[st.SearchStrategy[Argument]] = [_integer(draft)]
    tensors = [*draft.inputs, *draft.outputs]
    if tensors:
        choices += [st.sampled_from(tensors)] * 2
    if draft.scalars:
        choices.append(st.sampled_from(draft.scalars))
    if draft.mapped and draw(st.integers(0, 2)) == 0:
        return _map(draft, maps)
    return draw(st.one_of(choices))


def _integer(draft: Draft) -> st.SearchStrategy[Expr]:
    """Return mostly harmless integers, and some that overflow in some calls."""
    small = st.sampled_from([*draft.extent_symbols, Const(5)])
    narrow = st.builds(
        lambda value, to: value.cast(to), small, st.sampled_from(("int32", "int64", "uint64", "uint16"))
    )
    wild = expressions(draft.symbols, 2)
    cast = st.builds(_cast, wild, st.sampled_from(INTEGERS))
    return st.sampled_from((0, 0, 1, 2)).flatmap(lambda choice: (narrow, wild, cast)[choice])


def _cast(value: Expr, to: str) -> Expr:
    return minimum(maximum(value, 0), 127).cast(to)


def _map(draft: Draft, maps: list[TiledTensorMap]) -> TiledTensorMap:
    """Draw a new map, an old one, or an old one under another label."""
    draw = draft.draw
    choice = draw(st.sampled_from(("new", "new", "old", "relabelled"))) if maps else "new"
    if choice == "new":
        maps.append(draw_map(draft, draw(st.sampled_from(draft.mapped))))
        return maps[-1]
    old = draw(st.sampled_from(maps))
    return old if choice == "old" else replace(old, label=draw(names()))


def _like(draft: Draft, argument: Argument, maps: list[TiledTensorMap]) -> Argument:
    """Draw an argument that fits the same parameter of the same kernel."""
    draw = draft.draw
    if draw(st.booleans()):
        return argument
    match argument:
        case TensorParam():
            return draw(
                st.sampled_from([t for t in (*draft.inputs, *draft.outputs) if t.dtype == argument.dtype])
            )
        case ScalarParam():
            return draw(st.sampled_from([s for s in draft.scalars if s.dtype == argument.dtype]))
        case TiledTensorMap():
            return _map(draft, maps)
        case Cast():
            return _cast(draw(expressions(draft.symbols, 2)), argument.to.name)
    fitting = draw(expressions(draft.symbols, 2))
    return argument if isinstance(fitting, Cast) else fitting
