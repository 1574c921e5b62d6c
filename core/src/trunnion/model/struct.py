"""Structs that the launcher builds: named fields, laid out by C's rules, or at offsets that somebody says."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, suggestion
from trunnion.model.constant import Constant
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Cast, Const, Expr, OutsideExpr
from trunnion.model.fields import integer, members, place, refuse_unknown, text
from trunnion.model.float_expr import FloatCast
from trunnion.model.limits import expect_at_most
from trunnion.model.memory import Memory, power_of_two
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.plain import ForeignError, is_a, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trunnion.model.launch import Argument

__all__ = [
    "MAX_STRUCT",
    "MAX_STRUCT_DEPTH",
    "Array",
    "Layout",
    "Piece",
    "Struct",
    "array",
    "layout_of",
    "leaves",
    "pieces",
    "replaced",
    "struct",
]

MAX_STRUCT = 32764
"""The most bytes of parameters that a kernel can have (CUDA C++ Programming Guide, "Kernel parameters", 12.1 on)."""

MAX_STRUCT_DEPTH = 32
"""How many structs and arrays may lie in one another: whoever reads them does so by recursion."""

_MAX_ALIGNMENT = 128
_POINTER = 8
_MAP_BYTES, _MAP_ALIGNMENT = 128, 64


@dataclass(frozen=True, slots=True)
class Layout:
    """What C's ``sizeof`` and ``alignof`` are of a type."""

    nbytes: int
    """``sizeof``, in bytes, trailing padding included."""

    alignment: int
    """``alignof``, in bytes: a power of two."""

    depth: int = 0
    """How many structs and arrays lie within one another; 0: none."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What lies at one offset of an argument: no struct and no array."""

    offset: int
    """Bytes from the argument's first one."""

    path: str
    """Where it stands, for messages: ``".a.rows[2]"``; empty for an argument that is no struct."""

    argument: Argument
    """What is passed there."""


@dataclass(frozen=True, slots=True)
class Array(OutsideExpr):
    """Values of one layout behind one another, as a field of a struct: C passes no array by itself."""

    values: tuple[Argument | Array, ...]
    """The values, at least one."""

    layout: Layout = field(init=False, repr=False, compare=False)
    """Of the whole array."""

    def __post_init__(self) -> None:
        with place("array"):
            given = members(self.values, "values")
            object.__setattr__(self, "values", tuple(_field(one, f"[{i}]") for i, one in enumerate(given)))
            if not self.values:
                raise ProgramError("got no values, expected at least one", field="values")
            layouts = [layout_of(one) for one in self.values]
            first = layouts[0]
            for index, one in enumerate(layouts):
                if (one.nbytes, one.alignment) != (first.nbytes, first.alignment):
                    raise ProgramError(
                        f"got {_sized(one)}, expected {_sized(first)} as the first: the values of an array are of one "
                        f"type{_of_part(self.values[0], self.values[index])}",
                        field=f"[{index}]",
                    )
            depth = _depth(layouts)
            object.__setattr__(self, "layout", Layout(first.nbytes * len(layouts), first.alignment, depth))
            _check_size(self.layout.nbytes, "values")


def _of_part(*values: Argument | Array) -> str:
    """Return what to do where structs of one type name other members each, and so are not of one size by C's rules."""
    if not all(isinstance(one, Struct) for one in values):
        return ""
    return "; of structs that leave members out, say nbytes= and alignment=, or ask measured() for each"


@dataclass(frozen=True, slots=True)
class Struct(OutsideExpr):
    """A struct that the launcher builds at each call, with every check of what stands in it.

    Its bytes are what C lays out for members of these types in this order, or lie where `offsets` says. What lies
    between the fields is 0.
    """

    fields: tuple[tuple[str, Argument | Array], ...]
    """Each field's name, for messages alone, and what is passed there. With none, one byte is passed, as in C++."""

    offsets: tuple[int, ...] | None = None
    """Bytes between the struct's first one and each field's; None: by C's rules."""

    nbytes: int | None = None
    """``sizeof``, in bytes; None: up to the last field's end, and to a multiple of the alignment."""

    alignment: int | None = None
    """``alignof``, in bytes: a power of two; None: that of the field that is aligned the most."""

    places: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Bytes between the struct's first one and each field's."""

    layout: Layout = field(init=False, repr=False, compare=False)
    """Of the whole struct."""

    def __post_init__(self) -> None:
        with place("struct"):
            object.__setattr__(self, "fields", _named(self.fields))
            self._lay_out()

    def place_of(self, path: str) -> tuple[int, int]:
        """Return the offset and the size of what lies at a path, in bytes, as a simulated kernel's `fields` take them.

        Parameters
        ----------
        path
            As C++ writes it behind the struct: ``"rows[1].stride"``.

        Raises
        ------
        ProgramError
            If nothing lies there.
        """
        known = dict(_places_within(self, 0, ""))
        wanted = text(path, "path")
        if wanted not in known:
            problem = f"got {shorten(wanted)}, expected the path of a field{suggestion(wanted, known)}"
            raise ProgramError(problem, field="path")
        return known[wanted]

    def _lay_out(self) -> None:
        layouts = [layout_of(value) for _, value in self.fields]
        if self.offsets is not None:
            object.__setattr__(self, "offsets", self._said(layouts))
        places = _by_rule(layouts) if self.offsets is None else self.offsets
        object.__setattr__(self, "places", places)
        least = max((one.alignment for one in layouts), default=1)
        alignment = least
        if self.alignment is not None:
            power_of_two(self.alignment, "alignment", _MAX_ALIGNMENT)
            alignment = self.alignment
            if alignment < least:
                raise ProgramError(
                    f"got {alignment} bytes, expected at least the {least} of its fields", field="alignment"
                )
        ends = [start + one.nbytes for start, one in zip(places, layouts, strict=True)]
        end = max(ends, default=1)
        if self.nbytes is not None:
            integer(self.nbytes, "nbytes", 1, MAX_STRUCT)
            self._check_within(ends, self.nbytes, alignment)
        nbytes = -(-end // alignment) * alignment if self.nbytes is None else self.nbytes
        _check_size(nbytes, "fields")
        object.__setattr__(self, "layout", Layout(nbytes, alignment, _depth(layouts)))

    def _said(self, layouts: Sequence[Layout]) -> tuple[int, ...]:
        """Return the offsets that are said, after they were checked."""
        names = [name for name, _ in self.fields]
        given = members(self.offsets, "offsets")
        if len(given) != len(names):
            raise ProgramError(
                f"got {len(given)} for {len(names)} fields, expected one each", field="offsets"
            )
        places = [
            integer(one, f"offsets of field {shorten(n)}", 0, MAX_STRUCT)
            for one, n in zip(given, names, strict=True)
        ]
        order = sorted(range(len(names)), key=lambda index: (places[index], index))
        for index in order:
            if places[index] % layouts[index].alignment:
                raise ProgramError(
                    f"got offset {places[index]}, expected a multiple of {layouts[index].alignment}, to which "
                    "it is aligned",
                    field=f"field {shorten(names[index])}",
                )
        for before, index in pairwise(order):
            end = places[before] + layouts[before].nbytes
            if places[index] < end:
                raise ProgramError(
                    f"got offset {places[index]}, where field {shorten(names[before])} goes up to byte {end}",
                    field=f"field {shorten(names[index])}",
                )
        return tuple(places)

    def _check_within(self, ends: Sequence[int], nbytes: int, alignment: int) -> None:
        for (name, _), end in zip(self.fields, ends, strict=True):
            if end > nbytes:
                raise ProgramError(
                    f"goes up to byte {end}, beyond the struct's {nbytes}", field=f"field {shorten(name)}"
                )
        if nbytes % alignment:
            raise ProgramError(
                f"got {nbytes} bytes, expected a multiple of the alignment {alignment}", field="nbytes"
            )


def struct(
    *fields: tuple[str, object],
    offsets: Mapping[str, int] | None = None,
    nbytes: int | None = None,
    alignment: int | None = None,
) -> Struct:
    """Return a struct that the launcher builds, as an argument of a launch.

    Parameters
    ----------
    fields
        Pairs of a name, which is for messages alone, and what is passed there: anything that a launch may pass, another
        struct, or an `array`. They lie in this order, each at the next multiple of its alignment, as C has it.
    offsets
        Bytes between the struct's first one and each field's, by its name, where a compiler was asked (see `measured`)
        or a layout is known; None: by C's rules.
    nbytes
        ``sizeof`` the struct, in bytes; None: up to its last field's end, and to a multiple of its alignment.
    alignment
        ``alignof`` the struct, in bytes; None: that of the field that is aligned the most.

    Raises
    ------
    ProgramError
        If two fields share a name, overlap, lie at no multiple of their alignment or beyond the struct, or if it is
        larger than the parameters of a kernel can be. The field is named.

    Examples
    --------
    >>> from trunnion import array, struct, symbols
    >>> (n,) = symbols("n")
    >>> params = struct(("rows", n.cast("int32")), ("sizes", array(n, n + 1)))
    >>> params.layout.nbytes, params.places
    (24, (0, 8))
    """
    with place("struct"):
        said = None if offsets is None else _by_name([name for name, _ in _named(fields)], offsets)
    return Struct(fields, said, nbytes, alignment)  # type: ignore[arg-type]  # which checks them


def _by_name(names: Sequence[str], offsets: object) -> tuple[object, ...]:
    """Return what a mapping has for each name, after its names were checked."""
    try:
        given = pairs(offsets)
    except ForeignError:
        given = None
    if given is None:
        raise ProgramError(f"got {describe(offsets)}, expected a mapping of names", field="offsets")
    known = {text(name, "offsets"): value for name, value in given}
    refuse_unknown(known, names, "offsets")
    missing = next((name for name in names if name not in known), None)
    if missing is not None:
        raise ProgramError(f"got none for field {shorten(missing)}, expected one each", field="offsets")
    return tuple(known[name] for name in names)


def array(*values: object) -> Array:
    """Return values behind one another, as a field of a `struct`.

    Parameters
    ----------
    values
        Anything that may be a field, all of one size and alignment.

    Raises
    ------
    ProgramError
        If there is none, or two differ in size or alignment.
    """
    return Array(values)  # type: ignore[arg-type]  # which checks them


def layout_of(argument: Argument | Array) -> Layout:  # noqa: PLR0911 - one for each kind
    """Return size and alignment of what a launch passes: of a number its own size, of a tensor map 128 and 64 bytes.

    Raises
    ------
    TypeError
        If it is nothing that a launch passes.
    """
    match argument:
        case Struct() | Array():
            return argument.layout
        case Memory() | MovedAddress() | PointerParam() | ModuleVariable():
            return Layout(_POINTER, _POINTER)
        case Constant(dtype=kind):
            return Layout(_POINTER, _POINTER) if kind is None else _of_number(kind)
        case TensorView():
            return Layout(_view_bytes(argument.memory), _POINTER)
        case StructParam(_, nbytes, alignment):
            return Layout(nbytes, alignment)
        case TensorMap():
            return Layout(_MAP_BYTES, _MAP_ALIGNMENT)
        case ScalarParam():
            return _of_number(argument.dtype)
        case FloatCast():
            return _of_number(argument.to)
        case Expr():
            return _of_number(argument.to if isinstance(argument, Cast) else dtype("int64"))
    raise TypeError(f"{describe(argument)} has no size in a struct")


def pieces(argument: Argument | Array, offset: int = 0, path: str = "") -> Iterator[Piece]:
    """Yield what an argument consists of, by ascending offsets; of what is no struct, itself.

    Parameters
    ----------
    argument
        What a launch passes, or a field of it.
    offset, path
        Where it lies itself.
    """
    if isinstance(argument, (Struct, Array)):
        for inner in _within(argument, offset, path):
            yield from pieces(*inner)
    else:
        yield Piece(offset, path, argument)


def _within(
    argument: Argument | Array, offset: int, path: str
) -> Iterator[tuple[Argument | Array, int, str]]:
    """Yield what lies directly in a struct or an array, by ascending offsets, each with its offset and path."""
    match argument:
        case Struct():
            for index in sorted(range(len(argument.fields)), key=argument.places.__getitem__):
                name, value = argument.fields[index]
                yield value, offset + argument.places[index], f"{path}{_member(name)}"
        case Array():
            step = argument.layout.nbytes // len(argument.values)
            for index, value in enumerate(argument.values):
                yield value, offset + index * step, f"{path}[{index}]"


def _places_within(
    argument: Argument | Array, offset: int, path: str
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the path of everything within an argument, of structs and arrays too, with its offset and size."""
    for inner in _within(argument, offset, path):
        value, start, where = inner
        yield where.removeprefix("."), (start, layout_of(value).nbytes)
        yield from _places_within(*inner)


def leaves(argument: Argument) -> Iterator[Argument]:
    """Yield what an argument consists of: structs and arrays taken apart, by ascending offsets."""
    if isinstance(argument, Struct):
        yield from (piece.argument for piece in pieces(argument))
    else:
        yield argument


def replaced(argument: Argument | Array, change: Callable[[Argument], Argument]) -> Any:
    """Return an argument of the same form, in which what is no struct and no array is changed.

    Parameters
    ----------
    argument
        What a launch passes, or a field of it.
    change
        Returns what is passed instead, of the same layout.
    """
    match argument:
        case Struct():
            fields = tuple((name, replaced(value, change)) for name, value in argument.fields)
            return Struct(fields, argument.offsets, argument.nbytes, argument.alignment)
        case Array():
            return Array(tuple(replaced(value, change) for value in argument.values))
        case _:
            return change(argument)


def _named(fields: object) -> tuple[tuple[str, Argument | Array], ...]:
    """Return fields as pairs, after they were checked."""
    found: dict[str, Argument | Array] = {}
    for index, one in enumerate(members(fields, "fields")):
        pair = members(one, f"fields[{index}]", f"a pair of a name and a value{_of_mapping(one)}")
        if pair and is_a(pair[0], (tuple, list)):
            problem = "got pairs in a sequence, expected each as an argument of its own: struct(*pairs)"
            raise ProgramError(problem, field=f"fields[{index}]")
        if len(pair) != 2:  # noqa: PLR2004 - a name and a value
            raise ProgramError(
                f"got {len(pair)} members, expected a pair of a name and a value", field=f"fields[{index}]"
            )
        name = text(pair[0], f"fields[{index}]")
        if name in found:
            raise ProgramError(f"two fields are called {shorten(name)}", field=f"fields[{index}]")
        found[name] = _field(pair[1], f"field {shorten(name)}")
    return tuple(found.items())


def _of_mapping(value: object) -> str:
    """Return what to write instead of a mapping."""
    return "; write struct(*fields.items())" if is_a(value, dict) else ""


def _field(value: object, where: str) -> Argument | Array:
    from trunnion.model.launch import as_argument  # noqa: PLC0415 - launches hold structs

    return value if is_a(value, Array) else as_argument(value, where)


def _by_rule(layouts: Sequence[Layout]) -> tuple[int, ...]:
    places, end = [], 0
    for one in layouts:
        places.append(-(-end // one.alignment) * one.alignment)
        end = places[-1] + one.nbytes
    return tuple(places)


def _depth(layouts: Sequence[Layout]) -> int:
    depth = 1 + max((one.depth for one in layouts), default=0)
    expect_at_most(depth, MAX_STRUCT_DEPTH, "structs and arrays within one another", "fields")
    return depth


def _check_size(nbytes: int, where: str) -> None:
    if nbytes > MAX_STRUCT:
        raise ProgramError(
            f"got {nbytes} bytes, expected at most {MAX_STRUCT}: a kernel has no more parameters", field=where
        )


def _view_bytes(memory: Memory) -> int:
    extents, strides = (
        sum(not isinstance(one, Const) for one in numbers) for numbers in (memory.shape, memory.steps())
    )
    return _POINTER + 8 * -(-extents // 2) + 8 * strides


def _of_number(kind: DType) -> Layout:
    return Layout(kind.itemsize, kind.itemsize)


def _member(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{shorten(name)}]"


def _sized(layout: Layout) -> str:
    return f"{layout.nbytes} bytes aligned to {layout.alignment}"
