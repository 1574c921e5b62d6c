"""Where numbers stand in a call, what they may be, and how their author wrote that: what messages say of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.messages import shorten
from trunnion.model.expr_text import format_expr
from trunnion.model.interval import INT64_MAX

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan import BuiltField, LaunchPlan
    from trunnion.model.plan.slots import Binding, Source, TensorSlot
    from trunnion.model.plan.steps import ValueCheck

__all__ = [
    "allowed_values",
    "argument_name",
    "author_extents",
    "author_text",
    "in_field",
    "mention",
    "place_words",
    "source_range",
]

_MOST_SHOWN = 200  # characters of an expression in a message


def argument_name(plan: LaunchPlan, source: Source) -> str:
    """Return the name of the argument in which a number stands."""
    return (plan.scalars if source.kind == "scalar" else plan.tensors)[source.slot].name


def place_words(source: Source) -> str:
    """Return where in its argument a number stands: ``"the extent along dimension 0"``."""
    if source.kind == "scalar":
        return "the value"
    return f"the {'extent' if source.kind == 'shape' else 'stride'} along dimension {source.axis}"


def mention(plan: LaunchPlan, source: Source) -> str:
    """Return the words for a place where a symbol might have stood, of a tensor that the call leaves out."""
    word = "dimension" if source.kind == "shape" else "stride"
    return f"{word} {source.axis} of {shorten(plan.tensors[source.slot].name)}, which is None in this call"


def source_range(plan: LaunchPlan, binding: Binding, least_stride: int = 0) -> tuple[int, int]:
    """Return the least and the greatest number that the places which may give a symbol its value can hold.

    Parameters
    ----------
    plan
        The plan.
    binding
        The symbol's.
    least_stride
        The least stride that a tensor can have.
    """
    ranges = {"shape": (0, INT64_MAX), "stride": (least_stride, INT64_MAX)}
    held = [
        ranges.get(source.kind) or plan.scalars[source.slot].dtype.integer_range
        for source in (binding.source, *binding.candidates)
    ]
    return min(low for low, _ in held), max(high for _, high in held)


def allowed_values(binding: Binding, held: tuple[int, int]) -> str:
    """Return what a symbol's value may be, in words; nothing of a bound that its place has anyway.

    Parameters
    ----------
    binding
        The symbol's.
    held
        What `source_range` returned.
    """
    words = []
    if binding.min > held[0] or binding.max < held[1]:
        words.append(_bounds(binding.min, binding.max, *held))
    if binding.multiple_of > 1:
        words.append(f"a multiple of {binding.multiple_of}")
    return ", ".join(words)


def _bounds(low: int, high: int, least: int, most: int) -> str:
    if high >= most:
        return f"at least {low}"
    return f"at most {high}" if low < least else f"{low} to {high}"


def in_field(field: BuiltField) -> str:
    """Return where a struct's field stands, to put behind the text of its expression: a struct may have many alike."""
    path = field.path if field.path.isascii() else shorten(field.path)
    return f", in field {path},"


def author_text(plan: LaunchPlan, check: ValueCheck) -> str:
    """Return the expected value as the author wrote it, over symbols' names, without the end of a very long one."""
    source = check.source
    if source.kind == "scalar":
        symbol = plan.signature.scalars[source.slot].symbol
        return "" if symbol is None else _cut(symbol.name)
    tensor = plan.signature.tensors[source.slot]
    return _written((tensor.shape if source.kind == "shape" else tensor.strides or ())[source.axis])


def author_extents(plan: LaunchPlan, output: TensorSlot) -> tuple[str, ...]:
    """Return the extents of an output as the author wrote them, as `author_text` does."""
    described = plan.signature.outputs[output.index - len(plan.signature.tensors)]
    return tuple(_written(extent) for extent in described.shape)


def _written(expr: Expr) -> str:
    return _cut(format_expr(expr))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
