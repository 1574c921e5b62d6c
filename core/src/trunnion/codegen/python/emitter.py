"""Write a Python launcher for a plan: straight-line code, everything hoisted that can be.

The text is a module with three tables (``KERNELS``, ``LAUNCHES``, ``ENCODES``) and a function ``make(context)``, which
`trunnion.launcher.program` calls once. It returns two functions: ``entry``, which takes a call as people write
it; and ``bind``, which takes arguments by position, does all but launch and returns what launches, with the device and
the stream.

Identifiers come from slots alone: ``t0`` a tensor, ``d0_1`` its extent along dimension 1, ``r0_1`` its stride there,
``p0`` its address, ``s0`` a scalar, ``a0`` an address, ``u0`` a struct, ``v0`` a symbol that may be read in several
places, ``y2`` the shape of an output, ``z0`` of a workspace and ``w0`` its address, ``k0`` the layout of a tensor map
and ``m0`` the map, ``c0`` a launch's condition, ``g0_x`` its grid, ``q0_x`` its cluster and ``q0_pdl`` whether it may
start early, if a call decides them, ``o0`` and ``n0`` its window; ``f0`` a fact of the device; ``passed`` the integers
of a call. A user's name stands only inside a string literal.

What the tensors alone decide comes first (the fixed part), and is recalled where the tensors are like the last ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.exprs import PYTHON, ExprPrinter
from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.arguments import (
    emit_count,
    given_tuple,
    parameter_list,
    tensor_names,
    tensor_tuple,
)
from trunnion.codegen.python.bindings import slot_name
from trunnion.codegen.python.convention import emit_convention, emit_convention_names
from trunnion.codegen.python.dialect import Dialect, FacadeDialect
from trunnion.codegen.python.launch_body import LaunchBody, recovering
from trunnion.codegen.python.memory import emit_given_outputs
from trunnion.codegen.python.recalled import emit_alike, recalls, recalls_destinations
from trunnion.codegen.python.steps import StepPrinter
from trunnion.codegen.python.tables import emit_tables
from trunnion.codegen.writer import SourceWriter
from trunnion.launcher.tables import ParameterBuffer
from trunnion.model.plan import PLAN_VERSION, FloatArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.plan import LaunchPlan, TensorSlot

__all__ = ["VERSION", "emit_launcher"]

VERSION = f"31+plan{PLAN_VERSION}"
"""Changes whenever the text for some plan does, or the plan."""

_KINDS = ("entry", "bind")
_WORDS = {"entry": "**said", "bind": "out=None, stream=None, device=None"}
"""What follows the arguments of each function. A call pays for each name that it does not give, so one has none."""

_CONTEXT = (
    ("Tensor", "tensor_type"),
    ("data_ptr", "data_ptr"),
    ("strided", "strided"),
    ("check_tensor", "check_tensor"),
    ("check_storage", "check_storage"),
    ("check_device", "check_device"),
    ("check_pointer", "check_pointer"),
    ("check_outputs", "check_outputs"),
    ("check_stream", "check_stream"),
    ("current_stream", "current_stream"),
    ("allocate", "allocate"),
    ("workspace", "workspace"),
    ("window_bytes", "window_bytes"),
    ("states", "states"),
    ("preload", "preload"),
    ("new_frame", "new_frame"),
    ("pop", "pop"),
    ("push", "push"),
    ("forsake", "forsake"),
    ("enter", "enter"),
    ("leave", "leave"),
    ("recover", "recover"),
    ("refuse", "refuse"),
    ("fill", "fill"),
    ("devices", "device_count"),
    ("several", "several"),
    ("Stream", "stream_type"),
)
"""What a call needs, as variables of the closure: the variable, and the context's attribute."""


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
        self.printer = ExprPrinter(PYTHON, lambda index: slot_name(plan, index), plan.symbols)
        self.recalls = recalls(plan)
        self.destined = recalls_destinations(plan)
        self.fixed = {kind: self._steps(kind).tensors() for kind in _KINDS}
        self.free = {kind: self._free_part(kind) for kind in _KINDS}
        self.kept = self._steps("entry").kept()

    def module(self) -> str:
        out = self.out
        out.line(
            f'"""Launcher of plan {self.plan.hash}; emitter {VERSION}, dialect {self.dialect.version}."""'
        )
        out.lines("", "from struct import Struct", "")
        out.line("from trunnion.arguments import device_ordinal, stream_handle")
        out.line("from trunnion.launcher.arithmetic import *")
        out.line("from trunnion.launcher.facade import FillStep, LaunchSpec, WindowSpec")
        if any(isinstance(one, FloatArgument) for launch in self.plan.launches for one in launch.passed):
            out.line("from trunnion.launcher.float_arithmetic import *")
        out.line("from trunnion.launcher.maps import MapSpec")
        out.line("from trunnion.launcher.refusals import *")
        out.line("from trunnion.launcher.scalars import *")
        if self.plan.facts:
            out.line("from trunnion.model.plan.facts import AttributeFact, OccupancyFact")
        if self.plan.variables:
            out.line("from trunnion.launcher.variables import VariableSpec")
        out.line("from trunnion.model.tensormap.fields import Im2colFields, TiledFields")
        out.lines(*self.dialect.imports(), "")
        emit_tables(out, self.plan)
        out.line()
        with out.block("def make(context):"):
            self._hoisted()
            if self.recalls:
                self._look()
            for kind in _KINDS:
                with out.block(f"def {kind}({parameter_list(self.plan)}, {_WORDS[kind]}):"):
                    if kind == "entry":
                        emit_convention(out, self.plan)
                    if self.recalls:
                        out.line("given = device")
                    with recovering(out, None if kind == "bind" else self._diagnosis()):
                        self._call(kind)
            out.line("return entry, bind")
        return out.text()

    def _hoisted(self) -> None:
        """Bind everything that a call needs as a variable of the closure."""
        out, plan = self.out, self.plan
        names = [name for name, _ in _CONTEXT]
        out.line(f"{', '.join(names[:11])} = {', '.join(f'context.{field}' for _, field in _CONTEXT[:11])}")
        out.line(f"{', '.join(names[11:])} = {', '.join(f'context.{field}' for _, field in _CONTEXT[11:])}")
        for name in sorted({tensor.dtype.name for tensor in plan.tensors}):
            out.line(f"dtype_{name} = context.dtype({python_string(name)})")
        for alignment in sorted({tensor.alignment for tensor in plan.inputs}):
            out.line(f"good_{alignment} = context.good_addresses({alignment})")
        if plan.copies:
            out.line("copy = context.copy")
        for index in range(len(plan.kernels)):
            out.line(f"kernel{index} = context.kernels[{index}]")
        for encode in plan.encodes:
            out.line(f"encode{encode.index} = context.encoders[{encode.index}]")
        emit_convention_names(out, plan)
        for launch in plan.launches:
            out.line(f"pack{launch.index} = Struct({ParameterBuffer.of(plan, launch).format!r}).pack_into")
        out.lines(*self.dialect.hoisted(len(plan.kernels)))
        if self.recalls:
            nothing = ["None", "None", "[None]", "None", *("None" for _ in self.kept)]
            unknown = f"unknown = {python_tuple(nothing)}"
            out.line(f"known = known_out = {unknown}" if self.destined else f"known = {unknown}")
            out.lines(
                "remember = context.recall()", *(["remember_out = context.recall()"] if self.destined else [])
            )

    # A call ----------------------------------------------------------------------------------------------------

    def _call(self, kind: str) -> None:
        """Write the body of ``entry`` or ``bind``."""
        out = self.out
        emit_count(out, self.plan)
        if self.recalls:
            self._recall(kind)
        else:
            out.include(self.fixed[kind])
        out.include(self.free[kind])

    def _steps(self, kind: str) -> StepPrinter:
        """Return what writes the steps of a kind of call."""
        remembers = self.recalls and kind != "bind"
        return StepPrinter(self.plan, self.printer, remembers=remembers, destined=remembers and self.destined)

    def _free_part(self, kind: str) -> SourceWriter:
        """Return what the tensors alone do not decide."""
        steps = self._steps(kind)
        free = steps.values()
        LaunchBody(self.plan, self.dialect, steps, bound=kind == "bind").emit(free)
        return free

    def _diagnosis(self) -> str:
        """Return the line that raises, of a call that was refused, what comes first in the plan's order.

        A call tests in the order in which that costs the least; ``bind`` in the plan's.
        """
        device = "given" if self.recalls else "device"
        return f"refuse(error, {given_tuple(self.plan)}, out=out, stream=stream, device={device})"

    def _look(self) -> None:
        """Write ``look``, which checks tensors and returns what they decide, in the form of what is recalled.

        A function of its own, because a call pays for every variable of its closure, whether it comes to it or not.
        """
        out, inputs = self.out, self.plan.inputs
        given = ", ".join(
            [*(f"t{tensor.index}" for tensor in inputs), "given", *(["out"] if self.destined else [])]
        )
        with out.block(f"def look({given}, /):"):
            out.line(f"nonlocal {'known, known_out' if self.destined else 'known'}")
            out.include(self.fixed["entry"])
            if self.destined:
                emit_given_outputs(out, self.plan)
            out.line(f"found = {python_tuple(['device', *self.kept])}")
            known = f"known = remember({tensor_tuple(inputs)}, found) or unknown"
            if self.destined:
                with out.block("if out is None:"):
                    out.line(known)
                with out.block("else:"):
                    out.line(f"known_out = remember_out((*{tensor_tuple(inputs)}, *out), found) or unknown")
            else:
                out.line(known)
            out.line("return (None, None, [None], *found)")

    def _recall(self, kind: str) -> None:
        """Write the lines that take what the tensors decide from ``look``, or from an earlier call.

        They set ``places`` too: the tensors' addresses, or None where nobody was asked for all of them at once.
        """
        out, plan = self.out, self.plan
        tensors = ", ".join(f"t{tensor.index}" for tensor in plan.inputs)
        kept = f"{', '.join(['guard', 'read', 'memo', 'device', *self.kept])}, = "
        destinations = (", None" if kind == "bind" else ", out") if self.destined else ""
        look = f"{kept}look({tensors}, given{destinations})"
        if kind == "bind":
            out.line(look)
            return
        out.line("places = None")
        if self.destined:
            with out.block("if out is None:"):
                self._compare(f"{kept}known", plan.inputs)
            with out.block("else:"):
                out.line(f"alike = len(out) == {len(plan.outputs)}")
                out.line(f"{kept}known_out")
                with out.block("if alike:"):
                    out.line(f"{', '.join(f't{tensor.index}' for tensor in plan.outputs)}, = out")
                    self._compare("", plan.tensors)
        else:
            self._compare(f"{kept}known", plan.inputs)
        with out.block("if not alike:"):
            out.line(look)
        with out.block("elif given is not None:"):
            out.line(f"check_device({tensor_names(plan.inputs)}, {tensor_tuple(plan.inputs)}, given)")

    def _compare(self, recalled: str, compared: Sequence[TensorSlot]) -> None:
        """Write whether tensors are like those of an earlier call, from which ``recalled`` takes what is known."""
        out, tensors = self.out, ", ".join(f"t{tensor.index}" for tensor in compared)
        if recalled:
            out.line(recalled)
        with out.block("if read is not None:"):
            out.line(f"places = read({tensors})")
            out.line("alike = places is not None")
        with out.block("else:"):
            emit_alike(out, compared, "guard", "guard")
