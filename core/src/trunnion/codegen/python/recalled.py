"""What a launcher recalls of an earlier call, to find out no more than once what it has in common with the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.dtypes import Kind
from trunnion.model.plan.steps import Phase, ShapeOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, ScalarSlot, TensorSlot

__all__ = ["emit_alike", "is_computed_with", "passed_names", "recalls", "recalls_destinations"]


def recalls(plan: LaunchPlan) -> bool:
    """Whether a launcher of this plan recalls what it found out about the tensors of an earlier call."""
    return bool(plan.inputs) and not any(tensor.nullable for tensor in plan.tensors)


def recalls_destinations(plan: LaunchPlan) -> bool:
    """Whether it recalls tensors given under ``out=``, too: the tensors of a call decide what these have to be."""
    shapes = [step.phase for step in plan.steps if isinstance(step.action, ShapeOutput)]
    return recalls(plan) and bool(shapes) and set(shapes) == {Phase.TENSORS}


def passed_names(plan: LaunchPlan) -> list[str]:
    """Return the variables that hold a call's integers: addresses of tensors, integer scalars, raw addresses.

    A boolean that stands under a symbol is one: expressions compute with it.

    Two calls that pass equal ones are told apart by nothing in them, which 0.0 and -0.0 would be.
    """
    names = [f"p{tensor.index}" for tensor in plan.inputs]
    names += [f"s{scalar.index}" for scalar in plan.scalars if scalar.dtype.is_integer]
    names += [f"i{scalar.index}" for scalar in plan.scalars if is_computed_with(plan, scalar)]
    return names + [f"a{pointer.index}" for pointer in plan.pointers]


def is_computed_with(plan: LaunchPlan, scalar: ScalarSlot) -> bool:
    """Whether a scalar is a boolean that stands under a symbol."""
    return scalar.dtype.kind is Kind.BOOL and plan.signature.scalars[scalar.index].symbol is not None


def emit_alike(out: SourceWriter, tensors: Sequence[TensorSlot], known: str, guard: str) -> None:
    """Write whether tensors are ``alike`` those of an earlier call, as its guard says of them.

    Parameters
    ----------
    out
        Where to.
    tensors
        The tensors, in variables of their own.
    known
        What is None where there is no guard.
    guard
        The guard, where there is one.
    """
    names = [f"t{tensor.index}" for tensor in tensors]
    with out.block("try:"):
        # A guard reads strides, and torch ends the process where a nested tensor is asked for them that way.
        nested = " or ".join(f"{name}.is_nested" for name in names)
        out.line(f"alike = {known} is not None and not ({nested}) and {guard}({', '.join(names)})")
    # No tensor of torch's, or what raises whatever it is asked: the checks say what is wrong with it.
    with out.block("except Exception:"):
        out.line("alike = False")
