"""Launches as the simulated driver saw them, in the words of the program: which step, which arguments, which values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.cli.document import plain
from trunnion.errors import CorruptArtifactError
from trunnion.model.expr import Cast, Const
from trunnion.model.float_text import brief_float
from trunnion.model.plan import (
    AddressArgument,
    BuiltArgument,
    ConstantArgument,
    ExprArgument,
    FloatArgument,
    MapArgument,
    MemoryKind,
    MovedArgument,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    VariableArgument,
    ViewArgument,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.compiled import CompiledProgram
    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, MemoryRef, PlannedArgument, PlannedLaunch
    from trunnion.sim.parameters import Delivered
    from trunnion.sim.trace import Launched

__all__ = ["Reading"]


class Reading:
    """How the launches of one call of a program are read.

    Parameters
    ----------
    plan
        What a call does.
    symbols
        The exact name of each kernel in the image, in the plan's order.
    """

    def __init__(self, plan: LaunchPlan, symbols: Sequence[str]) -> None:
        self._plan = plan
        self._steps = [(symbols[step.kernel], step) for step in plan.launches]

    @classmethod
    def of(cls, program: CompiledProgram) -> Reading:
        """Return how the launches of a compiled program are read."""
        return cls(program.plan, [kernel.symbol for kernel in program.artifact.manifest.kernels])

    def facts(self, launches: Sequence[Launched]) -> list[dict[str, Any]]:
        """Return what the program says of each launch: ``name``, the kernel's there, and ``arguments``.

        An argument has ``name``, ``kind``, ``type`` and ``value``. A call may skip launches; where it cannot be told
        which of several equal kernels was launched, ``name`` and ``arguments`` are null: nothing is guessed.

        Parameters
        ----------
        launches
            Those of one call, in order.
        """
        return [
            {"name": None, "arguments": None} if step is None else self._facts(event, step)
            for event, step in zip(launches, self._behind(launches), strict=True)
        ]

    def _facts(self, event: Launched, step: PlannedLaunch) -> dict[str, Any]:
        arguments = [self._argument(event, ordinal, one) for ordinal, one in enumerate(step.args)]
        return {"name": self._plan.kernels[step.kernel].name, "arguments": arguments}

    def _behind(self, launches: Sequence[Launched]) -> Iterator[PlannedLaunch | None]:
        """Return the step behind each launch, or one that passes the same; None where several could be."""
        symbols = [event.kernel for event in launches]
        own = [symbol for symbol, _ in self._steps]
        first, last = _embedded(symbols, own), _embedded(symbols[::-1], own[::-1])
        for index, symbol in enumerate(symbols):
            if first is None or last is None:
                yield None
                continue
            low, high = first[index], len(own) - 1 - last[-1 - index]
            steps = [step for name, step in self._steps[low : high + 1] if name == symbol]
            yield steps[0] if all(step.args == steps[0].args for step in steps) else None

    def _argument(self, event: Delivered, ordinal: int, argument: PlannedArgument) -> dict[str, Any]:
        match argument:
            case MapArgument(slot):
                return self._map(event, ordinal, self._plan.encodes[slot].memory)
            case PointerArgument(memory):
                name, element = self._memory(memory)
                return _said(name, memory.kind, f"{element}*", event.pointer(ordinal))
            case MovedArgument(memory):
                name, element = self._memory(memory)
                offset = plain(argument.offset, self._plan.symbols)
                return _said(f"{name}.at({offset})", memory.kind, f"{element}*", event.pointer(ordinal))
            case ViewArgument(memory):
                layout = plain(
                    event.view(ordinal, _constants(argument.extents), _constants(argument.strides))
                )
                del layout["type"]
                return _said(self._memory(memory)[0], "view", str(argument.dtype), layout)
            case BuiltArgument():
                return self._built(event, ordinal, argument)
        return self._value(event, ordinal, argument)

    def _value(  # noqa: PLR0911 - one for each kind
        self,
        event: Delivered,
        ordinal: int,
        argument: (
            ConstantArgument
            | ScalarArgument
            | ExprArgument
            | FloatArgument
            | AddressArgument
            | StructArgument
            | VariableArgument
        ),
    ) -> dict[str, Any]:
        plan = self._plan
        match argument:
            case ConstantArgument():
                return _constant(event, ordinal, argument)
            case ScalarArgument(slot):
                name, kind = plan.scalars[slot].name, plan.scalars[slot].dtype
                return _said(name, "scalar", kind.name, plain(event.scalar(ordinal, kind)))
            case ExprArgument(value, kind):
                name = str(plain(value.operand if isinstance(value, Cast) else value, plan.symbols))
                return _said(name, "expression", kind.name, plain(event.scalar(ordinal, kind)))
            case FloatArgument(number, kind):
                name = brief_float(number, plan.symbols)
                return _said(name, "expression", kind.name, plain(event.scalar(ordinal, kind)))
            case AddressArgument(slot):
                return _said(plan.pointers[slot].name, "pointer", "void*", event.pointer(ordinal))
            case StructArgument(slot):
                data = event.parameters[ordinal]
                return _said(plan.structs[slot].name, "struct", f"{len(data)} bytes", data.hex())
            case VariableArgument(slot):
                return _said(plan.variables[slot].name, "variable", "void*", event.pointer(ordinal))

    def _built(self, event: Delivered, ordinal: int, argument: BuiltArgument) -> dict[str, Any]:
        """Return a struct that the launcher built: of its fields what is said of arguments, with path and offset."""
        held = event.fields(ordinal, *((one.offset, one.size) for one in argument.fields))
        told = [
            {"path": one.path, "offset": one.offset, **self._argument(held, place, one.argument)}
            for place, one in enumerate(argument.fields)
        ]
        return _said("struct(...)", "built struct", f"{len(event.parameters[ordinal])} bytes", told)

    def _map(self, event: Delivered, ordinal: int, memory: MemoryRef) -> dict[str, Any]:
        from trunnion.sim.tensormap import decode

        name = self._memory(memory)[0]
        try:
            request = plain(decode(event.parameters[ordinal]))
        except CorruptArtifactError:  # a body is told so; here it is shown that there is none
            return _said(name, "tensor map", "none", None)
        kind = str(request.pop("type")).removesuffix("Request").lower()
        return _said(name, "tensor map", kind, request)

    def _memory(self, memory: MemoryRef) -> tuple[str, str]:
        tensors = memory.kind is MemoryKind.TENSOR
        slots: Any = self._plan.tensors if tensors else self._plan.workspaces
        return slots[memory.slot].name, str(slots[memory.slot].dtype)


def _constant(event: Delivered, ordinal: int, constant: ConstantArgument) -> dict[str, Any]:
    if constant.dtype is None:
        return _said("null", "constant", "void*", event.pointer(ordinal))
    number = plain(event.scalar(ordinal, constant.dtype))
    return _said(f"const({number})", "constant", constant.dtype.name, number)


def _said(name: str, kind: str, of: str, value: Any) -> dict[str, Any]:
    return {"name": name, "kind": str(kind), "type": of, "value": value}


def _constants(numbers: Sequence[Expr]) -> list[int | None]:
    return [number.value if isinstance(number, Const) else None for number in numbers]


def _embedded(symbols: Sequence[str], steps: Sequence[str]) -> list[int] | None:
    """Return where the symbols stand among the steps, in order and each as early as can be; None: they do not."""
    found, at = [], 0
    for symbol in symbols:
        while at < len(steps) and steps[at] != symbol:
            at += 1
        if at == len(steps):
            return None
        found.append(at)
        at += 1
    return found
