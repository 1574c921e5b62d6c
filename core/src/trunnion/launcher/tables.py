"""What is known of a plan before any call, as a Python launcher takes it: parameters' places, launches, maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.launcher.facade import LaunchSpec, WindowSpec
from trunnion.launcher.maps import MapSpec
from trunnion.launcher.variables import VariableSpec
from trunnion.model.expr import Const
from trunnion.model.plan import (
    BuiltArgument,
    ConstantArgument,
    ExprArgument,
    FloatArgument,
    MapArgument,
    ScalarArgument,
    StructArgument,
    ViewArgument,
)
from trunnion.model.plan.launch_plan import TENSOR_MAP_BYTES
from trunnion.model.window import WindowPolicy

if TYPE_CHECKING:
    from trunnion.launcher.facade import Extents
    from trunnion.model.expr import Expr
    from trunnion.model.launch import Dims
    from trunnion.model.plan import Encode, LaunchPlan, PlannedArgument, PlannedLaunch, VariableSlot

__all__ = ["ParameterBuffer", "launch_spec", "map_spec", "variable_spec"]

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
            codes += _code(plan, argument)
            offsets.append(offset)
            end = offset + parameter.size
        return cls(tuple(offsets), end, codes)


def _code(plan: LaunchPlan, argument: PlannedArgument) -> str:  # noqa: PLR0911 - one for each kind
    """Return the code of the ``struct`` module under which an argument travels."""
    match argument:
        case ScalarArgument(scalar):
            return plan.scalars[scalar].dtype.struct_code
        case ConstantArgument(data):
            return f"{len(data)}s"
        case StructArgument(struct):
            return f"{plan.structs[struct].nbytes}s"
        case ViewArgument():
            extents, strides = map(len, argument.numbers)
            return f"Q{'i' * extents}{'4x' * (extents % 2)}{'q' * strides}"
        case ExprArgument() | FloatArgument():
            return argument.dtype.struct_code
        case MapArgument():  # in a struct: elsewhere it lies elsewhere
            return f"{TENSOR_MAP_BYTES}s"
        case BuiltArgument():
            return _built_code(plan, argument)
    return _POINTER


def _built_code(plan: LaunchPlan, argument: BuiltArgument) -> str:
    """Return the codes of a struct's fields, with what lies between them: those are zeros."""
    end, codes = 0, ""
    for one in argument.fields:
        codes += _padding(one.offset - end) + _code(plan, one.argument)
        end = one.offset + one.size
    return codes + _padding(argument.nbytes - end)


def _padding(nbytes: int) -> str:
    return f"{nbytes}x" if nbytes else ""


def launch_spec(plan: LaunchPlan, launch: PlannedLaunch) -> LaunchSpec:
    """Return what is known of a launch before any call.

    Parameters
    ----------
    plan
        Of which program.
    launch
        The launch.
    """
    buffer, window = ParameterBuffer.of(plan, launch), launch.window
    spec = None if window is None else WindowSpec(window.hit_ratio, window.hit_property, window.miss_property)
    held = window is not None and window.policy == WindowPolicy.LAUNCH
    return LaunchSpec(
        kernel=launch.kernel,
        offsets=buffer.offsets,
        nbytes=buffer.nbytes,
        grid=_known(launch.grid),
        block=_known(launch.block),
        dynamic_smem_bytes=_constant(launch.dynamic_smem_bytes),
        attributes=tuple((one.id, one.known) for one in launch.attributes),
        window=spec if held else None,
        window_bytes=launch.window_bounds if held else (0, 0),
        stream_window=None if held else spec,
        deferred=launch.deferred,
    )


def _known(dims: Dims) -> Extents:
    x, y, z = map(_constant, dims)
    return x, y, z


def _constant(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Const) else None


def map_spec(plan: LaunchPlan, encode: Encode) -> MapSpec:
    """Return what is known of a tensor map before any call.

    Parameters
    ----------
    plan
        Of which program.
    encode
        The map.
    """
    return MapSpec(plan.memory(encode.memory).name, encode.fields)


def variable_spec(slot: VariableSlot) -> VariableSpec:
    """Return what is known of a module variable before any call.

    Parameters
    ----------
    slot
        The variable.
    """
    return VariableSpec(slot.name, slot.nbytes, slot.init)
