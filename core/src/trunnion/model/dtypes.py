"""Element types: one table, one row for each type that a kernel can take.

Names are torch's names. The other columns are the same type in the vocabularies that meet at a launch: DLPack, C++,
the ``struct`` module (how a scalar travels) and ``CUtensorMapDataType``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.errors import DeviceRequirementError, ProgramError
from trunnion.messages import describe, one_of, spelled, type_name
from trunnion.plain import is_a, is_exactly

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DTYPES", "DType", "Kind", "dtype", "item_advice", "number_class"]


class Kind(enum.StrEnum):
    """The family of an element type."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    Rows come from `DTYPES`; use `dtype` to look one up. Two rows are the same type exactly if their names are equal.
    """

    name: str
    """The name, as torch spells it: ``torch.<name>``."""

    kind: Kind
    """The family."""

    itemsize: int
    """Bytes of storage that one tensor element takes (a packed pair counts as one element, as in torch)."""

    dlpack: tuple[int, int, int]
    """``DLDataType``: type code, bits, lanes (dlpack.h, ``DLDataTypeCode``)."""

    cpp: str
    """The type's spelling in C++, as a kernel's parameter."""

    struct_code: str = ""
    """The code of the ``struct`` module under which a scalar of this type travels; empty: no scalar of this type.

    A complex number travels as two; bfloat16 and the types of eight bits as their bits (`trunnion.model.scalars`).
    """

    tma_code: int | None = None
    """``CUtensorMapDataType``; None: a tensor map needs an explicit type to read such a tensor as."""

    def __str__(self) -> str:
        return self.name

    def in_torch(self, torch: Any) -> Any:
        """Return torch's object for the type.

        Parameters
        ----------
        torch
            The module: the model imports none.

        Raises
        ------
        DeviceRequirementError
            If the installed torch is too old to have the type.
        """
        found = getattr(torch, self.name, None)
        if found is None:
            wanted = f"a torch that has the dtype {self.name}"
            raise DeviceRequirementError(wanted, f"torch {torch.__version__}", "install a newer torch")
        return found

    @property
    def is_integer(self) -> bool:
        """Whether the type is an integer, signed or not; bool is not."""
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def is_small_float(self) -> bool:
        """Whether it is a float of 8 bits, which travels as its bits: no host language has one."""
        return self.kind is Kind.FLOAT and self.itemsize == 1

    @property
    def integer_range(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type, or of bool: False is 0, True is 1.

        Raises
        ------
        ProgramError
            If the type is neither.
        """
        if self.kind is Kind.BOOL:
            return 0, 1
        if self.kind is Kind.INT:
            return -(1 << (8 * self.itemsize - 1)), (1 << (8 * self.itemsize - 1)) - 1
        if self.kind is Kind.UINT:
            return 0, (1 << (8 * self.itemsize)) - 1
        raise ProgramError(f"dtype {self.name} is not an integer type")


_INT, _UINT, _FLOAT = Kind.INT, Kind.UINT, Kind.FLOAT

_ROWS = (
    #     name, kind, bytes, (DLPack), C++, struct, CUtensorMapDataType
    DType("bool", Kind.BOOL, 1, (6, 8, 1), "bool", "?", 0),
    DType("int8", _INT, 1, (0, 8, 1), "signed char", "b", 0),
    DType("int16", _INT, 2, (0, 16, 1), "short", "h", 1),
    DType("int32", _INT, 4, (0, 32, 1), "int", "i", 3),
    DType("int64", _INT, 8, (0, 64, 1), "long long", "q", 5),
    DType("uint8", _UINT, 1, (1, 8, 1), "unsigned char", "B", 0),
    DType("uint16", _UINT, 2, (1, 16, 1), "unsigned short", "H", 1),
    DType("uint32", _UINT, 4, (1, 32, 1), "unsigned int", "I", 2),
    DType("uint64", _UINT, 8, (1, 64, 1), "unsigned long long", "Q", 4),
    DType("float16", _FLOAT, 2, (2, 16, 1), "__half", "e", 6),
    DType("bfloat16", _FLOAT, 2, (4, 16, 1), "__nv_bfloat16", "H", 9),
    DType("float32", _FLOAT, 4, (2, 32, 1), "float", "f", 7),
    DType("float64", _FLOAT, 8, (2, 64, 1), "double", "d", 8),
    DType("float8_e4m3fn", _FLOAT, 1, (10, 8, 1), "__nv_fp8_e4m3", "B", 0),
    DType("float8_e4m3fnuz", _FLOAT, 1, (11, 8, 1), "unsigned char", "B", 0),
    DType("float8_e5m2", _FLOAT, 1, (12, 8, 1), "__nv_fp8_e5m2", "B", 0),
    DType("float8_e5m2fnuz", _FLOAT, 1, (13, 8, 1), "unsigned char", "B", 0),
    DType("float8_e8m0fnu", _FLOAT, 1, (14, 8, 1), "__nv_fp8_e8m0", "B", 0),
    DType("float4_e2m1fn_x2", _FLOAT, 1, (17, 4, 2), "__nv_fp4x2_e2m1", "", None),
    DType("complex32", Kind.COMPLEX, 4, (5, 32, 1), "__half2", "2e", None),
    DType("complex64", Kind.COMPLEX, 8, (5, 64, 1), "float2", "2f", None),
    DType("complex128", Kind.COMPLEX, 16, (5, 128, 1), "double2", "2d", None),
)

DTYPES: Mapping[str, DType] = MappingProxyType({row.name: row for row in _ROWS})
"""Every element type, by name."""


_SHORT = {Kind.INT: ("i", "s"), Kind.UINT: ("u",), Kind.FLOAT: ("fp", "f")}

_ALIASES = MappingProxyType(
    {
        "boolean": "bool",
        "char": "int8",
        "short": "int16",
        "int": "int32",
        "long": "int64",
        "long long": "int64",
        "byte": "uint8",
        "unsigned": "uint32",
        "size_t": "uint64",
        **{f"{name}_t": name for name in DTYPES if "int" in name},
        **{
            f"{short}{8 * row.itemsize}": row.name
            for row in _ROWS
            for short in _SHORT.get(row.kind, ())
            if row.name == f"{row.kind}{8 * row.itemsize}"
        },
        "half": "float16",
        "__half": "float16",
        "bf16": "bfloat16",
        "bfloat": "bfloat16",
        "__nv_bfloat16": "bfloat16",
        "float": "float32",
        "single": "float32",
        "double": "float64",
        "fp8": "float8_e4m3fn",
        "e4m3": "float8_e4m3fn",
        "float8_e4m3": "float8_e4m3fn",
        "e5m2": "float8_e5m2",
        "fp4": "float4_e2m1fn_x2",
        "e2m1": "float4_e2m1fn_x2",
        "complex": "complex64",
    }
)
"""What C, torch and others call some of them: for messages, because most such names mean different types elsewhere."""


def dtype(spelling: object) -> DType:
    """Return the element type that ``spelling`` names.

    Parameters
    ----------
    spelling
        A `DType`, its name, or a torch dtype (read by its text, so torch need not be imported).

    Returns
    -------
    DType
        The row of `DTYPES`.

    Raises
    ------
    ProgramError
        If there is no such type.
    """
    if is_a(spelling, DType):
        if DTYPES.get(spelling.name) != spelling:
            raise ProgramError(
                f"got DType {describe(spelling.name)}, which is no row of the table; look one up by its name"
            )
        return spelling
    text = spelled(spelling, "torch.dtype", "numpy.dtype")
    row = None if text is None else DTYPES.get(text.removeprefix("torch."))
    if row is None:
        raise ProgramError(f"got dtype {describe(spelling)}, {one_of(text, DTYPES, _ALIASES)}")
    return row


def number_class(value: object) -> str:
    """Return the type of a number that is a class of another library's, as ``numpy.float32``; empty: it is none.

    The class is known by its name: to ask the number itself would run the library's code.
    """
    name = type_name(value)
    return name if name in DTYPES and not is_exactly(value, bool) else ""


def item_advice(value: object) -> str:
    """Return what to write instead of another library's number, for the end of a message; empty if it is none."""
    return "; a plain number is its .item()" if number_class(value) else ""
