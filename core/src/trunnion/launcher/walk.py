"""`Walk`: one call on its way through the steps of its plan that its arguments decide, one by one, in their order.

Nothing is allocated or launched: that is an `Interpreter`'s. A generated launcher tests in the order that costs the
least, so of a call that it refuses the walk tells what comes first.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from trunnion.launcher import refusals, scalars
from trunnion.launcher.arithmetic import evaluate
from trunnion.launcher.float_arithmetic import float_bytes
from trunnion.launcher.memory import ALLOCATOR_ALIGNMENT
from trunnion.model.expr import Const
from trunnion.model.interval import INT64_MAX
from trunnion.model.launch_attributes import MAX_CLUSTER_BLOCKS
from trunnion.model.launch_limits import MAX_BLOCK, MAX_GRID, MAX_SMEM, MAX_THREADS
from trunnion.model.plan import BuiltArgument, ExprArgument, FloatArgument, MovedArgument, ViewArgument
from trunnion.model.plan.places import (
    allowed_values,
    argument_name,
    author_extents,
    author_text,
    in_field,
    mention,
    place_words,
    source_range,
)
from trunnion.model.plan.slots import PointerSlot, ScalarSlot, TensorSlot
from trunnion.model.plan.steps import (
    Bind,
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    ConditionCheck,
    LayOutMap,
    Phase,
    ReadNumber,
    ReadStream,
    ReadTensors,
    Require,
    RequireLayouts,
    RequirePresence,
    ShapeLaunch,
    ShapeOutput,
    SizeWorkspace,
    TakeAddresses,
    unknown_step,
)
from trunnion.model.scalars import scalar_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.launcher.context import Context
    from trunnion.launcher.maps import MapLayout
    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, PlannedArgument, PlannedLaunch, PlannedWindow
    from trunnion.model.plan.slots import Binding, Source, StructSlot, WorkspaceSlot
    from trunnion.model.plan.steps import Action, Encode, Step, ValueCheck

__all__ = ["Walk"]

_PHASES = (Phase.TENSORS, Phase.VALUES)
"""What the arguments decide."""

_INT32 = range(-(1 << 31), 1 << 31)


class Walk:
    """One call.

    Parameters
    ----------
    plan
        What is called.
    context
        The launcher's context: it judges tensors, devices and streams.
    args
        The arguments, in the signature's order.
    out
        Destinations for every output; None: they are allocated.
    stream
        The handle of the stream; None: the current one of the device.
    device
        The device's ordinal; None: that of the tensors.
    """

    def __init__(
        self,
        plan: LaunchPlan,
        context: Context,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> None:
        self.plan, self._context, self._args = plan, context, args
        self.out = out
        """The destinations, checked."""
        self.stream: Any = stream
        """The stream's handle, once all steps are done."""
        self.device: Any = device
        """The device's ordinal, once the tensors are read."""
        self.values = [0] * len(plan.symbols)
        """The values of the symbols and of the device's facts, by slot."""
        self.tensors: dict[int, Any] = {}
        """The inputs by slot; None: the call leaves it out."""
        self.addresses: dict[int, int] = {}
        """The inputs' addresses; 0 for one that is left out."""
        self.scalars: dict[int, Any] = {}
        """The numbers of the call, by slot."""
        self.pointers: dict[int, int] = {}
        """The addresses of the call, by slot."""
        self.structs: dict[int, bytes] = {}
        """The bytes of the call, by slot."""
        self.shapes: dict[int, tuple[int, ...]] = {}
        """The outputs' extents, by slot."""
        self.sizes: dict[int, int] = {}
        """The workspaces' bytes, by slot; of those that nobody reads there is none."""
        self.launches: dict[int, tuple[int, ...]] = {}
        """Of each launch that happens grid, block and dynamic shared memory."""
        self.attributes: dict[int, dict[str, tuple[int, ...]]] = {}
        """Of each launch that happens the driver's numbers of the attributes that the call decides, by field."""
        self.computed: dict[tuple[int, ...], bytes] = {}
        """The computed arguments as they travel, by launch and ordinal, and by the place of a field in a struct; of a
        view what follows its address."""
        self.offsets: dict[tuple[int, ...], int] = {}
        """The bytes by which the address of each argument is moved that is a moved one, by the same places."""
        self.windows: dict[int, tuple[int, int]] = {}
        """The offset and the length of each window, in bytes, by launch."""
        self.layouts: dict[int, tuple[MapLayout, int]] = {}
        """The layout of each tensor map, and its offset in bytes; of those that nobody reads there is none."""

    def run(self) -> Iterator[Step]:
        """Do what the arguments decide, and yield each step once it is done; then device and stream are known.

        Raises
        ------
        TrunnionError
            If the call is refused.
        """
        wanted = tuple(param.name for param in self.plan.signature.params)
        if len(self._args) != len(wanted):
            raise refusals.count_error(tuple(self._args), wanted)
        for step in self.plan.steps:
            if step.phase not in _PHASES:
                return
            self.do(step.action)
            yield step

    def happens(self, action: Action) -> bool:
        """Whether a call comes to a step: whether one of the launches that it is done for happens."""
        return action.readers is None or any(reader in self.launches for reader in action.readers)

    def do(self, action: Action) -> None:  # noqa: C901, PLR0912 - one for each kind of step
        """Do a step, if the call comes to it."""
        if not self.happens(action):
            return
        match action:
            case ReadTensors():
                self._read_tensors()
            case Bind(binding):
                self._bind(binding)
            case Require(check):
                self._require(check)
            case RequireLayouts():
                self._require_layouts()
            case ReadNumber(slot):
                self._read_number(slot)
            case TakeAddresses():
                self._take_addresses()
            case RequirePresence(memory, _, what):
                if self.tensors[memory.slot] is None:
                    raise refusals.absent_error(self.plan.memory(memory).name, what)
            case CheckDestinations():
                self._check_destinations()
            case ShapeOutput(tensor):
                self.shapes[tensor.index] = self._extents(tensor, tensor.shape)
            case ShapeLaunch(launch):
                self._shape(launch)
            case SizeWorkspace(workspace):
                self._size(workspace)
            case ComputeArguments(launch, ordinals):
                for ordinal in ordinals:
                    self._compute(launch.args[ordinal], (launch.index, ordinal))
            case ComputeWindow(launch, window):
                self._window(launch, window)
            case LayOutMap(encode):
                self._lay_out(encode)
            case ReadStream() if self.stream is None:
                self.stream = self._context.current_stream(self.device)
            case ReadStream():
                self._context.check_stream(self.stream, self.device)
            case _:
                raise unknown_step(action)

    def _value(self, expr: Expr) -> int:
        return evaluate(expr, self.values, self.plan.symbols)

    # What the call was given -----------------------------------------------------------------------------------

    def _names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.plan.inputs)

    def _read_tensors(self) -> None:
        plan, context = self.plan, self._context
        self.tensors = {slot.index: self._args[slot.position] for slot in plan.inputs}
        tensors = tuple(self.tensors.values())
        try:
            for slot in plan.inputs:
                tensor = self.tensors[slot.index]
                if tensor is None and slot.nullable:
                    continue
                context.check_argument(slot.name, tensor)
                if tensor.dtype is not context.dtype(slot.dtype.name):
                    raise refusals.dtype_error(slot.name, tensor, slot.dtype.name)
                if len(tensor.shape) != len(slot.shape):
                    raise refusals.rank_error(slot.name, tensor, len(slot.shape))
                tensor.stride()  # which a nested tensor does not tell
            self.device = context.check_device(self._names(), tensors, self.device)
        except RuntimeError as error:
            raise refusals.unreadable_error(self._names(), tensors, error) from error

    def _require_layouts(self) -> None:
        for slot in self.plan.inputs:
            tensor = self.tensors[slot.index]
            if slot.strides is None and tensor is not None and not tensor.is_contiguous():
                raise refusals.layout_error(slot.name, tensor)
        self._context.check_storage(self._names(), tuple(self.tensors.values()))

    def _take_addresses(self) -> None:
        tensors = tuple(self.tensors.values())
        try:
            self.addresses = {
                slot: 0 if tensor is None else int(tensor.data_ptr()) for slot, tensor in self.tensors.items()
            }
        except RuntimeError as error:
            raise refusals.unreadable_error(self._names(), tensors, error) from error
        for slot in self.plan.inputs:
            tensor, address = self.tensors[slot.index], self.addresses[slot.index]
            if tensor is not None:
                self._context.check_pointer(slot.name, tensor, address, slot.alignment)

    def _read_number(self, slot: ScalarSlot | PointerSlot | StructSlot) -> None:
        name, given = slot.name, self._args[slot.position]
        if isinstance(slot, ScalarSlot):
            self.scalars[slot.index] = scalars.number(name, given, slot.dtype)
        elif isinstance(slot, PointerSlot):
            self.pointers[slot.index] = scalars.address(name, given, slot.alignment, nullable=slot.nullable)
        else:
            self.structs[slot.index] = scalars.struct_bytes(name, given, slot.nbytes)

    def _check_destinations(self) -> None:
        context, plan = self._context, self.plan
        if self.out is not None:
            wanted = tuple(
                (
                    slot.name,
                    self.shapes[slot.index],
                    author_extents(plan, slot),
                    context.dtype(slot.dtype.name),
                    slot.alignment,
                )
                for slot in plan.outputs
            )
            context.check_outputs(self.out, wanted, self.device)

    # Symbols ---------------------------------------------------------------------------------------------------

    def _number(self, source: Source) -> int:
        if source.kind == "scalar":
            return int(self.scalars[source.slot])
        tensor = self.tensors[source.slot]
        return int((tensor.shape if source.kind == "shape" else tensor.stride())[source.axis])

    def _there(self, source: Source) -> bool:
        return source.kind == "scalar" or self.tensors[source.slot] is not None

    def _live(self, source: Source) -> bool:
        if source.kind != "stride":
            return True
        shape = self.tensors[source.slot].shape
        return bool(shape[source.axis] > 1 and math.prod(shape))

    def _bind(self, binding: Binding) -> None:
        source, plan = binding.source, self.plan
        if binding.candidates:
            there = [one for one in binding.candidates if self._there(one)]
            if not there:
                refusals.unbound(binding.symbol, tuple(mention(plan, one) for one in binding.candidates))
            source = next((one for one in there if self._live(one)), there[0])
        value = self._number(source)
        if not self._allowed(binding, value):
            allowed = allowed_values(binding, source_range(plan, binding))
            raise refusals.symbol_error(argument_name(plan, source), place_words(source), value, allowed)
        self.values[binding.slot] = value

    def _allowed(self, binding: Binding, value: int) -> bool:
        """Whether a symbol's value is within its bounds."""
        return binding.min <= value <= binding.max and not value % binding.multiple_of

    def _holds(self, condition: Any) -> bool:
        """Whether a condition holds, of which a trace may know no more than that it will be asserted."""
        return bool(condition)

    def _met(self, condition: Expr) -> bool:
        """Whether a condition of the author's is met."""
        return bool(self._value(condition))

    def _require(self, check: ValueCheck | ConditionCheck) -> None:
        if isinstance(check, ConditionCheck):
            if not self._met(check.condition):
                raise refusals.condition_error(check.message)
            return
        source = check.source
        if not self._there(source):
            return
        want, got = self._value(check.expected), self._number(source)
        if not self._live(source) or self._holds(got == want):
            return
        name, text = argument_name(self.plan, source), author_text(self.plan, check)
        if source.kind == "scalar":
            raise refusals.value_error(name, got, want, text)
        told = refusals.extent_error if source.kind == "shape" else refusals.stride_error
        raise told(name, source.axis, got, want, text)

    # What follows ----------------------------------------------------------------------------------------------

    def _extents(self, memory: TensorSlot | WorkspaceSlot, exprs: tuple[Expr, ...]) -> tuple[int, ...]:
        extents = []
        for axis, expr in enumerate(exprs):
            extents.append(self._value(expr))
            if not self._holds(extents[-1] >= 0):
                raise refusals.negative_error(memory.name, axis, extents[-1])
        return tuple(extents)

    def _shape(self, launch: PlannedLaunch) -> None:
        if launch.when is not None and not self._value(launch.when):
            return
        kernel = self.plan.kernels[launch.kernel].name
        grid = []
        for axis, expr in enumerate(launch.grid):
            grid.append(self._value(expr))
            if not 0 <= grid[axis] <= MAX_GRID[axis]:
                raise refusals.grid_error(kernel, axis, grid[axis], MAX_GRID[axis])
            if grid[axis] % launch.clusters[axis] and not isinstance(expr, Const):
                raise refusals.cluster_error(kernel, axis, grid[axis], launch.clusters[axis])
        if math.prod(grid):
            cluster = self._cluster(launch, kernel, grid)
            shape = (*grid, *self._block(launch, kernel))
            pdl = tuple(int(self._value(condition) != 0) for condition in launch.computed_pdl)
            self.launches[launch.index] = shape
            self.attributes[launch.index] = {"cluster": cluster, "pdl": pdl}

    def _cluster(self, launch: PlannedLaunch, kernel: str, grid: Sequence[int]) -> tuple[int, ...]:
        """Return the cluster of which a call decides, and of which its grid is a multiple."""
        cluster = []
        for axis, expr in enumerate(launch.computed_cluster):
            cluster.append(self._value(expr))
            if not 1 <= cluster[axis] <= MAX_CLUSTER_BLOCKS:
                raise refusals.cluster_extent_error(kernel, axis, cluster[axis], MAX_CLUSTER_BLOCKS)
        if math.prod(cluster) > MAX_CLUSTER_BLOCKS:
            raise refusals.wide_cluster_error(kernel, math.prod(cluster), MAX_CLUSTER_BLOCKS)
        for axis, width in enumerate(cluster):
            if grid[axis] % width:
                raise refusals.cluster_error(kernel, axis, grid[axis], width)
        return tuple(cluster)

    def _block(self, launch: PlannedLaunch, kernel: str) -> tuple[int, ...]:
        block = []
        for axis, expr in enumerate(launch.block):
            block.append(self._value(expr))
            if not 1 <= block[axis] <= MAX_BLOCK[axis]:
                raise refusals.block_error(kernel, axis, block[axis], MAX_BLOCK[axis])
        if math.prod(block) > MAX_THREADS:
            raise refusals.wide_block_error(kernel, math.prod(block))
        smem = self._value(launch.dynamic_smem_bytes)
        if not 0 <= smem <= MAX_SMEM:
            raise refusals.smem_error(kernel, smem, MAX_SMEM)
        return (*block, smem)

    def _size(self, workspace: WorkspaceSlot) -> None:
        nbytes = math.prod(self._extents(workspace, workspace.extents)) * workspace.itemsize
        if nbytes > INT64_MAX - max(workspace.alignment, ALLOCATOR_ALIGNMENT):
            raise refusals.size_error(workspace.name)
        self.sizes[workspace.index] = nbytes

    def _compute(self, argument: PlannedArgument, place: tuple[int, ...], field: str = "") -> None:
        match argument:
            case ExprArgument(value, kind):
                number = evaluate(value, self.values, self.plan.symbols, field)
                self.computed[place] = scalar_bytes(number, kind, "argument")
            case FloatArgument():
                self.computed[place] = float_bytes(argument, self.values, self.plan.symbols, field)
            case ViewArgument():
                self.computed[place] = self._view(argument)
            case MovedArgument():
                self.offsets[place] = self._offset(argument)
            case BuiltArgument(fields):
                for index, one in enumerate(fields):
                    self._compute(one.argument, (*place, index), in_field(one))

    def _offset(self, moved: MovedArgument) -> int:
        """Return the bytes by which an address is moved; a tensor that is left out has none, so nobody judges them."""
        memory = self.plan.memory(moved.memory)
        if self.plan.may_be_absent(moved.memory) and self.tensors[moved.memory.slot] is None:
            return 0
        offset = self._value(moved.offset)
        if not moved.is_proven:
            limit = self._value(moved.limit)
            if not 0 <= offset <= limit:
                raise refusals.offset_error(memory.name, offset, limit)
        return offset * memory.dtype.itemsize

    def _view(self, view: ViewArgument) -> bytes:
        exprs, strides = view.numbers
        extents = []
        for place, expr in enumerate(exprs):
            axis, whole = view.unproven.get(place, (0, expr))
            extents.append(self._value(whole))
            if extents[-1] not in _INT32:
                raise refusals.view_error(self.plan.memory(view.memory).name, axis, extents[-1])
        numbers = struct.pack(f"<{len(extents)}i{'4x' * (len(extents) % 2)}", *extents)
        return numbers + struct.pack(f"<{len(strides)}q", *map(self._value, strides))

    def _window(self, launch: PlannedLaunch, window: PlannedWindow) -> None:
        memory, offset, nbytes = window.memory, self._value(window.offset_bytes), 0
        # Over nothing there is no window to judge: that it is absent is told where all checks before held.
        if not self.plan.may_be_absent(memory) or self.tensors[memory.slot] is not None:
            given = None if window.nbytes is None else self._value(window.nbytes)
            numbers = offset, given, self._value(window.limit_bytes)
            nbytes = self._context.window_bytes(self.device, self.plan.memory(memory).name, numbers)
        self.windows[launch.index] = offset, nbytes

    def _lay_out(self, encode: Encode) -> None:
        offset = self._value(encode.offset_bytes)
        dims, strides = tuple(map(self._value, encode.dims)), tuple(map(self._value, encode.strides))
        encoder = self._context.encoders[encode.index]
        layout = encoder.layout(self.device, dims, strides, self._value(encode.innermost_stride))
        if encode.limit_bytes is not None:
            encoder.within(layout, offset, self._value(encode.limit_bytes))
        self.layouts[encode.index] = layout, offset
