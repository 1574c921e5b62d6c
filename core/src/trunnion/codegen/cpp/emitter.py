"""Write a C++ launcher for a plan, over TVM-FFI's C ABI and the CUDA driver; `trunnion.codegen.cpp.host` for the CPU.

The text is one file: constants, a structure ``Call`` with all that one call computes, and the exported functions. What
does not depend on the plan is in ``include/trunnion/launch_runtime.hpp``.

Identifiers come from slots alone: ``t0`` a tensor, ``d0_1`` its extent along dimension 1, ``r0_1`` its stride there,
``p0`` its address, ``s0`` a scalar (``s0_bits`` as a kernel takes it), ``a0`` an address, ``u0`` a struct, ``v0`` a
symbol that may be read in several places, ``y2`` the shape of an output, ``z0`` of a workspace and ``w0`` its address,
``m0`` a tensor map, ``c0`` a launch's condition, ``g0_x`` its grid, ``b0_x`` its block, ``q0_x`` its cluster and
``q0_pdl`` whether it may start early, if a call decides them, ``e0_3`` a computed argument or a struct, ``e0_3_1`` what
is computed for a field of it, ``o0`` and ``n0`` a window, ``facts[0]`` a fact of the device. A user's name stands only
inside a string literal.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.attributes import emit_attributes
from trunnion.codegen.cpp.bindings import emit_checks
from trunnion.codegen.cpp.conditions import launch_condition, step_condition
from trunnion.codegen.cpp.constants import emit_constants
from trunnion.codegen.cpp.direct import argument_kinds
from trunnion.codegen.cpp.exprs import CPP
from trunnion.codegen.cpp.formats import emit_formats
from trunnion.codegen.cpp.launches import (
    cluster_blocks,
    emit_structs,
    emit_views,
    extents,
    parameters,
)
from trunnion.codegen.cpp.maps import emit_encode, emit_map_rules
from trunnion.codegen.cpp.memory import emit_fill, emit_fill_table, emit_outputs, emit_size, emit_workspace
from trunnion.codegen.cpp.places import slot_name
from trunnion.codegen.cpp.steps import emit_step
from trunnion.codegen.cpp.tables import emit_names, emit_program_rule, emit_tensor_rules
from trunnion.codegen.cpp.text import CallText
from trunnion.codegen.cpp.variables import emit_copy
from trunnion.codegen.cpp.windows import SITE, emit_launch_within, emit_window_rules
from trunnion.codegen.exprs import ExprPrinter
from trunnion.codegen.literals import cpp_name, cpp_string
from trunnion.codegen.writer import SourceWriter
from trunnion.launcher.memory import ALLOCATOR_ALIGNMENT
from trunnion.model.expr import Const
from trunnion.model.plan import PLAN_VERSION
from trunnion.model.plan.steps import (
    AllowCluster,
    AllowSmem,
    CopyVariable,
    EncodeMap,
    Fill,
    Launch,
    LimitWindow,
    Phase,
    PrepareLaunch,
    ReadFacts,
    RefuseCapture,
    Require,
    Return,
    SetAside,
    SizeWorkspace,
    TakeOutputs,
    TakeWorkspace,
    steps_of,
    unknown_step,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = ["EXPORTS", "VERSION", "LauncherEmitter", "emit_launcher"]

VERSION = f"26+plan{PLAN_VERSION}"
"""Changes whenever the text for some plan does, or the plan."""

_FUNCTIONS = {
    "check(const Arguments& given, [[maybe_unused]] bool outputs_given)": (Phase.TENSORS, Phase.VALUES),
    "allocate([[maybe_unused]] bool outputs_given)": (Phase.ADMIT, Phase.MEMORY),
    "encode()": (Phase.PREPARE,),
    "fire()": (Phase.LAUNCH,),
}
"""The functions of a call that may fail, and the steps that each of them does."""

_EXPORTED = "__tvm_ffi_"
"""What TVM-FFI puts before a function's name."""

EXPORTS = {
    "main": "run_call(program, kCall, given, count, false, result)",
    "main_out": "run_call(program, kCall, given, count, true, result)",
    "bind": "bind_call(program, kCall, given, count, false, result)",
    "bind_out": "bind_call(program, kCall, given, count, true, result)",
    "load": "load(program, result)",
    "preload": "preload(program, given, count, result)",
    "close": "close(program, result)",
    "python_entry": "offer_entry(program, call_directly, given, count, result)",
    "raised": "raise_held(given, count)",
}
"""What a launcher exports, and the function behind it; ``raised`` raises what is held."""

_WINDOW_EXPORTS = {
    name: f"{name}(program, given, count, result)"
    for name in ("set_hook", "persisting_limit", "set_persisting_limit")
}
"""What it exports beside that if some launch has a window."""

_LIBRARY_EXPORTS = {
    "find": "find_export(program_of(self, own), kLibrary, given, count, result)",
    "open": "open_program(kLibrary, result)",
    "retire": "retire_library(result)",
}
"""What it exports for whoever has several programs of it: exports by name, a new one, and whether all are gone."""


def emit_launcher(plan: LaunchPlan) -> str:
    """Return the text of the launcher of ``plan``, for CUDA devices.

    Parameters
    ----------
    plan
        What to launch.
    """
    return CudaEmitter(plan).module()


class LauncherEmitter:
    """The text of one launcher, but for what differs by kind of device.

    Parameters
    ----------
    plan
        What to launch.
    """

    header: str
    """The header that the launcher stands on."""

    place: str
    """Where it runs, before any tensor says more: the initialiser of a ``Place``."""

    exports: Mapping[str, str]
    """What it exports, and the function behind it."""

    made: str
    """A new ``Program``."""

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan = plan
        self.inputs = len(plan.signature.params)
        self.members: dict[str, str] = {}

    # What differs by kind of device -----------------------------------------------------------------------------

    def emit_head(self, out: SourceWriter) -> None:
        """Open the namespaces, and write what a launcher knows of its program before any call."""
        out.lines("namespace trunnion {", "namespace {", "")
        for emit in (emit_names, emit_formats, emit_tensor_rules, emit_fill_table, emit_constants):
            emit(out, self.plan)

    def needs_context(self) -> bool:
        """Whether launches need something current that a stream does not bring."""
        raise NotImplementedError

    def emit_device_step(self, text: CallText, action: Action) -> bool:
        """Write a step that asks for something of a device, and return whether it has such a one."""
        raise NotImplementedError

    def fill(self, step: str, address: str) -> str:
        """Return the statement that writes one step of a fill, ``count`` times."""
        raise NotImplementedError

    def emit_launch(self, text: CallText, launch: PlannedLaunch, smem: str) -> None:
        """Write one launch; ``parameters`` holds the addresses of its arguments.

        Parameters
        ----------
        text
            Where it is written.
        launch
            The launch.
        smem
            The expression of its dynamic shared memory, in bytes.
        """
        raise NotImplementedError

    # The rest ----------------------------------------------------------------------------------------------------

    def module(self) -> str:
        """Return the text."""
        out = SourceWriter("  ")
        out.line(f"// Launcher of plan {self.plan.hash}; emitter {VERSION}.")
        out.lines(f"#include <{self.header}>", "")
        self.emit_head(out)
        functions = self._functions()
        self._structure(out)
        for signature, body in functions:
            out.line()
            with out.block(f"bool Call::{signature} {{", "}"):
                out.include(body.out)
                out.line("return true;")
        self._outputs(out)
        self._rule(out, functions)
        out.line()
        signature = "void* call_directly(void* self, void* const* args, intptr_t count, void* names)"
        with out.block(f"{signature} {{", "}"):
            objects = self.inputs + len(self.plan.outputs)
            out.line(f"return call_in_room<Call, {objects}>(kCall, self, args, count, names);")
        out.lines("", "}  // namespace", "}  // namespace trunnion", "")
        self._library(out)
        for name, call in (self._exports() | _LIBRARY_EXPORTS).items():
            with out.block(f"{_signature(name)} {{", "}"):
                out.line("using namespace trunnion;")
                if name not in _LIBRARY_EXPORTS:
                    out.line("[[maybe_unused]] Program& program = program_of(self, own);")
                out.line("(void)self, (void)given, (void)count, (void)result;")
                out.line(f"return {call};")
        return out.text()

    def _library(self, out: SourceWriter) -> None:
        """Write what the library has of its own, whatever program of it is called: its exports, by name."""
        out.line(f"{_signature('find')};")
        for name in self._exports():
            out.line(f"{_signature(name)};")
        out.lines("", "namespace trunnion {", "namespace {", "")
        with out.block("constexpr Export kExports[] = {", "};"):
            for name in ("find", *self._exports()):
                out.line(f"{{{cpp_string(name)}, {_EXPORTED}{name}}},")
            out.line("{nullptr, nullptr},")
        with out.block("constexpr LibraryRule kLibrary = {", "};"):
            made = f"new (memory) {self.made}"
            out.line("sizeof(Program),")
            out.line("alignof(Program),")
            out.line(f"[](void* memory) -> Program* {{ return {made}; }},")
            out.line("kExports,")
        out.lines("", "}  // namespace", "}  // namespace trunnion", "")

    def _exports(self) -> dict[str, str]:
        """Return what the launcher exports, and the function behind each."""
        windows = _WINDOW_EXPORTS if self.plan.has_windows else {}
        return {**self.exports, **windows}

    def _structure(self, out: SourceWriter) -> None:
        """Declare the structure: its members are known once its functions are written."""
        with out.block("struct Call : CallBase {", "};"):
            out.line(f"explicit Call(Program& whose) : CallBase(whose, Place{{{self.place}}}) {{}}")
            out.lines(*(f"bool {signature};" for signature in _FUNCTIONS), "void outputs(TVMFFIAny* views);")
            for name, kind in self.members.items():
                out.line(f"{kind} {name};")

    def _rule(self, out: SourceWriter, functions: Sequence[tuple[str, CallText]]) -> None:
        """Write what the shared runtime knows of a call; of its memory and preparation, whether there is any."""
        plan = self.plan
        aligned = any(output.alignment > ALLOCATOR_ALIGNMENT for output in plan.outputs)
        _, allocate, encode, _ = (bool(body.out.written) for _, body in functions)
        # A device is asked within a flight, which there is none of yet where memory is allocated directly.
        asks = bool(steps_of(plan, PrepareLaunch) or steps_of(plan, AllowCluster))
        general = plan.has_windows or aligned or asks
        traits = self.needs_context(), bool(plan.workspaces), general, allocate, encode
        flags = [str(one).lower() for one in traits]
        counts = [str(self.inputs), str(len(plan.outputs))]
        values = [*counts, "kArguments", cpp_string(argument_kinds(plan)), *flags]
        out.lines("", f"constexpr CallRule kCall = call_rule<Call>({', '.join(values)});")

    def _functions(self) -> list[tuple[str, CallText]]:
        printer = ExprPrinter(CPP, lambda index: slot_name(self.plan, index), self.plan.symbols)
        text = CallText(printer, self.members)
        bodies = []
        for phases in _FUNCTIONS.values():
            body = text.function()
            if Phase.VALUES in phases:
                body.out.line("[[maybe_unused]] bool failed = false;")
            self._phases(body, phases)
            bodies.append(body)
        return list(zip(_FUNCTIONS, bodies, strict=True))

    def _phases(self, text: CallText, phases: tuple[Phase, ...]) -> None:
        """Write the steps of some phases; of checks, and of launches, neighbours together."""
        actions = (action for phase in phases for action in self.plan.actions(phase))
        for kind, run in groupby(actions, type):
            if kind is Require:
                emit_checks(text, self.plan, [one.check for one in run if isinstance(one, Require)])
            elif kind is Launch:
                self._launches(text, [one.launch for one in run if isinstance(one, Launch)])
            else:
                for action in run:
                    self._step(text, action)

    def _step(self, text: CallText, action: Action) -> None:
        if self._memory(text, action):
            return
        body = text.function()
        if not (emit_step(body, self.plan, action, self.inputs) or self.emit_device_step(body, action)):
            raise unknown_step(action)
        if body.out.written:
            with text.when(step_condition(self.plan, action)):
                text.out.include(body.out)

    def _memory(self, text: CallText, action: Action) -> bool:
        """Write a step of memory, and return whether it is one; a workspace that nobody reads has no bytes."""
        match action:
            case SizeWorkspace():
                emit_size(text, self.plan, action)
            case TakeOutputs():
                emit_outputs(text, self.plan)
            case TakeWorkspace(workspace):
                emit_workspace(text, workspace.index)
            case Fill():
                emit_fill(text, action, self.fill)
            case _:
                return False
        return True

    def _launches(self, text: CallText, launches: list[PlannedLaunch]) -> None:
        given = [", ".join(parameters(self.plan, launch)) or "nullptr" for launch in launches]
        # An array of many launches is written once: each entry costs a compiler as much as a check.
        often = [values for values, count in Counter(given).items() if count > 1]
        run = f"{launches[0].index}_" if self.plan.copies else ""  # a copy parts launches from others
        shared = {values: f"shared{run}{index}" for index, values in enumerate(often)}
        for values, name in shared.items():
            text.line(f"void* {name}[] = {{{values}}};")
        for launch, values in zip(launches, given, strict=True):
            with text.out.block(f"if ({launch_condition(launch)}) {{", "}"):
                emit_views(text, self.plan, launch)
                emit_structs(text, self.plan, launch)
                if values in shared:
                    text.line(f"void** parameters = {shared[values]};")
                else:
                    text.line(f"void* parameters[] = {{{values}}};")
                self.emit_launch(text, launch, _smem(launch))

    def _outputs(self, out: SourceWriter) -> None:
        out.line()
        with out.block("void Call::outputs([[maybe_unused]] TVMFFIAny* views) {", "}"):
            for action in self.plan.actions(Phase.RETURN):
                if not isinstance(action, Return):
                    raise unknown_step(action)
                out.lines(*(f"views[{place}] = h{slot}.view();" for place, slot in enumerate(action.tensors)))


def _signature(name: str) -> str:
    parameters = "void* self, const TVMFFIAny* given, int32_t count, TVMFFIAny* result"
    return f"TRUNNION_EXPORT {_EXPORTED}{name}({parameters})"


def _smem(launch: PlannedLaunch) -> str:
    smem = launch.dynamic_smem_bytes
    return str(smem.value) if isinstance(smem, Const) else f"static_cast<uint32_t>(b{launch.index}_smem)"


class CudaEmitter(LauncherEmitter):
    """The text of one launcher for CUDA devices."""

    header = "trunnion/launch_runtime.hpp"
    place = "kDLCUDA"
    made = "Program(kProgram)"
    exports = MappingProxyType({**EXPORTS, "load": "load_image(program, given, count, result)"})

    def emit_head(self, out: SourceWriter) -> None:
        """Write the constants, and what is prepared for a device before its first launch."""
        super().emit_head(out)
        emit_map_rules(out, self.plan)
        emit_window_rules(out, self.plan)
        emit_program_rule(out, self.plan)
        out.line()

    def needs_context(self) -> bool:
        """Whether the driver's fills, maps and windows ask for a context, whatever the stream."""
        plan = self.plan
        return plan.has_windows or bool(plan.encodes or plan.copies or steps_of(plan, Fill))

    def emit_device_step(self, text: CallText, action: Action) -> bool:
        """Write a step of the device's facts, of windows, of the kernels' limits, or of tensor maps."""
        match action:
            case ReadFacts():
                text.line("[[maybe_unused]] bool failed = false;")
                text.line("[[maybe_unused]] const int64_t* const facts = program.facts(place.device);")
            case PrepareLaunch(launch):
                text.require(f"program.ask_for(*state, place.device, {launch.index})")
            case RefuseCapture():
                text.require(f"refuse_capture({SITE})")
            case LimitWindow(launch):
                index = launch.index
                text.require(f"fit_window(kWindow{index}, *state, place.device, n{index})")
            case EncodeMap(encode):
                emit_encode(text, encode)
            case CopyVariable():
                emit_copy(text, action)
            case AllowSmem(launch):
                text.require(f"program.allow_smem(*state, place.device, {launch.kernel}, {_smem(launch)})")
            case AllowCluster(launch):
                blocks = cluster_blocks(launch)
                text.require(f"program.allow_cluster(*state, place.device, {launch.kernel}, {blocks})")
            case SetAside(launch):
                text.require(f"trunnion::set_aside({SITE}, {launch.kernel}, n{launch.index})")
            case _:
                return False
        return True

    def fill(self, step: str, address: str) -> str:
        """Return a write on the launch's stream."""
        return f"if (!fill(program.driver(), {step}, {address}, count, stream)) return false;"

    def emit_launch(self, text: CallText, launch: PlannedLaunch, smem: str) -> None:
        """Write a launch with its attributes and its window, on the stream."""
        text.line(f"LaunchConfig config({extents(launch, 'g')}, {extents(launch, 'b')}, {smem}, stream);")
        emit_attributes(text, launch)
        name = cpp_name(self.plan.kernels[launch.kernel].name)
        fired = f"config.launch(*this, {launch.kernel}, parameters, {name})"
        emit_launch_within(text, launch, fired)
