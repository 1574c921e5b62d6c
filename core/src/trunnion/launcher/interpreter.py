"""`Interpreter`: do what a plan says, over a `DriverFacade`, with no text in between.

It is the slow reader of a plan's steps, and the shortest: the way to begin a backend, which needs a facade for its
driver and nothing else, and what one steps through to see a call happen (`Walk.run`). A generated launcher does the
same in less time, and asks a walk what is wrong with a call that it refuses.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from trunnion.contract.convention import WORDS, Convention
from trunnion.launcher.facade import FIRST_STREAM
from trunnion.launcher.fills import fill_steps
from trunnion.launcher.walk import Walk
from trunnion.model.plan import (
    AddressArgument,
    MapArgument,
    MemoryKind,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    TensorSlot,
    ViewArgument,
)
from trunnion.model.scalars import scalar_bytes
from trunnion.model.window import AccessProperty, WindowPolicy

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

    def entry(self, *given: Any, **said: Any) -> Any:
        """Launch, as people write it; see `LoadedProgram.entry`."""
        self._context.refuse_closed()  # before anything is said of the call
        with self._context.recovering():
            words = [said.pop(word, None) for word in WORDS]
            if said:
                given = self._convention.arguments(given, said)
            out, stream, device = self._convention.words(*words)
            walk = self._walked(given, out, stream, device)

            def launch(frame: Frame) -> Any:
                call = _Call(walk, self._context, frame)
                call.prepare()
                return call.fire()

            return self._with_frame(launch)

    def bind(
        self, *given: Any, out: Any = None, stream: Any = None, device: Any = None
    ) -> tuple[Any, int, int]:
        """Check, allocate and prepare; return what launches, its device and its stream."""
        context = self._context
        with context.recovering():
            walk = self._walked(given, out, stream, device)
            call = _Call(walk, context, context.private_frame())
            call.prepare()

        def again() -> Any:
            with context.recovering():
                return self._with_frame(lambda _: call.fire())

        return again, walk.device, walk.stream

    def owns(self, frame: FrameType) -> bool:
        """Whether a frame of Python's is one of this launcher's."""
        return frame.f_code in self._codes and frame.f_locals.get("self") is self

    def _walked(self, given: Any, out: Any, stream: Any, device: Any) -> Walk:
        """Return the walk of a call that passed every check."""
        self._context.refuse_closed()
        walk = Walk(self._plan, self._context, given, out=out, stream=stream, device=device)
        for _ in walk.run():
            pass
        return walk

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


class _Call:
    """What a call prepares and launches.

    Parameters
    ----------
    walk
        The call, every step of it done.
    context
        What it runs on.
    frame
        What it writes into.
    """

    def __init__(self, walk: Walk, context: Context, frame: Frame) -> None:
        self._walk, self._context, self._frame = walk, context, frame
        self._plan, self._device, self._stream = walk.plan, walk.device, walk.stream
        self._tensors = dict(walk.tensors)
        self._addresses = dict(walk.addresses)
        self._held: dict[int, Any] = {}  # the workspaces' memory, and where it begins
        self._workspaces: dict[int, int] = {}
        self._maps: dict[int, EncodedMap] = {}
        self._launches = [one for one in self._plan.launches if one.index in walk.launches]

    def prepare(self) -> None:
        """Do all but fill and launch."""
        state = self._state()
        self._admit(state.longest_window)
        self._allocate()
        self._encode()
        for launch in self._launches:
            self._allow_smem(launch, state)
        for launch in self._launches:
            self._set_aside(launch, state)
            self._pack(launch)

    def fire(self) -> Any:
        """Fill and launch; return what the call gives back."""
        context = self._context
        self._state()
        # A launch alone needs a context only under the driver's own streams: any other stream knows its device.
        needs = self._plan.fills or self._walk.windows or self._stream < FIRST_STREAM
        entered = bool(needs) and context.enter(self._device)
        try:
            self._fill()
            for launch in self._launches:
                with self._window_on_stream(launch):
                    self._launch(launch)
        finally:
            if entered:
                context.leave()
        found = tuple(self._tensors[slot] for slot in self._plan.results)
        return found if len(found) > 1 else found[0] if found else None

    def _state(self) -> Any:
        """Return what was done for the device, once it is."""
        return self._context.states[self._device] or self._context.preload(self._device, self._stream)

    def _admit(self, longest_window: int) -> None:
        context, plan = self._context, self._plan
        windows = [(launch, launch.window) for launch in plan.launches if launch.window is not None]
        if any(window.policy == WindowPolicy.STREAM for _, window in windows):
            context.refuse_capture(self._stream, self._device)
        for launch, window in windows:
            _, nbytes = self._walk.windows.get(launch.index, (0, 0))
            if window.nbytes is not None and nbytes > longest_window:
                context.refuse_window(self._device, plan.memory(window.memory).name, nbytes)

    # Memory ----------------------------------------------------------------------------------------------------

    def _allocate(self) -> None:
        walk, context, where = self._walk, self._context, (self._device, self._stream)
        for index, slot in enumerate(self._plan.outputs):
            tensor = (
                context.output(walk.shapes[slot.index], slot, where) if walk.out is None else walk.out[index]
            )
            self._tensors[slot.index] = tensor
            self._addresses[slot.index] = tensor.data_ptr()
        for index, nbytes in walk.sizes.items():
            workspace = self._plan.workspaces[index]
            held = context.workspace(workspace.name, nbytes, workspace.alignment, where)
            self._held[index], self._workspaces[index] = held

    def _address(self, memory: MemoryRef) -> int:
        tensor = memory.kind is MemoryKind.TENSOR
        return (self._addresses if tensor else self._workspaces)[memory.slot]

    def _fill(self) -> None:
        for memory, pattern in self._plan.fills:
            slot = self._plan.memory(memory)
            if isinstance(slot, TensorSlot):
                count = self._tensors[slot.index].numel()
            else:
                count = self._walk.sizes.get(slot.index, 0)
            steps, repeat = fill_steps(pattern)
            if count:
                for step in steps:
                    self._context.fill(step, self._address(memory), count * repeat, self._stream)

    # Launches --------------------------------------------------------------------------------------------------

    def _encode(self) -> None:
        for encode in self._plan.encodes:
            if encode.index in self._walk.layouts:
                layout, offset = self._walk.layouts[encode.index]
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
                data = self._bytes(launch, ordinal, argument)
                frame.buffer[offset : offset + len(data)] = data

    def _bytes(self, launch: PlannedLaunch, ordinal: int, argument: PlannedArgument) -> bytes:
        """Return an argument as it travels."""
        walk = self._walk
        match argument:
            case PointerArgument(memory):
                return self._address(memory).to_bytes(8, "little")
            case ViewArgument(memory):
                return self._address(memory).to_bytes(8, "little") + walk.computed[launch.index, ordinal]
            case ScalarArgument(scalar):
                slot = self._plan.scalars[scalar]
                return scalar_bytes(walk.scalars[scalar], slot.dtype, slot.name)
            case AddressArgument(pointer):
                return walk.pointers[pointer].to_bytes(8, "little")
            case StructArgument(struct):
                return walk.structs[struct]
        return walk.computed[launch.index, ordinal]

    def _allow_smem(self, launch: PlannedLaunch, state: Any) -> None:
        smem = self._walk.launches[launch.index][-1]
        if smem > state.smem[launch.kernel]:
            self._context.raise_dynamic_smem(self._device, launch.kernel, smem)

    def _set_aside(self, launch: PlannedLaunch, state: Any) -> None:
        window = launch.window
        if window is None or window.policy != WindowPolicy.LAUNCH:
            return
        _, nbytes = self._walk.windows[launch.index]
        if window.hit_property == AccessProperty.PERSISTING.code and nbytes > state.set_aside:
            self._context.set_aside(launch.index, self._device, self._stream, nbytes)

    def _range(self, launch: PlannedLaunch, policy: WindowPolicy) -> tuple[int, int] | None:
        """Return the address and the length of a launch's window, if it has one of a policy."""
        window = launch.window
        if window is None or window.policy != policy:
            return None
        offset, nbytes = self._walk.windows[launch.index]
        return self._address(window.memory) + offset, nbytes

    def _window_on_stream(self, launch: PlannedLaunch) -> AbstractContextManager[None]:
        held = self._range(launch, WindowPolicy.STREAM)
        if held is None:
            return nullcontext()
        return self._context.stream_window(launch.index, self._device, self._stream, held)

    def _launch(self, launch: PlannedLaunch) -> None:
        window = self._range(launch, WindowPolicy.LAUNCH)
        self._context.launch(self._frame_of(launch), self._walk.launches[launch.index], self._stream, window)

    def _frame_of(self, launch: PlannedLaunch) -> LaunchFrame:
        return self._frame.launches[launch.index]
