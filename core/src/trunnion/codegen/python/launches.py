"""The part of a launcher that computes what each launch is given, before anything is allocated or launched."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.codegen.geometry import GeometryLanguage, GeometryPrinter
from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.conditions import launch_condition, refuse, step_condition, when
from trunnion.codegen.python.memory import memory_address
from trunnion.codegen.python.recalled import recalls
from trunnion.codegen.writer import SourceWriter
from trunnion.model.dtypes import Kind
from trunnion.model.expr import Const
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
from trunnion.model.plan.steps import unknown_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.model.plan import LaunchPlan, PlannedArgument, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = [
    "attribute_variables",
    "emit_geometry",
    "emit_steps",
    "follows_from_passed",
    "packed_values",
    "packs_integers",
    "shape_variables",
    "variables",
]

_AXES = "xyz"


def packed_values(plan: LaunchPlan, launch: PlannedLaunch) -> list[str]:
    """Return the text of each value that is packed, in the parameters' order."""
    return [
        value
        for ordinal, argument in enumerate(launch.args)
        if not isinstance(argument, MapArgument)  # which lies elsewhere
        for value in _values(plan, argument, f"e{launch.index}_{ordinal}")
    ]


def _values(  # noqa: C901, PLR0911 - one for each kind
    plan: LaunchPlan, argument: PlannedArgument, name: str
) -> list[str]:
    """Return what is packed for one argument, of which computed numbers are in variables that begin with ``name``."""
    match argument:
        case PointerArgument(memory) | ViewArgument(memory):
            return [memory_address(memory), *variables(argument, name)]
        case MovedArgument(memory):
            address, step = memory_address(memory), plan.memory(memory).dtype.itemsize
            return [f"{address} + {name}{f' * {step}' if step > 1 else ''}"]
        case ConstantArgument(data):
            return [repr(data)]
        case ScalarArgument(scalar):
            return _scalar_values(plan, scalar)
        case AddressArgument(pointer):
            return [f"a{pointer}"]
        case StructArgument(struct):
            return [f"u{struct}"]
        case ExprArgument(Const(value)):
            return [str(value)]
        case VariableArgument(variable):
            return [f"state.variables[{variable}]"]
        case MapArgument(encode):
            return [f"m{encode}.data"]
        case BuiltArgument(fields):
            numbered = enumerate(fields)
            return [text for at, one in numbered for text in _values(plan, one.argument, f"{name}_{at}")]
    return [name]


def variables(argument: PlannedArgument, name: str) -> list[str]:
    """Return the variable of each number that is computed for an argument.

    Parameters
    ----------
    argument
        The argument.
    name
        With what the variables begin.
    """
    match argument:
        case MovedArgument() | FloatArgument():
            return [name]
        case ExprArgument(value) if not isinstance(value, Const):
            return [name]
        case ViewArgument(numbers=(extents, strides)):
            return [f"{name}_{place}" for place in range(len(extents) + len(strides))]
        case BuiltArgument(fields):
            found = (variables(one.argument, f"{name}_{place}") for place, one in enumerate(fields))
            return [one for group in found for one in group]
    return []


def packs_integers(plan: LaunchPlan, launch: PlannedLaunch) -> bool:
    """Whether all that is packed are integers: then equal values are equal bytes, which 0.0 and -0.0 are not."""
    scalars = [plan.scalars[one.scalar].dtype for one in launch.passed if isinstance(one, ScalarArgument)]
    others = any(isinstance(argument, (FloatArgument, StructArgument)) for argument in launch.passed)
    return not others and all(dtype.is_integer for dtype in scalars)


def follows_from_passed(plan: LaunchPlan, launch: PlannedLaunch, *, destined: bool) -> bool:
    """Whether all that a launch is given follows from the tensors' layouts and ``passed``.

    The layouts say the device too, and that its facts, which are read once.

    Parameters
    ----------
    plan
        The plan.
    launch
        The launch.
    destined
        Whether ``passed`` has the addresses of destinations, where the caller gives them.
    """
    kinds = (PointerArgument, MovedArgument, ViewArgument)
    memory = [one.memory for one in launch.passed if isinstance(one, kinds)]
    built = [encode for one in launch.args if isinstance(one, BuiltArgument) for encode in one.maps]
    maps = [one.encode for one in launch.args if isinstance(one, MapArgument)]
    memory += [plan.encodes[encode].memory for encode in (*built, *maps)]
    loaded = any(isinstance(one, VariableArgument) for one in launch.passed)  # each device's, and each load's
    own = any(
        one.kind is not MemoryKind.TENSOR or (plan.tensors[one.slot].output and not destined)
        for one in memory
    )
    return recalls(plan) and not own and not loaded and packs_integers(plan, launch)


def _scalar_values(plan: LaunchPlan, scalar: int) -> list[str]:
    kind = plan.scalars[scalar].dtype
    if kind.kind is Kind.COMPLEX:
        return [f"s{scalar}_re", f"s{scalar}_im"]
    if kind.name == "bfloat16":
        return [f"bfloat16_bits(s{scalar})"]
    return [f"s{scalar}_bits" if kind.is_small_float else f"s{scalar}"]


def emit_steps(
    out: SourceWriter,
    plan: LaunchPlan,
    actions: Iterable[Action],
    *printers: Callable[[SourceWriter, Action], bool],
) -> None:
    """Write steps, each under its condition.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    actions
        What the steps do.
    printers
        Each writes a step, and returns whether it knows one of that kind.
    """
    for action in actions:
        body = SourceWriter()
        if not any(printer(body, action) for printer in printers):
            raise unknown_step(action)
        if body.written:
            with when(out, step_condition(plan, action)):
                out.include(body)


_GEOMETRY = GeometryLanguage(
    always="True",
    holds="{}",
    outside="not {low} <= {name} <= {high}",
    indivisible="{number} % {by}",
    refusals=MappingProxyType(
        {
            "grid": "grid_error({kernel}, {axis}, {got}, {limit})",
            "cluster": "cluster_error({kernel}, {axis}, {got}, {limit})",
            "cluster_extent": "cluster_extent_error({kernel}, {axis}, {got}, {limit})",
            "wide_cluster": "wide_cluster_error({kernel}, {got}, {limit})",
            "block": "block_error({kernel}, {axis}, {got}, {limit})",
            "wide_block": "wide_block_error({kernel}, {got})",
            "smem": "smem_error({kernel}, {got}, {limit})",
        }
    ),
)


def emit_geometry(out: SourceWriter, plan: LaunchPlan, launch: PlannedLaunch, printer: ExprPrinter) -> None:
    """Write the lines that compute and check a launch's condition, grid, block and shared memory."""
    names = [name for group in shape_variables(launch) for name in group]
    GeometryPrinter(
        language=_GEOMETRY,
        launch=launch,
        kernel=python_string(plan.kernels[launch.kernel].name),
        condition=launch_condition(launch),
        store=lambda name, expr: out.line(f"{name} = {printer.text(expr)}"),
        switch=lambda name, expr: out.line(f"{name} = 1 if {printer.text(expr)} else 0"),
        refuse=partial(refuse, out),
        when=partial(when, out),
        end=partial(out.line, f"j{launch.index} = {python_tuple(names)}") if names else None,
    ).emit()


def shape_variables(launch: PlannedLaunch) -> tuple[list[str], list[str]]:
    """Return the variables of what a call decides of a launch: of its grid, and of its block and shared memory."""
    grid, block = (
        [
            f"{letter}{launch.index}_{axis}"
            for axis, extent in zip(_AXES, dims, strict=True)
            if not isinstance(extent, Const)
        ]
        for letter, dims in (("g", launch.grid), ("b", launch.block))
    )
    smem = [] if isinstance(launch.dynamic_smem_bytes, Const) else [f"b{launch.index}_smem"]
    return grid, [*block, *smem]


def attribute_variables(launch: PlannedLaunch) -> dict[str, list[str]]:
    """Return the variables of the attributes that a call decides, by field."""
    names = {"cluster": [f"q{launch.index}_{axis}" for axis in _AXES], "pdl": [f"q{launch.index}_pdl"]}
    return {one.field: names[one.field] for one in launch.computed}
