"""Checked arithmetic: what a launcher computes with where interval analysis could not prove that a value fits."""

from __future__ import annotations

from trunnion.errors import ExprError
from trunnion.model.interval import INT64_MAX, INT64_MIN

__all__ = ["ceiling", "divisor", "fits", "in_range", "quotient", "remainder"]


def fits(value: int, text: str) -> int:
    """Return ``value``, that of the expression ``text``, if it fits 64 signed bits.

    Raises
    ------
    ExprError
        If it does not.
    """
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise ExprError(f"the value {value} of {text} does not fit 64 signed bits")


def divisor(value: int, text: str) -> int:
    """Return ``value``, by which the expression ``text`` divides, if it is not 0.

    Raises
    ------
    ExprError
        If it is.
    """
    if value:
        return value
    raise ExprError(f"division by zero in {text}")


def quotient(left: int, right: int, text: str) -> int:
    """Return the floor of a quotient; errors are those of `divisor` and `fits`."""
    return fits(left // divisor(right, text), text)


def remainder(left: int, right: int, text: str) -> int:
    """Return what floor division leaves; errors are those of `divisor`."""
    return left % divisor(right, text)


def ceiling(left: int, right: int, text: str) -> int:
    """Return the ceiling of a quotient; errors are those of `divisor` and `fits`."""
    return fits(-(-left // divisor(right, text)), text)


def in_range(value: int, low: int, high: int, name: str, text: str) -> int:
    """Return ``value``, that of the expression ``text``, if the integer type ``name`` can hold it.

    Raises
    ------
    ExprError
        If it cannot.
    """
    if low <= value <= high:
        return value
    raise ExprError(f"the value {value} of {text} does not fit {name} ({low} to {high})")
