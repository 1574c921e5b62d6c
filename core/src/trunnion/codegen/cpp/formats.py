"""Float types in C++: the formats that a launcher rounds to, written from the model's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.dtypes import Kind, dtype
from trunnion.model.plan import FloatArgument
from trunnion.model.scalars import FLOAT_FORMATS, part_name

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.dtypes import DType
    from trunnion.model.plan import LaunchPlan

__all__ = ["emit_formats", "format_line", "format_pointer", "stored_type"]

_NATIVE = {"float32": "float", "float64": "double"}
"""What C++ has itself, and rounds to without a table."""

_WORDS = {1: "uint8_t", 2: "uint16_t"}


def emit_formats(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the formats of a program's scalars, and of the floating-point numbers that a call computes."""
    passed = (one for launch in plan.launches for one in launch.passed if isinstance(one, FloatArgument))
    numbers = [*(one.dtype for one in plan.scalars), *(one.dtype for one in passed)]
    kinds = [kind for kind in numbers if kind.kind in (Kind.FLOAT, Kind.COMPLEX)]
    for name in sorted({part_name(kind.name) for kind in kinds} - set(_NATIVE)):
        out.line(format_line(name))


def format_line(name: str) -> str:
    """Return the line that defines the format of a float type."""
    form = FLOAT_FORMATS[name]
    numbers = (form.exponent_bits, form.mantissa_bits, form.bias, form.greatest, form.nan, form.infinity or 0)
    flags = ("true" if flag else "false" for flag in (form.signed, form.negative_zero))
    return f"constexpr FloatFormat kFormat_{name}{{{', '.join([*map(str, numbers), *flags])}}};"


def format_pointer(kind: DType) -> str:
    """Return the address of the format of a float or complex type; null: C++ has it itself."""
    name = part_name(kind.name)
    return "nullptr" if name in _NATIVE else f"&kFormat_{name}"


def stored_type(kind: DType) -> str:
    """Return the type in which a float or a complex number lies in memory."""
    name = part_name(kind.name)
    part = _NATIVE.get(name) or _WORDS[dtype(name).itemsize]
    return part if name == kind.name else f"Complex<{part}>"
