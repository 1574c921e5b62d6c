"""`Context`: what a generated launcher finds under ``context``, hoisted once into variables of its closure."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from trunnion.callers import warn
from trunnion.contract.convention import WORDS, Convention
from trunnion.errors import (
    ArgumentError,
    DeviceRequirementError,
    DriverError,
    ExprError,
    TrunnionError,
    UnboundSymbolError,
)
from trunnion.launcher.driver_status import (
    OF_IMAGE,
    RefusedLaunch,
    about,
    naming_kernel,
    naming_variable,
    of_unlike_device,
)
from trunnion.launcher.entered import within_primary
from trunnion.launcher.facade import FIRST_STREAM, GoneFacade
from trunnion.launcher.frames import FramePool
from trunnion.launcher.l2_persisting import SetAsideWarning, captured_window
from trunnion.launcher.maps import MapEncoder
from trunnion.launcher.memory import LauncherMemory
from trunnion.launcher.recall import ReadingRecall
from trunnion.launcher.refusals import ABSENT, count_error
from trunnion.launcher.variables import prepare_variables
from trunnion.launcher.walk import Walk
from trunnion.launcher.windows import ProgramWindows
from trunnion.model.launch_attributes import (
    LAUNCH_ATTRIBUTES,
    MAX_CLUSTER_BLOCKS,
    PORTABLE_CLUSTER_BLOCKS,
    attribute_row,
)
from trunnion.model.plan import refusals as rows
from trunnion.model.plan.facts import OccupancyFact
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.contract.runtime import Runtime
    from trunnion.errors import LifecycleError
    from trunnion.launcher.facade import (
        AttributeFacade,
        ComputedAttributes,
        DriverFacade,
        LaunchSpec,
        OccupancyFacade,
        PreparingFacade,
        VariableFacade,
    )
    from trunnion.launcher.frames import LaunchFrame
    from trunnion.launcher.maps import MapSpec
    from trunnion.launcher.variables import VariableSpec
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.plan.facts import PlannedFact
    from trunnion.model.plan.refusals import RefusalRow

_P = ParamSpec("_P")
_R = TypeVar("_R")

__all__ = ["Context", "DeviceState", "Parts"]

# CUdevice_attribute and CUfunction_attribute (CUDA Driver API, "Data types used by CUDA driver").
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_MAX_BLOCK_SMEM = 97
_MAX_DYNAMIC_SMEM = 8
_NON_PORTABLE_CLUSTER = 14
_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
_CLUSTERS = (4, 11)  # CUlaunchAttributeID: the cluster, and the preferred one
_OF_ARGUMENTS = (ArgumentError, ExprError, UnboundSymbolError)
"""What is raised before anything was touched, in whatever order a call tests."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is known of a program before any call."""

    launches: tuple[LaunchSpec, ...]
    """``LAUNCHES``."""

    encodes: tuple[MapSpec, ...]
    """``ENCODES``."""

    plan: Callable[[], LaunchPlan]
    """Returns the plan, each time the same: a call that is refused is told what comes first in its order."""

    facts: tuple[PlannedFact, ...]
    """``FACTS``, which a launcher has whose plan is over facts of the device."""

    variables: tuple[VariableSpec, ...]
    """``VARIABLES``; there are none in the text of a program without."""


class DeviceState:
    """What was done for one device."""

    __slots__ = ("cluster_blocks", "facts", "launches", "longest_window", "set_aside", "smem", "variables")

    def __init__(self, kernels: int, launches: int) -> None:
        self.launches = [False] * launches
        """Of each launch that has a condition, whether the device was asked for what it needs."""
        self.smem = [0] * kernels
        """The dynamic shared memory that each kernel is allowed, in bytes."""
        self.cluster_blocks = [1] * kernels
        """The most blocks of a cluster that each kernel is known to be allowed; only clusters of a call's ask."""
        self.set_aside = 0
        """The bytes of the L2 cache that were set aside for the program's windows."""
        self.longest_window = 0
        """The bytes of the longest window that the device allows, if some launch has a window."""
        self.facts: tuple[int, ...] = ()
        """The facts of the device that the program is over, in the order of the plan."""
        self.variables: tuple[int, ...] = ()
        """The address of each module variable."""


class Context(LauncherMemory):
    """What a launcher finds.

    Parameters
    ----------
    parts
        What is known of the program.
    image
        The device image.
    symbols
        The exact name of each kernel, in the plan's order, then of each module variable.
    facade
        The driver.
    runtime
        The tensor library.

    Raises
    ------
    DriverError
        If the driver refuses the image.
    """

    def __init__(
        self,
        parts: Parts,
        image: bytes,
        symbols: Sequence[str],
        facade: DriverFacade,
        runtime: Runtime,
    ) -> None:
        super().__init__(runtime, facade.device_count())
        self.facade = facade
        self.enter, self.leave, self.fill = facade.enter, facade.leave, facade.fill
        self.specs, self._facts, self._plan = parts.launches, parts.facts, parts.plan
        self.windows = ProgramWindows(parts.launches, facade)
        self.window_bytes, self.refuse_window = self.windows.length, self.windows.refuse_length
        self.stream_window = self.windows.on_stream
        prepares = hasattr(facade, "prepared")  # a `PreparingFacade`
        self.pool = FramePool(parts.launches, facade, self._prepared if prepares else None)
        self.pop, self.push = self.pool.free.pop, self.pool.free.append
        self.new_frame, self.forsake = self.pool.new, self.pool.forsake
        self.private_frame = self.pool.private
        self.recover = facade.recover
        self.several = self.device_count > 1
        self.stream_type: Any = runtime.stream_type
        self.sets_aside = any(spec.window or spec.stream_window for spec in self.specs)
        # A handler or a finalizer may launch the program while it is being prepared.
        self._preparing = Turns("the program is being prepared for a device", nests=True)
        self.closed_because: RefusalRow[LifecycleError] | None = None
        self.life: object = None
        self.symbols = tuple(symbols)[: len(symbols) - len(parts.variables)]
        self._variables = tuple(zip(parts.variables, symbols[len(self.symbols) :], strict=True))
        self.copy: Any = getattr(facade, "copy", None)  # a `VariableFacade`'s
        ask: Any = getattr(facade, "address_in", None)  # a `ContextFacade`'s
        self._address_in = None if ask is None else self.explaining(ask)
        self._image = image
        self.launch = self.explaining(self._launch)
        self.encoders = [MapEncoder(spec, facade, self.capability) for spec in parts.encodes]
        self.states: list[DeviceState | None] = [None] * self.device_count
        """What was done for each device; None: nothing yet, or the program was closed."""
        self.library = self.explaining(facade.load)(image)
        with ExitStack() as undo:
            undo.callback(facade.unload, self.library)
            find = self.explaining(facade.kernel)
            self.kernels = []
            for symbol in self.symbols:
                with naming_kernel(symbol):
                    self.kernels.append(find(self.library, symbol))
            undo.pop_all()

    def _prepared(self, spec: LaunchSpec, config: Any, parameters: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return what fires a launch of a frame, and its arguments; see `PreparingFacade.prepared`."""
        facade = cast("PreparingFacade", self.facade)
        return facade.prepared(config, self.kernels[spec.kernel], parameters, self.runtime.caller)

    def explaining(self, call: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return a call of the driver that says, of an image that does not fit, its architecture and the devices'."""

        def explained(*args: _P.args, **named: _P.kwargs) -> _R:
            try:
                return call(*args, **named)
            except DriverError as error:
                if error.code_name not in OF_IMAGE:
                    raise
                devices = [self.capability(device) for device in range(self.device_count)]
                raise of_unlike_device(error, self._image, devices) from error.__cause__

        return explained

    def _launch(
        self,
        frame: LaunchFrame,
        shape: tuple[int, ...],
        stream: int,
        window: tuple[int, int] | None,
        computed: ComputedAttributes = (),
    ) -> None:
        """Launch what stands in a frame, by `DriverFacade.launch`; what is told of a refusal is `launch`'s to complete.

        Parameters
        ----------
        frame
            The launch's.
        shape
            Grid x, y, z, block x, y, z, and dynamic shared memory in bytes.
        stream
            The stream's handle.
        window
            The address and the bytes of the window of `LaunchSpec.window`; None if there is none.
        computed
            The attributes that the call decides.

        Raises
        ------
        DriverError, DeviceRequirementError
            If the driver refuses the launch: it says which one.
        """
        spec = frame.spec
        try:
            kernel = self.kernels[spec.kernel]
            if frame.computed != computed:
                cast("AttributeFacade", self.facade).set_attributes(frame.config, computed)
                frame.computed = computed
            self.facade.launch(frame.config, kernel, shape, stream, frame.address, window)
        except (DriverError, DeviceRequirementError) as error:
            name, priorities = (
                self._plan().kernels[spec.kernel].name,
                getattr(self.facade, "priorities", None),
            )
            refused = RefusedLaunch.of(frame, name, shape[:6], priorities)
            raise about(error, refused.text) from error.__cause__

    def recall(self) -> ReadingRecall:
        """Return what remembers what was found out about the tensors of one kind of call."""
        return ReadingRecall(self.runtime.guard, self.runtime.reader)

    def convention(
        self, names: tuple[str, ...], outputs: int
    ) -> tuple[tuple[str | None, ...], Callable[..., Any], Callable[..., NoReturn]]:
        """Return the arguments' names, what takes ``out=`` as a tuple, and what refuses a call by its names.

        A launcher takes named arguments itself, by these names: None for one that goes by position. The last is given
        all that goes by name, how much of that is left, as no argument that was missing by position, and the arguments,
        `ABSENT` in the place of one that there is not. See `Convention`.

        Parameters
        ----------
        names
            The arguments' names.
        outputs
            How many outputs there are.
        """
        convention = Convention(names, outputs)

        def refuse_names(said: dict[str, Any], left: int, given: tuple[Any, ...]) -> NoReturn:
            self.refuse_closed()
            named = {name: value for name, value in said.items() if name not in WORDS}
            taken = next((place for place, one in enumerate(given) if one is ABSENT), len(given))
            by_position = given[: taken - len(said) + left]
            if named:
                convention.arguments(by_position, named)
            convention.words(*map(said.get, WORDS))
            raise count_error(by_position, convention.names)

        return convention.keywords, convention.destinations, refuse_names

    def by_name(self, keywords: tuple[str | None, ...]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
        """Return what takes all arguments of a call that gives each by name, of which there are several.

        It raises KeyError where one is missing, or goes by position.

        Parameters
        ----------
        keywords
            The names, as `convention` gives them.
        """
        return itemgetter(*keywords)

    # Devices ---------------------------------------------------------------------------------------------------

    def capability(self, device: int) -> tuple[int, int]:
        """Return the compute capability of a device."""
        attribute = self.facade.device_attribute
        return attribute(device, _CAPABILITY_MAJOR), attribute(device, _CAPABILITY_MINOR)

    def preload(self, device: int, stream: int | None = None) -> DeviceState:
        """Prepare a device and return its state; called by a launcher that finds none.

        Parameters
        ----------
        device
            The device's ordinal.
        stream
            The stream of the launch that asks; None: nobody launches.

        Raises
        ------
        LifecycleError
            If the program was closed, or the process forked.
        CaptureError
            If a launch asks that is being captured.
        DeviceRequirementError
            If the driver is too old for an attribute of a launch without a condition, or the device cannot hold it.
        """
        with self._preparing.turn():
            self.refuse_closed()
            state = self.states[device]
            return self._within(device, self._prepare_for, device, stream) if state is None else state

    def _prepare_for(self, device: int, stream: int | None) -> DeviceState:
        """Do what `preload` does, in a context of the device: a stream may be the current one's."""
        if stream is not None and self.facade.stream_state(stream).capturing:
            raise rows.UNPREPARED(device)
        return within_primary(self.facade, device, self._prepared_state, device)

    def _prepared_state(self, device: int) -> DeviceState:
        """Do what `preload` does, in the device's primary context."""
        state = DeviceState(len(self.kernels), len(self.specs))
        for spec in self.specs:
            if not spec.deferred:
                self._prepare(state, device, spec)
        state.facts = tuple(self._fact(state, device, fact) for fact in self._facts)
        if any(spec.window or spec.stream_window for spec in self.specs):
            state.longest_window = self.windows.longest(device)
        if self._variables:
            state.variables = self._prepare_variables(device)
        self.states[device] = state
        return state

    def _prepare_variables(self, device: int) -> tuple[int, ...]:
        facade = cast("VariableFacade", self.facade)
        find = self.explaining(facade.variable)
        return prepare_variables(self._variables, facade, find, (self.library, device))

    def prepare(self, device: int) -> None:
        """Do all for a device that can be done before the first call: `preload`, and cache for windows of known length.

        Errors are those of `preload`.
        """
        with self._preparing.turn():
            state, nbytes = self.preload(device), self.windows.known(device)
            if nbytes > state.set_aside:
                self._within(device, self.windows.request, device, nbytes)
                state.set_aside = nbytes

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """See to it that the block leaves the thread's contexts as they were, wherever an interrupt ends it."""
        try:
            yield
        except BaseException:  # of an interrupt too, which comes between any two steps
            self.recover()
            raise

    def _within(self, device: int, work: Callable[_P, _R], /, *args: _P.args, **named: _P.kwargs) -> _R:
        """Do something in a context of a device.

        No context manager: its frame is none of the thread's while a block runs, so a call that fails in the middle of
        the block, made by a finalizer say, would take the context for its own and pop it; see `EnteredContexts`.
        """
        entered = self.facade.enter(device)
        try:
            return work(*args, **named)
        finally:
            if entered:
                self.facade.leave()

    def _prepare(self, state: DeviceState, device: int, spec: LaunchSpec) -> None:
        self._check_attributes(device, spec)
        self._allow(state, device, spec.kernel, spec.dynamic_smem_bytes or 0)
        clusters = [values for attribute, values in spec.attributes if attribute in _CLUSTERS]
        # An extent of None is a call's to decide: none of it is asked for here.
        blocks = max((math.prod(one or 0 for one in extents) for extents in clusters), default=1)
        if blocks > PORTABLE_CLUSTER_BLOCKS:
            self._allow_blocks(state, device, spec.kernel, blocks)

    def _set(self, kernel: int, device: int, attribute: int, value: int) -> None:
        with naming_kernel(self.symbols[kernel], device):
            self.explaining(self.facade.set_kernel_attribute)(self.kernels[kernel], device, attribute, value)

    def _check_attributes(self, device: int, spec: LaunchSpec) -> None:
        if not spec.attributes:
            return
        version, capability = self.facade.driver_version(), self.capability(device)
        given = dict(spec.attributes)
        for row in LAUNCH_ATTRIBUTES:
            if row.id not in given:
                continue
            if version < row.cuda_version:
                raise rows.ATTRIBUTE_VERSION(row.cuda_version, row.field, version)
            least = row.least_capability(given[row.id])
            if capability < least:
                raise rows.ATTRIBUTE_CAPABILITY(*least, row.field, device, *capability)

    def prepare_launch(self, device: int, launch: int) -> None:
        """Ask a device for what is constant of a launch with a condition, which happens there for the first time.

        Raises
        ------
        DeviceRequirementError
            If the driver is too old for an attribute of the launch, or the device cannot hold it.
        LifecycleError
            If the program was closed meanwhile.
        """
        with self._preparing.turn():
            state = self.preload(device)
            self._prepare(state, device, self.specs[launch])
            state.launches[launch] = True

    def raise_dynamic_smem(self, device: int, kernel: int, nbytes: int) -> None:
        """Allow a kernel more dynamic shared memory than any call before needed.

        Raises
        ------
        LifecycleError
            If the program was closed meanwhile.
        """
        with self._preparing.turn():
            self._allow(self.preload(device), device, kernel, nbytes)

    def allow_cluster(self, device: int, kernel: int, blocks: int) -> None:
        """Allow a kernel a larger cluster than any call before asked for.

        Raises
        ------
        DeviceRequirementError
            If the device has no clusters.
        LifecycleError
            If the program was closed meanwhile.
        """
        with self._preparing.turn():
            state, capability = self.preload(device), self.capability(device)
            row = attribute_row(_CLUSTERS[0])
            if capability < row.compute_capability:
                raise rows.ATTRIBUTE_CAPABILITY(*row.compute_capability, row.field, device, *capability)
            self._allow_blocks(state, device, kernel, blocks)

    def _allow_blocks(self, state: DeviceState, device: int, kernel: int, blocks: int) -> None:
        """Let a kernel have clusters that are not portable, if it asks for such a one and may not yet.

        Two names of a program may be one kernel: they share what is allowed.
        """
        most = PORTABLE_CLUSTER_BLOCKS
        if blocks > most and blocks > state.cluster_blocks[kernel]:
            self._set(kernel, device, _NON_PORTABLE_CLUSTER, 1)
            most = MAX_CLUSTER_BLOCKS
        for alias, symbol in enumerate(self.symbols):
            if symbol == self.symbols[kernel]:
                state.cluster_blocks[alias] = max(state.cluster_blocks[alias], most)

    def _allow(self, state: DeviceState, device: int, kernel: int, nbytes: int) -> None:
        """Raise a kernel's limit, never lower it.

        How much a kernel has without asking depends on its static shared memory (``cuKernelSetAttribute``: the sum of
        both is limited), so it always asks. Two names of a program may be one kernel: they share the limit.

        Raises
        ------
        DeviceRequirementError
            If the device allows less.
        """
        if nbytes > state.smem[kernel]:
            try:
                self._set(kernel, device, _MAX_DYNAMIC_SMEM, nbytes)
            except DriverError as error:
                if (error.call, error.code) != ("cuKernelSetAttribute", _INVALID_VALUE):
                    raise
                most = self.facade.device_attribute(device, _MAX_BLOCK_SMEM)
                raise rows.DYNAMIC_SMEM(nbytes, self.symbols[kernel], device, most) from error
            for alias, symbol in enumerate(self.symbols):
                if symbol == self.symbols[kernel]:
                    state.smem[alias] = nbytes

    def _fact(self, state: DeviceState, device: int, fact: PlannedFact) -> int:
        """Return a fact of a device, whose context is current.

        Raises
        ------
        DeviceRequirementError
            If the device has less than an attribute must be.
        """
        if isinstance(fact, OccupancyFact):
            # Without the allowance the driver answers for what a kernel has unasked. What a device cannot allow at all,
            # of that it answers that it holds none.
            with suppress(DeviceRequirementError):
                self._allow(state, device, fact.kernel, fact.dynamic_smem_bytes)
            facade = cast("OccupancyFacade", self.facade)
            with naming_kernel(self.symbols[fact.kernel], device):
                ask = self.explaining(facade.occupancy)
                return ask(self.kernels[fact.kernel], fact.threads, fact.dynamic_smem_bytes)
        value = self.facade.device_attribute(device, fact.attribute)
        if value < fact.least:
            raise rows.FACT(fact.least, fact.name, value, device)
        return value

    # Streams ---------------------------------------------------------------------------------------------------

    def check_stream(self, stream: int, device: int) -> None:
        """Refuse a stream that the caller names and that belongs to another device than the tensors.

        Raises
        ------
        ArgumentValueError
            If it does.
        """
        if stream < FIRST_STREAM or not self.several:
            return
        found = self.facade.stream_state(stream).device
        if found != device:
            raise rows.STREAM_DEVICE(found, device)

    def check_context(self, stream: int, device: int) -> None:
        """Refuse a launch in a context that has other module variables than those that the program wrote.

        Raises
        ------
        ArgumentValueError
            If the context is neither the device's primary one nor a green one of it.
        DriverError
            If the driver does not find the variable there.
        LifecycleError
            If the program was closed meanwhile.
        """
        if self._address_in is None:
            return
        symbol = self._variables[0][1]
        try:
            found = self._address_in(stream, device, (self.library, symbol))
        except DriverError:
            with naming_variable(symbol, device):  # which costs a call that succeeds too much
                raise
        if found is None:
            return
        state = self.states[device] or self.preload(device)  # which another thread may have closed meanwhile
        if found != state.variables[0]:
            raise rows.STREAM_CONTEXT(device)

    def refuse_capture(self, stream: int, device: int) -> None:
        """Refuse a call that waits for its own kernel, if its stream is being captured.

        Raises
        ------
        CaptureError
            If it is.
        """
        if self._within(device, self.facade.stream_state, stream).capturing:
            raise rows.WINDOW_IN_CAPTURE()

    # Refusals --------------------------------------------------------------------------------------------------

    def refuse_closed(self) -> None:
        """Refuse a call of a program that has ended.

        Raises
        ------
        LifecycleError
            If it has.
        """
        if self.closed_because:
            raise self.closed_because() from None

    def refuse(self, error: BaseException, args: tuple[Any, ...] | None, **named: Any) -> None:
        """Raise what comes first in the plan's order, of a call that was refused for something else.

        Nothing is raised if nothing is wrong any more; then the launcher raises what ended the call.

        Parameters
        ----------
        error
            What ended the call.
        args
            The call's arguments, as far as they were converted; None: no step of the plan was come to.
        named
            Its ``out``, ``stream`` and ``device``.

        Raises
        ------
        TrunnionError
            If there is such a refusal, or if the program was closed.
        """
        if not isinstance(error, _OF_ARGUMENTS):
            return
        self.refuse_closed()
        if args is None:
            return
        given = tuple(argument for argument in args if argument is not ABSENT)
        try:
            for _ in Walk(self._plan(), self, given, **named).run():
                pass
        except TrunnionError as first:
            raise first from first.__cause__
        # Nothing: an argument has answered otherwise since, as a tensor that another thread resizes, or the launcher is
        # wrong. What ended the call is told then. To go on would be to launch what one of two checks refused, on values
        # of which nobody knows whether they belong together.

    # Windows ---------------------------------------------------------------------------------------------------

    def set_aside(self, launch: int, device: int, stream: int, nbytes: int) -> None:
        """Set cache aside for a launch's window, whose hits persist.

        While its stream is being captured that cannot be done: the launch is captured with its window, and persists in
        what is set aside already.

        Raises
        ------
        LifecycleError
            If the program was closed meanwhile.
        """
        with self._preparing.turn():
            state = self.preload(device, stream)
            if self._within(device, self._request, device, stream, nbytes):
                state.set_aside = nbytes
                return
        kernel = self.symbols[self.specs[launch].kernel]
        warn(captured_window(kernel, nbytes, state.set_aside), SetAsideWarning)

    def _request(self, device: int, stream: int, nbytes: int) -> bool:
        """Ask for cache, unless a stream is being captured; return whether it was asked for."""
        if self.facade.stream_state(stream).capturing:
            return False
        self.windows.request(device, nbytes)
        return True

    # Life ------------------------------------------------------------------------------------------------------

    def is_preparing(self) -> bool:
        """Whether the calling thread prepares the program for a device."""
        return self._preparing.is_mine()

    def shut(self, reason: RefusalRow[LifecycleError], used: set[int]) -> None:
        """Let no further call launch.

        Parameters
        ----------
        reason
            Why.
        used
            Where the devices that were in use are noted, before nobody else knows them any more.
        """
        with self._preparing.turn():  # a preload under way would store its state after these were taken away
            self.closed_because = self.closed_because or reason
            used.update([device for device, state in enumerate(self.states) if state is not None])
            # A launcher takes its frame before it reads its device's state: after this line it finds None.
            self.states[:] = [None] * len(self.states)

    def give_back(self, device: int) -> None:
        """Give back the cache that was set aside on a device; if that fails, it may be asked for again."""
        self._within(device, self.windows.release, device)

    def forget(self, reason: RefusalRow[LifecycleError]) -> None:
        """Refuse every call from now on, in a forked child, and ask the driver nothing."""
        gone: Any = GoneFacade(reason)
        self.facade = gone
        self.windows.facade = gone
        self.shut(reason, set())
