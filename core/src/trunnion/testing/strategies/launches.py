"""Random launches over a program's parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.model.code import DeviceCode
from trunnion.model.constant import Constant
from trunnion.model.expr import Cast, Const, Expr, ceildiv, eq, ge, maximum, minimum
from trunnion.model.facts import device
from trunnion.model.float_expr import FloatCast
from trunnion.model.launch import Argument, KernelLaunch
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.passed_memory import PassedMemory
from trunnion.model.struct import Struct, replaced
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.testing.strategies.attributes import draw_attributes
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.expressions import INTEGERS, expressions
from trunnion.testing.strategies.fixed_arguments import draw_fixed, draw_like
from trunnion.testing.strategies.float_expressions import draw_float, like_float
from trunnion.testing.strategies.maps import draw_im2col_map, draw_map
from trunnion.testing.strategies.memory import draw_window
from trunnion.testing.strategies.names import names
from trunnion.testing.strategies.structs import draw_struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.testing.strategies.draft import Draft

__all__ = ["draw_launches"]

_Maps = list[TensorMap]
_Kernel = tuple[str, DeviceCode | None]  # `KernelLaunch.kernel` and `KernelLaunch.code`


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
    maps: _Maps = []
    for index in range(draw(st.integers(2, 4)) if several else 1):
        again = index > 0 and draw(st.booleans())
        if again:
            earlier = choose(draw, launches)
            args = tuple(_like(draft, argument, maps) for argument in earlier.args)
            where = _namesake(draft, launches, earlier.kernel) or (earlier.kernel, earlier.code)
        else:
            args = tuple(_argument(draft, maps) for _ in range(draw(st.integers(0, 6))))
            if index == 0:
                args = (*args, *_required_arguments(draft, maps))
            where = _new_kernel(draft, launches)
        launches.append(_launch(draft, where, args, first=index == 0))
    return tuple(launches)


def _new_kernel(draft: Draft, launches: Sequence[KernelLaunch]) -> _Kernel:
    """Draw a kernel that no launch has launched: of a name of its own, or of one that is known in another part."""
    draw = draft.draw
    if launches:
        namesake = _namesake(draft, launches, choose(draw, launches).kernel)
        if namesake is not None:
            return namesake
    known = {launch.kernel for launch in launches}
    kernel = draw(names().filter(lambda name: "\0" not in name and name not in known))
    return kernel, choose(draw, (None, *draft.code))


def _namesake(draft: Draft, launches: Sequence[KernelLaunch], kernel: str) -> _Kernel | None:
    """Draw a part without a kernel of this name, which then has one; None if there is none, or it shall not be."""
    taken = [launch.code or draft.code[0] for launch in launches if launch.kernel == kernel]
    free = [part for part in draft.code if part not in taken]
    if not free or draft.draw(st.booleans()):
        return None
    part = choose(draft.draw, free)
    return kernel, None if part == draft.code[0] else part


def _required_arguments(draft: Draft, maps: _Maps) -> tuple[Argument, ...]:
    """Return what the first launch must be given for the program to require what it shall."""
    args: list[Argument] = [
        *draft.workspaces[:1], *draft.pointers[:1], *draft.structs[:1], *draft.facts[:1], *draft.variables,
    ]  # fmt: skip
    if draft.wants(Capability.TENSOR_VIEWS):
        args.append(choose(draft.draw, draft.memories).view())
    if draft.wants(Capability.CONSTANTS_AND_OFFSETS):
        args += draw_fixed(draft)
    if draft.wants(Capability.FLOAT_EXPRESSIONS):
        args.append(draw_float(draft))
    if draft.wants(Capability.TMA_TILED):
        memory = choose(draft.draw, draft.mapped)
        count = draft.draw(st.integers(1, 2))  # two over one tensor show what tells maps apart
        args += [_new_map(draft, memory, maps, image=False) for _ in range(count)]
    if draft.wants(Capability.TMA_IM2COL):
        args.append(_new_map(draft, choose(draft.draw, draft.images), maps, image=True))
    if draft.wants(Capability.BUILT_STRUCTS):
        args.append(draw_struct(draft, lambda: _leaf(draft, maps)))
    return tuple(draft.draw(st.permutations(args)))


def _launch(draft: Draft, where: _Kernel, args: tuple[Argument, ...], *, first: bool) -> KernelLaunch:
    draw = draft.draw
    said = draw_attributes(draft, first=first)
    window = when = None
    if draft.wants(Capability.ACCESS_POLICY_WINDOW) and (first or draw(st.booleans())) and draft.memories:
        window = draw_window(draft)
    if draft.wants(Capability.CONDITIONAL_LAUNCH) and (first or draw(st.booleans())):
        when = _condition(draft)
    kernel, code = where
    return KernelLaunch(
        kernel,
        args,
        _grid(draft, said),  # type: ignore[arg-type]  # the constructor fills it up to three
        _block(draft),  # type: ignore[arg-type]  # ditto
        dynamic_smem_bytes=_smem(draft),
        window=window,
        when=when,
        code=code,
        **said,
    )


def _grid(draft: Draft, said: dict[str, Any]) -> tuple[Expr, ...]:
    """Draw a grid: with clusters mostly a multiple of them, and of a cooperative launch a small one."""
    draw = draft.draw
    count = 1 if said.get("cooperative") else draw(st.integers(1, 3))
    grid = [_grid_extent(draft) for _ in range(count)]
    if draft.facts and not said.get("cooperative") and draw(st.booleans()):
        grid[0] = _resident(draft)
    widths = said.get("preferred_cluster") or said.get("cluster")
    if widths is None or (
        "preferred_cluster" not in said
        and not isinstance(grid[0], Const)
        and widths[1:] == (1, 1)
        and draw(st.integers(0, 3)) == 0
    ):
        return tuple(grid)  # which a call may find to be no multiple
    full = [*grid, Const(1), Const(1)][:3]
    return tuple(extent * width for extent, width in zip(full, widths, strict=True))


def _resident(draft: Draft) -> Expr:
    """Draw a grid as a persistent kernel has it: as many blocks as there is work for, or room."""
    draw, count = draft.draw, device.multiprocessor_count
    if bool(draft.extent_symbols) and draw(st.booleans()):
        return minimum(choose(draw, draft.extent_symbols), count)
    return choose(draw, (count + 0, count * 2, ceildiv(count, 4), device.compute_capability_minor + 0))


def _condition(draft: Draft) -> Expr:
    draw = draft.draw
    if bool(draft.facts) and draw(st.booleans()):
        fact = choose(draw, draft.facts)
        return choose(draw, (fact, eq(device.multiprocessor_count, 114), fact % 3, ge(fact, 32)))
    if not draft.symbols:
        return Const(choose(draw, (1, 1, 0, -1)))
    symbol = choose(draw, draft.symbols)
    wild = draw(expressions(draft.numbers, 2))
    forms: tuple[Expr, ...] = (symbol, symbol % 2, eq(symbol, 4), ge(symbol, 2), wild)
    return choose(draw, forms)


def _grid_extent(draft: Draft) -> Expr:
    draw = draft.draw
    if draw(st.booleans()) and draft.extent_symbols:
        symbol = choose(draw, draft.extent_symbols)
        unit = choose(draw, (1, 4, 8))
        return choose(draw, (symbol + 0, ceildiv(symbol, unit), symbol // unit, maximum(symbol, 1)))
    return Const(
        draw(st.sampled_from((1, 1, 2, 3, 0)) if draw(st.integers(0, 2)) == 0 else st.integers(1, 4))
    )


def _block(draft: Draft) -> tuple[Expr, ...]:
    draw = draft.draw
    if draft.extent_symbols and draw(st.integers(0, 3)) == 0:
        symbol = choose(draw, draft.extent_symbols)
        return (choose(draw, (maximum(symbol, 1), minimum(symbol + 1, 64) * 8, symbol + 31)),)
    if draft.facts and draw(st.integers(0, 3)) == 0:
        return (choose(draw, (device.warp_size * 4, device.max_threads_per_block, device.warp_size + 0)),)
    numbers = choose(draw, ((1,), (32,), (128,), (1024,), (8, 4), (2, 3, 5), (16, 1, 64)))
    return tuple(Const(number) for number in numbers)


def _smem(draft: Draft) -> Expr:
    draw = draft.draw
    if draft.extent_symbols and draw(st.integers(0, 3)) == 0:
        return choose(draw, draft.extent_symbols) * choose(draw, (4, 1024))
    if draft.facts and draw(st.integers(0, 3)) == 0:
        return choose(draw, (device.max_shared_memory_per_block, device.reserved_shared_memory_per_block * 2))
    return Const(choose(draw, (0, 0, 16, 49152, 49153, 100_000)))


def _argument(draft: Draft, maps: _Maps) -> Argument:
    if draft.wants(Capability.BUILT_STRUCTS) and draft.draw(st.integers(0, 4)) == 0:
        return draw_struct(draft, lambda: _leaf(draft, maps))
    return _leaf(draft, maps)


def _leaf(draft: Draft, maps: _Maps) -> Argument:
    """Draw what is no struct of the launcher's."""
    draw = draft.draw
    if (draft.mapped or draft.images) and draw(st.integers(0, 2)) == 0:
        return _map(draft, maps)
    if draft.wants(Capability.CONSTANTS_AND_OFFSETS) and draw(st.integers(0, 2)) == 1:
        return choose(draw, draw_fixed(draft))
    if draft.wants(Capability.FLOAT_EXPRESSIONS) and draw(st.integers(0, 2)) == 1:
        return draw_float(draft)
    kinds: tuple[Sequence[Argument], ...] = (draft.memories, draft.memories, draft.scalars, draft.pointers)
    given = choose(draw, [(), *(kind for kind in (*kinds, draft.structs, draft.variables) if kind)])
    argument = choose(draw, given) if given else _integer(draft)
    viewed = (
        draft.wants(Capability.TENSOR_VIEWS) and isinstance(argument, PassedMemory) and draw(st.booleans())
    )
    return argument.view() if viewed and isinstance(argument, PassedMemory) else argument


def _integer(draft: Draft) -> Expr:
    """Draw an integer: mostly a harmless one, sometimes one that overflows in some calls."""
    draw = draft.draw
    kind = choose(draw, ("narrow", "narrow", "wild", "cast"))
    if kind == "narrow":
        value: Expr = choose(draw, [*draft.extent_symbols, Const(5)])
        return value.cast(choose(draw, ("int32", "int64", "uint64", "uint16")))
    wild = draw(expressions(draft.numbers, 2))
    return wild if kind == "wild" else _cast(wild, choose(draw, INTEGERS))


def _cast(value: Expr, to: str) -> Expr:
    return minimum(maximum(value, 0), 127).cast(to)


def _new_map(draft: Draft, memory: PassedMemory, maps: _Maps, *, image: bool) -> TensorMap:
    maps.append(draw_im2col_map(draft, memory) if image else draw_map(draft, memory))
    return maps[-1]


def _map(draft: Draft, maps: _Maps) -> TensorMap:
    """Draw a new map, an old one, or an old one under another label."""
    draw = draft.draw
    choice = choose(draw, ("new", "new", "old", "relabelled")) if maps else "new"
    if choice == "new":
        places = [(memory, False) for memory in draft.mapped] + [(memory, True) for memory in draft.images]
        memory, image = choose(draw, places)
        return _new_map(draft, memory, maps, image=image)
    old = choose(draw, maps)
    return old if choice == "old" else replace(old, label=draw(names()))


def _like(  # noqa: C901, PLR0911 - one for each kind
    draft: Draft, argument: Argument, maps: _Maps
) -> Argument:
    """Draw an argument that fits the same parameter of the same kernel."""
    draw = draft.draw
    if draw(st.booleans()):
        return argument
    match argument:
        case PassedMemory():
            return choose(draw, [one for one in draft.memories if one.dtype == argument.dtype])
        case MovedAddress() | Constant():
            return draw_like(draft, argument)
        case FloatCast():
            return like_float(draft, argument)
        case TensorView():
            return argument  # another layout would be another parameter
        case Struct():
            return replaced(argument, lambda one: _like(draft, one, maps))  # type: ignore[no-any-return]  # a struct
        case ScalarParam():
            return choose(draw, [s for s in draft.scalars if s.dtype == argument.dtype])
        case PointerParam():
            return choose(draw, draft.pointers)
        case ModuleVariable():
            return choose(draw, draft.variables)
        case StructParam(_, nbytes, alignment):
            alike = [s for s in draft.structs if (s.nbytes, s.alignment) == (nbytes, alignment)]
            return choose(draw, alike)
        case TensorMap():
            return _map(draft, maps)
        case Cast():
            return _cast(draw(expressions(draft.numbers, 2)), argument.to.name)
    fitting = draw(expressions(draft.numbers, 2))
    return argument if isinstance(fitting, Cast) else fitting
