"""What every generated launcher calls: checked arithmetic, and the errors that it raises.

Functions that end in ``_error`` return an exception for the launcher to raise; the others return a value or raise.
None of them is on the path of a correct call, but for `fits`, `divisor` and `in_range` where a proof failed.
"""

from __future__ import annotations

import math
import numbers
import operator
import struct
from typing import Any

from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    ExprError,
    shorten,
)
from trunnion.model.fields import describe
from trunnion.model.interval import INT64_MAX, INT64_MIN
from trunnion.model.launch import MAX_THREADS

__all__ = [
    "alignment_error",
    "bfloat16_bits",
    "block_error",
    "boolean",
    "condition_error",
    "count_error",
    "divisor",
    "dtype_error",
    "extent_error",
    "fits",
    "grid_error",
    "in_range",
    "integer",
    "layout_error",
    "out_count_error",
    "rank_error",
    "real",
    "smem_error",
    "stride_error",
    "symbol_error",
    "value_error",
    "wide_block_error",
]

_AXES = "xyz"
_MAX_SHOWN = 200  # characters of an expression in a message


# Arithmetic -------------------------------------------------------------------------------------------------------


def fits(value: int) -> int:
    """Return ``value`` if it fits 64 signed bits.

    Raises
    ------
    ExprError
        If it does not.
    """
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise ExprError(f"the value {value} does not fit 64 signed bits")


def divisor(value: int) -> int:
    """Return ``value`` if it is not 0.

    Raises
    ------
    ExprError
        If it is.
    """
    if value:
        return value
    raise ExprError("division by zero")


def in_range(value: int, low: int, high: int, name: str) -> int:
    """Return ``value`` if the integer type ``name`` can hold it.

    Raises
    ------
    ExprError
        If it cannot.
    """
    if low <= value <= high:
        return value
    raise ExprError(f"the value {value} does not fit {name} ({low} to {high})")


# Scalars ----------------------------------------------------------------------------------------------------------


def integer(name: str, value: Any, low: int, high: int) -> int:
    """Return an argument as an integer in range; anything with ``__index__`` will do, but not a bool or a tensor.

    Raises
    ------
    ArgumentTypeError
        If it is no integer.
    ArgumentValueError
        If it is out of range.
    """
    # A tensor has __index__ too, which would wait for the device behind the caller's back.
    if isinstance(value, bool) or hasattr(value, "data_ptr") or not hasattr(value, "__index__"):
        raise ArgumentTypeError(name, describe(value), f"an integer, {low} to {high}")
    try:
        result = operator.index(value)
    except TypeError as error:  # an array of numbers has __index__, and refuses when it is called
        raise ArgumentTypeError(name, describe(value), f"an integer, {low} to {high}") from error
    if not low <= result <= high:
        raise ArgumentValueError(name, describe(result), f"an integer, {low} to {high}")
    return result


def real(name: str, value: Any, limit: float, dtype: str) -> float:
    """Return an argument as a float that ``dtype`` can hold after rounding; infinities and NaN pass.

    Parameters
    ----------
    name
        The parameter.
    value
        An int or a float, or another real number.
    limit
        The least magnitude that would round to infinity.
    dtype
        For the message.

    Raises
    ------
    ArgumentTypeError
        If it is no real number.
    ArgumentValueError
        If it is finite and too large.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentTypeError(name, describe(value), f"a number that fits {dtype}")
    try:
        result = float(value)
    except OverflowError as error:
        raise ArgumentValueError(name, describe(value), f"a number that fits {dtype}") from error
    # A wider float may be finite and lie beyond every double.
    beyond = math.isinf(result) and value != result
    if beyond or (math.isfinite(result) and abs(result) >= limit):
        raise ArgumentValueError(name, repr(result), f"a number that fits {dtype}")
    return result


def boolean(name: str, value: Any) -> bool:
    """Return an argument that must be True or False.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    """
    if isinstance(value, bool):
        return value
    raise ArgumentTypeError(name, describe(value), "True or False")


def bfloat16_bits(value: float) -> int:
    """Return the bits of the bfloat16 nearest to a double, ties to even, rounded once.

    The double is first brought to float32 by rounding to odd, which keeps the one later rounding exact
    (Boldo and Melquiond, *When double rounding is odd*, 2005).
    """
    if math.isnan(value):
        return 0x7FC0
    if math.isinf(value):
        return 0x7F80 if value > 0 else 0xFF80
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    (single,) = struct.unpack("<f", struct.pack("<f", value))
    if single != value:
        bits = (bits - (abs(single) > abs(value))) | 1
    return (int(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


# Arguments --------------------------------------------------------------------------------------------------------


def count_error(args: tuple[Any, ...], names: tuple[str, ...]) -> ArgumentError:
    """Return the error of a call with the wrong number of arguments."""
    wanted = ", ".join(shorten(name) for name in names) or "none"
    return ArgumentTypeError("", f"{len(args)} arguments", f"{len(names)} ({wanted})")


def out_count_error(out: Any, names: tuple[str, ...]) -> ArgumentError:
    """Return the error of a call whose ``out`` holds the wrong number of tensors."""
    wanted = ", ".join(shorten(name) for name in names) or "none"
    return ArgumentTypeError("out", f"{len(out)} tensors", f"{len(names)} ({wanted})")


def dtype_error(name: str, tensor: Any, expected: str) -> ArgumentError:
    """Return the error of a tensor of another element type."""
    return ArgumentTypeError(name, f"a tensor of {tensor.dtype}", f"one of {expected}")


def rank_error(name: str, tensor: Any, rank: int) -> ArgumentError:
    """Return the error of a tensor with another number of dimensions."""
    return ArgumentValueError(
        name, f"{tensor.dim()} dimensions, shape {tuple(tensor.shape)}", f"{rank} dimensions"
    )


def extent_error(name: str, axis: int, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of an extent that is not what the signature says."""
    return ArgumentValueError(name, f"extent {got} along dimension {axis}", _equation(expected, text))


def stride_error(name: str, axis: int, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of a stride that is not what the signature says."""
    return ArgumentValueError(name, f"stride {got} along dimension {axis}", _equation(expected, text))


def value_error(name: str, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of a scalar that is not what its symbol is."""
    return ArgumentValueError(name, str(got), _equation(expected, text))


def _equation(expected: int, text: str) -> str:
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return str(expected) if text == str(expected) else f"{expected} ({shown})"


def layout_error(name: str, tensor: Any) -> ArgumentError:
    """Return the error of a tensor that is not contiguous."""
    got = f"strides {tuple(tensor.stride())} for shape {tuple(tensor.shape)}"
    return ArgumentValueError(name, got, "a contiguous row-major tensor; call .contiguous()")


def alignment_error(name: str, address: int, alignment: int) -> ArgumentError:
    """Return the error of a tensor whose first element lies at the wrong place."""
    return ArgumentValueError(name, f"address {address:#x}", f"a multiple of {alignment} bytes")


def symbol_error(name: str, place: str, got: int, allowed: str) -> ArgumentError:
    """Return the error of a symbol's value that its declaration does not allow."""
    return ArgumentValueError(name, f"{got} for {place}", allowed)


def condition_error(message: str) -> ArgumentError:
    """Return the error of a call that the author's own check refuses."""
    return ArgumentValueError("", "arguments that fail the program's check", message)


def grid_error(kernel: str, axis: int, got: int, limit: int) -> ArgumentError:
    """Return the error of a grid that no device can run."""
    return ArgumentValueError(
        "", f"a grid of {got} blocks along {_AXES[axis]} for kernel {shorten(kernel)}", f"0 to {limit}"
    )


def block_error(kernel: str, axis: int, got: int, limit: int) -> ArgumentError:
    """Return the error of a block that no device can run."""
    return ArgumentValueError(
        "", f"{got} threads along {_AXES[axis]} for kernel {shorten(kernel)}", f"1 to {limit}"
    )


def wide_block_error(kernel: str, got: int) -> ArgumentError:
    """Return the error of a block with too many threads in all."""
    return ArgumentValueError(
        "", f"a block of {got} threads for kernel {shorten(kernel)}", f"at most {MAX_THREADS}"
    )


def smem_error(kernel: str, got: int, limit: int) -> ArgumentError:
    """Return the error of a size of shared memory that the driver has no number for."""
    return ArgumentValueError(
        "", f"{got} bytes of shared memory for kernel {shorten(kernel)}", f"0 to {limit}"
    )
