"""`KernelProgram`: all that an author says, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.messages import suggestion
from trunnion.model.code import DeviceCode, code_parts, part_position
from trunnion.model.constant import Constant
from trunnion.model.expr import Expr, folded
from trunnion.model.expr_text import brief_expr
from trunnion.model.expr_tree import symbols_of, walk
from trunnion.model.facts import Occupancy
from trunnion.model.fields import instance, instances, place, text
from trunnion.model.float_expr import FloatCast, integers_of
from trunnion.model.launch import KernelLaunch
from trunnion.model.limits import MOST_NODES, expect_at_most
from trunnion.model.memory import Memory
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import Param, PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.struct import Struct, leaves, pieces
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.model.window import AccessPolicyWindow
from trunnion.model.workspace import Workspace, by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.model.expr import Symbol
    from trunnion.model.launch import Argument
    from trunnion.model.plan import LaunchPlan

__all__ = ["KernelProgram"]


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A signature, the device code, and the launches in their order.

    Everything that a launch refers to is an object of this program: a parameter, a map over one, an expression over
    the signature's symbols. Nothing is matched by its text.
    """

    name: str
    """What people call it."""

    signature: Signature
    """What a call takes and gives back."""

    code: tuple[DeviceCode, ...]
    """The device code; several parts are linked."""

    launches: tuple[KernelLaunch, ...]
    """The launches, in stream order."""

    variables: tuple[ModuleVariable, ...] = ()
    """The variables of the device code that it initialises, copies to, or passes the address of."""

    copies: tuple[CopyToVariable, ...] = ()
    """What is copied to variables before launches, in stream order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        instance(self.signature, Signature, "signature")
        object.__setattr__(self, "code", instances(code_parts(self.code), DeviceCode, "code"))
        object.__setattr__(self, "launches", instances(self.launches, KernelLaunch, "launches"))
        for name in ("code", "launches"):
            if not getattr(self, name):
                raise ProgramError("got none, expected at least one", field=name)
        self._check_size()
        self._check_expressions()
        known = set(self.signature.symbols())
        params: set[Param] = {*self.signature.params, *self.signature.outputs}
        part = part_position(self.code)
        for index, launch in enumerate(self.launches):
            with place(f"launches[{index}]"):
                _check_references(launch, params, known)
                if launch.code is not None and part(launch.code) < 0:
                    raise ProgramError("is not a part of this program's code", field="code")
        self._check_variables(params)
        by_name(self._used_workspaces(), "launches")

    def _check_variables(self, params: set[Param]) -> None:
        """Refuse variables that cannot be told apart, and what refers to something else than the program has."""
        for field, kind in (("variables", ModuleVariable), ("copies", CopyToVariable)):
            object.__setattr__(self, field, instances(getattr(self, field), kind, field))
        part = part_position(self.code)
        known: set[tuple[str, int]] = set()
        for index, variable in enumerate(self.variables):
            with place(f"variables[{index}]"):
                where = 0 if variable.code is None else part(variable.code)
                if where < 0:
                    raise ProgramError("is not a part of this program's code", field="code")
                if (variable.name, where) in known:
                    raise ProgramError(f"two variables are called {shorten(variable.name)}", field="name")
                known.add((variable.name, where))
        own = set(self.variables)
        for field, used in self._variable_uses():
            if used not in own:
                raise ProgramError(
                    f"{shorten(used.name)} is not a variable of this program: expected one of its variables",
                    field=field,
                )
        for index, copy in enumerate(self.copies):
            field = f"copies[{index}]"
            if copy.tensor not in params:
                raise ProgramError(
                    f"{shorten(copy.tensor.name)} is not a parameter of this program's signature",
                    field=f"{field}.tensor",
                )
            last = self.copies[index - 1].before if index else 0
            if not last <= copy.before < len(self.launches):
                raise ProgramError(
                    f"got {copy.before}, expected {last} to {len(self.launches) - 1}: a launch follows a copy, and "
                    "copies stand in their order",
                    field=f"{field}.before",
                )

    def _variable_uses(self) -> Iterator[tuple[str, ModuleVariable]]:
        """Yield each variable that a launch or a copy refers to, with the field where it does."""
        for index, launch in enumerate(self.launches):
            for ordinal, argument in enumerate(launch.args):
                for piece in pieces(argument):
                    if isinstance(piece.argument, ModuleVariable):
                        yield f"launches[{index}].args[{ordinal}]{piece.path}", piece.argument
        for index, copy in enumerate(self.copies):
            yield f"copies[{index}].variable", copy.variable

    def _check_size(self) -> None:
        """Refuse a program whose plan would be far larger than its text: many launches of much."""
        signature = self.signature
        nodes = sum(map(_size_of, (*signature.params, *signature.outputs)))
        nodes += sum(check.condition.nodes for check in signature.checks)
        nodes += sum(map(_launch_size, self.launches))
        expect_at_most(nodes, MOST_NODES, "nodes of expressions in all", "launches")

    def _check_expressions(self) -> None:
        """Refuse an expression that its text would not give back, and an occupancy that says nothing."""
        parts: dict[str, set[DeviceCode | None]] = {}
        for launch in self.launches:
            parts.setdefault(launch.kernel, set()).add(launch.code or self.code[0])
        for field, expr in self._expressions():
            for node in walk(expr):
                if isinstance(node, Occupancy):
                    _check_occupancy(node, parts, field)
                elif node.depth > 1:
                    _check_folded(node, field)

    def _expressions(self) -> Iterator[tuple[str, Expr]]:
        """Yield every expression of the program, with the field that it stands in."""
        for name in ("params", "outputs"):
            for index, param in enumerate(getattr(self.signature, name)):
                if isinstance(param, TensorParam):
                    yield from ((f"{name}[{index}].shape[{i}]", one) for i, one in enumerate(param.shape))
                    steps = param.strides or ()
                    yield from ((f"{name}[{index}].strides[{i}]", one) for i, one in enumerate(steps))
        for index, check in enumerate(self.signature.checks):
            yield f"checks[{index}].condition", check.condition
        for index, launch in enumerate(self.launches):
            yield from ((f"launches[{index}].{field}", expr) for field, expr in _places(launch))
            spaces = [memory for memory in launch.memories() if isinstance(memory, Workspace)]
            yield from ((f"launches[{index}]", extent) for space in spaces for extent in space.shape)

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """The workspaces that launches are given, in the order of their first use; equal ones are one."""
        return tuple(by_name(self._used_workspaces(), "launches").values())

    def _used_workspaces(self) -> Iterator[Workspace]:
        for launch in self.launches:
            yield from (memory for memory in launch.memories() if isinstance(memory, Workspace))

    def plan(self) -> LaunchPlan:
        """Return the launch plan: ordered host steps over slots.

        Raises
        ------
        ProgramError
            If the program cannot be launched at all, for example because nothing gives a symbol its value.
        """
        from trunnion.model.plan.planning import plan_program  # noqa: PLC0415 - planning reads this module

        return plan_program(self)

    def to_json(self) -> str:
        """Return the program as JSON text; `from_json` gives back an equal program.

        Raises
        ------
        ProgramError
            If the text, or that of one expression, is longer than what `from_json` reads.
        """
        from trunnion.model.serial import dump_program  # noqa: PLC0415 - serial reads this module

        return dump_program(self)

    @classmethod
    def from_json(cls, text: str) -> KernelProgram:
        """Read what `to_json` wrote.

        Raises
        ------
        ProgramError
            If the text is not such a program: malformed, an unknown field, another schema version.
        """
        from trunnion.model.serial.reading import load_program  # noqa: PLC0415 - it reads this module

        return load_program(text)


def _check_occupancy(fact: Occupancy, parts: Mapping[str, set[DeviceCode | None]], field: str) -> None:
    """Refuse the occupancy of a kernel that the program does not launch, or that may be one of several."""
    if len(parts.get(fact.kernel, ())) == 1:
        return
    if fact.kernel in parts:
        got = "two parts of the code have a kernel of that name: give one another name"
    else:
        got = f"expected a kernel that the program launches{suggestion(fact.kernel, parts)}"
    raise ProgramError(f"occupancy of kernel {shorten(fact.kernel)}: {got}", field=field)


def _check_folded(node: Expr, field: str) -> None:
    """Refuse a node that its function would not have made, as what reads the text of it does not either."""
    found = folded(node)
    if found is not None:
        raise ProgramError(
            f"got {brief_expr(node, ())}, expected {brief_expr(found, ())}: make it by binary() or select(), which "
            "fold at once, or by operators, not as Binary(...) or Select(...)",
            field=field,
        )


def _expressions(argument: Argument) -> Iterator[Expr]:
    match argument:
        case TensorMap():
            yield argument.element_offset
            yield from (*argument.tensor.shape, *(argument.shape or ()), *argument.layout())
        case TensorView() | MovedAddress():
            yield from argument.expressions
        case Workspace():
            yield from argument.shape
        case FloatCast():
            yield from integers_of(argument.value)
        case (
            TensorParam()
            | ScalarParam()
            | PointerParam()
            | StructParam()
            | Struct()
            | ModuleVariable()
            | Memory()
            | Constant()
        ):
            return
        case _:
            yield argument


def _window_expressions(window: AccessPolicyWindow) -> Iterator[Expr]:
    yield window.element_offset
    yield from () if window.nbytes is None else (window.nbytes,)
    yield from window.memory.shape


def _places(launch: KernelLaunch) -> Iterator[tuple[str, Expr]]:
    """Yield every expression of a launch, with the field that it stands in."""
    for name in ("grid", "block"):
        yield from ((f"{name}[{i}]", extent) for i, extent in enumerate(getattr(launch, name)))
    yield "dynamic_smem_bytes", launch.dynamic_smem_bytes
    if launch.when is not None:
        yield "when", launch.when
    for index, extent in enumerate(launch.cluster or ()):
        yield from ((f"cluster[{index}]", one) for one in (extent,) if isinstance(one, Expr))
    if isinstance(launch.pdl, Expr):
        yield "pdl", launch.pdl
    if launch.window is not None:
        yield from (("window", expr) for expr in _window_expressions(launch.window))
    for index, argument in enumerate(launch.args):
        for piece in pieces(argument):
            yield from ((f"args[{index}]{piece.path}", expr) for expr in _expressions(piece.argument))


def _launch_size(launch: KernelLaunch) -> int:
    """Return the nodes of all expressions that a call looks at for a launch, those of its memory included."""
    decided = [one for one in (*(launch.cluster or ()), launch.pdl) if isinstance(one, Expr)]
    own = (*launch.grid, *launch.block, launch.dynamic_smem_bytes, launch.when, *decided, launch.window)
    return sum(map(_size_of, (*own, *(leaf for given in launch.args for leaf in leaves(given)))))


def _size_of(one: Argument | AccessPolicyWindow | None) -> int:  # noqa: PLR0911 - one for each kind
    match one:
        case Expr() | FloatCast():
            return one.nodes
        case TensorMap():
            fields = (one.element_offset, *(one.shape or ()), *(one.strides or ()))
            return _size_of(one.tensor) + sum(expr.nodes for expr in fields)
        case TensorView():
            return _size_of(one.memory)
        case MovedAddress():
            return _size_of(one.memory) + one.offset.nodes
        case AccessPolicyWindow():
            return _size_of(one.memory) + one.element_offset.nodes + _size_of(one.nbytes)
        case Memory():
            return sum(expr.nodes for expr in (*one.shape, *(getattr(one, "strides", None) or ())))
    return 0


def _owner(argument: Argument) -> object:
    match argument:
        case TensorMap():
            return argument.tensor
        case TensorView() | MovedAddress():
            return argument.memory
    return argument


def _check_references(launch: KernelLaunch, params: set[Param], known: set[Symbol]) -> None:
    owners: list[tuple[str, object]] = [
        (f"args[{i}]{piece.path}", _owner(piece.argument))
        for i, arg in enumerate(launch.args)
        for piece in pieces(arg)
    ]
    if launch.window is not None:
        owners.append(("window", launch.window.memory))
    for field, owner in owners:
        if isinstance(owner, (TensorParam, ScalarParam, PointerParam, StructParam)) and owner not in params:
            raise ProgramError(
                f"{shorten(owner.name)} is not a parameter of this program's signature", field=field
            )
    for field, expr in _places(launch):
        with place(field):
            for symbol in symbols_of(expr):
                if symbol not in known:
                    raise ProgramError(f"symbol {shorten(symbol.name)} does not stand in the signature")
