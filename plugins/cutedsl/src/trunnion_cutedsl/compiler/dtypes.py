"""What CuTeDSL calls the model's element types. Total: a type that it does not have is named here too."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.model.dtypes import DType

__all__ = ["SPELLINGS", "memory_type", "scalar_type"]

SPELLINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bool": "Boolean",
        "int8": "Int8",
        "int16": "Int16",
        "int32": "Int32",
        "int64": "Int64",
        "uint8": "Uint8",
        "uint16": "Uint16",
        "uint32": "Uint32",
        "uint64": "Uint64",
        "float16": "Float16",
        "bfloat16": "BFloat16",
        "float32": "Float32",
        "float64": "Float64",
        "float8_e4m3fn": "Float8E4M3FN",
        "float8_e4m3fnuz": "",
        "float8_e5m2": "Float8E5M2",
        "float8_e5m2fnuz": "",
        "float8_e8m0fnu": "Float8E8M0FNU",
        "float4_e2m1fn_x2": "Float4E2M1FNx2",
        "complex32": "",
        "complex64": "",
        "complex128": "",
    }
)
"""The name in the package ``cutlass`` of each type of memory; empty: there is none."""

_SCALARS: Final = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"float16", "bfloat16", "float32", "float64"}
)
"""The types of numbers that travel by value."""

_BOOL_IN_MEMORY: Final = "Uint8"
"""A bool is a byte in memory, and a bit in CuTeDSL."""


def memory_type(kind: DType, field: str) -> str:
    """Return CuTeDSL's name for elements in memory.

    Raises
    ------
    ProgramError
        If it has none.
    """
    name = _BOOL_IN_MEMORY if kind.name == "bool" else SPELLINGS[kind.name]
    if not name:
        known = ", ".join(one for one, spelling in SPELLINGS.items() if spelling)
        raise ProgramError(f"got dtype {kind}, which CuTeDSL does not have; it has {known}", field=field)
    return name


def scalar_type(kind: DType, field: str) -> str:
    """Return CuTeDSL's name for a number by value.

    Raises
    ------
    ProgramError
        If such a number cannot be passed.
    """
    if kind.name not in _SCALARS:
        raise ProgramError(
            f"got a scalar of dtype {kind}, expected one of {', '.join(sorted(_SCALARS))}", field=field
        )
    return SPELLINGS[kind.name]
