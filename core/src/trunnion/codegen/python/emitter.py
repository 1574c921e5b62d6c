"""Write a Python launcher for a plan: straight-line code, one function, everything hoisted that can be.

The text is a module with three tables (``KERNELS``, ``LAUNCHES``, ``ENCODES``) and a function ``make(context)``, which
`trunnion.codegen.python.program` calls once; it returns ``launch(*args, out=None, stream=None, device=None)``.
Identifiers come from slots alone: ``t0`` a tensor, ``d0_1`` its extent along dimension 1, ``r0_1`` its stride there,
``p0`` its address, ``s0`` a scalar, ``v0`` a symbol that may be read in several places, ``m0`` a tensor map, ``g0_x`` a
launch's grid. A user's name stands only inside a string literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.exprs import PYTHON, ExprPrinter
from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.arguments import emit_arguments
from trunnion.codegen.python.dialect import Dialect, FacadeDialect, LaunchText
from trunnion.codegen.python.launches import (
    ParameterBuffer,
    emit_geometry,
    emit_values,
    launch_condition,
    packed_values,
    reader_condition,
)
from trunnion.codegen.writer import SourceWriter
from trunnion.model.expr import Const
from trunnion.model.plan import MapArgument

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Encode, LaunchPlan, PlannedLaunch

__all__ = ["VERSION", "emit_launcher"]

VERSION = "1"
"""Changes whenever the text for some plan does."""

_AXES = "xyz"
_ALLOCATOR_ALIGNMENT = 256  # of whatever cuMemAlloc returns


def emit_launcher(plan: LaunchPlan, dialect: Dialect | None = None) -> str:
    """Return the text of the launcher of ``plan``.

    Parameters
    ----------
    plan
        What to launch.
    dialect
        How the driver is called; None: through the methods of a `DriverFacade`.
    """
    return _Emitter(plan, dialect or FacadeDialect()).module()


class _Emitter:
    """The text of one launcher."""

    def __init__(self, plan: LaunchPlan, dialect: Dialect) -> None:
        self.plan = plan
        self.dialect = dialect
        self.out = SourceWriter()
        self.printer = ExprPrinter(PYTHON, self._slot)

    def _slot(self, index: int) -> str:
        binding = self.plan.bindings[index]
        if binding.candidates:
            return f"v{index}"
        source = binding.source
        if source.kind == "scalar":
            return f"s{source.slot}"
        return f"{'d' if source.kind == 'shape' else 'r'}{source.slot}_{source.axis}"

    def module(self) -> str:
        out = self.out
        out.line(
            f'"""Launcher of plan {self.plan.hash}; emitter {VERSION}, dialect {self.dialect.version}."""'
        )
        out.lines("", "from struct import Struct", "")
        out.line("from trunnion.codegen.python.facade import LaunchSpec")
        out.line("from trunnion.codegen.python.maps import MapSpec")
        out.line("from trunnion.codegen.python.support import *")
        out.lines(*self.dialect.imports(), "")
        self._tables()
        out.line()
        with out.block("def make(context):"):
            self._hoisted()
            with out.block("def launch(*args, out=None, stream=None, device=None):"):
                self._launch()
            out.line("return launch")
        return out.text()

    # What is known before a call -------------------------------------------------------------------------------

    def _tables(self) -> None:
        names = [python_string(kernel.name) for kernel in self.plan.kernels]
        self.out.line(f"KERNELS = {python_tuple(names)}")
        with self.out.block("LAUNCHES = (", ")"):
            for launch in self.plan.launches:
                self.out.line(f"{self._launch_spec(launch)},")
        with self.out.block("ENCODES = (", ")"):
            for encode in self.plan.encodes:
                self.out.line(f"{_map_spec(self.plan, encode)},")

    def _launch_spec(self, launch: PlannedLaunch) -> str:
        buffer = ParameterBuffer.of(self.plan, launch)
        return (
            f"LaunchSpec(kernel={launch.kernel}, offsets={buffer.offsets!r}, nbytes={buffer.nbytes}, "
            f"grid={_known(launch.grid)}, block={_known(launch.block)}, "
            f"dynamic_smem_bytes={_literal(launch.dynamic_smem_bytes)})"
        )

    def _hoisted(self) -> None:
        """Bind everything that a call needs as a variable of the closure."""
        out, plan = self.out, self.plan
        out.line("Tensor, strided, check_tensor = context.tensor_type, context.strided, context.check_tensor")
        out.line(
            "check_device, check_pointer, check_output = "
            "context.check_device, context.check_pointer, context.check_output"
        )
        out.line("current_stream, allocate = context.current_stream, context.allocate")
        out.line(
            "states, preload, pool, new_frame = context.states, context.preload, context.pool, context.new_frame"
        )
        out.line("enter, leave = context.enter, context.leave")
        for name in sorted({tensor.dtype.name for tensor in plan.tensors}):
            out.line(f"{_dtype(name)} = context.dtype({python_string(name)})")
        for index in range(len(plan.kernels)):
            out.line(f"kernel{index} = context.kernels[{index}]")
        for encode in plan.encodes:
            out.line(f"encode{encode.index} = context.encoders[{encode.index}]")
        for launch in plan.launches:
            out.line(f"pack{launch.index} = Struct({ParameterBuffer.of(plan, launch).format!r}).pack_into")
        out.lines(*self.dialect.hoisted())

    # A call ----------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        emit_arguments(self.out, self.plan, self.printer)
        for launch in self.plan.launches:
            emit_geometry(self.out, self.plan, launch, self.printer)
        emit_values(self.out, self.plan, self.printer)
        self._allocations()
        out = self.out
        out.line("free = pool.free")
        out.line("frame = free.pop() if free else new_frame()")
        out.line("frame.busy = True")
        with out.block("try:"):
            self._within_frame()
        with out.block("finally:"):
            out.line("frame.busy = False")
            out.line("free.append(frame)")
        results = [f"t{slot}" for slot in self.plan.results]
        out.line(f"return {results[0] if len(results) == 1 else python_tuple(results) if results else None}")

    def _allocations(self) -> None:
        out, plan = self.out, self.plan
        out.line("if stream is None:")
        out.line("    stream = current_stream(device)")
        outputs = [plan.tensors[allocation.tensor] for allocation in plan.allocations]
        if not outputs:
            return
        with out.block("if out is None:"):
            for tensor in outputs:
                shape = python_tuple([f"x{tensor.index}_{axis}" for axis in range(len(tensor.shape))])
                out.line(f"t{tensor.index} = allocate({shape}, {_dtype(tensor.dtype.name)}, device, stream)")
        with out.block("else:"):
            out.line(f"{', '.join(f't{tensor.index}' for tensor in outputs)}, = out")
        for tensor in outputs:
            out.line(f"p{tensor.index} = t{tensor.index}.data_ptr()")
            if tensor.alignment > _ALLOCATOR_ALIGNMENT:
                out.line(f"if p{tensor.index} % {tensor.alignment}:")
                place = f"{python_string(tensor.name)}, t{tensor.index}, p{tensor.index}"
                out.line(f"    check_pointer({place}, {tensor.alignment})")

    def _within_frame(self) -> None:
        out, plan = self.out, self.plan
        out.line("state = states[device]")
        with out.block("if state is None:"):
            out.line("state = preload(device)")
        out.line(f"{', '.join(f'l{launch.index}' for launch in plan.launches)}, = frame.launches")
        out.line("entered = enter(device)")
        with out.block("try:"):
            for encode in plan.encodes:
                self._encode(encode)
            for launch in plan.launches:
                self._one_launch(launch)
        with out.block("finally:"):
            out.line("if entered:")
            out.line("    leave()")

    def _encode(self, encode: Encode) -> None:
        index, condition = encode.index, reader_condition(self.plan, encode)
        address = f"p{encode.tensor} + k{index}_offset"
        call = f"m{index} = encode{index}(device, {address}, k{index}_dims, k{index}_strides, k{index}_inner)"
        if condition == "True":
            self.out.line(call)
        else:
            with self.out.block(f"if {condition}:"):
                self.out.line(call)

    def _one_launch(self, launch: PlannedLaunch) -> None:
        condition = launch_condition(launch)
        if condition == "True":
            self._launch_body(launch)
        else:
            with self.out.block(f"if {condition}:"):
                self._launch_body(launch)

    def _launch_body(self, launch: PlannedLaunch) -> None:
        out, index = self.out, launch.index
        for ordinal, argument in enumerate(launch.args):
            if isinstance(argument, MapArgument):
                out.line(f"l{index}.pointers[{ordinal}] = m{argument.encode}.address")
        values = packed_values(self.plan, launch)
        out.line(f"pack{index}({', '.join([f'l{index}.buffer', '0', *values])})")
        smem = _literal(launch.dynamic_smem_bytes)
        if smem == "None":
            smem = f"b{index}_smem"
            with out.block(f"if {smem} > state[{launch.kernel}]:"):
                out.line(f"context.raise_dynamic_smem(device, {launch.kernel}, {smem})")
        text = LaunchText(
            index=index,
            kernel=f"kernel{launch.kernel}",
            grid=_texts(launch.grid, f"g{index}_"),
            block=_texts(launch.block, f"b{index}_"),
            dynamic_smem_bytes=smem,
            varying=frozenset(_varying(launch)),
        )
        self.dialect.emit_launch(out, text)


def _dtype(name: str) -> str:
    return f"dtype_{name}"


def _literal(expr: Expr) -> str:
    return str(expr.value) if isinstance(expr, Const) else "None"


def _known(dims: tuple[Expr, Expr, Expr]) -> str:
    return python_tuple([_literal(extent) for extent in dims])


def _texts(dims: tuple[Expr, Expr, Expr], prefix: str) -> tuple[str, str, str]:
    x, y, z = (
        str(extent.value) if isinstance(extent, Const) else f"{prefix}{axis}"
        for axis, extent in zip(_AXES, dims, strict=True)
    )
    return x, y, z


def _varying(launch: PlannedLaunch) -> list[str]:
    names = [
        f"grid{axis}"
        for axis, extent in zip("XYZ", launch.grid, strict=True)
        if not isinstance(extent, Const)
    ]
    names += [
        f"block{axis}"
        for axis, extent in zip("XYZ", launch.block, strict=True)
        if not isinstance(extent, Const)
    ]
    return names if isinstance(launch.dynamic_smem_bytes, Const) else [*names, "sharedMemBytes"]


def _map_spec(plan: LaunchPlan, encode: Encode) -> str:
    return (
        f"MapSpec(itemsize={encode.dtype.itemsize}, dtype_code={encode.dtype.tma_code}, box={encode.box!r}, "
        f"element_strides={encode.element_strides!r}, interleave={encode.interleave}, swizzle={encode.swizzle}, "
        f"l2_promotion={encode.l2_promotion}, oob_fill={encode.oob_fill}, "
        f"name={python_string(plan.tensors[encode.tensor].name)})"
    )
