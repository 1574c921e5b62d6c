"""The part of a C++ launcher that computes what each launch is given, and the launches themselves."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.arguments import scalar_storage
from trunnion.codegen.cpp.conditions import launch_condition
from trunnion.codegen.cpp.constants import constant_address, constant_name
from trunnion.codegen.cpp.formats import format_pointer, stored_type
from trunnion.codegen.float_exprs import FLOAT_CPP, float_text
from trunnion.codegen.geometry import GeometryLanguage, GeometryPrinter
from trunnion.codegen.literals import cpp_name, cpp_string
from trunnion.model.expr import Const
from trunnion.model.float_expr import integers_of
from trunnion.model.float_text import brief_float
from trunnion.model.plan import (
    AddressArgument,
    BuiltArgument,
    ConstantArgument,
    ExprArgument,
    FloatArgument,
    MapArgument,
    MemoryKind,
    MovedArgument,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    VariableArgument,
    ViewArgument,
)
from trunnion.model.plan.places import in_field

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.model.plan import LaunchPlan, MemoryRef, PlannedArgument, PlannedLaunch
    from trunnion.model.plan.steps import ComputeArguments

__all__ = [
    "cluster_blocks",
    "emit_arguments",
    "emit_geometry",
    "emit_structs",
    "emit_views",
    "extents",
    "memory_address",
    "parameters",
]

_AXES = "xyz"


def memory_address(memory: MemoryRef) -> str:
    """Return the member that holds the address of a tensor or a workspace."""
    return f"p[{memory.slot}]" if memory.kind is MemoryKind.TENSOR else f"w{memory.slot}"


# Before anything is allocated or launched --------------------------------------------------------------------------


_GEOMETRY = GeometryLanguage(
    always="true",
    holds="{} != 0",
    outside="{name} < {low} || {name} > {high}",
    indivisible="{number} % {by} != 0",
    refusals=MappingProxyType(
        {
            "grid": "raise_grid({kernel}, {axis}, {got}, {limit})",
            "cluster": "raise_cluster({kernel}, {axis}, {got}, {limit})",
            "cluster_extent": "raise_cluster_extent({kernel}, {axis}, {got}, {limit})",
            "wide_cluster": "raise_wide_cluster({kernel}, {got}, {limit})",
            "block": "raise_block({kernel}, {axis}, {got}, {limit})",
            "wide_block": "raise_wide_block({kernel}, {got}, {limit})",
            "smem": "raise_smem_size({kernel}, {got}, {limit})",
        }
    ),
)


def emit_geometry(text: CallText, launch: PlannedLaunch) -> None:
    """Write the lines that compute and check a launch's condition, grid, block and shared memory."""
    store = partial(text.store, "int64_t")
    GeometryPrinter(
        language=_GEOMETRY,
        launch=launch,
        kernel=f"kKernels[{launch.kernel}]",
        condition=launch_condition(launch),
        store=store,
        switch=store,
        refuse=text.refuse,
        when=text.when,
    ).emit()


def cluster_blocks(launch: PlannedLaunch) -> str:
    """Return the expression of how many blocks the cluster has of which a call decides."""
    return " * ".join(f"q{launch.index}_{axis}" for axis in _AXES)


def emit_arguments(text: CallText, plan: LaunchPlan, step: ComputeArguments) -> None:
    """Write the lines that compute some of a launch's arguments."""
    launch = step.launch
    for ordinal in step.ordinals:
        _emit_argument(text, plan, launch.args[ordinal], f"e{launch.index}_{ordinal}")


def _emit_argument(
    text: CallText, plan: LaunchPlan, argument: PlannedArgument, name: str, place: str = ""
) -> None:
    match argument:
        case ExprArgument():
            text.store(argument.dtype.cpp, name, argument.value, place)
        case FloatArgument():
            _emit_float(text, plan, argument, name, place)
        case ViewArgument():
            _emit_view(text, plan, argument, name)
        case MovedArgument():
            _emit_offset(text, plan, argument, name)
        case BuiltArgument(fields):
            for index, one in enumerate(fields):
                _emit_argument(text, plan, one.argument, f"{name}_{index}", in_field(one))


def _emit_float(text: CallText, plan: LaunchPlan, number: FloatArgument, name: str, field: str) -> None:
    """Write the lines that compute a floating-point number: its integers first, because those can be refused."""
    kind = number.dtype
    stored = text.member(stored_type(kind), name)
    with text.out.block("{", "}"):
        names = []
        for place, integer in enumerate(integers_of(number.value)):
            names.append(f"x{place}")
            text.line(f"const double x{place} = static_cast<double>({text.expr(integer)});")
        text.line(f"const double value = {float_text(FLOAT_CPP, number.value, names)};")
        said = cpp_string(brief_float(number.value, plan.symbols) + field)
        text.require(f'round_result(value, "{kind.name}", {format_pointer(kind)}, {said}, {stored})')


def _emit_view(text: CallText, plan: LaunchPlan, view: ViewArgument, name: str) -> None:
    """Write the numbers of a view; its address is known later."""
    extents, strides = view.numbers
    text.member(f"View<{len(extents)}, {len(strides)}>", name)
    unproven = {f"{name}.extents[{place}]": row for place, row in view.unproven.items()}
    for member, kind, values in (("extents", "int32_t", extents), ("strides", "int64_t", strides)):
        for place, value in enumerate(values):
            number = f"{name}.{member}[{place}]"
            if number not in unproven:
                text.line(f"{number} = static_cast<{kind}>({text.expr(value)});")
                continue
            axis, extent = unproven[number]
            with text.out.block("{", "}"):
                text.line(f"const int64_t extent = {text.expr(extent)};")
                text.require(f"view_extent({_name(plan, view.memory)}, {axis}, extent, {number})")


def _emit_offset(text: CallText, plan: LaunchPlan, moved: MovedArgument, name: str) -> None:
    """Write by how many elements an address is moved, which is known later; of one that is left out none is judged."""
    memory = moved.memory
    text.member("uint64_t", name)
    offset = text.member("int64_t", f"{name}_offset")
    condition = "true"
    if plan.may_be_absent(memory):
        text.line(f"{offset} = 0;")
        condition = f"t[{memory.slot}] != nullptr"
    with text.when(condition):
        text.store("int64_t", offset, moved.offset)
        if not moved.is_proven:
            with text.out.block("{", "}"):
                text.line(f"const int64_t limit = {text.expr(moved.limit)};")
                text.require(f"offset_within({_name(plan, memory)}, {offset}, limit)")


def _name(plan: LaunchPlan, memory: MemoryRef) -> str:
    return cpp_name(plan.memory(memory).name)


def emit_views(text: CallText, plan: LaunchPlan, launch: PlannedLaunch) -> None:
    """Write the lines that put the addresses into a launch's views, and move others, once all memory is there."""
    for ordinal, argument in enumerate(launch.args):
        _emit_address(text, plan, argument, f"e{launch.index}_{ordinal}")


def _emit_address(text: CallText, plan: LaunchPlan, argument: PlannedArgument, name: str) -> None:
    match argument:
        case ViewArgument(memory):
            text.line(f"{name}.address = {memory_address(memory)};")
        case MovedArgument(memory):
            step = plan.memory(memory).dtype.itemsize
            moved = f"static_cast<uint64_t>({name}_offset){f' * {step}' if step > 1 else ''}"
            text.line(f"{name} = {memory_address(memory)} + {moved};")


def emit_structs(text: CallText, plan: LaunchPlan, launch: PlannedLaunch) -> None:
    """Write the lines that build a launch's structs, once all memory is there and maps are encoded."""
    for ordinal, argument in enumerate(launch.args):
        if not isinstance(argument, BuiltArgument):
            continue
        name = f"e{launch.index}_{ordinal}"
        text.member(f"BuiltStruct<{argument.nbytes}>", name)
        for place, one in enumerate(argument.fields):
            value = f"{name}_{place}"
            _emit_address(text, plan, one.argument, value)
            text.line(f"{name}.put<{one.offset}, {one.size}>({_parameter(plan, one.argument, value)});")


# The launch --------------------------------------------------------------------------------------------------------


def parameters(plan: LaunchPlan, launch: PlannedLaunch) -> list[str]:
    """Return the address of each parameter of a launch, in order."""
    return [
        constant_address(plan, one)
        if isinstance(one, ConstantArgument)
        else f"&{_parameter(plan, one, f'e{launch.index}_{at}')}"
        for at, one in enumerate(launch.args)
    ]


def _parameter(  # noqa: PLR0911 - one for each kind
    plan: LaunchPlan, given: PlannedArgument, name: str
) -> str:
    """Return the member that holds an argument, which is ``name`` if it was computed."""
    match given:
        case PointerArgument(memory):
            return memory_address(memory)
        case ScalarArgument(scalar):
            return scalar_storage(plan.scalars[scalar])
        case AddressArgument(pointer):
            return f"a{pointer}"
        case StructArgument(struct):
            return f"u{struct}"
        case MapArgument(encode):
            return f"m{encode}"
        case VariableArgument(variable):
            return f"state->variables[{variable}]"
        case ConstantArgument():
            return constant_name(plan, given)
        case ExprArgument() | FloatArgument() | ViewArgument() | MovedArgument() | BuiltArgument():
            return name
    raise TypeError(f"a launch passes a {type(given).__name__}")


def extents(launch: PlannedLaunch, letter: str) -> str:
    """Return the initialiser of a launch's grid (``"g"``) or block (``"b"``)."""
    texts = [
        str(extent.value)
        if isinstance(extent, Const)
        else f"static_cast<uint32_t>({letter}{launch.index}_{axis})"
        for axis, extent in zip(_AXES, launch.grid if letter == "g" else launch.block, strict=True)
    ]
    return f"{{{', '.join(texts)}}}"
