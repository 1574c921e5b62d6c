"""From a program to its plan: names become slots, equal maps become one, parameters get offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, UnboundSymbolError, shorten
from trunnion.model.capability import Capability
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Cast, Expr, Slot, Symbol
from trunnion.model.expr_text import format_expr
from trunnion.model.expr_tree import substitute, symbols_of
from trunnion.model.params import ScalarParam, TensorParam
from trunnion.model.plan import (
    TENSOR_MAP_ALIGNMENT,
    TENSOR_MAP_BYTES,
    Allocation,
    Binding,
    ConditionCheck,
    Encode,
    ExprArgument,
    KernelParameter,
    KernelSignature,
    LaunchPlan,
    MapArgument,
    PlannedArgument,
    PlannedLaunch,
    PointerArgument,
    ScalarArgument,
    ScalarSlot,
    Source,
    TensorSlot,
    ValueCheck,
)
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trunnion.model.launch import Argument, Dims
    from trunnion.model.params import Signature
    from trunnion.model.program import KernelProgram

__all__ = ["plan_program"]

_INT64 = dtype("int64")
_POINTER_BYTES = 8
_MAX_SHOWN = 80  # characters of an expression in a message


def plan_program(program: KernelProgram) -> LaunchPlan:
    """Return the plan of ``program``.

    Raises
    ------
    UnboundSymbolError
        If no input has a symbol as a bare dimension, stride or scalar.
    ProgramError
        If two launches of one kernel pass it different parameters.
    """
    return _Planner(program).plan()


class _Planner:
    """Everything known while one program is planned."""

    def __init__(self, program: KernelProgram) -> None:
        self.program = program
        signature = program.signature
        tensors = (*signature.tensors, *signature.outputs)
        self.tensor_slot = {tensor: index for index, tensor in enumerate(tensors)}
        self.scalar_slot = {scalar: index for index, scalar in enumerate(signature.scalars)}
        self.value_slot: dict[Symbol, Slot] = {}
        self.bindings: list[Binding] = []
        self.kernel_slot: dict[str, int] = {}
        self.map_slot: dict[tuple[object, ...], int] = {}
        self.maps: list[tuple[TiledTensorMap, list[int]]] = []
        self._bind()

    def plan(self) -> LaunchPlan:
        signature = self.program.signature
        launches = tuple(self._launches())  # collects the maps and the kernels, too
        outputs = tuple(self.tensor_slot[output] for output in signature.outputs)
        return LaunchPlan(
            name=self.program.name,
            signature=signature,
            tensors=tuple(self._tensors()),
            scalars=tuple(self._scalars()),
            bindings=tuple(self.bindings),
            checks=(*self._value_checks(), *self._condition_checks()),
            allocations=tuple(Allocation(slot) for slot in outputs),
            encodes=tuple(self._encode(index, *entry) for index, entry in enumerate(self.maps)),
            launches=launches,
            results=outputs,
            kernels=self._kernels(launches),
            requires=_requirements(self.program),
        )

    # Symbols ---------------------------------------------------------------------------------------------------

    def _occurrences(self) -> Iterator[tuple[Source, Expr]]:
        """Every number that the inputs of a call show, in the order in which symbols are bound."""
        tensors = self.program.signature.tensors
        for tensor in tensors:
            for axis, extent in enumerate(tensor.shape):
                yield Source("shape", self.tensor_slot[tensor], axis), extent
        for tensor in tensors:
            for axis, stride in enumerate(tensor.strides or ()):
                yield Source("stride", self.tensor_slot[tensor], axis), stride
        for scalar in self.program.signature.scalars:
            if scalar.symbol is not None:
                yield Source("scalar", self.scalar_slot[scalar]), scalar.symbol

    def _bind(self) -> None:
        places: dict[Symbol, list[Source]] = {}
        for source, expr in self._occurrences():
            if isinstance(expr, Symbol):
                places.setdefault(expr, []).append(source)
        for source, expr in self._occurrences():
            if isinstance(expr, Symbol) and expr not in self.value_slot:
                several = source.kind == "stride" and len(places[expr]) > 1
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
        for symbol in self.program.signature.symbols():
            if symbol not in self.value_slot:
                raise UnboundSymbolError(symbol.name, _mentions(symbol, self.program.signature))

    def _over_slots(self, expr: Expr) -> Expr:
        return substitute(expr, self.value_slot.__getitem__)

    def _all_over_slots(self, exprs: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(self._over_slots(expr) for expr in exprs)

    def _dims(self, dims: Dims) -> Dims:
        x, y, z = dims
        return self._over_slots(x), self._over_slots(y), self._over_slots(z)

    # The call's arguments --------------------------------------------------------------------------------------

    def _tensors(self) -> Iterator[TensorSlot]:
        signature = self.program.signature
        places = [(i, p) for i, p in enumerate(signature.params) if isinstance(p, TensorParam)]
        places += list(enumerate(signature.outputs))
        for position, tensor in places:
            index = self.tensor_slot[tensor]
            yield TensorSlot(
                index=index,
                name=tensor.name,
                dtype=tensor.dtype,
                shape=self._all_over_slots(tensor.shape),
                strides=None if tensor.strides is None else self._all_over_slots(tensor.strides),
                alignment=tensor.alignment or tensor.dtype.itemsize,
                output=index >= len(signature.tensors),
                position=position,
            )

    def _scalars(self) -> Iterator[ScalarSlot]:
        for position, param in enumerate(self.program.signature.params):
            if isinstance(param, ScalarParam):
                index = self.scalar_slot[param]
                yield ScalarSlot(index=index, name=param.name, dtype=param.dtype, position=position)

    def _value_checks(self) -> Iterator[ValueCheck]:
        bound = {binding.source for binding in self.bindings if not binding.candidates}
        for source, expr in self._occurrences():
            if source not in bound:
                yield ValueCheck(source, self._over_slots(expr))

    def _condition_checks(self) -> Iterator[ConditionCheck]:
        for check in self.program.signature.checks:
            yield ConditionCheck(self._over_slots(check.condition), check.message)

    # Launches --------------------------------------------------------------------------------------------------

    def _launches(self) -> Iterator[PlannedLaunch]:
        for index, launch in enumerate(self.program.launches):
            yield PlannedLaunch(
                index=index,
                kernel=self.kernel_slot.setdefault(launch.kernel, len(self.kernel_slot)),
                args=tuple(self._argument(argument, index) for argument in launch.args),
                grid=self._dims(launch.grid),
                block=self._dims(launch.block),
                dynamic_smem_bytes=self._over_slots(launch.dynamic_smem_bytes),
                cluster=None if launch.cluster is None else self._dims(launch.cluster),
                cooperative=launch.cooperative,
                pdl=launch.pdl,
            )

    def _argument(self, argument: Argument, launch: int) -> PlannedArgument:
        match argument:
            case TensorParam():
                return PointerArgument(self.tensor_slot[argument])
            case ScalarParam():
                return ScalarArgument(self.scalar_slot[argument])
            case TiledTensorMap():
                slot = self.map_slot.setdefault(_map_identity(argument), len(self.maps))
                if slot == len(self.maps):
                    self.maps.append((argument, []))
                readers = self.maps[slot][1]
                if launch not in readers:
                    readers.append(launch)
                return MapArgument(slot)
        value = self._over_slots(argument)
        return ExprArgument(value, value.to if isinstance(value, Cast) else _INT64)

    def _encode(self, index: int, tensor_map: TiledTensorMap, readers: list[int]) -> Encode:
        itemsize = tensor_map.element_type.itemsize
        steps = tuple(reversed(tensor_map.layout()))
        return Encode(
            index=index,
            tensor=self.tensor_slot[tensor_map.tensor],
            offset_bytes=self._over_slots(tensor_map.element_offset * tensor_map.tensor.dtype.itemsize),
            dtype=tensor_map.element_type,
            dims=self._all_over_slots(reversed(tensor_map.extents)),
            strides=self._all_over_slots(step * itemsize for step in steps[1:]),
            innermost_stride=self._over_slots(steps[0]),
            box=tuple(reversed(tensor_map.box_dim)),
            element_strides=tuple(reversed(tensor_map.element_steps())),
            interleave=tensor_map.interleave.code,
            swizzle=tensor_map.swizzle.code,
            l2_promotion=tensor_map.l2_promotion.code,
            oob_fill=tensor_map.oob_fill.code,
            readers=tuple(readers),
        )

    def _kernels(self, launches: Sequence[PlannedLaunch]) -> tuple[KernelSignature, ...]:
        found: dict[str, KernelSignature] = {}
        for planned, launch in zip(launches, self.program.launches, strict=True):
            parameters = tuple(self._parameter(argument) for argument in planned.args)
            signature = KernelSignature(launch.kernel, parameters)
            known = found.setdefault(launch.kernel, signature)
            if _sizes(known) != _sizes(signature):
                raise ProgramError(
                    f"kernel {shorten(launch.kernel)} is given other parameters than in an earlier launch",
                    field=f"launches[{planned.index}].args",
                )
        return tuple(found.values())

    def _parameter(self, argument: PlannedArgument) -> KernelParameter:
        signature = self.program.signature
        match argument:
            case PointerArgument(slot):
                tensor = (*signature.tensors, *signature.outputs)[slot]
                return KernelParameter(
                    _POINTER_BYTES, _POINTER_BYTES, f"a pointer to {tensor.dtype} (8 bytes)"
                )
            case ScalarArgument(slot):
                return _number(signature.scalars[slot].dtype)
            case ExprArgument(_, to):
                return _number(to)
            case MapArgument():
                return KernelParameter(
                    TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT, f"a tensor map ({TENSOR_MAP_BYTES} bytes)"
                )


def _sizes(kernel: KernelSignature) -> list[tuple[int, int]]:
    """Return what reaches the device: a kernel with a ``void*`` may be given pointers to anything."""
    return [(parameter.size, parameter.alignment) for parameter in kernel.parameters]


def _mentions(symbol: Symbol, signature: Signature) -> Iterator[str]:
    """Say where a symbol stands that nothing binds: inside of expressions, in outputs, in checks."""
    places = [
        (f"{word} {axis} of {owner}{shorten(tensor.name)}", expr)
        for word, owner, tensors in (
            ("dimension", "", signature.tensors),
            ("stride", "", signature.tensors),
            ("dimension", "output ", signature.outputs),
        )
        for tensor in tensors
        for axis, expr in enumerate(tensor.shape if word == "dimension" else tensor.strides or ())
    ]
    places += [(f"check {index}", check.condition) for index, check in enumerate(signature.checks)]
    for where, expr in places:
        if symbol in symbols_of(expr):
            text = format_expr(expr)
            yield f"{where} is {text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + '...'}"


def _number(kind: DType) -> KernelParameter:
    unit = "byte" if kind.itemsize == 1 else "bytes"
    return KernelParameter(kind.itemsize, kind.itemsize, f"{kind.name} ({kind.itemsize} {unit})")


def _map_identity(tensor_map: TiledTensorMap) -> tuple[object, ...]:
    """Everything that the driver is told: two maps that agree here are one, whatever their labels and spellings."""
    return (
        tensor_map.tensor,
        tensor_map.element_offset,
        tensor_map.element_type,
        tensor_map.extents,
        tensor_map.layout(),
        tensor_map.box_dim,
        tensor_map.element_steps(),
        tensor_map.interleave,
        tensor_map.swizzle,
        tensor_map.l2_promotion,
        tensor_map.oob_fill,
    )


def _requirements(program: KernelProgram) -> frozenset[Capability]:
    """Compute what a backend must declare, member by member as `Capability` documents them."""
    signature, launches = program.signature, program.launches
    arguments = [argument for launch in launches for argument in launch.args]
    needed = {
        Capability.DYNAMIC_SHAPES: bool(signature.symbols()),
        Capability.STRIDED_TENSORS: any(
            tensor.strides is not None for tensor in (*signature.tensors, *signature.outputs)
        ),
        Capability.MULTI_LAUNCH: len(launches) > 1,
        Capability.TMA_TILED: any(isinstance(argument, TiledTensorMap) for argument in arguments),
        Capability.CLUSTER: any(launch.cluster is not None for launch in launches),
        Capability.COOPERATIVE: any(launch.cooperative for launch in launches),
        Capability.PDL: any(launch.pdl for launch in launches),
    }
    return frozenset(capability for capability, wanted in needed.items() if wanted)
