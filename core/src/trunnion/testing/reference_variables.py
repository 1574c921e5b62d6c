"""The oracle's word on module variables: where they are passed, what is copied to them, and what they hold first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError, ExprError
from trunnion.testing.expected import Address, ExpectedCopy
from trunnion.testing.reference_arguments import bytes_per_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.module_variable import CopyToVariable, ModuleVariable
    from trunnion.model.program import KernelProgram
    from trunnion.testing.reference_arguments import Reading

__all__ = ["address_of_variable", "check_copies", "expect_copies", "variable_bytes"]


def variable_bytes(variable: ModuleVariable) -> int:
    """Return the size of a variable, from its type's name and its extents."""
    nbytes = bytes_per_element(variable.dtype.name)
    for extent in variable.shape:
        nbytes *= extent
    return nbytes


def address_of_variable(program: KernelProgram, variable: ModuleVariable) -> Address:
    """Return a variable's place; variables of two parts of the code may have one name, and are two."""
    part = 0
    if variable.code is not None:
        part = next(place for place, one in enumerate(program.code) if one == variable.code)
    return Address(variable.name, 0, part=part)


def check_copies(reading: Reading) -> None:
    """Record each copy whose tensor has not as many elements as the variable.

    Parameters
    ----------
    reading
        The call; its symbols have their values.
    """
    for copy in reading.program.copies:
        _check_copy(reading, copy)


def _check_copy(reading: Reading, copy: CopyToVariable) -> None:
    name, count = copy.tensor.name, 1
    for extent in copy.tensor.shape:
        value = reading.value(extent, f"an extent of {name!a}")
        if value is None:
            return
        count *= value
        if not -(2**63) <= count < 2**63:
            reading.refuse((ExprError,), None, f"{name!a} of {count} elements")
            return
    wanted = variable_bytes(copy.variable) // bytes_per_element(copy.variable.dtype.name)
    if count != wanted:
        reason = f"{count} elements of {name!a} for the {wanted} of variable {copy.variable.name!a}"
        reading.refuse((ArgumentValueError,), ("",), reason)


def expect_copies(program: KernelProgram, launched: Sequence[int]) -> tuple[ExpectedCopy, ...]:
    """Return what a call copies.

    Parameters
    ----------
    program
        What is called.
    launched
        The places of the launches that are not skipped.
    """
    return tuple(
        ExpectedCopy(
            variable=address_of_variable(program, copy.variable),
            source=Address(copy.tensor.name),
            nbytes=variable_bytes(copy.variable),
            launched=sum(1 for place in launched if place < copy.before),
        )
        for copy in program.copies
    )
