"""From a program to its plan: names become slots, equal maps become one, parameters get offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError, shorten
from trunnion.messages import type_name
from trunnion.model.code import part_position
from trunnion.model.constant import Constant
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Cast, Const, Expr, Slot, Symbol
from trunnion.model.expr_tree import facts_of, substitute
from trunnion.model.facts import ATTRIBUTES, DeviceFact, Fact, Occupancy
from trunnion.model.float_expr import FloatCast, over_integers
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.memory import Memory
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.plan import (
    AddressArgument,
    Binding,
    BuiltArgument,
    BuiltField,
    ConditionCheck,
    ConstantArgument,
    ExprArgument,
    FloatArgument,
    KernelField,
    KernelParameter,
    KernelSignature,
    LaunchPlan,
    MapArgument,
    MemoryKind,
    MemoryRef,
    PlannedArgument,
    PlannedAttribute,
    PlannedLaunch,
    PointerArgument,
    PointerSlot,
    ScalarArgument,
    ScalarSlot,
    Source,
    StructArgument,
    StructSlot,
    TensorSlot,
    ValueCheck,
    VariableArgument,
    VariableSlot,
    WorkspaceSlot,
)
from trunnion.model.plan.facts import AttributeFact, OccupancyFact, PlannedFact
from trunnion.model.plan.planning_memory import (
    Slots,
    map_identity,
    plan_map,
    plan_moved,
    plan_view,
    plan_window,
)
from trunnion.model.plan.requirements import requirements
from trunnion.model.plan.steps import CopyVariable
from trunnion.model.struct import Struct, layout_of, pieces
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.model.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.model.code import DeviceCode
    from trunnion.model.launch import Argument, Dims, KernelLaunch
    from trunnion.model.params import Signature
    from trunnion.model.program import KernelProgram
    from trunnion.model.struct import Piece

__all__ = ["plan_program", "plan_signature"]

_INT64 = dtype("int64")


def plan_program(program: KernelProgram) -> LaunchPlan:
    """Return the plan of ``program``.

    Raises
    ------
    ProgramError
        If two launches of one kernel pass it different parameters.
    """
    return _Planner(program).plan()


def plan_signature(name: str, signature: Signature) -> LaunchPlan:
    """Return the plan of a call that launches nothing: what it is given, and what follows from that.

    So is a function called that somebody else wrote and that launches by itself.

    Raises
    ------
    ProgramError
        If a check is over a fact of the device: nothing of what is called reads any.
    """
    for index, check in enumerate(signature.checks):
        for fact in facts_of(check.condition):
            raise ProgramError(
                f"got {fact.spelled}, expected symbols and numbers: who calls a function that launches by itself "
                "knows nothing of its device",
                field=f"checks[{index}].condition",
            )
    return _Planner(_Interface(name, signature)).plan()


@dataclass(frozen=True, slots=True)
class _Interface:
    """A program as far as its caller sees it."""

    name: str
    signature: Signature
    code: tuple[DeviceCode, ...] = ()
    launches: tuple[KernelLaunch, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    variables: tuple[ModuleVariable, ...] = ()
    copies: tuple[CopyToVariable, ...] = ()


class _Planner:
    """Everything known while one program is planned."""

    def __init__(self, program: KernelProgram | _Interface) -> None:
        self.program = program
        self.workspaces = program.workspaces
        signature = program.signature
        tensors = (*signature.tensors, *signature.outputs)
        self.slot_of: dict[object, int] = {}
        tables = (tensors, signature.scalars, signature.pointers, signature.structs, self.workspaces)
        for table in (*tables, program.variables):
            self.slot_of |= {member: index for index, member in enumerate(table)}
        groups = (signature.params, signature.outputs)
        self.position = {one: place for group in groups for place, one in enumerate(group)}
        self.value_slot: dict[Symbol, Slot] = {}
        self.fact_slot: dict[Fact, Slot] = {}
        self.bindings: list[Binding] = []
        self.kernel_slot: dict[tuple[str, int], int] = {}
        self.map_slot: dict[tuple[object, ...], int] = {}
        self.maps: list[TensorMap] = []
        self.map_readers: list[dict[int, None]] = []
        self.part = part_position(program.code)
        self.slots = Slots(self._over_slots, self._memory)
        self._bind()

    def plan(self) -> LaunchPlan:
        signature = self.program.signature
        launches = tuple(self._launches())  # collects the maps and the kernels, too
        workspaces, tensors = tuple(self._workspaces()), tuple(self._tensors())
        variables = tuple(self._variables())
        encodes = tuple(
            plan_map(index, one, tuple(readers), self.slots)
            for index, (one, readers) in enumerate(zip(self.maps, self.map_readers, strict=True))
        )
        checks: tuple[ValueCheck | ConditionCheck, ...] = (
            *self._value_checks(),
            *self._condition_checks(),
            *self._copy_checks(),
        )
        facts = tuple(map(self._fact, self.fact_slot))  # all that was planned until here is over
        return LaunchPlan(
            name=self.program.name,
            signature=signature,
            tensors=tensors,
            scalars=tuple(self._scalars()),
            pointers=tuple(self._pointers()),
            structs=tuple(self._structs()),
            workspaces=workspaces,
            bindings=tuple(self.bindings),
            checks=checks,
            encodes=encodes,
            launches=launches,
            results=tuple(self.slot_of[output] for output in signature.outputs),
            kernels=self._kernels(launches),
            requires=frozenset(requirements(signature, workspaces, launches, encodes, facts, variables)),
            facts=facts,
            variables=variables,
            copies=tuple(self._copies()),
        )

    def _memory(self, memory: Memory) -> MemoryRef:
        kind = MemoryKind.WORKSPACE if isinstance(memory, Workspace) else MemoryKind.TENSOR
        return MemoryRef(kind, self.slot_of[memory])

    # Symbols ---------------------------------------------------------------------------------------------------

    def _occurrences(self) -> Iterator[tuple[Source, Expr]]:
        """Every number that the inputs of a call show, in the order in which symbols are bound."""
        tensors = self.program.signature.tensors
        for tensor in tensors:
            for axis, extent in enumerate(tensor.shape):
                yield Source("shape", self.slot_of[tensor], axis), extent
        for tensor in tensors:
            for axis, stride in enumerate(tensor.strides or ()):
                yield Source("stride", self.slot_of[tensor], axis), stride
        for scalar in self.program.signature.scalars:
            if scalar.symbol is not None:
                yield Source("scalar", self.slot_of[scalar]), scalar.symbol

    def _bind(self) -> None:
        places: dict[Symbol, list[Source]] = {}
        for source, expr in self._occurrences():
            if isinstance(expr, Symbol):
                places.setdefault(expr, []).append(source)
        absent = {self.slot_of[tensor] for tensor in self.program.signature.tensors if tensor.nullable}
        for source, expr in self._occurrences():
            if isinstance(expr, Symbol) and expr not in self.value_slot:
                may_be_absent = source.kind != "scalar" and source.slot in absent
                several = may_be_absent or (source.kind == "stride" and len(places[expr]) > 1)
                slot = Slot(len(self.bindings), expr.min, expr.max)
                self.value_slot[expr] = slot
                self.bindings.append(
                    Binding(
                        slot=slot.index,
                        symbol=expr.name,
                        source=source,
                        candidates=tuple(places[expr]) if several else (),
                        min=expr.min,
                        max=expr.max,
                        multiple_of=expr.multiple_of,
                    )
                )

    def _over_slots(self, expr: Expr) -> Expr:
        return substitute(expr, self._slot)

    def _slot(self, leaf: Symbol | Fact) -> Slot:
        """Return the value slot of a symbol; of a fact of the device, which gets the next one behind all symbols'."""
        if isinstance(leaf, Symbol):
            return self.value_slot[leaf]
        place = len(self.bindings) + len(self.fact_slot)
        return self.fact_slot.setdefault(leaf, Slot(place, leaf.bounds.low, leaf.bounds.high))

    def _fact(self, fact: Fact) -> PlannedFact:
        if isinstance(fact, DeviceFact):
            row = ATTRIBUTES[fact.name]
            return AttributeFact(fact.spelled, row.number, row.least)
        if not isinstance(fact, Occupancy):
            raise TypeError(f"a program is over a {type_name(fact)}")
        kernel = next(slot for (name, _), slot in self.kernel_slot.items() if name == fact.kernel)
        return OccupancyFact(fact.spelled, kernel, fact.threads, fact.dynamic_smem_bytes)

    def _dims(self, dims: Dims) -> Dims:
        x, y, z = dims
        return self._over_slots(x), self._over_slots(y), self._over_slots(z)

    # The call's arguments --------------------------------------------------------------------------------------

    def _tensors(self) -> Iterator[TensorSlot]:
        inputs, outputs = self.program.signature.tensors, self.program.signature.outputs
        for index, tensor in enumerate((*inputs, *outputs)):
            yield TensorSlot(
                index=index,
                name=tensor.name,
                dtype=tensor.dtype,
                shape=self.slots.exprs(tensor.shape),
                strides=None if tensor.strides is None else self.slots.exprs(tensor.strides),
                alignment=tensor.alignment or tensor.dtype.itemsize,
                output=index >= len(inputs),
                position=self.position[tensor],
                nullable=tensor.nullable,
                fill=tensor.fill_data,
            )

    def _scalars(self) -> Iterator[ScalarSlot]:
        for index, param in enumerate(self.program.signature.scalars):
            place = self.position[param]
            yield ScalarSlot(index=index, name=param.name, dtype=param.dtype, position=place)

    def _pointers(self) -> Iterator[PointerSlot]:
        for index, param in enumerate(self.program.signature.pointers):
            yield PointerSlot(
                index=index,
                name=param.name,
                nullable=param.nullable,
                alignment=param.alignment,
                position=self.position[param],
            )

    def _structs(self) -> Iterator[StructSlot]:
        for index, param in enumerate(self.program.signature.structs):
            yield StructSlot(
                index=index,
                name=param.name,
                nbytes=param.nbytes,
                alignment=param.alignment,
                position=self.position[param],
            )

    def _workspaces(self) -> Iterator[WorkspaceSlot]:
        readers: dict[Memory, list[int]] = {}
        for index, launch in enumerate(self.program.launches):
            for memory in launch.memories():
                readers.setdefault(memory, []).append(index)
        for index, workspace in enumerate(self.workspaces):
            yield WorkspaceSlot(
                index=index,
                name=workspace.name,
                extents=self.slots.exprs(workspace.shape),
                dtype=workspace.dtype,
                itemsize=workspace.dtype.itemsize,
                alignment=workspace.alignment,
                zeroed=workspace.zeroed,
                readers=tuple(readers[workspace]),
            )

    def _value_checks(self) -> Iterator[ValueCheck]:
        bound = {binding.source for binding in self.bindings if not binding.candidates}
        for source, expr in self._occurrences():
            if source not in bound:
                yield ValueCheck(source, self._over_slots(expr))

    def _condition_checks(self) -> Iterator[ConditionCheck]:
        for check in self.program.signature.checks:
            yield ConditionCheck(self._over_slots(check.condition), check.message)

    # Module variables ------------------------------------------------------------------------------------------

    def _variables(self) -> Iterator[VariableSlot]:
        for index, variable in enumerate(self.program.variables):
            part = 0 if variable.code is None else self.part(variable.code)
            yield VariableSlot(
                index=index, name=variable.name, part=part, nbytes=variable.nbytes, init=variable.init
            )

    def _copies(self) -> Iterator[CopyVariable]:
        for copy in self.program.copies:
            slot, memory = self.slot_of[copy.variable], self._memory(copy.tensor)
            yield CopyVariable(slot, memory, copy.variable.nbytes, copy.before)

    def _copy_checks(self) -> Iterator[ConditionCheck]:
        """Yield what only a call can say: whether a tensor has as many elements as the variable that it goes to."""
        for copy in self.program.copies:
            if not isinstance(copy.fits, Const):
                yield ConditionCheck(self._over_slots(copy.fits), copy.expected)

    # Launches --------------------------------------------------------------------------------------------------

    def _launches(self) -> Iterator[PlannedLaunch]:
        for index, launch in enumerate(self.program.launches):
            key = (launch.kernel, self._part(launch))
            yield PlannedLaunch(
                index=index,
                kernel=self.kernel_slot.setdefault(key, len(self.kernel_slot)),
                args=tuple(self._argument(argument, index) for argument in launch.args),
                grid=self._dims(launch.grid),
                block=self._dims(launch.block),
                dynamic_smem_bytes=self._over_slots(launch.dynamic_smem_bytes),
                when=None if launch.when is None else self._over_slots(launch.when),
                attributes=tuple(self._attributes(launch)),
                window=None if launch.window is None else plan_window(launch.window, self.slots),
            )

    def _attributes(self, launch: KernelLaunch) -> Iterator[PlannedAttribute]:
        for row in LAUNCH_ATTRIBUTES:
            values: Any = row.values(getattr(launch, row.field))
            if values:
                said = tuple(self._over_slots(one) if isinstance(one, Expr) else one for one in values)
                yield PlannedAttribute(row.field, row.id, said)

    def _part(self, launch: KernelLaunch) -> int:
        return 0 if launch.code is None else self.part(launch.code)

    def _argument(  # noqa: C901, PLR0911 - one for each kind
        self, argument: Argument, launch: int
    ) -> PlannedArgument:
        match argument:
            case Memory():
                return PointerArgument(self._memory(argument))
            case TensorView():
                return plan_view(argument, self.slots)
            case MovedAddress():
                return plan_moved(argument, self.slots)
            case Constant():
                return ConstantArgument(argument.data, argument.dtype)
            case FloatCast():
                return FloatArgument(over_integers(argument.value, self._over_slots), argument.to)
            case ScalarParam():
                return ScalarArgument(self.slot_of[argument])
            case PointerParam():
                return AddressArgument(self.slot_of[argument])
            case StructParam():
                return StructArgument(self.slot_of[argument])
            case ModuleVariable():
                return VariableArgument(self.slot_of[argument])
            case TensorMap():
                return MapArgument(self._map(argument, launch))
            case Struct():
                fields = (self._built_field(piece, launch) for piece in pieces(argument))
                return BuiltArgument(tuple(fields), argument.layout.nbytes)
        value = self._over_slots(argument)
        return ExprArgument(value, value.to if isinstance(value, Cast) else _INT64)

    def _built_field(self, piece: Piece, launch: int) -> BuiltField:
        planned = self._argument(piece.argument, launch)
        return BuiltField(piece.offset, layout_of(piece.argument).nbytes, piece.path, planned)

    def _map(self, tensor_map: TensorMap, launch: int) -> int:
        """Return the slot of a map, and note that a launch takes it."""
        slot = self.map_slot.setdefault(map_identity(tensor_map), len(self.maps))
        if slot == len(self.maps):
            self.maps.append(tensor_map)
            self.map_readers.append({})
        self.map_readers[slot][launch] = None
        return slot

    def _kernels(self, launches: Sequence[PlannedLaunch]) -> tuple[KernelSignature, ...]:
        found: dict[int, KernelSignature] = {}
        for planned, launch in zip(launches, self.program.launches, strict=True):
            parameters = tuple(_parameter(argument) for argument in launch.args)
            signature = KernelSignature(launch.kernel, parameters, self._part(launch))
            known = found.setdefault(planned.kernel, signature)
            if _sizes(known) != _sizes(signature):
                raise ProgramError(
                    f"kernel {shorten(launch.kernel)} is given other parameters than in an earlier launch",
                    field=f"launches[{planned.index}].args",
                )
        return tuple(found.values())


def _sizes(kernel: KernelSignature) -> list[tuple[int, int]]:
    """Return what reaches the device: a kernel with a ``void*`` may be given pointers to anything."""
    return [(parameter.size, parameter.alignment) for parameter in kernel.parameters]


def _parameter(argument: Argument) -> KernelParameter:
    layout = layout_of(argument)
    found = pieces(argument) if isinstance(argument, Struct) else ()
    fields = tuple(KernelField(one.offset, one.path, _parameter(one.argument).description) for one in found)
    unit = "byte" if layout.nbytes == 1 and not isinstance(argument, StructParam) else "bytes"
    return KernelParameter(
        layout.nbytes, layout.alignment, f"{_words(argument)} ({layout.nbytes} {unit})", fields
    )


def _words(argument: Argument) -> str:  # noqa: C901, PLR0911 - one for each kind
    match argument:
        case Memory():
            return f"a pointer to {argument.dtype}"
        case MovedAddress():
            return _words(argument.memory)
        case Constant(dtype=None):
            return "a null pointer"
        case Constant(dtype=DType() as kind) | ScalarParam(dtype=kind) | FloatCast(to=kind) | Cast(to=kind):
            return kind.name
        case TensorView():
            return f"a view of {argument.memory.dtype}"
        case PointerParam():
            return "a pointer"
        case ModuleVariable():
            return f"the address of a variable of {argument.dtype}"
        case StructParam():
            return "a struct"
        case TensorMap():
            return "a tensor map"
        case Struct():
            return "a struct of the launcher's"
    return _INT64.name
