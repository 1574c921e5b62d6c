"""`Interpreter`: do what a plan says, over a `DriverFacade`, with no text in between.

It is the slow reader of a plan's steps, and the shortest: the way to begin a backend, which needs a facade for its
driver and nothing else, and what one steps through to see a call happen (`Walk.run`). A generated launcher does the
same in less time, and asks a walk what is wrong with a call that it refuses.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from trunnion.contract.convention import WORDS, Convention
from trunnion.launcher.facade import FIRST_STREAM
from trunnion.launcher.fills import fill_steps
from trunnion.launcher.walk import Walk
from trunnion.model.plan import (
    AddressArgument,
    BuiltArgument,
    ConstantArgument,
    MapArgument,
    MemoryKind,
    MovedArgument,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    TensorSlot,
    VariableArgument,
    ViewArgument,
)
from trunnion.model.plan.steps import (
    AllowCluster,
    AllowSmem,
    CopyVariable,
    EncodeMap,
    Fill,
    Launch,
    LimitWindow,
    Phase,
    PrepareDevice,
    PrepareLaunch,
    ReadFacts,
    RefuseCapture,
    Return,
    SetAside,
    TakeOutputs,
    TakeWorkspace,
    steps_of,
)
from trunnion.model.scalars import scalar_bytes
from trunnion.model.window import WindowPolicy

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import FrameType

    from trunnion.launcher.context import Context
    from trunnion.launcher.facade import EncodedMap
    from trunnion.launcher.frames import Frame, LaunchFrame
    from trunnion.model.plan import LaunchPlan, MemoryRef, PlannedArgument, PlannedLaunch

__all__ = ["Interpreter"]


class Interpreter:
    """The launcher of a plan.

    Parameters
    ----------
    plan
        The plan.
    context
        What it runs on.
    """

    def __init__(self, plan: LaunchPlan, context: Context) -> None:
        self._plan, self._context = plan, context
        self._convention = Convention.of(plan.signature)
        own = (Interpreter.entry, Interpreter.bind, Interpreter._with_frame)
        self._codes = tuple(function.__code__ for function in own)

    def entry(self, /, *given: Any, **said: Any) -> Any:
        """Launch, as people write it; see `LoadedProgram.entry`."""
        self._context.refuse_closed()  # before anything is said of the call
        with self._context.recovering():
            words = [said.pop(word, None) for word in WORDS]
            if said:
                given = self._convention.arguments(given, said)
            out, stream, device = self._convention.words(*words)
            call = self._walked(given, out, stream, device)

            def launch(frame: Frame) -> Any:
                call.prepare(frame)
                return call.fire()

            return self._with_frame(launch)

    def bind(
        self, *given: Any, out: Any = None, stream: Any = None, device: Any = None
    ) -> tuple[Any, int, int]:
        """Check, allocate and prepare; return what launches, its device and its stream."""
        context = self._context
        with context.recovering():
            call = self._walked(given, out, stream, device)
            call.prepare(context.private_frame())

        def again() -> Any:
            with context.recovering():
                return self._with_frame(lambda _: call.fire())

        return again, call.device, call.stream

    def owns(self, frame: FrameType) -> bool:
        """Whether a frame of Python's is one of this launcher's."""
        return frame.f_code in self._codes and frame.f_locals.get("self") is self

    def _walked(self, given: Any, out: Any, stream: Any, device: Any) -> _Call:
        """Return a call that passed every check."""
        self._context.refuse_closed()
        call = _Call(self._plan, self._context, given, out=out, stream=stream, device=device)
        for _ in call.run():
            pass
        return call

    def _with_frame(self, launch: Callable[[Frame], Any]) -> Any:
        """Launch with a frame in hand: a program that is closed waits until all of them are back."""
        context = self._context
        try:
            frame = context.pop()
        except IndexError:
            frame = context.new_frame()
        try:
            result = launch(frame)
        except BaseException:
            # What was half written must not be taken for what was written: an interrupt comes between any two steps.
            context.forsake(frame)
            raise
        context.push(frame)
        return result


class _Call(Walk):
    """A call that goes on beyond what its arguments decide: it prepares and launches."""

    _frame: Frame
    """What it writes into, from `prepare` on."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._held: dict[int, Any] = {}  # the workspaces' memory, and where it begins
        self._workspaces: dict[int, int] = {}
        self._maps: dict[int, EncodedMap] = {}
        self._state: Any = None  # what was done for the device

    def prepare(self, frame: Frame) -> None:
        """Do all but fill and launch."""
        self._frame = frame
        for phase in (Phase.ADMIT, Phase.MEMORY, Phase.PREPARE):
            self._do(phase)

    def fire(self) -> Any:
        """Fill and launch; return what the call gives back."""
        context = self._context
        self._prepare_device()
        # A launch alone needs a context only under the driver's own streams: any other stream knows its device.
        written = steps_of(self.plan, Fill) or self.plan.copies
        needs = written or self.windows or self.stream < FIRST_STREAM
        entered = bool(needs) and context.enter(self.device)
        try:
            if self.plan.variables:
                context.check_context(self.stream, self.device)
            self._do(Phase.LAUNCH)
        finally:
            if entered:
                context.leave()
        return self._do(Phase.RETURN)

    def _do(self, phase: Phase) -> Any:
        """Do the steps of a phase to which the call comes, and return what the last one gives back."""
        given = None
        for action in self.plan.actions(phase):
            if self.happens(action):
                given = self._STEPS.get(type(action), Walk.do)(self, action)
        return given

    def _prepare_device(self, _: PrepareDevice | None = None) -> None:
        self._state = self._context.states[self.device] or self._context.preload(self.device, self.stream)

    def _prepare_launch(self, step: PrepareLaunch) -> None:
        index = step.launch.index
        if not self._state.launches[index]:
            self._context.prepare_launch(self.device, index)

    def _read_facts(self, _: ReadFacts) -> None:
        self.values[len(self.plan.bindings) :] = self._state.facts

    def _refuse_capture(self, _: RefuseCapture) -> None:
        self._context.refuse_capture(self.stream, self.device)

    def _limit_window(self, step: LimitWindow) -> None:
        _, nbytes = self.windows[step.launch.index]
        if step.window.nbytes is not None and nbytes > self._state.longest_window:
            self._context.refuse_window(self.device, self.plan.memory(step.window.memory).name, nbytes)

    # Memory ----------------------------------------------------------------------------------------------------

    def _take_outputs(self, _: TakeOutputs) -> None:
        context, out, where = self._context, self.out, (self.device, self.stream)
        for index, slot in enumerate(self.plan.outputs):
            tensor = context.output(self.shapes[slot.index], slot, where) if out is None else out[index]
            self.tensors[slot.index] = tensor
            self.addresses[slot.index] = tensor.data_ptr()

    def _take_workspace(self, step: TakeWorkspace) -> None:
        one, where = step.workspace, (self.device, self.stream)
        held = self._context.workspace(one.name, self.sizes[one.index], one.alignment, where)
        self._held[one.index], self._workspaces[one.index] = held

    def _address(self, memory: MemoryRef) -> int:
        tensor = memory.kind is MemoryKind.TENSOR
        return (self.addresses if tensor else self._workspaces)[memory.slot]

    def _fill(self, step: Fill) -> None:
        slot = step.slot
        shaped = isinstance(slot, TensorSlot)
        count = self.tensors[slot.index].numel() if shaped else self.sizes[slot.index]
        writes, repeat = fill_steps(step.pattern)
        if count:
            for write in writes:
                self._context.fill(write, self._address(step.memory), count * repeat, self.stream)

    def _copy(self, step: CopyVariable) -> None:
        target, source = self._state.variables[step.variable], self._address(step.memory)
        self._context.copy(target, source, step.nbytes, self.stream)

    # Launches --------------------------------------------------------------------------------------------------

    def _encode(self, step: EncodeMap) -> None:
        encode = step.encode
        layout, offset = self.layouts[encode.index]
        address = self._address(encode.memory) + offset
        encoder = self._context.encoders[encode.index]
        self._maps[encode.index] = layout.kept.get(address) or encoder(layout, address)

    def _pack(self, launch: PlannedLaunch) -> None:
        frame = self._frame_of(launch)
        for ordinal, (argument, offset) in enumerate(zip(launch.args, frame.spec.offsets, strict=True)):
            if isinstance(argument, MapArgument):
                encoded = self._maps[argument.encode]
                frame.maps[ordinal], frame.pointers[ordinal] = encoded, encoded.address
            elif offset is not None:
                data = self._bytes(argument, (launch.index, ordinal))
                frame.buffer[offset : offset + len(data)] = data

    def _bytes(  # noqa: C901, PLR0911 - one for each kind
        self, argument: PlannedArgument, place: tuple[int, ...]
    ) -> bytes:
        """Return an argument as it travels; ``place`` is that of what was computed for it."""
        match argument:
            case PointerArgument(memory):
                return self._address(memory).to_bytes(8, "little")
            case MovedArgument(memory):
                return (self._address(memory) + self.offsets[place]).to_bytes(8, "little")
            case ConstantArgument(data):
                return data
            case ViewArgument(memory):
                return self._address(memory).to_bytes(8, "little") + self.computed[place]
            case ScalarArgument(scalar):
                slot = self.plan.scalars[scalar]
                return scalar_bytes(self.scalars[scalar], slot.dtype, slot.name)
            case AddressArgument(pointer):
                return self.pointers[pointer].to_bytes(8, "little")
            case StructArgument(struct):
                return self.structs[struct]
            case VariableArgument(variable):
                return int(self._state.variables[variable]).to_bytes(8, "little")
            case MapArgument(encode):
                return self._maps[encode].data
            case BuiltArgument(fields, nbytes):
                built = bytearray(nbytes)
                for index, one in enumerate(fields):
                    data = self._bytes(one.argument, (*place, index))
                    built[one.offset : one.offset + len(data)] = data
                return bytes(built)
        return self.computed[place]

    def _allow_smem(self, step: AllowSmem) -> None:
        launch, smem = step.launch, self.launches[step.launch.index][-1]
        if smem > self._state.smem[launch.kernel]:
            self._context.raise_dynamic_smem(self.device, launch.kernel, smem)

    def _allow_cluster(self, step: AllowCluster) -> None:
        launch = step.launch
        blocks = math.prod(self.attributes[launch.index]["cluster"])
        if blocks > self._state.cluster_blocks[launch.kernel]:
            self._context.allow_cluster(self.device, launch.kernel, blocks)

    def _set_aside(self, step: SetAside) -> None:
        index = step.launch.index
        _, nbytes = self.windows[index]
        if nbytes > self._state.set_aside:
            self._context.set_aside(index, self.device, self.stream, nbytes)

    def _range(self, launch: PlannedLaunch, policy: WindowPolicy) -> tuple[int, int] | None:
        """Return the address and the length of a launch's window, if it has one of a policy."""
        window = launch.window
        if window is None or window.policy != policy:
            return None
        offset, nbytes = self.windows[launch.index]
        return self._address(window.memory) + offset, nbytes

    def _window_on_stream(self, launch: PlannedLaunch) -> AbstractContextManager[None]:
        held = self._range(launch, WindowPolicy.STREAM)
        if held is None:
            return nullcontext()
        return self._context.stream_window(launch.index, self.device, self.stream, held)

    def _launch(self, step: Launch) -> None:
        launch = step.launch
        self._pack(launch)
        window = self._range(launch, WindowPolicy.LAUNCH)
        numbers = self.attributes[launch.index]
        computed = tuple((one.id, numbers[one.field]) for one in launch.computed)
        with self._window_on_stream(launch):
            self._context.launch(
                self._frame_of(launch), self.launches[launch.index], self.stream, window, computed
            )

    def _return(self, step: Return) -> Any:
        found = tuple(self.tensors[slot] for slot in step.tensors)
        return found if len(found) > 1 else found[0] if found else None

    def _frame_of(self, launch: PlannedLaunch) -> LaunchFrame:
        return self._frame.launches[launch.index]

    _STEPS: ClassVar[dict[type, Callable[..., Any]]] = {
        PrepareDevice: _prepare_device,
        PrepareLaunch: _prepare_launch,
        ReadFacts: _read_facts,
        RefuseCapture: _refuse_capture,
        LimitWindow: _limit_window,
        TakeOutputs: _take_outputs,
        TakeWorkspace: _take_workspace,
        EncodeMap: _encode,
        AllowSmem: _allow_smem,
        AllowCluster: _allow_cluster,
        SetAside: _set_aside,
        Fill: _fill,
        CopyVariable: _copy,
        Launch: _launch,
        Return: _return,
    }
    """What does a step of each kind; every other one the walk does, as it would have, had it known the device."""
