"""Where numbers stand in a call: the variables that hold them, and when they mean anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.codegen.literals import cpp_string
from trunnion.model.plan.places import place_words

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan, Source, TensorSlot

__all__ = [
    "Place",
    "output_rule",
    "place_of",
    "presence",
    "slot_name",
    "tensor_rule",
]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a call where a number stands."""

    variable: str
    """The variable that holds the number."""

    argument: str
    """The expression of the argument's ``Name``."""

    words: str
    """A C++ literal that says where in the argument."""

    there: str
    """The condition under which there is a number at all; ``"true"``: always."""

    live: str
    """The condition under which it means anything, beside being there: see `trunnion.model.plan.slots.Binding`."""


def tensor_rule(index: int | str) -> str:
    """Return what is asked of an input; the index may be an expression."""
    return f"kTensors[{index}]"


def output_rule(index: int) -> str:
    """Return what is asked of an output."""
    return f"kOutput{index}"


def presence(tensor: TensorSlot) -> str:
    """Return the condition under which a call has the tensor; ``"true"``: always."""
    return f"t[{tensor.index}] != nullptr" if tensor.nullable else "true"


def slot_name(plan: LaunchPlan, index: int) -> str:
    """Return the variable that holds a symbol's value, or a fact of the device."""
    if index >= len(plan.bindings):
        return f"facts[{index - len(plan.bindings)}]"
    binding = plan.bindings[index]
    return f"v{index}" if binding.candidates else place_of(plan, binding.source).variable


def place_of(plan: LaunchPlan, source: Source) -> Place:
    """Return the place that a source means."""
    words = cpp_string(place_words(source))
    if source.kind == "scalar":
        position = plan.scalars[source.slot].position
        return Place(f"s{source.slot}", f"kArguments[{position}]", words, "true", "true")
    tensor = plan.tensors[source.slot]
    letter = "d" if source.kind == "shape" else "r"
    live = ["true"]
    if source.kind == "stride":
        live = [f"d{tensor.index}_{source.axis} > 1"]
        live += [f"d{tensor.index}_{axis} != 0" for axis in range(len(tensor.shape))]
    return Place(
        f"{letter}{source.slot}_{source.axis}",
        f"{tensor_rule(tensor.index)}.name",
        words,
        presence(tensor),
        " && ".join(live),
    )
