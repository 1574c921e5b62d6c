"""Element types: TVM's spellings, and how torch stores what has less than a byte."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.model.dtypes import DTYPES, DType
from trunnion_tilelang.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ELEMENT_TYPES", "ElementType", "element_type"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """How elements of a type are stored in a tensor."""

    dtype: DType
    """The stored element's type."""

    packed: int = 1
    """Elements of TVM's type in one stored element; they are neighbours along the last dimension."""


ELEMENT_TYPES: Mapping[str, ElementType] = MappingProxyType(
    {name: ElementType(row) for name, row in DTYPES.items()}
    | {
        "float8_e4m3": ElementType(DTYPES["float8_e4m3fn"]),
        "custom[tfloat32]": ElementType(DTYPES["float32"]),
        "float4_e2m1fn": ElementType(DTYPES["float4_e2m1fn_x2"], 2),
        "float4_e2m1fnx2": ElementType(DTYPES["float4_e2m1fn_x2"]),
        "int4": ElementType(DTYPES["int8"], 2),
        "uint4": ElementType(DTYPES["uint8"], 2),
    }
)
"""Every type that a tensor of a host function can have, by TVM's spelling.

The same as TileLang's own choice of a torch type (``T.dtype.as_torch``), with a torch that has ``float4_e2m1fn_x2``.
"""


def element_type(dtype: str) -> ElementType:
    """Return how elements of a type are stored.

    Raises
    ------
    Refusal
        If no tensor of a program has such elements.
    """
    found = ELEMENT_TYPES.get(dtype)
    if found is None:
        raise Refusal(f"elements of type {dtype}: a tensor has one of {', '.join(ELEMENT_TYPES)}")
    return found
