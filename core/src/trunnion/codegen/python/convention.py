"""The part of a launcher that takes what a call says by name: arguments, and words beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.arguments import ADDRESSES, given_tuple, positional_names
from trunnion.contract.convention import WORDS

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan

__all__ = ["emit_convention", "emit_convention_names"]


def emit_convention_names(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the line that binds what `emit_convention` needs as variables of the closure."""
    names = python_tuple([python_string(param.name) for param in plan.signature.params])
    out.line(f"keywords, destinations, refuse_names = context.convention({names}, {len(plan.results)})")
    if len(plan.signature.params) > 1:
        out.line("named = context.by_name(keywords)")


def emit_convention(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the lines that take what a call says by name."""
    refuse = f"refuse_names(said, left, {given_tuple(plan)})"
    out.line("out = stream = device = None")
    with out.block("if said:"):
        out.line("left = len(said)")
        if plan.signature.params:
            with out.block("try:"):
                _emit_arguments(out, plan)
            with out.block("except KeyError:"):
                out.line(refuse)
        with out.block("if left:"):
            out.line("rest = left")
            for word in WORDS:
                with out.block(f"if {'' if word == WORDS[0] else 'rest and '}{python_string(word)} in said:"):
                    out.lines(f"{word} = said[{python_string(word)}]", "rest -= 1")
            with out.block("if rest:"):
                out.line(refuse)
            with out.block("try:"):
                _emit_words(out, plan)
            # Also of what somebody's stream or tensor raises: of a closed program that is said, whatever else is wrong.
            with out.block("except BaseException as error:"):
                out.lines("refuse(error, None)", "raise")


def _emit_arguments(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the lines that take the arguments that are missing by position: all at once, or one by one."""
    names = positional_names(plan)
    if len(names) == 1:
        _emit_each(out, names, 0)
        return
    with out.block(f"if {names[0]} is ABSENT:"):
        out.lines(f"{', '.join(names)}, = named(said)", f"left -= {len(names)}")
    with out.block(f"elif {names[-1]} is ABSENT:"):
        _emit_each(out, names, 1)


def _emit_each(out: SourceWriter, names: list[str], first: int) -> None:
    for place, name in list(enumerate(names))[first:]:
        with out.block(f"if {name} is ABSENT:"):
            out.lines(f"{name} = said[keywords[{place}]]", "left -= 1")


def _emit_words(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the lines that read device, destinations and stream, those of most calls without a further call."""
    with out.block("if device is not None:"):
        out.line("device = device_ordinal(device)")
    with out.block("if out is not None:"):
        one = "(out,) if type(out) is Tensor else " if len(plan.results) == 1 else ""
        out.line(f"out = {one}destinations(out)")
    with out.block("if stream is not None:"):
        with out.block("if type(stream) is Stream:"):
            out.line("stream = stream.cuda_stream")
        with out.block(f"if type(stream) is not int or not 0 <= stream < {ADDRESSES}:"):
            out.line("stream = stream_handle(stream)")
