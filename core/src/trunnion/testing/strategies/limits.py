"""Calls at the edges of what launches, memory, maps, windows, views and numbers allow: one inside, one outside.

Each strategy draws a program of few forms, and several calls of it, so that a launcher that takes long to build is
asked for more than one edge.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.model.constant import const
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Op, Symbol, binary
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Param, PointerParam, ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Struct
from trunnion.model.workspace import Workspace
from trunnion.testing.arithmetic import UncomputableError, evaluate, integer_range
from trunnion.testing.rounding import SIZES
from trunnion.testing.strategies.calls import CallSpec, TensorSpec
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.numbers import numbers
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.strategies.wrong_values import wrong_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.model.launch import Argument
    from trunnion.model.tensormap import TensorMap

__all__ = [
    "Series",
    "aligned_memory",
    "blocks",
    "grids",
    "is_huge",
    "map_layouts",
    "memory_sizes",
    "narrow_operations",
    "number_edges",
    "operations",
    "shared_memory",
    "view_layouts",
    "window_ranges",
    "wrong_numbers",
]

_ONE: Final = Const(1)
_ONES: Final = (_ONE, _ONE, _ONE)
_INT64: Final = 2**63
_MOST_CALLS: Final = 32
_WRAPPING: Final = (2**31, 2**32, 2**32 + 1, 2**53 + 1, 2**63 - 1, -(2**63), -1)
"""Numbers that some narrower type, or a double, takes for another one."""


@dataclass(frozen=True, slots=True)
class Series:
    """A program, and calls of it that are made one after the other."""

    program: KernelProgram
    """What is called."""

    calls: tuple[CallSpec, ...]
    """What it is called with."""


def _symbol(name: str) -> Symbol:
    return Symbol(name, min=-_INT64)


def _bounded(draw: st.DrawFn, name: str, least: int, most: int) -> Symbol:
    """Draw a symbol whose own bounds are those of what it is for, or allow one more, or whatever there is."""
    low = choose(draw, (-_INT64, least - 1, least))
    return Symbol(name, min=low, max=choose(draw, (_INT64 - 1, most + 1, most)))


def _numbers(*symbols: Symbol) -> tuple[ScalarParam, ...]:
    """Return a 64-bit number for each symbol, which binds it."""
    return tuple(ScalarParam(symbol.name, dtype("int64"), symbol) for symbol in symbols)


def _several(
    draw: st.DrawFn, table: Sequence[tuple[int, ...]], most: int = _MOST_CALLS
) -> list[tuple[int, ...]]:
    """Draw some rows of a table; of each row one is as likely as the next."""
    return [choose(draw, table) for _ in range(draw(st.integers(1, most)))]


def _program(
    params: Sequence[Param], *launches: KernelLaunch, outputs: Sequence[TensorParam] = ()
) -> KernelProgram:
    return KernelProgram("p", Signature(tuple(params), tuple(outputs)), (CODE,), launches)


# Geometry -----------------------------------------------------------------------------------------------------------

_MOST_GRID: Final = (2**31 - 1, 65535, 65535)
_MOST_BLOCK: Final = (1024, 1024, 64)


def _along(axis: int, extent: int) -> tuple[int, int, int]:
    x, y, z = (extent if axis == place else 1 for place in range(3))
    return x, y, z


_GRIDS: Final = (
    *(
        _along(axis, most + beyond)
        for axis, most in enumerate(_MOST_GRID)
        for beyond in (-1, 0, 1)
        for _ in (0, 1)
    ),
    *(_along(axis, extent) for axis in range(3) for extent in (0, 65536, *_WRAPPING)),
    _MOST_GRID,
    (0, 65535, -1),
    (0, 0, 0),
    (-1, 0, 1),
)
"""Grids at the edges of what is allowed."""

_BLOCKS: Final = (
    *(
        _along(axis, most + beyond)
        for axis, most in enumerate(_MOST_BLOCK)
        for beyond in (-1, 0, 1)
        for _ in (0, 1)
    ),
    *(_along(axis, extent) for axis in range(3) for extent in (0, *_WRAPPING)),
    *(
        (1024, 1, 1),
        (512, 2, 1),
        (1, 16, 64),
        (2, 8, 64),
        (31, 33, 1),
        (341, 3, 1),
    ),  # as many as allowed, or a few fewer
    *((1024, 1, 2), (513, 2, 1), (1, 17, 64), (205, 5, 1), (1024, 1024, 64), (5, 5, 41)),  # more
)
"""Blocks at the edges of what is allowed."""


@st.composite
def grids(draw: st.DrawFn) -> Series:
    """Draw grids around the greatest, of which the symbols' own bounds may allow no more, or just one more."""
    x, y, z = (_bounded(draw, name, 0, most) for name, most in zip("xyz", _MOST_GRID, strict=True))
    times = _symbol("times")
    product = draw(st.booleans())
    launch = KernelLaunch("k", (), (x * times if product else x, y, z), _ONES)
    rows = _several(draw, _GRIDS)
    calls = [CallSpec(args=(*row, 2**32 if row[0] == 2**32 else 1), device=0) for row in rows]
    return Series(_program(_numbers(x, y, z, times), launch), tuple(calls))


@st.composite
def blocks(draw: st.DrawFn) -> Series:
    """Draw blocks around the greatest along each axis, and of about as many threads as there may be."""
    x, y, z = (_bounded(draw, name, 1, most) for name, most in zip("xyz", _MOST_BLOCK, strict=True))
    launch = KernelLaunch("k", (), _ONES, (x, y, z))
    calls = [CallSpec(args=row, device=0) for row in _several(draw, _BLOCKS)]
    return Series(_program(_numbers(x, y, z), launch), tuple(calls))


@st.composite
def shared_memory(draw: st.DrawFn, most: int, *, several: bool) -> tuple[Series, int]:
    """Draw dynamic shared memory around what a kernel has unasked, and what a device allows beside its static one.

    Parameters
    ----------
    draw
        Hypothesis's.
    most
        What the device allows a block, in bytes.
    several
        Whether a launch that asks for none may come before.

    Returns
    -------
    tuple of Series and int
        The second is the kernel's static shared memory, in bytes.
    """
    static = choose(draw, (0, 16, 1024, 48 << 10))
    left, unasked = most - static, (48 << 10) - static
    around = [edge + beyond for edge in (left, left, unasked) for beyond in (-1, 0, 1)]
    table = [(size,) for size in (*around, 0, 1, most, most + 1, 2**31 - 1, *_WRAPPING)]
    nbytes = _bounded(draw, "nbytes", 0, 2**31 - 1)
    launch = KernelLaunch("k", (), _ONES, _ONES, dynamic_smem_bytes=nbytes)
    calls = [CallSpec(args=row, device=choose(draw, (0, 0, 1))) for row in _several(draw, table)]
    before = [KernelLaunch("k", (), _ONES, _ONES)] if several and draw(st.booleans()) else []
    return Series(_program(_numbers(nbytes), *before, launch), tuple(calls)), static


# Memory -------------------------------------------------------------------------------------------------------------

_ALIGNMENTS: Final = (4, 16, 128, 256, 512, 4096, 1 << 15, 1 << 16)


@st.composite
def aligned_memory(draw: st.DrawFn, *, workspace: bool) -> Series:
    """Draw memory of every alignment up to 64 KiB: passed, given under ``out=``, allocated, and scratch.

    What is passed or given is aligned as it must be, better, or only to half of that.
    """
    alignment, other, third = (choose(draw, _ALIGNMENTS) for _ in range(3))
    count = draw(st.integers(1, 3))
    given = TensorParam("a", dtype("int32"), (Const(count),), alignment=alignment)
    made = TensorParam("b", dtype("int16"), (Const(count),), access="write", alignment=other)
    args: list[Argument] = [given, made]
    if workspace:
        args.append(Workspace("w", dtype("uint8"), (Const(count),), alignment=third))
    launch = KernelLaunch("k", tuple(args), _ONES, _ONES)

    def at(kind: str, wanted: int) -> TensorSpec:
        size = dtype(kind).itemsize
        start = choose(draw, (0, wanted, wanted // 2, wanted + 1)) // size
        return TensorSpec(dtype=kind, shape=(count,), strides=(1,), offset=start)

    calls = []
    for _ in range(draw(st.integers(1, 4))):
        out = (at("int16", other),) if draw(st.booleans()) else None
        calls.append(CallSpec(args=(at("int32", alignment),), out=out))
    return Series(_program((given,), launch, outputs=(made,)), tuple(calls))


_EXTENTS: Final = (
    *(
        (2, 3),
        (0, 2**62),
        (2**62, 0),
        (1, 1),
        (0, -1),
        (-1, 0),
        (-1, -1),
        (-(2**63), 1),
        (1, -(2**63)),
        (2**63 - 1, 0),
    ),
    *(
        (2**32, 2**32),
        (2**31, 2**32),
        (2**30, 2**31),
        (2**61, 4),
        (2**62, 2),
        (2**63 - 1, 2),
        (2**32 + 1, 2**32),
    ),
    *((2**60, 8), (2**60, 2), (1, 2**61), (1, 2**60), (2**53 + 1, 2**10), (2**59, 2)),
    *((2**63 - beneath, 1) for beneath in (1, 128, 256, 257, 4096, 4097)),
)
"""Two extents, whose product may be beyond 2**63 - 1, or in bytes only, or with what aligns it, or be 0."""

_HUGE: Final = range(1 << 62, 1 << 63)
"""Bytes that no device has, and that a launcher may refuse, or leave to the allocator."""


def _is_decided(extents: tuple[int, int], itemsize: int) -> bool:
    """Whether every device has memory of that size, or none can: what lies between is the allocator's to say."""
    nbytes = extents[0] * extents[1] * itemsize
    return not 1 << 20 < nbytes < _HUGE.start


def is_huge(program: KernelProgram, call: CallSpec) -> bool:
    """Whether the memory that is asked for is less than 2**63 bytes, and more than any device has.

    Parameters
    ----------
    program
        A program of `memory_sizes`.
    call
        A call of it.
    """
    (memory,) = program.launches[0].args
    extents = [value for value in call.args if isinstance(value, int)]
    itemsize = memory.dtype.itemsize if isinstance(memory, (TensorParam, Workspace)) else 0
    return math.prod(extents) * itemsize in _HUGE


@st.composite
def memory_sizes(draw: st.DrawFn, *, workspace: bool) -> Series:
    """Draw the extents of an output, or of a workspace, that no memory could have, or hardly.

    A tensor may come with them, the same in every call, which says nothing of these extents.
    """
    m, n = _symbol("m"), _symbol("n")
    kind = choose(draw, ("float64", "uint8"))
    shape = (m, n) if draw(st.booleans()) else (m * n,)
    outputs: tuple[TensorParam, ...] = ()
    memory: Argument
    if workspace and draw(st.booleans()):
        memory = Workspace("w", dtype(kind), shape, alignment=choose(draw, (1, 4096)))
    else:
        outputs = (memory,) = (
            TensorParam("o", dtype(kind), shape, access="write", alignment=choose(draw, (None, 4096))),
        )
    launch = KernelLaunch("k", (memory,), _ONES, _ONES)
    table = [row for row in _EXTENTS if _is_decided(row, dtype(kind).itemsize)]
    rows = _several(draw, table)
    if draw(st.booleans()):
        tensor, spec = (
            TensorParam("t", dtype("uint8"), (_ONE,)),
            TensorSpec(dtype="uint8", shape=(1,), strides=(1,)),
        )
        params: tuple[Param, ...] = (tensor, *_numbers(m, n))
        calls = [CallSpec(args=(spec, *row)) for row in rows]
    else:
        params, calls = _numbers(m, n), [CallSpec(args=row, device=0) for row in rows]
    return Series(_program(params, launch, outputs=outputs), tuple(calls))


# Maps, windows, views -----------------------------------------------------------------------------------------------

_ROOM: Final = 8192
"""Bytes of the tensor under a map or a window."""

_LAYOUTS: Final = (
    # rows, columns, bytes between rows, elements between columns, bytes before the first
    (2**28 + 1, 64, 2**36, 1, 0),  # 2**64 bytes from the first row to the last, which wrap to none
    *((4, 64, 64, 1, 0), (1, 64, 64, 1, 0), (4, 64, 0, 1, 0)),
    *((4, 64, step, 1, 0) for step in (8, 16, 24, 32, 48, 63, 65)),
    *(
        (1, 64, step, 1, 0)
        for step in (2**40 - 32, 2**40 - 16, 2**40, 2**40 + 32, -32, 2**63 - 32, 2**32 + 8)
    ),
    *(
        (rows, 64, 0, 1, 0)
        for rows in (0, 1, 2, 2**31 - 2, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**33, 2**63 - 1, -1)
    ),
    *((1, columns, 64, 1, 0) for columns in (0, 1, _ROOM - 1, _ROOM, _ROOM + 1, 2**32, 2**32 + 1, -1)),
    *((4, columns, 64, inner, 0) for columns in (1, 2) for inner in (0, 1, 2)),
    *((4, 64, 64, 1, start) for start in (1, 8, 15, 16, 17, 32, 48, -16, -32, 2**63 - 64)),
    *((4, 64, 64, 1, _ROOM - 256 + more) for more in (0, 16, 32, -32)),
    *(
        (4, 65, 64, 1, _ROOM - 256),
        (4, 64, 65, 1, 8),
        (0, 64, 24, 1, 8),
        (0, 64, 24, 2, 0),
        (4, 64, 24, 1, 4),
    ),
)
"""Layouts of a map: of two broken rules both must be named."""

_BOXES: Final = (
    # two extents, and of how many elements along each one is loaded, rounded up: 912 rows of 256 bytes are allowed
    *(((57, 16), (1, 1)), ((4, 228), (1, 1)), ((83, 11), (1, 1)), ((1, 256), (1, 1))),
    *(
        ((233, 233), (8, 8)),
        ((256, 17), (1, 8)),
        ((228, 32), (1, 8)),
        ((57, 121), (1, 8)),
        ((152, 6), (1, 1)),
    ),
    # Rounded up they are too many; as they are, or rounded down, they are not.
    *(
        ((229, 25), (1, 8)),
        ((241, 241), (8, 8)),
        ((233, 241), (8, 8)),
        ((115, 57), (1, 8)),
        ((184, 9), (1, 2)),
    ),
    *(((256, 256), (1, 1)), ((256, 256), (1, 8)), ((256, 29), (1, 8))),
)
"""Boxes around what a multiprocessor has room for."""

_THINNED: Final = (
    *(((57, 32), (1, 1)), ((228, 8), (1, 1)), ((256, 256), (8, 8))),
    *(((83, 22), (1, 1)), ((256, 57), (1, 8))),
)
"""Such boxes if of each row every other element alone is loaded, which an interleave allows: 1824 rows are allowed."""


@st.composite
def map_layouts(draw: st.DrawFn, *, im2col: bool) -> Series:
    """Draw the layout of a map over a tensor of bytes, or its box: each number around what a rule allows.

    Parameters
    ----------
    draw
        Hypothesis's.
    im2col
        Whether the map may be an im2col one, whose box of pixels the rows then decide.
    """
    rows, columns, step, inner, start = names = tuple(
        map(_symbol, ("rows", "columns", "step", "inner", "start"))
    )
    tensor = TensorParam("a", dtype("uint8"), (Const(_ROOM),))
    tensor_map: TensorMap
    deep: dict[str, Any] = {
        "shape": (_ONE, rows, columns),
        "strides": (Const(0), step, inner),
        "element_offset": start,
    }
    form = choose(
        draw,
        ("NONE", "NONE", "16B", "32B", "box", "thinned", "chunk", *(("pixels", "pixels") if im2col else ())),
    )
    if form == "NONE":
        tensor_map = tensor.tiled((1, 16), shape=(rows, columns), strides=(step, inner), element_offset=start)
    elif form == "box":
        (first, second), steps = choose(draw, _BOXES)
        tensor_map = tensor.tiled((first, second, 256), element_strides=(*steps, 1), **deep)
    elif form == "thinned":
        (first, second), steps = choose(draw, _THINNED)
        tensor_map = tensor.tiled((first, second, 256), element_strides=(*steps, 2), interleave="16B", **deep)
    elif form == "chunk":
        tensor_map = tensor.tiled((1, 1, choose(draw, (8, 24))), interleave="16B", **deep)
    elif form == "pixels":
        tensor_map = tensor.im2col(
            pixel_box_lower_corner=(choose(draw, (-1, 0, 1)),),
            pixel_box_upper_corner=(choose(draw, (-1, 0, 1)),),
            channels_per_pixel=16,
            pixels_per_column=4,
            **deep,
        )
    else:
        tensor_map = tensor.tiled((1, 1, 16), interleave=form, swizzle="32B", **deep)
    launch = KernelLaunch("k", (tensor_map,), _ONES, _ONES)
    spec = TensorSpec(dtype="uint8", shape=(_ROOM,), strides=(1,), offset=choose(draw, (0, 0, 0, 16, 32, 8)))
    calls = [CallSpec(args=(spec, *row)) for row in _several(draw, _LAYOUTS, 4 * _MOST_CALLS)]
    return Series(_program((tensor, *_numbers(*names)), launch), tuple(calls))


_RANGES: Final = (
    # elements before the first, bytes
    *((0, nbytes) for nbytes in (0, 1, _ROOM - 1, _ROOM, _ROOM + 1, *_WRAPPING)),
    *((_ROOM // 2, nbytes) for nbytes in (_ROOM // 2 - 1, _ROOM // 2, _ROOM // 2 + 1)),
    *((start, nbytes) for start in (_ROOM - 1, _ROOM, _ROOM + 1, -1, *_WRAPPING) for nbytes in (0, 1)),
    (1, 2**63 - 1),
    (2**63 - 1, 2**63 - 1),
)
"""Ranges of a window."""


@st.composite
def window_ranges(draw: st.DrawFn) -> Series:
    """Draw the range of a window: its first byte and its length around the ends of its memory."""
    start, nbytes = _symbol("start"), _symbol("nbytes")
    unit = choose(draw, ("uint8", "float64"))
    size = dtype(unit).itemsize
    tensor = TensorParam("a", dtype(unit), (Const(_ROOM // size),))
    named = draw(st.integers(0, 3)) > 0
    window = tensor.window(
        element_offset=start,
        nbytes=nbytes if named else None,
        hit_ratio=choose(draw, (1.0, 0.0, 0.1, 2.0**-30)),
        policy=choose(draw, ("launch", "stream")),
    )
    launch = KernelLaunch("k", (tensor,), _ONES, _ONES, window=window)
    spec = TensorSpec(dtype=unit, shape=(_ROOM // size,), strides=(1,), offset=choose(draw, (0, 1)))
    rows = [
        (first // size if abs(first) <= _ROOM else first, count) for first, count in _several(draw, _RANGES)
    ]
    calls = [CallSpec(args=(spec, *row)) for row in rows]
    return Series(_program((tensor, *_numbers(start, nbytes)), launch), tuple(calls))


_SPANS: Final = (
    # two extents and two strides
    *((extent, 1, 0, 1) for extent in (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1)),
    *((1, extent, 1, 0) for extent in (2**31 - 1, 2**31, 2**32 + 1)),
    *((1, 2, stride, 1) for stride in (2**31, 2**32 + 1, 2**53 + 1, 2**62)),
    *((3, 2, 2, 1), (3, 2, 4096, 1)),
)
"""Extents and strides of a view: an extent travels in 32 bits, a stride in 64."""


@st.composite
def view_layouts(draw: st.DrawFn, *, built: bool) -> Series:
    """Draw tensors whose extents or strides are around what a view can hold, of which few elements are apart.

    Parameters
    ----------
    draw
        Hypothesis's.
    built
        Whether the view may be a field of a struct.
    """
    s, t = (Symbol(name, min=0) for name in "st")
    m, n = (Symbol(name, min=0, max=choose(draw, (_INT64 - 1, 2**31, 2**31 - 1))) for name in "mn")
    tensor = TensorParam("a", dtype("uint8"), (m, n), strides=(s, t))
    view = Struct((("v", tensor.view()),)) if built and draw(st.booleans()) else tensor.view()
    launch = KernelLaunch("k", (view,), _ONES, _ONES)
    calls = []
    for row in _several(draw, _SPANS):
        rows, columns, step, inner = row
        spec = TensorSpec(
            dtype="uint8", shape=(rows, columns), strides=(step, inner), offset=choose(draw, (0, 1))
        )
        calls.append(CallSpec(args=(spec,)))
    return Series(_program((tensor,), launch), tuple(calls))


# Arithmetic ---------------------------------------------------------------------------------------------------------

_OPERANDS: Final = (0, 1, -1, 2, -3, 3, 7, -7, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63))
_SIGNS: Final = tuple((x, y) for x in (7, -7, 6, -6, 0) for y in (3, -3, 2, -2))
_FITTING_SHIFTS: Final = tuple((x, y) for x in (7, -7, 6, -6, 0) for y in (0, 1, 3, 31, 32, 60))
_COUNTS: Final = (0, 1, 32, 62, 63, 64, 65, -1, -62, 2**32, -(2**63))
_PLAIN: Final = tuple(op for op in Op if not op.shifts)
_SHIFTING: Final = tuple(op for op in Op if op.shifts)


@st.composite
def operations(draw: st.DrawFn) -> Series:
    """Draw calls of a program whose kernel takes what each operation makes of two numbers; one may be constant.

    Of the calls half have numbers of which each operation has a value, of every pair of signs. Shifts stand alone: they
    take no negative right operand. To the right they stand alone once more, for values that no shift to the left takes.
    """
    a, b = (Symbol(name, min=-_INT64) for name in "ab")
    ops = choose(draw, (_PLAIN, _PLAIN, _SHIFTING, (Op.SHR,)))
    signs, rights = (_FITTING_SHIFTS, _COUNTS) if Op.SHR in ops else (_SIGNS, _OPERANDS)
    constant = choose(draw, (2, 3, 7) if Op.SHR in ops else (2, 3, -3, 7, -7))
    pairs: tuple[tuple[Expr, Expr], ...] = ((a, b), (a, Const(constant)), (Const(constant), b))
    left, right = choose(draw, (*pairs[:1], *pairs))
    made = tuple(binary(op, left, right).cast("int64") for op in ops)
    params = tuple(ScalarParam(f"s{symbol.name}", dtype("int64"), symbol) for symbol in (a, b))
    edges = [(x, y) for x in _OPERANDS for y in rights]
    rows = [row for table in (signs, edges) for row in _several(draw, table, 8)]
    # Back from the ends of 64 bits to small numbers: what was wide, or overflowed, must leave nothing.
    back = [row for pair in zip(edges[-1:] * 2, rows[:2], strict=True) for row in pair]
    calls = tuple(CallSpec(args=row, device=0) for row in (*rows, *back))
    return Series(_program(params, KernelLaunch("k", made, _ONES, _ONES)), calls)


_Bounds = tuple[int, int]
_ROWS: Final = 16
_DIVIDING: Final = (Op.FLOORDIV, Op.MOD, Op.CEILDIV)
_BITS: Final = (Op.AND, Op.OR, Op.XOR, Op.GCD, *_SHIFTING)
_NARROWED: Final = (Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX, *_BITS, *_DIVIDING, *_DIVIDING)


@st.composite
def narrow_operations(draw: st.DrawFn) -> Series:
    """Draw calls of a program whose kernel takes, as int8, what operations make of numbers of narrow bounds.

    A constant moves the greatest or the least that each can be to the end of int8, or one beyond, and the calls have
    that: whoever proves from the bounds that it fits, and errs by one, passes another number.
    """
    made: list[Expr] = []
    params, edges, inner = [], [], []
    for op, bounds, beyond, up in _narrowed(draw):
        a, b = (
            Symbol(f"{name}{len(made)}", min=low, max=high)
            for name, (low, high) in zip("ab", bounds, strict=True)
        )
        shifted, edge, other = _at_the_end(binary(op, a, b), (a, b), beyond, up=up)
        made.append(shifted.cast("int8"))
        params += [ScalarParam(f"s{symbol.name}", dtype("int64"), symbol) for symbol in (a, b)]
        edges.append(edge)
        inner.append(other)
    rows = [[*inner[:index], edge, *inner[index + 1 :]] for index, edge in enumerate(edges)]
    calls = tuple(CallSpec(args=tuple(number for pair in row for number in pair), device=0) for row in rows)
    return Series(_program(params, KernelLaunch("k", tuple(made), _ONES, _ONES)), calls)


_SIGNED: Final = ((-4, -1), (-6, 0), (-3, 2), (-1, 5), (0, 3), (1, 3))
"""Bounds of numbers of either sign and of both, with 0 and without. No divisor is 0 in every call, and with the last
three no shift goes by less than 0 in every call."""

_DIVISORS: Final = (
    *(((-4, -1), (-2, 0), True), ((-2, 0), (-4, -1), True), ((2, 4), (0, 0), True), ((0, 0), (2, 4), True)),
    *(((-6, 0), (-2, 0), False), ((-6, 0), (0, 3), False), ((1, 3), (-6, -4), True)),
)
"""Bounds of two numbers, and whether their greatest common divisor is the greatest that it can be: 0 divides nothing,
and everything divides 0, whichever of the two may be it."""


def _narrowed(draw: st.DrawFn) -> Iterator[tuple[Op, tuple[_Bounds, _Bounds], int, bool]]:
    """Yield an operation, the bounds of its operands, how far beyond int8 it shall go, and to which end."""
    ops = choose(draw, (_NARROWED, _BITS))
    for _ in range(_ROWS):
        op = choose(draw, ops)
        bounds = choose(draw, _SIGNED), choose(draw, _SIGNED[-3:] if op.shifts else _SIGNED)
        yield op, bounds, choose(draw, (1, 1, 0)), draw(st.booleans())
    for first, second, up in _DIVISORS:
        yield Op.GCD, (first, second), 1, up


def _at_the_end(
    made: Expr, symbols: tuple[Symbol, Symbol], beyond: int, *, up: bool
) -> tuple[Expr, tuple[int, int], tuple[int, int]]:
    """Return an expression moved to an end of int8, the numbers for which it lies there, and some for which it fits."""
    a, b = symbols
    values: dict[tuple[int, int], int] = {}
    for pair in product(range(a.min, a.max + 1), range(b.min, b.max + 1)):
        with suppress(UncomputableError):
            values[pair] = evaluate(made, dict(zip((a.name, b.name), pair, strict=True)))
    least, greatest = min(values.values()), max(values.values())
    beyond = beyond if least < greatest else 0
    end, inside = (greatest, least) if up else (least, greatest)
    low, high = integer_range("int8")
    shift = high + beyond - greatest if up else low - beyond - least
    pairs = [next(pair for pair, value in values.items() if value == wanted) for wanted in (end, inside)]
    return made + Const(shift), pairs[0], pairs[1]


# Numbers ------------------------------------------------------------------------------------------------------------

_KINDS: Final = tuple(SIZES)


def _numbers_of_every_kind(draw: st.DrawFn) -> KernelProgram:
    """Draw a program that takes a number of every type that travels by value, in any order."""
    kinds = draw(st.permutations(_KINDS))
    params = tuple(ScalarParam(f"s{index}", dtype(kind)) for index, kind in enumerate(kinds))
    return _program(params, KernelLaunch("k", params, _ONES, _ONES))


@st.composite
def number_edges(draw: st.DrawFn, *, constants: bool = False) -> Series:
    """Draw numbers that every type can hold: around its ends, next to where it rounds the other way, and others.

    Parameters
    ----------
    draw
        Hypothesis's.
    constants
        Whether the program has such numbers of its own too, and a null pointer.
    """
    program = _numbers_of_every_kind(draw)
    if constants:
        fixed = [const(None), *(const(draw(numbers(kind)), kind) for kind in draw(st.permutations(_KINDS)))]
        launch = program.launches[0]
        program = replace(program, launches=(replace(launch, args=(*launch.args, *fixed)),))
    kinds = [scalar.dtype.name for scalar in program.signature.scalars]
    kept = [numbers(kind) for kind in kinds]
    calls = [
        CallSpec(args=tuple(draw(number) for number in kept), device=0)
        for _ in range(draw(st.integers(1, _MOST_CALLS // 2)))
    ]
    return Series(program, tuple(calls))


@st.composite
def wrong_numbers(draw: st.DrawFn, *, addresses: bool) -> Series:
    """Draw calls in which one number is just beyond what its type holds, or of another kind, with a tensor or without.

    Parameters
    ----------
    draw
        Hypothesis's.
    addresses
        Whether addresses are drawn too.
    """
    params: list[Param] = list(_numbers_of_every_kind(draw).signature.params)
    if addresses:
        alignment = choose(draw, (1, 2, 16, 256))
        params += [PointerParam(name, nullable=name == "b", alignment=alignment) for name in "ab"]
    good = tuple(1 << 20 if isinstance(one, PointerParam) else _good_number(one) for one in params)
    calls = []
    for _ in range(draw(st.integers(1, _MOST_CALLS))):
        place = draw(st.integers(0, len(params) - 1))
        _, wrong = choose(draw, tuple(wrong_values(params[place])))
        calls.append(CallSpec(args=(*good[:place], wrong, *good[place + 1 :]), device=0))
    given = tuple(one for one in params if isinstance(one, (ScalarParam, PointerParam)))
    if draw(st.booleans()):
        calls = [replace(call, args=(*call.args, _BESIDE)) for call in calls]
        params.append(TensorParam("beside", dtype(_BESIDE.dtype), (Const(1),)))
    return Series(_program(params, KernelLaunch("k", given, _ONES, _ONES)), tuple(calls))


_BESIDE: Final = TensorSpec(dtype="float32", shape=(1,), strides=(1,))
"""A tensor by which calls are alike."""


def _good_number(param: Param) -> object:
    return (isinstance(param, ScalarParam) and param.dtype.name == "bool") or 1
