"""Parameters: from what the prologue says to a signature's tensors, numbers and addresses."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING

from trunnion.messages import shorten
from trunnion.model.dtypes import DTYPES, Kind
from trunnion.model.expr import Expr, Symbol, as_expr
from trunnion.model.params import PointerParam, ScalarParam, TensorParam
from trunnion_tilelang.arithmetic import Arithmetic, integer_range
from trunnion_tilelang.element_types import element_type
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.nodes import Binary, Buffer, Int, Load, Node, Var
from trunnion_tilelang.polynomial import divided, equal, product
from trunnion_tilelang.trees import leaves

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trunnion.model.params import Param
    from trunnion_tilelang.nodes import Bind
    from trunnion_tilelang.prologue import Parameter, Prologue

__all__ = ["Parameters", "unique"]

_WIDEST_ACCESS = 16  # bytes that one thread loads or stores at once


class Parameters:
    """The parameters of a host function, as trunnion's.

    Parameters
    ----------
    prologue
        What the host function says of them.
    outputs
        The positions of those that are outputs.
    read_only
        The keys of the pointers through which no kernel writes.
    computed
        The keys of the variables that the host function computes with.
    """

    def __init__(
        self,
        prologue: Prologue,
        outputs: Collection[int],
        read_only: Collection[int],
        computed: Collection[int],
    ) -> None:
        self.prologue, self._outputs = prologue, outputs
        self._read_only, self._computed = read_only, computed
        self.values: dict[int, Expr] = {}  # the integer variables' values, by key
        self.by_index: dict[int, Param] = {}  # the parameters, by position
        self.arithmetic = Arithmetic(self.values, self._load, self._is_null)
        # What is said of a tensor is said of one that is there; nothing else may ask whether it is.
        there = {key: as_expr(0) for key, role in self.prologue.roles.items() if role.kind == "null"}
        self.of_tensors = Arithmetic(ChainMap(self.values, there), self._load, self._is_null)
        self._names: set[str] = set()
        # Extents and strides with a symbol of their own.
        self._places: dict[tuple[int, str, int], Symbol] = {}
        for index in sorted(self.prologue.parameters):
            self._scalar(self.prologue.parameters[index])
        for statement in self.prologue.loads:
            self._bind(statement)
        for index in sorted(self.prologue.parameters):
            parameter = self.prologue.parameters[index]
            if parameter.buffer is not None:
                self.by_index[index] = self._tensor(parameter, parameter.buffer)

    def symbol(self, name: str, dtype: str, least: int | None = None) -> Symbol:
        """Return a new symbol."""
        bounds = integer_range(dtype)
        return Symbol(unique(name, self._names), min=bounds.low if least is None else least, max=bounds.high)

    def _scalar(self, parameter: Parameter) -> None:
        """Take a parameter that is no tensor: a number, or an address."""
        var = parameter.var
        if parameter.buffer is not None:
            return
        if var.dtype == "handle":
            self.by_index[parameter.index] = PointerParam(var.name, nullable=not parameter.required)
            return
        row = DTYPES.get(var.dtype)
        if row is None or not row.struct_code:
            raise Refusal(
                f"the scalar {shorten(var.name)} has the type {var.dtype}, which no scalar of a program has"
            )
        symbol = None
        if (row.is_integer or row.kind is Kind.BOOL) and var.key in self._computed:
            symbol = self.values[var.key] = self.symbol(var.name, var.dtype)
        self.by_index[parameter.index] = ScalarParam(var.name, row, symbol)

    def _bind(self, statement: Bind) -> None:
        """Give a variable the value that the inputs' extents and strides give it.

        An extent that is the variable itself gives it a symbol. Where there is none, the host function computes it
        from a compound extent: then that has a symbol of its own, and the variable is an expression over it.
        """
        var = statement.var
        if any(extent == var for _, extent in self._inputs()):
            self.values[var.key] = self.symbol(var.name, var.dtype, least=0)
            return
        loads = [leaf for leaf in leaves(statement.value) if isinstance(leaf, Load)]
        if not any(self._place(load)[0] in self._outputs for load in loads):
            self.values[var.key] = self.of_tensors.expr(statement.value)
            return
        self.values[var.key] = self._solved(var)  # an output has no extents before the call has given it any

    def _inputs(self) -> Iterator[tuple[tuple[int, str, int], Node]]:
        """Yield what the author wrote for the extents and strides of inputs that are counted as torch counts them."""
        for kind in ("shape", "strides"):
            for index, parameter in sorted(self.prologue.parameters.items()):
                buffer = parameter.buffer
                if buffer is None or index in self._outputs:
                    continue
                steps = buffer.shape if kind == "shape" else buffer.strides
                packed = element_type(buffer.dtype).packed > 1
                counted = () if packed and kind == "strides" else steps[:-1] if packed else steps
                yield from (((index, kind, axis), step) for axis, step in enumerate(counted))

    def _solved(self, var: Var) -> Expr:
        """Return a variable's value from the first extent of an input that is linear in it."""
        for place, extent in self._inputs():
            form = linear(extent, var)
            if form is not None:
                factor, rest = form
                return (self._symbol_of(place) - rest) // factor
        return self.symbol(var.name, var.dtype, least=0)  # which nothing gives its value: planning says so

    def _place(self, load: Load) -> tuple[int, str, int]:
        """Return the parameter, ``"shape"`` or ``"strides"``, and the axis of an element that is loaded."""
        role = self.prologue.role(load.data)
        match load.indices:
            case (Int(value=axis),) if role is not None and role.kind in ("shape", "strides"):
                return role.index, role.kind, axis
        raise Refusal(
            f"an element of {shorten(load.data.name)} is read, which is in no tensor's extents or strides"
        )

    def _load(self, load: Load) -> Expr:
        """Return the value of an extent or a stride."""
        place = self._place(load)
        tensor = self.by_index.get(place[0])
        if isinstance(tensor, TensorParam):
            return (tensor.shape if place[1] == "shape" else tensor.steps())[place[2]]
        return self._symbol_of(place)

    def _symbol_of(self, place: tuple[int, str, int]) -> Symbol:
        """Return the symbol that an extent or a stride has of its own."""
        index, kind, axis = place
        buffer = self.prologue.parameters[index].buffer
        if buffer is None:
            raise Refusal("extents are read of a parameter that is no tensor")
        if place not in self._places:
            declared = (buffer.shape if kind == "shape" else buffer.strides)[axis]
            dtype = declared.dtype if isinstance(declared, (Binary, Var)) else "int64"
            self._places[place] = self.symbol(f"{buffer.name}.{kind}[{axis}]", dtype, least=0)
        return self._places[place]

    def _is_null(self, pointer: Node) -> Expr:
        """Return 0 for the pointer to a tensor's strides, which are always known."""
        role = self.prologue.role(pointer)
        if role is not None and role.kind == "strides":
            return as_expr(0)
        raise Refusal("a program's expressions cannot ask whether a pointer is null")

    def _tensor(self, parameter: Parameter, buffer: Buffer) -> TensorParam:
        if buffer.offset != Int(0, getattr(buffer.offset, "dtype", "int32")):
            raise Refusal(f"the buffer {shorten(buffer.name)} begins elsewhere than at its pointer")
        kind = element_type(buffer.dtype)
        shape = tuple(self.arithmetic.expr(extent) for extent in buffer.shape)
        strides = tuple(self.arithmetic.expr(stride) for stride in buffer.strides) or None
        if strides is not None and all(
            equal(stride, product(shape[axis + 1 :])) for axis, stride in enumerate(strides)
        ):
            strides = None
        index, output = parameter.index, parameter.index in self._outputs
        name = parameter.var.name
        if name == f"{buffer.name}_handle":  # TileLang's, where the tensor is itself a parameter
            name = buffer.name
        extents = tuple(
            self._places.get((index, "shape", axis), extent)
            for axis, extent in enumerate(_stored_shape(shape, kind.packed))
        )
        steps = strides and tuple(
            self._places.get((index, "strides", axis), step)
            for axis, step in enumerate(_stored_strides(strides, kind.packed, buffer.name))
        )
        if output and steps is not None:
            raise Refusal(f"the output {shorten(buffer.name)} has strides: an output is contiguous")
        read_only = parameter.data is not None and parameter.data.key in self._read_only
        return TensorParam(
            name,
            kind.dtype,
            extents,
            None if output else steps,
            access="write" if output else "read" if read_only else "read_write",
            alignment=_alignment(kind.dtype.itemsize, extents, steps),
            nullable=not parameter.required and not output,
        )


def unique(name: str, taken: set[str]) -> str:
    """Return a name that no other has, and take it; where several have one name, later ones are numbered."""
    base = name or "unnamed"  # T.int32() makes a variable without a name
    found, count = base, 1
    while found in taken:
        found, count = f"{base}_{count}", count + 1
    taken.add(found)
    return found


def _stored_shape(shape: tuple[Expr, ...], packed: int) -> tuple[Expr, ...]:
    """Return the extents in stored elements, of which each holds `packed` of the author's."""
    if packed == 1:
        return shape
    if not shape:
        raise Refusal("a tensor of no dimension has elements of less than a byte")
    last = divided(shape[-1], packed)
    return (*shape[:-1], shape[-1] // packed if last is None else last)


def _stored_strides(strides: tuple[Expr, ...], packed: int, name: str) -> tuple[Expr, ...]:
    """Return the strides in stored elements."""
    if packed == 1:
        return strides
    outer = [divided(stride, packed) for stride in strides[:-1]]
    stored = [
        stride if stride is not None else whole // packed
        for stride, whole in zip(outer, strides, strict=False)
    ]
    if strides[-1] != as_expr(1):
        raise Refusal(f"the tensor {shorten(name)} has elements of less than a byte that are not neighbours")
    return (*stored, strides[-1])


def _alignment(itemsize: int, shape: tuple[Expr, ...], strides: tuple[Expr, ...] | None) -> int:
    """Return the alignment that a kernel may count on: of the widest access that every row's beginning allows.

    TileLang takes an access as wide as it can prove rows to be aligned, from a pointer that it takes to be.
    """
    if strides is None:
        strides = tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))
    steps = (*strides[:-1], shape[-1]) if shape else (as_expr(1),)
    widest = _WIDEST_ACCESS
    while widest > itemsize and any(divided(step * itemsize, widest) is None for step in steps):
        widest //= 2
    return max(widest, itemsize & -itemsize)


def linear(node: Node, var: Var) -> tuple[int, int] | None:
    """Return a and b if an expression is ``a * var + b`` with constants a > 0 and b; else None."""
    match node:
        case Var():
            return (1, 0) if node == var else None
        case Binary(op="add" | "sub" as op, left=left, right=Int(value=value)):
            form = linear(left, var)
            return form and (form[0], form[1] + (value if op == "add" else -value))
        case Binary(op="mul", left=left, right=Int(value=value)) if value > 0:
            form = linear(left, var)
            return form and (form[0] * value, form[1] * value)
    return None
