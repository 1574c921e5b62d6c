"""The head of a launcher's module: what is known before any call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.launches import ParameterBuffer
from trunnion.codegen.python.memory import fill_table, memory_name
from trunnion.codegen.python.values import window_bounds
from trunnion.model.expr import Const
from trunnion.model.plan import TiledMode

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Encode, LaunchPlan, PlannedLaunch

__all__ = ["emit_tables", "literal"]


def emit_tables(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write ``KERNELS``, ``LAUNCHES``, ``ENCODES`` and the fills' constants."""
    out.line(f"KERNELS = {python_tuple([python_string(kernel.name) for kernel in plan.kernels])}")
    with out.block("LAUNCHES = (", ")"):
        for launch in plan.launches:
            out.line(f"{_launch_spec(plan, launch)},")
    with out.block("ENCODES = (", ")"):
        for encode in plan.encodes:
            out.line(f"{_map_spec(plan, encode)},")
    out.lines(*fill_table(plan))


def literal(expr: Expr) -> str:
    """Return a constant's text; ``None`` for what only a call knows."""
    return str(expr.value) if isinstance(expr, Const) else "None"


def _known(dims: tuple[Expr, Expr, Expr]) -> str:
    return python_tuple([literal(extent) for extent in dims])


def _launch_spec(plan: LaunchPlan, launch: PlannedLaunch) -> str:
    buffer = ParameterBuffer.of(plan, launch)
    fields = [
        f"kernel={launch.kernel}",
        f"offsets={buffer.offsets!r}",
        f"nbytes={buffer.nbytes}",
        f"grid={_known(launch.grid)}",
        f"block={_known(launch.block)}",
        f"dynamic_smem_bytes={literal(launch.dynamic_smem_bytes)}",
    ]
    if launch.attributes:
        fields.append(f"attributes={tuple((one.id, one.values) for one in launch.attributes)!r}")
    window = launch.window
    if window is not None:
        spec = f"WindowSpec({window.hit_ratio!r}, {window.hit_property}, {window.miss_property})"
        fields.append(f"{'window' if window.policy == 'launch' else 'stream_window'}={spec}")
        if window.policy == "launch":
            fields.append(f"window_bytes={window_bounds(launch, window)!r}")
    return f"LaunchSpec({', '.join(fields)})"


def _map_spec(plan: LaunchPlan, encode: Encode) -> str:
    mode = encode.mode
    if isinstance(mode, TiledMode):
        spec = f"TiledSpec({mode.box!r})"
    else:
        numbers = f"{mode.channels_per_pixel}, {mode.pixels_per_column}"
        spec = f"Im2colSpec({mode.lower!r}, {mode.upper!r}, {numbers})"
    return (
        f"MapSpec(mode={spec}, element_bits={encode.element_bits}, dtype_code={encode.data_type}, "
        f"element_strides={encode.element_strides!r}, interleave={encode.interleave}, swizzle={encode.swizzle}, "
        f"l2_promotion={encode.l2_promotion}, oob_fill={encode.oob_fill}, "
        f"name={python_string(memory_name(plan, encode.memory))})"
    )
