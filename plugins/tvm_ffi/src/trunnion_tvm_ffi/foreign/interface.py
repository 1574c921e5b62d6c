"""What is done with a call's arguments before a function of somebody else gets them, as Python text.

The text is a module with one function, ``make(context)``, which returns ``prepare(…, out=None, stream=None,
device=None)``. Symbols, checks, numbers and shapes are written by the parts of core's Python launcher, so a call means
here what it means there; tensors are read through the context (`trunnion_tvm_ffi.foreign.preparation`), because they
may be of any library. Identifiers are those of core's launchers: ``t0`` a tensor, ``d0_1`` its extent, ``r0_1`` its
stride, ``s0`` a scalar, ``a0`` an address, ``u0`` a struct, ``v0`` a symbol that may be read in several places, ``y2``
the shape of an output.

What the tensors alone decide comes first (the fixed part), and is recalled where they are torch's and like the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.exprs import PYTHON, ExprPrinter
from trunnion.codegen.literals import python_tuple
from trunnion.codegen.python.arguments import emit_count, parameter_list, tensor_tuple
from trunnion.codegen.python.bindings import presence, slot_name
from trunnion.codegen.python.conditions import when
from trunnion.codegen.python.launches import emit_steps
from trunnion.codegen.python.recalled import emit_alike, recalls
from trunnion.codegen.python.steps import StepPrinter
from trunnion.codegen.python.variables import kept
from trunnion.codegen.writer import SourceWriter
from trunnion.model.dtypes import Kind
from trunnion.model.interval import INT64_MAX
from trunnion.model.params import PointerParam, ScalarParam, TensorParam
from trunnion.model.plan.steps import (
    CheckDestinations,
    Phase,
    ReadStream,
    ReadTensors,
    RequireLayouts,
    TakeAddresses,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.dtypes import DType
    from trunnion.model.plan import LaunchPlan, TensorSlot
    from trunnion.model.plan.steps import Action

__all__ = ["emit_preparation"]

_WRAP = 1 << 64
_CONTEXT = ("tensor", "place", "settle", "good", "remember", "outputs", "prepared")


def emit_preparation(plan: LaunchPlan, places: Sequence[int]) -> str:
    """Return the text for a function.

    Parameters
    ----------
    plan
        The plan of its signature.
    places
        What stands where in the function's own list of parameters, as an index into inputs and then outputs. An output
        that stands nowhere is one that the function returns.
    """
    return _Emitter(plan, places).module()


class _Emitter:
    """The text for one function."""

    def __init__(self, plan: LaunchPlan, places: Sequence[int]) -> None:
        self.plan, self.places = plan, places
        self.printer = ExprPrinter(PYTHON, lambda index: slot_name(plan, index), plan.symbols)
        self.inputs = plan.inputs
        self.tensors = tensor_tuple(self.inputs)

    def module(self) -> str:
        out = SourceWriter()
        out.line(f'"""Preparation of a call of plan {self.plan.hash}."""')
        out.lines("", "from ctypes import c_void_p", "from struct import pack", "")
        out.line("from trunnion.launcher.arithmetic import *")
        out.line("from trunnion.launcher.refusals import *")
        out.line("from trunnion.launcher.scalars import *")
        out.line()
        with out.block("def make(context):"):
            out.lines(*(f"{name} = context.{name}" for name in _CONTEXT), "known = None")
            with out.block(f"def prepare({parameter_list(self.plan)}, out=None, stream=None, device=None):"):
                self._call(out)
            out.line("return prepare")
        return out.text()

    def _call(self, out: SourceWriter) -> None:
        emit_count(out, self.plan)
        fixed, free = self._steps(Phase.TENSORS), self._free_part()
        if recalls(self.plan):
            out.lines("nonlocal known", "recalled = known")
            self._recall(out, fixed)
        else:
            out.line("alike = False")
            out.include(fixed)
        out.include(free)

    def _recall(self, out: SourceWriter, fixed: SourceWriter) -> None:
        """Write the fixed part, skipped where the tensors are like those of an earlier call."""
        names = [
            "device",
            *kept(self.plan, self.plan.actions(Phase.TENSORS), self.plan.actions(Phase.VALUES)),
        ]
        emit_alike(out, self.inputs, "recalled", "recalled[0]")
        with out.block("if alike:"):
            with out.block("if device is not None or stream is not None:"):
                out.line(f"place({self.tensors}, device, stream)")
            out.line(f"{', '.join(['_', '_', *names])}, = recalled")  # the guard, and the memo
            for tensor in self.inputs:
                with out.block(f"if t{tensor.index}.data_ptr() not in good[{tensor.index}]:"):
                    out.line(f"settle({tensor.index}, t{tensor.index}, device)")
        with out.block("else:"):
            out.include(fixed)
            out.line(f"known = remember({self.tensors}, {python_tuple(names)})")

    # The two parts ---------------------------------------------------------------------------------------------

    def _free_part(self) -> SourceWriter:
        """Return what the tensors alone do not decide."""
        out, plan = self._steps(Phase.VALUES), self.plan
        out.line(f"shapes = {python_tuple([f'y{tensor.index}' for tensor in plan.outputs])}")
        out.line("given = outputs(shapes, out, device, stream)")
        arguments = python_tuple([self._handed(place) for place in self.places])
        out.line(f"return prepared({arguments}, (given, shapes), device, stream, alike and out is None)")
        return out

    def _tensor(self, out: SourceWriter, tensor: TensorSlot) -> None:
        """Write what is asked of one tensor alone."""
        t, axes = f"t{tensor.index}", range(len(tensor.shape))
        out.line(f"{t} = tensor({tensor.index}, {t}, stream)")
        if tensor.shape:
            out.line(f"{', '.join(f'd{tensor.index}_{axis}' for axis in axes)}, = {t}.shape")
            if tensor.strides is not None:
                out.line(f"{', '.join(f'r{tensor.index}_{axis}' for axis in axes)}, = {t}.stride()")

    def _steps(self, phase: Phase) -> SourceWriter:
        """Return a phase of the plan's steps."""
        out = SourceWriter()
        shared = StepPrinter(self.plan, self.printer)
        emit_steps(out, self.plan, self.plan.actions(phase), self._step, shared.step)
        return out

    def _step(self, out: SourceWriter, action: Action) -> bool:
        """Write a step that means something else here than in a launcher, and return whether it is one."""
        match action:
            case ReadTensors():
                self._read(out)
            case RequireLayouts():
                self._settle(out)
            case _:  # addresses, destinations and streams are the context's to judge
                return isinstance(action, (TakeAddresses, CheckDestinations, ReadStream))
        return True

    def _read(self, out: SourceWriter) -> None:
        for tensor in self.inputs:
            with when(out, presence(tensor)):
                self._tensor(out, tensor)
        out.line(f"device = place({self.tensors}, device, stream)")

    def _settle(self, out: SourceWriter) -> None:
        for tensor in self.inputs:
            with when(out, presence(tensor)):
                out.line(f"settle({tensor.index}, t{tensor.index}, device)")

    def _handed(self, place: int) -> str:
        """Return what a function is given for one parameter."""
        params = self.plan.signature.params
        if place >= len(params):
            return f"given[{place - len(params)}]"
        plan, param = self.plan, params[place]
        tables = (self.inputs, plan.scalars, plan.pointers, plan.structs)
        index = {slot.position: slot.index for table in tables for slot in table}[place]
        match param:
            case TensorParam():
                return f"t{index}"
            case ScalarParam():
                return _number(param.dtype, index)
            case PointerParam():
                return f"(c_void_p(a{index}) if a{index} else None)"
        return f"u{index}"


def _number(dtype: DType, index: int) -> str:
    """Return a number as TVM-FFI carries it, which has int64, double and bytes."""
    if dtype.kind is Kind.COMPLEX:
        return f"pack('<2d', s{index}_re, s{index}_im)"
    if dtype.kind is Kind.FLOAT and dtype.itemsize == 1:  # a launcher is given its bits
        return f"float(s{index})"
    if dtype.name == "uint64":
        return f"(s{index} if s{index} <= {INT64_MAX} else s{index} - {_WRAP})"
    return f"s{index}"
