"""`const`: an argument of a launch that is the same in every call."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from trunnion.errors import ProgramError
from trunnion.messages import describe
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import OutsideExpr
from trunnion.model.fields import place
from trunnion.model.scalars import scalar_bytes, scalar_value
from trunnion.plain import is_exactly

__all__ = ["Constant", "const", "usual_type", "written_as_constant"]

_NULL = bytes(8)
_USUAL = ((bool, "bool"), (float, "float32"), (complex, "complex64"))


@dataclass(frozen=True, slots=True)
class Constant(OutsideExpr):
    """A fixed number of a type, or a null pointer. As a kernel's argument it travels by value.

    Two are equal if their types and their bytes are: 0.0 is not -0.0, True is not 1, and NaN is NaN.
    """

    value: complex | bool | None = field(compare=False)
    """The number as it was written; None: a null pointer."""

    dtype: DType | None = None
    """The type in which it travels, or its name; None: it follows from the number, or there is none."""

    data: bytes = field(init=False, repr=False)
    """The bytes that reach the kernel, least first: the number rounded once, to nearest even; 8 of a null pointer."""

    def __post_init__(self) -> None:
        with place("const"):
            self._normalise()

    def _normalise(self) -> None:
        if self.value is None:
            if self.dtype is not None:
                raise ProgramError(
                    f"got {describe(self.dtype)} for a null pointer, expected no type: const(None)",
                    field="dtype",
                )
            object.__setattr__(self, "data", _NULL)
            return
        with place("dtype"):
            kind = dtype(self._type())
        data = scalar_bytes(self.value, kind, "value")
        object.__setattr__(self, "dtype", kind)
        object.__setattr__(self, "data", data)

    @property
    def held(self) -> complex | bool | None:
        """The number as its type holds it, the same for equal constants; None: a null pointer."""
        return None if self.dtype is None else scalar_value(self.data, self.dtype)

    def __str__(self) -> str:
        """Return the text as its author would write it, with the type's name as a cast has it."""
        return "const(None)" if self.dtype is None else f"const({self.value}, {self.dtype})"

    def _type(self) -> object:
        """Return the type's spelling; of a whole number and of a bool there is but one that it must mean."""
        if self.dtype is not None:
            return self.dtype
        if is_exactly(self.value, bool):
            return "bool"
        if is_exactly(self.value, int):
            return "int64"
        written = written_as_constant(self.value)
        advice = f"; write {written}" if written else ""
        raise ProgramError(
            f"got none for {describe(self.value)}, expected the type of the kernel's parameter{advice}"
        )

    def _instead(self) -> str:
        return "an expression takes a plain integer: n + 1"


def usual_type(value: object) -> str:
    """Return the type that kernels mostly have for a plain bool, float or complex number; empty: it is none of them."""
    return next((name for kind, name in _USUAL if is_exactly(value, kind)), "")


def written_as_constant(value: object) -> str:
    """Return how a plain bool, float or complex number is written as a constant; empty: it is none of them."""
    kind = usual_type(value)
    if type(value) is float and not math.isfinite(value):
        return f"const(float('{value}'), '{kind}')"
    return f"const({value}, '{kind}')" if kind else ""


def const(value: complex | bool | None, dtype: DType | str | None = None) -> Constant:
    r"""Return an argument of a launch that is the same in every call.

    Parameters
    ----------
    value
        True or False, an int, a float, a complex number; None for a null pointer. An instance of a subclass is none
        of them: pass ``float(value)``.
    dtype
        The type in which it travels, any that a scalar can have; without it a bool is ``bool``, an int ``int64``.

    Raises
    ------
    ProgramError
        If the type cannot hold the number, or no type is named where several would do.

    Examples
    --------
    >>> from trunnion import const
    >>> const(0.5, "float32").data
    b'\x00\x00\x00?'
    >>> const(0.0, "float16") == const(-0.0, "float16")
    False
    """
    return Constant(value, dtype)  # type: ignore[arg-type]  # the constructor reads spellings too
