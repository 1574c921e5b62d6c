"""The documented constraints of ``cuTensorMapEncodeTiled``, one row each.

Source of every row: CUDA Driver API, "Tensor Map Object Managment", ``cuTensorMapEncodeTiled``. A rule speaks only of
values that are known: the same table checks a program when it is written, where extents may still be symbols, and a
call, where everything is a number. All broken rules are named, not only the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.expr import Const

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.model.expr import Expr
    from trunnion.model.tensormap import TiledTensorMap

__all__ = ["RULES", "Rule", "TiledFields", "broken_rules"]

_MAX_RANK = 5
_MAX_EXTENT = 1 << 32
_MAX_STRIDE = 1 << 40
_MAX_BOX = 256
_MAX_STEP = 8
_INTERLEAVE_32B = 2
_SWIZZLE_SPAN = {1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}
_FLOAT_CODES = frozenset({6, 7, 8, 9, 10, 11, 12})


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledFields:
    """The arguments of one encoding in the driver's order, innermost dimension first; None: not known yet."""

    address: int | None
    """The address of the map's first element, in bytes."""

    itemsize: int
    """Bytes of one element."""

    dtype_code: int
    """``CUtensorMapDataType``."""

    dims: tuple[int | None, ...]
    """Elements along each dimension."""

    strides: tuple[int | None, ...]
    """Bytes between neighbours along each dimension but the innermost."""

    innermost_stride: int | None
    """Elements between neighbours along the innermost dimension: the driver has no word for any but 1."""

    box: tuple[int, ...]
    """Elements of the box along each dimension."""

    element_strides: tuple[int, ...]
    """Every how many elements one is taken."""

    interleave: int
    """``CUtensorMapInterleave``."""

    swizzle: int
    """``CUtensorMapSwizzle``."""

    oob_fill: int
    """``CUtensorMapFloatOOBfill``."""

    @classmethod
    def from_exprs(cls, tensor_map: TiledTensorMap) -> TiledFields:
        """Return what is known of a map before any call."""
        itemsize = tensor_map.element_type.itemsize
        steps = [_known(step) for step in reversed(tensor_map.layout())]
        return cls(
            address=None,
            itemsize=itemsize,
            dtype_code=tensor_map.element_type.tma_code or 0,
            dims=tuple(_known(extent) for extent in reversed(tensor_map.extents)),
            strides=tuple(None if step is None else step * itemsize for step in steps[1:]),
            innermost_stride=steps[0] if steps else None,
            box=tuple(reversed(tensor_map.box_dim)),
            element_strides=tuple(reversed(tensor_map.element_steps())),
            interleave=tensor_map.interleave.code,
            swizzle=tensor_map.swizzle.code,
            oob_fill=tensor_map.oob_fill.code,
        )


def _known(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Const) else None


@dataclass(frozen=True, slots=True)
class Rule:
    """One constraint."""

    text: str
    """The constraint, as a sentence without a full stop."""

    violations: Callable[[TiledFields], Iterator[str]]
    """Yields what is wrong; nothing if the rule holds or cannot be judged yet."""


def _outside(name: str, values: Sequence[int | None], low: int, high: int) -> Iterator[str]:
    for index, value in enumerate(values):
        if value is not None and not low <= value <= high:
            yield f"{name}[{index}] is {value}"


def _rank(f: TiledFields) -> Iterator[str]:
    least = 3 if f.interleave else 1
    if not least <= len(f.dims) <= _MAX_RANK:
        yield f"the rank is {len(f.dims)}"


def _address(f: TiledFields) -> Iterator[str]:
    unit = 32 if f.interleave == _INTERLEAVE_32B else 16
    if f.address is not None and (f.address % unit or f.address == 0):
        yield f"the address is {f.address:#x}, not a multiple of {unit}"


def _strides(f: TiledFields) -> Iterator[str]:
    unit = 32 if f.interleave == _INTERLEAVE_32B else 16
    for index, stride in enumerate(f.strides):
        if stride is not None and (stride % unit or not 0 <= stride < _MAX_STRIDE):
            yield f"global_strides[{index}] is {stride} bytes, not a multiple of {unit} below 2**40"


def _inner_box(f: TiledFields) -> Iterator[str]:
    if not f.box or f.interleave:
        return
    nbytes = f.box[0] * f.itemsize
    if nbytes % 16:
        yield f"the innermost box dimension spans {nbytes} bytes, not a multiple of 16"


def _swizzle_span(f: TiledFields) -> Iterator[str]:
    span = _SWIZZLE_SPAN.get(f.swizzle)
    if not f.box or f.interleave or span is None:
        return
    nbytes = f.box[0] * f.itemsize
    if nbytes > span:
        yield f"the innermost box dimension spans {nbytes} bytes, more than the swizzle's {span}"


def _interleave_swizzle(f: TiledFields) -> Iterator[str]:
    if f.interleave == _INTERLEAVE_32B and f.swizzle != 1:
        yield "interleave 32B is not paired with swizzle 32B"


def _fill(f: TiledFields) -> Iterator[str]:
    if f.oob_fill and f.dtype_code not in _FLOAT_CODES:
        yield "NaN fill is asked for with a type that is not a float"


def _innermost_step(f: TiledFields) -> Iterator[str]:
    if not f.interleave and f.element_strides and f.element_strides[0] != 1:
        yield f"element_strides[0] is {f.element_strides[0]}, which the hardware would ignore"


def _innermost(f: TiledFields) -> Iterator[str]:
    contiguous = f.innermost_stride in (None, 1) or (f.dims and f.dims[0] == 1)
    if not contiguous:
        yield f"the innermost stride is {f.innermost_stride} elements"


RULES: tuple[Rule, ...] = (
    Rule("the rank is 1 to 5, and at least 3 with an interleave", _rank),
    Rule("the address is not null and a multiple of 16 bytes, or of 32 with interleave 32B", _address),
    Rule("each extent is 1 to 2**32", lambda f: _outside("global_dim", f.dims, 1, _MAX_EXTENT)),
    Rule("each stride is a multiple of 16 bytes (32 with interleave 32B) and below 2**40", _strides),
    Rule("the innermost dimension is contiguous", _innermost),
    Rule("each box dimension is 1 to 256", lambda f: _outside("box_dim", f.box, 1, _MAX_BOX)),
    Rule("without interleave, the innermost box dimension spans a multiple of 16 bytes", _inner_box),
    Rule("without interleave, the innermost box dimension fits the swizzle's span", _swizzle_span),
    Rule(
        "each element stride is 1 to 8",
        lambda f: _outside("element_strides", f.element_strides, 1, _MAX_STEP),
    ),
    Rule("without interleave, every element of the innermost dimension is taken", _innermost_step),
    Rule("interleave 32B goes with swizzle 32B", _interleave_swizzle),
    Rule("NaN fill is for float types only", _fill),
)
"""Every constraint, in the order in which the driver's documentation gives them. Indices count in driver order."""


def broken_rules(fields: TiledFields) -> tuple[str, ...]:
    """Return one sentence for each broken rule: the constraint, and what is wrong."""
    return tuple(f"{rule.text} (got: {got})" for rule in RULES for got in rule.violations(fields))
