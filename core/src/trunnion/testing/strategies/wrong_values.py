"""Numbers, addresses and bytes that do not fit a parameter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.testing.arithmetic import integer_range
from trunnion.testing.rounding import COMPLEX, FORMATS
from trunnion.testing.strategies.calls import TensorSpec
from trunnion.testing.strategies.numbers import Beyond, BytesSpec, Indexable, RaiserSpec, edges, fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.params import Param

__all__ = ["wrong_values"]

_NUMBER = TensorSpec(dtype="int64", shape=(), strides=())


def wrong_values(param: Param) -> Iterator[tuple[str, object]]:
    """Yield what a parameter that is no tensor refuses, each with the kind of the mistake.

    Parameters
    ----------
    param
        The parameter.
    """
    match param:
        case ScalarParam():
            yield from _wrong_scalars(param)
        case PointerParam():
            yield from _wrong_pointers(param)
        case StructParam():
            yield from _wrong_structs(param)


def _wrong_scalars(param: ScalarParam) -> Iterator[tuple[str, object]]:
    kind = param.dtype.name
    for other in (None, "1", (1,), _NUMBER, RaiserSpec()):
        yield "scalar type", other
    if kind in FORMATS:
        yield from (("scalar type", other) for other in (True, 1j, Indexable(1)))
        limits = (448.1, 481.0, 65520.0, 61440.0, -1e39, 3.4e38, 1.7e308, math.inf, -math.inf, 0.0, -2.0)
        yield from (("scalar range", limit) for limit in limits)
        yield from (("scalar range", number) for number in edges(kind) if not fits(kind, number))
        yield from (("scalar range", number) for number in (10**400, 2**1024, Beyond()))
    elif kind in COMPLEX:
        yield from (("scalar type", other) for other in (True, Indexable(1)))
        beyond = [number for number in edges(COMPLEX[kind]) if not fits(COMPLEX[kind], number)]
        yield from (("scalar range", number) for number in beyond)
        yield from (("scalar range", complex(0, number)) for number in beyond)
        yield from (("scalar range", limit) for limit in (70000.0, complex(1, -70000.0), complex(1e39, 0)))
        yield from (("scalar range", number) for number in (10**400, Beyond()))
    elif kind == "bool":
        yield from (("scalar type", other) for other in (0, 1, 1.0, Indexable(1)))
    else:
        low, high = integer_range(kind)
        yield from (("scalar type", other) for other in (True, 1.0, math.inf, 1j))
        yield from (("scalar range", number) for number in (low - 1, high + 1, 2**70, -(2**70)))
        # One and the same in some narrower type, or in a double.
        wrapped = (high + 2, low - 2, 2 * high + 2, 2 * high + 3, 2**64, 2**64 + 1, -(2**64) + 1)
        yield from (("scalar range", number) for number in wrapped if not low <= number <= high)
        yield "scalar range", Indexable(high + 1)
    if param.symbol is not None and kind != "bool":
        unit = param.symbol.multiple_of
        for number in (param.symbol.min - 1, param.symbol.max + 1, param.symbol.min + unit - 1):
            yield "symbol", number


def _wrong_pointers(param: PointerParam) -> Iterator[tuple[str, object]]:
    yield from (
        ("pointer type", other) for other in ("0x1000", 4096.0, True, b"12345678", [1], _NUMBER, RaiserSpec())
    )
    yield from (("pointer range", number) for number in (-1, 1 << 64, -(1 << 70), Indexable(1 << 64)))
    if not param.nullable:
        yield from (("pointer null", nothing) for nothing in (None, 0))
    if param.alignment > 1:
        half = param.alignment // 2
        yield from (("pointer alignment", number) for number in (1, half, 4 * param.alignment + half))


def _wrong_structs(param: StructParam) -> Iterator[tuple[str, object]]:
    yield from (
        ("struct type", other)
        for other in (None, 7, "a" * param.nbytes, [0] * param.nbytes, _NUMBER, RaiserSpec())
    )
    orders = ("columns", "every other") if not param.nbytes % 2 else ("every other",)
    yield from (("struct order", BytesSpec(bytes(param.nbytes), form)) for form in orders)
    for form in ("bytes", "structure"):
        yield "struct size", BytesSpec(bytes(param.nbytes + 1), form)
        yield "struct size", BytesSpec(bytes(param.nbytes - 1), form)
