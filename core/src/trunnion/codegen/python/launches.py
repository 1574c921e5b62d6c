"""The part of a launcher that computes what each launch is given, before anything is allocated or launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.model.expr import Const
from trunnion.model.launch import MAX_BLOCK, MAX_GRID, MAX_SMEM, MAX_THREADS
from trunnion.model.plan import ExprArgument, MapArgument, PointerArgument, ScalarArgument

if TYPE_CHECKING:
    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.dtypes import DType
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Encode, LaunchPlan, PlannedLaunch

__all__ = [
    "ParameterBuffer",
    "emit_geometry",
    "emit_values",
    "launch_condition",
    "packed_values",
    "reader_condition",
]

_AXES = "xyz"
_POINTER = "Q"


@dataclass(frozen=True, slots=True)
class ParameterBuffer:
    """How one launch's parameters lie in the launcher's own buffer; tensor maps lie elsewhere."""

    offsets: tuple[int | None, ...]
    """For each parameter its offset in bytes; None: a tensor map."""

    nbytes: int
    """The buffer's size."""

    format: str
    """The format of the ``struct`` module that packs the parameters, padding included."""

    @classmethod
    def of(cls, plan: LaunchPlan, launch: PlannedLaunch) -> ParameterBuffer:
        """Lay out the parameters of a launch, each aligned to its own size."""
        offsets: list[int | None] = []
        end, codes = 0, "<"
        for argument, parameter in zip(launch.args, plan.kernels[launch.kernel].parameters, strict=True):
            if isinstance(argument, MapArgument):
                offsets.append(None)
                continue
            offset = -(-end // parameter.alignment) * parameter.alignment
            codes += f"{offset - end}x" if offset > end else ""
            codes += (
                _POINTER if isinstance(argument, PointerArgument) else _dtype_of(plan, argument).struct_code
            )
            offsets.append(offset)
            end = offset + parameter.size
        return cls(tuple(offsets), end, codes)


def _dtype_of(plan: LaunchPlan, argument: ScalarArgument | ExprArgument) -> DType:
    return plan.scalars[argument.scalar].dtype if isinstance(argument, ScalarArgument) else argument.dtype


def packed_values(plan: LaunchPlan, launch: PlannedLaunch) -> list[str]:
    """Return the text of each value that is packed, in the parameters' order."""
    values = []
    for ordinal, argument in enumerate(launch.args):
        match argument:
            case PointerArgument(tensor):
                values.append(f"p{tensor}")
            case ScalarArgument(scalar):
                text = f"s{scalar}"
                values.append(
                    f"bfloat16_bits({text})" if plan.scalars[scalar].dtype.name == "bfloat16" else text
                )
            case ExprArgument():
                values.append(f"e{launch.index}_{ordinal}")
            case MapArgument():
                pass
    return values


def launch_condition(launch: PlannedLaunch) -> str:
    """Return the condition under which a launch happens at all: no extent of its grid is 0."""
    if any(extent == Const(0) for extent in launch.grid):
        return "False"
    names = [
        f"g{launch.index}_{axis}"
        for axis, extent in zip(_AXES, launch.grid, strict=True)
        if not isinstance(extent, Const) and extent.bounds.low <= 0
    ]
    return f"({' and '.join(names)})" if names else "True"


def reader_condition(plan: LaunchPlan, encode: Encode) -> str:
    """Return the condition under which some launch reads a map."""
    conditions = [launch_condition(plan.launches[reader]) for reader in encode.readers]
    return "True" if "True" in conditions else " or ".join(conditions)


def emit_geometry(out: SourceWriter, plan: LaunchPlan, launch: PlannedLaunch, printer: ExprPrinter) -> None:
    """Write the lines that compute and check a launch's grid, block and shared memory."""
    kernel = python_string(plan.kernels[launch.kernel].name)
    for position, extent in enumerate(launch.grid):
        if not isinstance(extent, Const):
            variable = f"g{launch.index}_{_AXES[position]}"
            out.line(f"{variable} = {printer.text(extent)}")
            _emit_limits(out, extent, variable, (0, MAX_GRID[position]), f"grid_error({kernel}, {position}")
    sizes = [extent for extent in (*launch.block, launch.dynamic_smem_bytes) if not isinstance(extent, Const)]
    if not sizes:
        return
    with out.block(f"if {launch_condition(launch)}:"):
        _emit_sizes(out, launch, kernel, printer)


def _emit_sizes(out: SourceWriter, launch: PlannedLaunch, kernel: str, printer: ExprPrinter) -> None:
    texts = []
    for position, extent in enumerate(launch.block):
        variable = f"b{launch.index}_{_AXES[position]}"
        texts.append(str(extent.value) if isinstance(extent, Const) else variable)
        if not isinstance(extent, Const):
            out.line(f"{variable} = {printer.text(extent)}")
            _emit_limits(out, extent, variable, (1, MAX_BLOCK[position]), f"block_error({kernel}, {position}")
    if any(not isinstance(extent, Const) for extent in launch.block):
        threads = " * ".join(texts)
        with out.block(f"if {threads} > {MAX_THREADS}:"):
            out.line(f"raise wide_block_error({kernel}, {threads})")
    smem = launch.dynamic_smem_bytes
    if not isinstance(smem, Const):
        variable = f"b{launch.index}_smem"
        out.line(f"{variable} = {printer.text(smem)}")
        _emit_limits(out, smem, variable, (0, MAX_SMEM), f"smem_error({kernel}")


def _emit_limits(out: SourceWriter, expr: Expr, variable: str, limits: tuple[int, int], error: str) -> None:
    low, high = limits
    if low <= expr.bounds.low and expr.bounds.high <= high:
        return
    with out.block(f"if not {low} <= {variable} <= {high}:"):
        out.line(f"raise {error}, {variable}, {high})")


def emit_values(out: SourceWriter, plan: LaunchPlan, printer: ExprPrinter) -> None:
    """Write the lines that compute every integer argument and every number of every map."""
    for launch in plan.launches:
        exprs = [(i, a.value) for i, a in enumerate(launch.args) if isinstance(a, ExprArgument)]
        if exprs:
            with out.block(f"if {launch_condition(launch)}:"):
                out.lines(*(f"e{launch.index}_{ordinal} = {printer.text(value)}" for ordinal, value in exprs))
    for encode in plan.encodes:
        with out.block(f"if {reader_condition(plan, encode)}:"):
            index = encode.index
            out.line(f"k{index}_offset = {printer.text(encode.offset_bytes)}")
            out.line(f"k{index}_dims = {python_tuple([printer.text(extent) for extent in encode.dims])}")
            out.line(
                f"k{index}_strides = {python_tuple([printer.text(stride) for stride in encode.strides])}"
            )
            out.line(f"k{index}_inner = {printer.text(encode.innermost_stride)}")
