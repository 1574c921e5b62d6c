"""The part of a launcher that takes a call's arguments: structure, symbols, checks, outputs' shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.model.dtypes import Kind
from trunnion.model.expr_text import format_expr
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan import ConditionCheck

if TYPE_CHECKING:
    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import Binding, LaunchPlan, ScalarSlot, Source, TensorSlot, ValueCheck

__all__ = ["emit_arguments"]

_FLOAT_LIMITS = {
    # The least magnitude that rounds to infinity: half a unit above the greatest finite value.
    "float16": 65520.0,
    "bfloat16": (2.0 - 2.0**-8) * 2.0**127,
    "float32": (2.0 - 2.0**-24) * 2.0**127,
    "float64": float("inf"),
}


def emit_arguments(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter) -> None:
    """Write everything from the count of the arguments to the shapes of the outputs.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    printer
        Prints expressions.
    """
    _emit_unpacking(out, plan)
    inputs = [tensor for tensor in plan.tensors if not tensor.output]
    for tensor in inputs:
        _emit_structure(out, tensor)
    _emit_device(out, inputs)
    for scalar in plan.scalars:
        _emit_scalar(out, scalar)
    for binding in plan.bindings:
        _emit_binding(out, plan, binding)
    for check in plan.checks:
        if isinstance(check, ConditionCheck):
            with out.block(f"if not {printer.text(check.condition)}:"):
                out.line(f"raise condition_error({python_string(check.message)})")
        else:
            _emit_value_check(out, plan, check, printer)
    for tensor in inputs:
        _emit_memory(out, tensor)
    _emit_outputs(out, plan, printer)


def _emit_unpacking(out: SourceWriter, plan: LaunchPlan) -> None:
    names = [python_string(param.name) for param in plan.signature.params]
    with out.block(f"if len(args) != {len(names)}:"):
        out.line(f"raise count_error(args, {python_tuple(names)})")
    slots = [*((t.position, f"t{t.index}") for t in plan.tensors if not t.output)]
    slots += [(s.position, f"s{s.index}") for s in plan.scalars]
    if slots:
        out.line(f"{', '.join(name for _, name in sorted(slots))}, = args")


def _emit_structure(out: SourceWriter, tensor: TensorSlot) -> None:
    t, name = f"t{tensor.index}", python_string(tensor.name)
    lazy = {Kind.FLOAT: f" or {t}.is_neg()", Kind.COMPLEX: f" or {t}.is_neg() or {t}.is_conj()"}
    with out.block(
        f"if type({t}) is not Tensor or {t}.layout is not strided{lazy.get(tensor.dtype.kind, '')}:"
    ):
        out.line(f"check_tensor({name}, {t})")
    with out.block(f"if {t}.dtype is not dtype_{tensor.dtype.name}:"):
        out.line(f"raise dtype_error({name}, {t}, {python_string(tensor.dtype.name)})")
    out.line(f"shape = {t}.shape")
    with out.block(f"if len(shape) != {len(tensor.shape)}:"):
        out.line(f"raise rank_error({name}, {t}, {len(tensor.shape)})")
    if tensor.shape:
        out.line(f"{', '.join(f'd{tensor.index}_{axis}' for axis in range(len(tensor.shape)))}, = shape")
        if tensor.strides is not None:
            out.line(
                f"{', '.join(f'r{tensor.index}_{axis}' for axis in range(len(tensor.shape)))}, = {t}.stride()"
            )


def _emit_device(out: SourceWriter, inputs: list[TensorSlot]) -> None:
    names = python_tuple([python_string(tensor.name) for tensor in inputs])
    devices = [f"t{tensor.index}.get_device()" for tensor in inputs]
    if not inputs:
        out.line("device = check_device((), (), device)")
        return
    out.line(f"given, device = device, {devices[0]}")
    unequal = [f"{other} != device" for other in devices[1:]]
    wrong = " or ".join(["given is not None", f"not t{inputs[0].index}.is_cuda", *unequal])
    with out.block(f"if {wrong}:"):
        tensors = python_tuple([f"t{tensor.index}" for tensor in inputs])
        out.line(f"check_device({names}, {tensors}, given)")


def _emit_scalar(out: SourceWriter, scalar: ScalarSlot) -> None:
    s, name, kind = f"s{scalar.index}", python_string(scalar.name), scalar.dtype
    if kind.kind is Kind.BOOL:
        with out.block(f"if type({s}) is not bool:"):
            out.line(f"{s} = boolean({name}, {s})")
    elif kind.is_integer:
        low, high = kind.integer_range
        with out.block(f"if type({s}) is not int or not {low} <= {s} <= {high}:"):
            out.line(f"{s} = integer({name}, {s}, {low}, {high})")
    else:
        limit = _FLOAT_LIMITS[kind.name]
        text = repr(limit) if limit != float("inf") else 'float("inf")'
        within = f"not -{text} < {s} < {text}" if limit != float("inf") else "False"
        with out.block(f"if type({s}) is not float or {within}:"):
            out.line(f"{s} = real({name}, {s}, {text}, {python_string(kind.name)})")


def _place(plan: LaunchPlan, source: Source) -> tuple[str, str, str]:
    """Return the variable, the argument's name and the place's description of a number of the call."""
    if source.kind == "scalar":
        return f"s{source.slot}", plan.scalars[source.slot].name, "the value"
    letter, word = ("d", "extent") if source.kind == "shape" else ("r", "stride")
    name = plan.tensors[source.slot].name
    return f"{letter}{source.slot}_{source.axis}", name, f"the {word} along dimension {source.axis}"


def _emit_binding(out: SourceWriter, plan: LaunchPlan, binding: Binding) -> None:
    variable, argument, place = _place(plan, binding.source)
    if binding.candidates:
        live = [f"{_place(plan, source)[0]} if {_live(plan, source)}" for source in binding.candidates]
        out.line(f"v{binding.slot} = {' else '.join([*live, variable])}")
        variable = f"v{binding.slot}"
    least, most = 0, INT64_MAX
    if binding.source.kind == "scalar":
        least, most = plan.scalars[binding.source.slot].dtype.integer_range
    wrong, allowed = [], []
    if binding.min > least or binding.max < most:
        wrong.append(f"not {binding.min} <= {variable} <= {binding.max}")
        allowed.append(f"{binding.min} to {binding.max}")
    if binding.multiple_of > 1:
        wrong.append(f"{variable} % {binding.multiple_of}")
        allowed.append(f"a multiple of {binding.multiple_of}")
    if wrong:
        with out.block(f"if {' or '.join(wrong)}:"):
            texts = (
                python_string(argument),
                python_string(place),
                variable,
                python_string(", ".join(allowed)),
            )
            out.line(f"raise symbol_error({', '.join(texts)})")


def _live(plan: LaunchPlan, source: Source) -> str:
    """Return the condition under which the number at a place means anything."""
    if source.kind != "stride":
        return "True"
    return f"d{source.slot}_{source.axis} > 1 and {_has_elements(plan.tensors[source.slot])}"


def _emit_value_check(out: SourceWriter, plan: LaunchPlan, check: ValueCheck, printer: ExprPrinter) -> None:
    variable, argument, _ = _place(plan, check.source)
    source = check.source
    out.line(f"want = {printer.text(check.expected)}")
    counts = f" and {_live(plan, source)}" if source.kind == "stride" else ""
    condition = f"{variable} != want{counts}"
    text = _author_text(plan, check)
    name = python_string(argument)
    with out.block(f"if {condition}:"):
        if source.kind == "scalar":
            out.line(f"raise value_error({name}, {variable}, want, {text})")
        else:
            word = "extent" if source.kind == "shape" else "stride"
            out.line(f"raise {word}_error({name}, {source.axis}, {variable}, want, {text})")


def _author_text(plan: LaunchPlan, check: ValueCheck) -> str:
    """Return the expected value as the author wrote it, over symbols' names."""
    source = check.source
    if source.kind == "scalar":
        symbol = plan.signature.scalars[source.slot].symbol
        return python_string("" if symbol is None else symbol.name)
    tensor = plan.signature.tensors[source.slot]
    exprs = tensor.shape if source.kind == "shape" else tensor.strides or ()
    return python_string(format_expr(exprs[source.axis]))


def _has_elements(tensor: TensorSlot) -> str:
    return " and ".join(f"d{tensor.index}_{axis}" for axis in range(len(tensor.shape))) or "True"


def _emit_memory(out: SourceWriter, tensor: TensorSlot) -> None:
    t, p, name = f"t{tensor.index}", f"p{tensor.index}", python_string(tensor.name)
    if tensor.strides is None:
        with out.block(f"if not {t}.is_contiguous():"):
            out.line(f"raise layout_error({name}, {t})")
    out.line(f"{p} = {t}.data_ptr()")
    wrong = f"not {p}" if tensor.alignment == 1 else f"{p} % {tensor.alignment} or not {p}"
    with out.block(f"if {wrong}:"):
        out.line(f"check_pointer({name}, {t}, {p}, {tensor.alignment})")


def _emit_outputs(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter) -> None:
    outputs = [tensor for tensor in plan.tensors if tensor.output]
    for tensor in outputs:
        for axis, extent in enumerate(tensor.shape):
            variable = f"x{tensor.index}_{axis}"
            out.line(f"{variable} = {printer.text(extent)}")
            if extent.bounds.low < 0:
                with out.block(f"if {variable} < 0:"):
                    name = python_string(tensor.name)
                    out.line(f"raise extent_error({name}, {axis}, {variable}, 0, 'at least 0')")
    names = python_tuple([python_string(tensor.name) for tensor in outputs])
    with out.block("if out is not None:"):
        with out.block(f"if len(out) != {len(outputs)}:"):
            out.line(f"raise out_count_error(out, {names})")
        for position, tensor in enumerate(outputs):
            shape = python_tuple([f"x{tensor.index}_{axis}" for axis in range(len(tensor.shape))])
            given = f"{python_string(tensor.name)}, out[{position}]"
            out.line(
                f"check_output({given}, ({shape}, dtype_{tensor.dtype.name}, {tensor.alignment}, device))"
            )
